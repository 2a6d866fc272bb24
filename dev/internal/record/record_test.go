package record

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTheRecordSurvivesSavingAndLoading(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cluster.json")
	r, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	r.Booted("a")
	r.AddNodes(3)
	r.AddNodes(2)
	r.AddFolder("/run/x")
	r.AddFolder("/run/x")
	r.AddSysctl("kernel/panic", "0", "10")
	r.AddSysctl("kernel/panic", "10", "10")
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := &Record{BootID: "a", Nodes: 3, Folders: []string{"/run/x"}, Sysctls: map[string]Sysctl{"kernel/panic": {Before: "0", Caused: "10"}}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Record{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestARebootForgetsWhatItUndid(t *testing.T) {
	t.Parallel()
	r := &Record{BootID: "a", Nodes: 2, Sysctls: map[string]Sysctl{"x": {}}, CgroupControllers: []string{"cpu"}, Folders: []string{"/var/lib/cni"}}
	r.Booted("b")
	want := &Record{BootID: "b", Nodes: 2, Folders: []string{"/var/lib/cni"}}
	if diff := cmp.Diff(want, r, cmpopts.IgnoreUnexported(Record{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
