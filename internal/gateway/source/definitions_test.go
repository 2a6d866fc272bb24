package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func packed(t *testing.T, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// aFile is what tables name in these tests, with the content "tools".
func aFile() table.ToolFile {
	return table.ToolFile{ConfigMap: "weather", Key: "tools.json", SHA256: digestOf("tools")}
}

// prepare begins, in a bubble, to fetch files, and waits for them as those do who ask for what is in them.
func prepare(t *testing.T, d *Definitions, files ...table.ToolFile) {
	t.Helper()
	begun := time.Now()
	d.Begin(files)
	if waited := time.Since(begun); waited != 0 {
		t.Errorf("the table waited for %s", waited)
	}
	for _, file := range files {
		d.Await(t.Context(), file)
	}
}

// definitions are those of a bubble, fetching until its end.
func definitions(t *testing.T, s *apiServer, folder string) *Definitions {
	t.Helper()
	d, err := NewDefinitions(s.configMap(), folder, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return d
}

// named answers the next request, which must be for that ConfigMap alone.
func (s *apiServer) named(t *testing.T, name string, code int, o object) {
	t.Helper()
	e := <-s.requests
	if got, want := e.Method+" "+e.RequestURI, "GET /api/v1/namespaces/team-a/configmaps/"+name; got != want {
		t.Errorf("the request is %s, want %s", got, want)
	}
	if got := e.Header.Get("Authorization"); got != "Bearer token-1" {
		t.Errorf("it is authorized by %q", got)
	}
	e.w.WriteHeader(code)
	if code == http.StatusOK { // not flushed: whoever has the answer may end the test
		if err := json.NewEncoder(e.w).Encode(o); err != nil {
			t.Error(err)
		}
	}
	close(e.done)
}

func read(t *testing.T, d *Definitions, file table.ToolFile) string {
	t.Helper()
	content, err := d.Read(file)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(content)
}

func TestADefinitionIsFetchedOnceAndFoundAfterARestartWithoutTheAPIServer(t *testing.T) {
	for name, tc := range map[string]struct {
		key    string
		object object
	}{
		"a text":       {"tools.json", object{Data: map[string]string{"tools.json": "tools"}}},
		"bytes":        {"tools.json", object{BinaryData: map[string][]byte{"tools.json": []byte("tools")}}},
		"packed bytes": {"tools.json.gz", object{BinaryData: map[string][]byte{"tools.json.gz": packed(t, "tools")}}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "made when it is needed")
			file := aFile()
			file.Key = tc.key
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t)
				d := definitions(t, s, folder)
				go s.named(t, "weather", http.StatusOK, tc.object)
				begun := time.Now()
				prepare(t, d, file, file)
				if got := read(t, d, file); got != "tools" {
					t.Errorf("read %q", got)
				}
				if waited := time.Since(begun); waited != 0 {
					t.Errorf("the table waited for %s", waited)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t)
				s.set(true)
				d := definitions(t, s, folder)
				prepare(t, d, file)
				if got := read(t, d, file); got != "tools" {
					t.Errorf("after the restart read %q", got)
				}
			})
		})
	}
}

func TestADefinitionThatIsNotAsExpectedIsToldAndFetchedWhenItIs(t *testing.T) {
	good := object{Data: map[string]string{"tools.json": "tools"}, BinaryData: map[string][]byte{"tools.json.gz": packed(t, "tools")}}
	for name, tc := range map[string]struct {
		code   int
		key    string
		object object
		want   string
	}{
		"no ConfigMap": {code: http.StatusNotFound, want: "does not exist"},
		"no right":     {code: http.StatusForbidden, want: "may not be read: the gateway's service account lacks get on it"},
		"an outage":    {code: http.StatusServiceUnavailable, want: "cannot be fetched from the API server, which is tried again"},
		"another key":  {object: object{Data: map[string]string{"a": "tools"}}, want: `has no key "tools.json"`},
		"other content": {
			object: object{Data: map[string]string{"tools.json": "x"}},
			want:   `has under the key "tools.json" another SHA-256 than the table says`,
		},
		"too much": {
			object: object{Data: map[string]string{"tools.json": strings.Repeat("x", table.MaxToolFileBytes+1)}},
			want:   `has more than 4194304 bytes under the key "tools.json"`,
		},
		"too much when it is unpacked": {
			key:    "tools.json.gz",
			object: object{BinaryData: map[string][]byte{"tools.json.gz": packed(t, strings.Repeat("x", 8<<20))}},
			want:   `has more than 4194304 bytes under the key "tools.json.gz"`,
		},
		"what is not packed": {
			key: "tools.json.gz", object: object{BinaryData: map[string][]byte{"tools.json.gz": []byte("tools")}},
			want: `has under the key "tools.json.gz" what cannot be unpacked by gzip`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t)
				d := definitions(t, s, "")
				file := aFile()
				if tc.key != "" {
					file.Key = tc.key
				}
				if tc.code == 0 {
					tc.code = http.StatusOK
				}
				d.Begin([]table.ToolFile{file})
				arrival := d.Arrival(file)
				if got := read(t, d, file); got != "error: was not fetched yet" {
					t.Errorf("before that read %q", got)
				}
				s.named(t, "weather", tc.code, tc.object)
				synctest.Wait()
				if got := read(t, d, file); got != "error: "+tc.want {
					t.Errorf("read %q, want %q", got, tc.want)
				}
				s.named(t, "weather", http.StatusOK, good)
				<-arrival
				if got := read(t, d, file); got != "tools" {
					t.Errorf("at last read %q", got)
				}
			})
		})
	}
}

func TestWhatIsNewIsAwaitedForTwoSecondsAndNotAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		s.set(true)
		d := definitions(t, s, "")
		for _, want := range []time.Duration{2 * time.Second, 0} {
			begun := time.Now()
			prepare(t, d, aFile())
			if waited := time.Since(begun); waited != want {
				t.Errorf("waited for %s, want %s", waited, want)
			}
		}
	})
}

func TestAFailedDefinitionIsTriedLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		d := definitions(t, s, "")
		d.Begin([]table.ToolFile{aFile()})
		s.named(t, "weather", http.StatusNotFound, object{})
		last := time.Now()
		for failures := range 10 {
			s.named(t, "weather", http.StatusNotFound, object{})
			if pause := time.Since(last); pause < delay(failures, 0) || pause > delay(failures, 1) {
				t.Errorf("after %d failures it was asked again after %s", failures+1, pause)
			}
			last = time.Now()
		}
		// What is new is not held up by it.
		other := table.ToolFile{ConfigMap: "maps", Key: "tools.json", SHA256: digestOf("maps")}
		begun := time.Now()
		go s.named(t, "maps", http.StatusOK, object{Data: map[string]string{"tools.json": "maps"}})
		prepare(t, d, aFile(), other)
		if waited := time.Since(begun); waited != 0 || read(t, d, other) != "maps" {
			t.Errorf("the other came after %s: %s", waited, read(t, d, other))
		}
	})
}

func TestWhatNoTableNamesIsForgottenAndRemoved(t *testing.T) {
	folder := t.TempDir()
	kept, old := aFile(), table.ToolFile{ConfigMap: "old", Key: "k", SHA256: digestOf("old")}
	for name, content := range map[string]string{
		kept.SHA256: "tools", old.SHA256: "old", old.SHA256 + ".new": "ol", "readme": "somebody's", strings.Repeat("g", 64): "somebody's",
	} {
		write(t, filepath.Join(folder, name), content)
	}
	synctest.Test(t, func(t *testing.T) {
		d, err := NewDefinitions(nil, folder, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		prepare(t, d, kept, old)
		if read(t, d, kept)+read(t, d, old) != "toolsold" {
			t.Fatalf("read %q and %q", read(t, d, kept), read(t, d, old))
		}
		d.Keep([]table.ToolFile{kept})
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, entry := range entries {
			left = append(left, entry.Name())
		}
		want := []string{kept.SHA256, strings.Repeat("g", 64), "readme"}
		if diff := cmp.Diff(want, left); diff != "" {
			t.Errorf("left are (-want +got):\n%s", diff)
		}
		if got := read(t, d, old); got != "error: is not one of the table in use" {
			t.Errorf("read %q", got)
		}
	})
}

func TestWhatIsBrokenInTheFolderIsFetchedAgain(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, aFile().SHA256), "too")
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		d := definitions(t, s, folder)
		for _, step := range []string{"at the start", "later"} {
			go s.named(t, "weather", http.StatusOK, object{Data: map[string]string{"tools.json": "tools"}})
			if step == "at the start" {
				prepare(t, d, aFile())
			} else {
				write(t, filepath.Join(folder, aFile().SHA256), "")
				if got := read(t, d, aFile()); !strings.HasPrefix(got, "error: has gone") {
					t.Errorf("read %q of a broken file", got)
				}
				<-d.Arrival(aFile())
			}
			if got := read(t, d, aFile()); got != "tools" {
				t.Errorf("%s: read %q", step, got)
			}
		}
	})
}

func TestWithoutAnAPIServerNothingIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := NewDefinitions(nil, t.TempDir(), slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		d.Run(t.Context())
		begun := time.Now()
		prepare(t, d, aFile())
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("waited for %s", waited)
		}
		if got := read(t, d, aFile()); got != "error: cannot be fetched, since the gateway was started without --configmap" {
			t.Errorf("read %q", got)
		}
	})
}
