//go:build linux

package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
)

// proc makes a /proc with one process in it.
func proc(t *testing.T, pid, exe string, env ...string) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, pid)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(dir, "exe")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "environ"), []byte(strings.Join(env, "\x00")), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestOnlyAProcessOfThisStateFolderIsOurs(t *testing.T) {
	t.Parallel()
	ours := []string{"DEVCLUSTER_STATE=/state", "DEVCLUSTER_COMPONENT=etcd", "DEVCLUSTER_IDENTITY=abc"}
	cases := map[string]struct {
		exe  string
		env  []string
		want *Process
	}{
		"a daemon we started": {
			exe: "/state/bin/kube", env: ours,
			want: &Process{PID: 7, Exe: "/state/bin/kube", Component: "etcd", Identity: "abc"},
		},
		"a daemon whose binary was built anew": {
			exe: "/state/bin/kube (deleted)", env: ours,
			want: &Process{PID: 7, Exe: "/state/bin/kube", Replaced: true, Component: "etcd", Identity: "abc"},
		},
		"our binary, started by somebody else (envtest does)": {exe: "/state/bin/kube", env: []string{"HOME=/root"}},
		"our binary, of another state folder's cluster":       {exe: "/state/bin/kube", env: []string{"DEVCLUSTER_STATE=/other"}},
		"another binary in an environment of ours":            {exe: "/usr/bin/sleep", env: ours},
		"a folder whose name begins like ours":                {exe: "/state/bin-of-mine/kube", env: ours},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := NewTable(layout.Layout{Dir: "/state"})
			table.procRoot = proc(t, "7", tc.exe, tc.env...)
			all, err := table.All()
			if err != nil {
				t.Fatal(err)
			}
			var want []Process
			if tc.want != nil {
				want = append(want, *tc.want)
			}
			if diff := cmp.Diff(want, all); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// sleeper is a state folder whose only binary is a copy of sleep.
func sleeper(t *testing.T) (layout.Layout, *Table, Spec) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := layout.Layout{Dir: dir}
	b, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Skipf("no sleep to start: %v", err)
	}
	if err := os.MkdirAll(l.Bin(""), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.Bin("sleep"), b, 0o755); err != nil {
		t.Fatal(err)
	}
	table := NewTable(l)
	t.Cleanup(func() {
		if err := table.Stop("sleeper"); err != nil {
			t.Error(err)
		}
	})
	return l, table, Spec{Name: "sleeper", Path: l.Bin("sleep"), Args: []string{"600"}}
}

func mustEnsure(t *testing.T, table *Table, s Spec, wantStarted bool) Process {
	t.Helper()
	started, err := table.Ensure(s)
	if err != nil {
		t.Fatal(err)
	}
	if started != wantStarted {
		t.Errorf("started %v, want %v", started, wantStarted)
	}
	p, ok, err := table.Find(s.Name)
	if err != nil || !ok {
		t.Fatalf("not found after Ensure: %v", err)
	}
	return p
}

func TestADaemonThatRunsAsItShouldIsLeftAloneAndOneThatDiffersIsRestarted(t *testing.T) {
	t.Parallel()
	_, table, spec := sleeper(t)
	first := mustEnsure(t, table, spec, true)
	if again := mustEnsure(t, table, spec, false); again.PID != first.PID {
		t.Errorf("pid %d became %d", first.PID, again.PID)
	}
	spec.Args = []string{"601"}
	if changed := mustEnsure(t, table, spec, true); changed.PID == first.PID {
		t.Error("other arguments, same process")
	}
}

func TestADaemonIsFoundFromTheMomentItIsStarted(t *testing.T) {
	t.Parallel()
	_, table, spec := sleeper(t)
	for range 100 {
		if _, err := table.Ensure(spec); err != nil {
			t.Fatal(err)
		}
		pid, err := table.readPID(spec.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := table.inspect(pid); !ok {
			t.Error("just started, and not told as ours")
		}
		if err := table.Stop(spec.Name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADaemonWithoutAPidFileIsFoundAgain(t *testing.T) {
	t.Parallel()
	l, table, spec := sleeper(t)
	first := mustEnsure(t, table, spec, true)
	if err := os.RemoveAll(l.Run()); err != nil {
		t.Fatal(err)
	}
	if again := mustEnsure(t, table, spec, false); again.PID != first.PID {
		t.Errorf("pid %d became %d", first.PID, again.PID)
	}
	if _, err := os.Stat(filepath.Join(l.Run(), "sleeper.pid")); err != nil {
		t.Errorf("the pid file was not written again: %v", err)
	}
}

func TestAPidFileThatNamesAForeignProcessIsNotBelieved(t *testing.T) {
	t.Parallel()
	l, table, spec := sleeper(t)
	if err := os.MkdirAll(l.Run(), 0o755); err != nil {
		t.Fatal(err)
	}
	// Were it believed, Stop would end this test.
	if err := table.writePID(spec.Name, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := table.Find(spec.Name); ok || err != nil {
		t.Fatalf("found %v, %v", ok, err)
	}
	if err := table.Stop(spec.Name); err != nil {
		t.Fatal(err)
	}
}

func TestStopEndsTheProcess(t *testing.T) {
	t.Parallel()
	_, table, spec := sleeper(t)
	mustEnsure(t, table, spec, true)
	if err := table.Stop(spec.Name); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := table.Find(spec.Name); ok || err != nil {
		t.Errorf("still there: %v, %v", ok, err)
	}
}

func TestWaitingForSomethingDeadEndsAtOnceWithItsLastWords(t *testing.T) {
	t.Parallel()
	_, table, spec := sleeper(t)
	spec.Args = []string{"--no-such-flag"}
	if _, err := table.Ensure(spec); err != nil {
		t.Fatal(err)
	}
	err := table.Wait("a miracle", time.Hour, func() error { return os.ErrNotExist }, spec.Name)
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("got %v", err)
	}
}
