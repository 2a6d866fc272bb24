// Package record keeps, in the state folder, what the cluster changed or made outside of it.
// Each entry is written before the change is made, so a killed `up` leaves nothing that a later
// `down` does not know of. What a reboot undid by itself is forgotten.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sysctl is a kernel setting of the whole machine.
type Sysctl struct {
	// Before is the value we found, Caused the value that the cluster gave it.
	Before string `json:"before"`
	Caused string `json:"caused"`
}

// Record is everything to be undone. The zero value is a machine never touched.
type Record struct {
	// BootID tells reboots apart: sysctls and cgroups do not survive one.
	BootID string `json:"bootID,omitempty"`
	// Nodes is how many nodes were ever started since the last `down`.
	Nodes int `json:"nodes,omitempty"`
	// Sysctls were changed, by their name with slashes below /proc/sys.
	Sysctls map[string]Sysctl `json:"sysctls,omitempty"`
	// CgroupControllers were enabled for the children of the cgroup root (cgroup v2 only).
	CgroupControllers []string `json:"cgroupControllers,omitempty"`
	// Folders outside the state folder did not exist before; `down` removes them if they are empty.
	Folders []string `json:"folders,omitempty"`

	path string
}

// Load reads the record at path; a missing file is an empty record.
func Load(path string) (*Record, error) {
	r := &Record{path: path}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of the cluster: %w", err)
	}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("read the record of the cluster %s: %w", path, err)
	}
	return r, nil
}

// Booted tells the record which boot of the machine this is.
func (r *Record) Booted(id string) {
	if r.BootID != id {
		r.BootID, r.Sysctls, r.CgroupControllers = id, nil, nil
	}
}

// AddNodes notes that n nodes are about to be started.
func (r *Record) AddNodes(n int) { r.Nodes = max(r.Nodes, n) }

// AddFolder notes a folder that is about to be made.
func (r *Record) AddFolder(dir string) {
	if !slices.Contains(r.Folders, dir) {
		r.Folders = append(r.Folders, dir)
	}
}

// AddSysctl notes a setting about to change; the first value found is the one that counts.
func (r *Record) AddSysctl(name, before, caused string) {
	if r.Sysctls == nil {
		r.Sysctls = map[string]Sysctl{}
	}
	if old, ok := r.Sysctls[name]; ok {
		before = old.Before
	}
	r.Sysctls[name] = Sysctl{Before: before, Caused: caused}
}

// Save writes the record, all of it or nothing.
func (r *Record) Save() error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the record of the cluster: %w", err)
	}
	return WriteFile(r.path, append(b, '\n'), 0o600)
}

// Clear removes the record: everything it named is undone.
func (r *Record) Clear() error {
	*r = Record{path: r.path}
	if err := os.Remove(r.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the record of the cluster: %w", err)
	}
	return nil
}

// WriteFile replaces the file at path, so that a reader sees the old content or the new, never a part.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create the folder of %s: %w", path, err)
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, content, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// CurrentBootID is the kernel's name for this boot.
func CurrentBootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
