//go:build linux

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Environment variables by which a process of ours is told from all others.
const (
	envState     = "DEVCLUSTER_STATE"
	envComponent = "DEVCLUSTER_COMPONENT"
	envIdentity  = "DEVCLUSTER_IDENTITY"
)

// Process is a running process that this state folder's devcluster started, or that containerd
// started for it (a shim).
type Process struct {
	PID int
	// Exe is the binary it runs; Replaced says that the file has been built anew since.
	Exe      string
	Replaced bool
	// Component is the Spec's name; a shim bears its containerd's.
	Component string
	// Identity is the digest of the Spec it was started for.
	Identity string
	// NetNS is the inode of its network namespace.
	NetNS uint64
}

// IsShim tells a containerd shim from the component that started it.
func (p Process) IsShim() bool { return strings.HasPrefix(filepath.Base(p.Exe), "containerd-shim") }

// inspect reads /proc/PID and reports whether the process is ours: its binary is one of the state
// folder's and its environment names the state folder.
func (t *Table) inspect(pid int) (Process, bool) {
	dir := filepath.Join(t.procRoot, strconv.Itoa(pid))
	exe, err := os.Readlink(filepath.Join(dir, "exe"))
	if err != nil {
		return Process{}, false
	}
	p := Process{PID: pid}
	p.Exe, p.Replaced = strings.CutSuffix(exe, " (deleted)")
	if !strings.HasPrefix(p.Exe, t.binDir+string(filepath.Separator)) {
		return Process{}, false
	}
	env, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return Process{}, false
	}
	state := ""
	for kv := range strings.SplitSeq(string(env), "\x00") {
		k, v, _ := strings.Cut(kv, "=")
		switch k {
		case envState:
			state = v
		case envComponent:
			p.Component = v
		case envIdentity:
			p.Identity = v
		}
	}
	if state != t.stateDir {
		return Process{}, false
	}
	var st syscall.Stat_t
	if syscall.Stat(filepath.Join(dir, "ns", "net"), &st) == nil {
		p.NetNS = st.Ino
	}
	return p, true
}

// scan finds every process of ours, also those whose pid file was never written.
func (t *Table) scan() ([]Process, error) {
	entries, err := os.ReadDir(t.procRoot)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := t.inspect(pid); ok {
			found = append(found, p)
		}
	}
	return found, nil
}

// Signal sends sig to pid if, and only if, ours(pid) holds. The number cannot pass to another process
// between check and signal: a pid descriptor is opened first.
func Signal(pid int, sig syscall.Signal, ours func(pid int) bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !ours(pid) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", pid, err)
	}
	return nil
}
