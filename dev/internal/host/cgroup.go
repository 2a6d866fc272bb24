//go:build linux

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/mcp-operator/mcp-operator/dev/internal/process"
	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

// cgroupControllers are what the kubelet accounts pods with.
var cgroupControllers = []string{"cpu", "cpuset", "memory", "pids", "io", "hugetlb"}

// requiredControllers are those it does not start without.
var requiredControllers = []string{"cpu", "cpuset", "memory", "pids"}

const enableController = "enable it on the kernel's command line (for memory: cgroup_enable=memory)"

// Cgroups is the machine's cgroup file system, of version 1 (one hierarchy per controller) or 2.
type Cgroups struct {
	root string
	v2   bool
}

// FindCgroups looks at the cgroup file system below root (/sys/fs/cgroup) and says what it lacks.
func FindCgroups(root string) (Cgroups, error) {
	c := Cgroups{root: root}
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err == nil {
		c.v2 = true
		have := strings.Fields(string(controllers))
		for _, want := range requiredControllers {
			if !slices.Contains(have, want) {
				return c, fmt.Errorf("the kernel offers no %q cgroup controller (%s has %q), which the kubelet needs: "+
					"%s, or leave the container this runs in", want, root, have, enableController)
			}
		}
		return c, nil
	}
	for _, want := range requiredControllers {
		if _, err := os.Stat(filepath.Join(root, want, "cgroup.procs")); err != nil {
			return c, fmt.Errorf("there is no %q cgroup controller in %s, which the kubelet needs: mount it, or %s", want, root, enableController)
		}
	}
	return c, nil
}

// Ensure makes the group in every hierarchy: the kubelet refuses to make its own root.
func (c Cgroups) Ensure(name string, r *record.Record) error {
	if c.v2 {
		if err := c.enable(r); err != nil {
			return err
		}
	}
	for _, h := range c.hierarchies() {
		dir := filepath.Join(h, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("create cgroup %s: %w (this needs a writable %s)", dir, err, c.root)
		}
		if filepath.Base(h) != "cpuset" {
			continue
		}
		// Version 1 starts a cpuset without CPUs, and then no process may enter it.
		for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
			b, err := os.ReadFile(filepath.Join(h, f))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, f), b, 0o644)
			}
			if err != nil {
				return fmt.Errorf("give cgroup %s its %s: %w", dir, f, err)
			}
		}
	}
	return nil
}

// enable passes the controllers on to the root's children (version 2).
func (c Cgroups) enable(r *record.Record) error {
	file := filepath.Join(c.root, "cgroup.subtree_control")
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the enabled cgroup controllers: %w", err)
	}
	enabled := strings.Fields(string(b))
	available, err := os.ReadFile(filepath.Join(c.root, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read the cgroup controllers: %w", err)
	}
	for _, want := range cgroupControllers {
		if slices.Contains(enabled, want) || !slices.Contains(strings.Fields(string(available)), want) {
			continue
		}
		r.CgroupControllers = append(r.CgroupControllers, want)
		if err := r.Save(); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte("+"+want), 0o644); err != nil {
			return fmt.Errorf("enable the %q cgroup controller: %w (inside a container the processes of its root cgroup forbid it: "+
				"move them into a child cgroup first)", want, err)
		}
	}
	return nil
}

// Kill ends every process in the group, by SIGKILL, after looking again that it is there.
func (c Cgroups) Kill(name string) error {
	var errs []error
	for _, pid := range c.processes(name) {
		errs = append(errs, process.Signal(pid, syscall.SIGKILL, func(pid int) bool {
			return slices.Contains(c.processes(name), pid)
		}))
	}
	return errors.Join(errs...)
}

// Empty reports whether no process is in the group.
func (c Cgroups) Empty(name string) bool { return len(c.processes(name)) == 0 }

func (c Cgroups) processes(name string) []int {
	var pids []int
	for _, h := range c.hierarchies() {
		_ = filepath.WalkDir(filepath.Join(h, name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil //nolint:nilerr // a group that vanishes while we walk has no processes
			}
			b, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			if err != nil {
				return nil //nolint:nilerr // see above
			}
			for f := range strings.FieldsSeq(string(b)) {
				if pid, err := strconv.Atoi(f); err == nil && !slices.Contains(pids, pid) {
					pids = append(pids, pid)
				}
			}
			return nil
		})
	}
	return pids
}

// Remove removes the group and all below it, in every hierarchy.
func (c Cgroups) Remove(name string) error {
	var errs []error
	// runc makes groups in the hierarchy "unified" as well, if version 1 has version 2 beside it.
	for _, h := range append(c.hierarchies(), filepath.Join(c.root, "unified")) {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(h, name), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		slices.Reverse(dirs) // children first
		for _, d := range dirs {
			if err := os.Remove(d); err != nil && !errors.Is(err, os.ErrNotExist) {
				errs = append(errs, fmt.Errorf("remove cgroup: %w", err))
			}
		}
	}
	return errors.Join(errs...)
}

// Restore disables the controllers that Ensure enabled (version 2). A controller that somebody else
// has begun to use stays: the kernel refuses.
func (c Cgroups) Restore(r *record.Record) {
	for _, name := range r.CgroupControllers {
		_ = os.WriteFile(filepath.Join(c.root, "cgroup.subtree_control"), []byte("-"+name), 0o644)
	}
}

func (c Cgroups) hierarchies() []string {
	if c.v2 {
		return []string{c.root}
	}
	entries, err := os.ReadDir(c.root)
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		dir := filepath.Join(c.root, e.Name())
		info, err := os.Lstat(dir) // "cpu,cpuacct" has links beside it
		if err != nil || !info.IsDir() || e.Name() == "unified" {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			all = append(all, dir)
		}
	}
	return all
}
