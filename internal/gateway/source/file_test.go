package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// tableOf is the text of a table of that revision.
func tableOf(revision string) string {
	return fmt.Sprintf(`{"version":1,"revision":%q,"endpoint":{},"auth":{"type":"None"},"backends":[]}`, revision)
}

// taker notes what it is given: the revision of a table, or "refused: " and the error.
type taker struct {
	mu     sync.Mutex
	told   []string
	errors []error
}

func (k *taker) options(o Options) Options {
	o.Table = func(t *table.Table) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.told = append(k.told, t.Revision)
	}
	o.Refused = func(err error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.told = append(k.told, "refused: "+err.Error())
		k.errors = append(k.errors, err)
	}
	return o
}

// since waits until all is at rest and compares what was told since the last time.
func (k *taker) since(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	if diff := cmp.Diff(want, k.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	k.told = nil
}

// pass lets time go by, which in a bubble takes none.
func pass(d time.Duration) { <-time.After(d) }

// start runs a source until the test is over.
func start(t *testing.T, o Options) *taker {
	t.Helper()
	k := &taker{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, k.options(o)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return k
}

// write replaces a file in one step.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestAFileIsReadAtOnceAndAgainWithinASecondOfAChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.json")
	write(t, path, tableOf("a"))
	synctest.Test(t, func(t *testing.T) {
		k := start(t, Options{File: path})
		k.since(t, "a")

		write(t, path, tableOf("b"))
		pass(time.Second)
		k.since(t, "b")

		pass(time.Minute)
		k.since(t)
	})
}

func TestUnchangedContentIsNotDeliveredAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.json")
	write(t, path, tableOf("a"))
	synctest.Test(t, func(t *testing.T) {
		k := start(t, Options{File: path})
		k.since(t, "a")
		if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		k.since(t)
	})
}

func TestAFileThatIsWrittenToTwiceWithinATickOfItsTimeIsReadTwice(t *testing.T) {
	f, tick := file{path: filepath.Join(t.TempDir(), "table.json")}, time.Now().Add(time.Hour) // which is not over, however slow this is
	for _, revision := range []string{"a", "b"} {
		if err := os.WriteFile(f.path, []byte(tableOf(revision)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(f.path, tick, tick); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tableOf(revision), string(f.read().data)); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
	}
}

func TestAFileWhoseTimeLiesAheadIsReadAgainOnceAndNotForEver(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "table.json")}
	write(t, f.path, tableOf("a"))
	synctest.Test(t, func(t *testing.T) {
		ahead := time.Now().Add(time.Hour)
		if err := os.Chtimes(f.path, ahead, ahead); err != nil {
			t.Fatal(err)
		}
		var reads []bool
		for last := (*content)(nil); len(reads) < 5; pass(pollInterval) {
			c := f.read()
			reads = append(reads, c != last)
			last = c
		}
		if diff := cmp.Diff([]bool{true, true, false, false, false}, reads); diff != "" {
			t.Errorf("read at each look (-want +got):\n%s", diff)
		}
	})
}

// TestAFileThatCouldNotBeReadForAMomentIsReadAgain must never be parallel: for a moment nothing in the process can open a file.
func TestAFileThatCouldNotBeReadForAMomentIsReadAgain(t *testing.T) {
	f, long := file{path: filepath.Join(t.TempDir(), "table.json")}, time.Unix(1, 0)
	write(t, f.path, tableOf("a"))
	if err := os.Chtimes(f.path, long, long); err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	restore := func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(restore)
	failed := f.read()
	restore()
	if !errors.Is(failed.err, syscall.EMFILE) {
		t.Fatalf("without a file to open: %v", failed.err)
	}
	if got := f.read(); got.err != nil || string(got.data) != tableOf("a") {
		t.Errorf("with files to open again: %q, %v", got.data, got.err)
	}
}

func TestARefusedFileIsToldOnceAndItsMendingToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.json")
	write(t, path, tableOf("a"))
	synctest.Test(t, func(t *testing.T) {
		k := start(t, Options{File: path})
		k.since(t, "a")

		write(t, path, strings.Replace(tableOf("b"), `"None"`, `"none"`, 1))
		pass(10 * time.Second)
		k.since(t, "refused: "+path+`: the table is refused: auth.type: "none" is not known: Tokens or None`)
		if invalid := (*table.InvalidError)(nil); !errors.As(k.errors[0], &invalid) {
			t.Error("the error says not what is invalid")
		}

		write(t, path, tableOf("a"))
		pass(time.Second)
		k.since(t, "a")
	})
}

func TestAFileMayComeLateAndGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.json")
	missing := "refused: " + path + ": cannot be read: no such file or directory"
	synctest.Test(t, func(t *testing.T) {
		k := start(t, Options{File: path})
		pass(10 * time.Second)
		k.since(t, missing)
		if !errors.Is(k.errors[0], fs.ErrNotExist) {
			t.Error("the error is not fs.ErrNotExist")
		}

		write(t, path, tableOf("a"))
		pass(time.Second)
		k.since(t, "a")

		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		k.since(t, missing)

		write(t, path, tableOf("a"))
		pass(time.Second)
		k.since(t, "a")
	})
}

func TestAnEndlessFileIsNotReadToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := start(t, Options{File: "/dev/zero"})
		k.since(t, "refused: /dev/zero: the table is refused: table: is 1048577 bytes long, the limit is 1048576")
	})
}

// mounted is a ConfigMap as the kubelet mounts it: table.json -> ..data/table.json, ..data -> ..1, and a change is the rename
// of a new link over ..data.
func mounted(t *testing.T) (path string, change func(generation, text string)) {
	t.Helper()
	folder := t.TempDir()
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	change = func(generation, text string) {
		if err := os.Mkdir(filepath.Join(folder, ".."+generation), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, ".."+generation, "table.json"), text)
		// The kubelet's copies may well have equal times.
		if err := os.Chtimes(filepath.Join(folder, ".."+generation, "table.json"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		link(".."+generation, "..data_tmp")
		if err := os.Rename(filepath.Join(folder, "..data_tmp"), filepath.Join(folder, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	link("..data/table.json", "table.json")
	return filepath.Join(folder, "table.json"), change
}

func TestASwapOfTheKubeletsLinksIsSeen(t *testing.T) {
	path, change := mounted(t)
	change("1", tableOf("a"))
	synctest.Test(t, func(t *testing.T) {
		k := start(t, Options{File: path})
		k.since(t, "a")
		change("2", tableOf("b"))
		pass(time.Second)
		k.since(t, "b")
	})
}

func TestAFaultAtATableRefusesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.json")
	write(t, path, tableOf("a"))
	synctest.Test(t, func(t *testing.T) {
		k, faults := &taker{}, 0
		o := k.options(Options{File: path, Panics: panics.New(slog.New(slog.DiscardHandler), func(string) { faults++ })})
		take := o.Table
		o.Table = func(t *table.Table) {
			if t.Revision == "b" {
				panic("nobody thought of that")
			}
			take(t)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = Run(ctx, o) }()
		k.since(t, "a")
		write(t, path, tableOf("b"))
		pass(time.Second)
		k.since(t, "refused: "+path+": "+panics.Err.Error())
		write(t, path, tableOf("c"))
		pass(time.Second)
		k.since(t, "c")
		if faults != 1 {
			t.Errorf("%d faults were counted", faults)
		}
	})
}
