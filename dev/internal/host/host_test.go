//go:build linux

package host

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

func file(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAMissingCgroupControllerIsNamed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		files map[string]string
		want  string // part of the error; empty is none
	}{
		"version 1 with all": {files: map[string]string{
			"cpu/cgroup.procs": "", "cpuset/cgroup.procs": "", "memory/cgroup.procs": "", "pids/cgroup.procs": "",
		}},
		"version 1 without memory": {want: `no "memory" cgroup controller`, files: map[string]string{
			"cpu/cgroup.procs": "", "cpuset/cgroup.procs": "", "pids/cgroup.procs": "",
		}},
		"version 2 with all":    {files: map[string]string{"cgroup.controllers": "cpuset cpu io memory pids\n"}},
		"version 2 without cpu": {want: `no "cpu" cgroup controller`, files: map[string]string{"cgroup.controllers": "cpuset io memory pids\n"}},
		"none at all":           {want: "cgroup controller"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for path, content := range tc.files {
				file(t, filepath.Join(root, path), content)
			}
			_, err := FindCgroups(root)
			if (tc.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestAVersion1GroupIsMadeInEveryHierarchyWithItsCPUs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, h := range []string{"cpu", "cpuset", "memory", "pids", "systemd"} {
		file(t, filepath.Join(root, h, "cgroup.procs"), "")
	}
	file(t, filepath.Join(root, "cpuset", "cpuset.cpus"), "0-1\n")
	file(t, filepath.Join(root, "cpuset", "cpuset.mems"), "0\n")
	c, err := FindCgroups(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ensure("mcpdev-node1", &record.Record{}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(root, "cpuset", "mcpdev-node1", "cpuset.cpus"))
	if err != nil || string(b) != "0-1\n" {
		t.Errorf("cpuset.cpus: %q, %v", b, err)
	}
	for _, h := range []string{"cpu", "memory", "pids", "systemd"} {
		if _, err := os.Stat(filepath.Join(root, h, "mcpdev-node1")); err != nil {
			t.Error(err)
		}
	}
}

func TestControllersEnabledInVersion2AreRecordedFirst(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file(t, filepath.Join(root, "cgroup.controllers"), "cpuset cpu io memory pids")
	file(t, filepath.Join(root, "cgroup.subtree_control"), "cpu memory")
	c, err := FindCgroups(root)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cluster.json")
	r, err := record.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ensure("mcpdev-node1", r); err != nil {
		t.Fatal(err)
	}
	saved, err := record.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cpuset", "pids", "io"}, saved.CgroupControllers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestATakenPortIsToldWithItsHolder(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("%v is no TCP address", l.Addr())
	}
	err = RequireFree("etcd", "127.0.0.1", addr.Port)
	if err == nil || !strings.Contains(err.Error(), "pid "+strconv.Itoa(os.Getpid())) {
		t.Errorf("got %v", err)
	}
}

func TestOnlyWhatTheClusterLeftIsALeftover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file(t, filepath.Join(dir, "ours"), `{"netns":"/run/mcpdev/node1/x"}`)
	file(t, filepath.Join(dir, "foreign"), `{"netns":"/run/netns/x"}`)
	if diff := cmp.Diff([]string{filepath.Join(dir, "ours")}, cniResults(dir)); diff != "" {
		t.Errorf("CNI results (-want +got):\n%s", diff)
	}
	for link, to := range map[string]string{"a": "/state/node1/podlogs/a", "b": "/statement", "c": "/state"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "a"), filepath.Join(dir, "c")}, linksInto(dir, "/state")); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	alive, err := net.Listen("unix", filepath.Join(dir, "alive"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = alive.Close() }()
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "dead"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := deadSockets(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "dead")}, got); diff != "" {
		t.Errorf("sockets (-want +got):\n%s", diff)
	}
}
