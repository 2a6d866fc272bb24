//go:build linux

// Package process starts the cluster's daemons detached from the terminal, finds them again, and
// stops them. It guarantees that no process is signalled that it did not start: a pid counts only if
// its binary lies in the state folder and its environment names that folder.
package process

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-operator/mcp-operator/dev/internal/layout"
	"github.com/mcp-operator/mcp-operator/dev/internal/record"
)

// grace is how long Stop waits between SIGTERM and SIGKILL. The API server is known to linger while
// clients watch, and there is nothing in it worth a longer wait.
const grace = 10 * time.Second

// Spec is a daemon as it should run.
type Spec struct {
	// Name is unique in the cluster; pid file and log are named after it.
	Name string
	// Path is the binary, in the state folder's bin.
	Path string
	Args []string
	// ConfigFiles are read by the daemon; when their content changes it is restarted.
	ConfigFiles []string
	// Enter, if given, runs start inside the network namespace with the inode NetNS.
	Enter func(start func() error) error
	// NetNS is the inode of the namespace the daemon must live in; 0 is the machine's own.
	NetNS uint64
}

// Table knows the processes of one state folder.
type Table struct {
	layout   layout.Layout
	stateDir string
	binDir   string
	procRoot string

	mu       sync.Mutex
	children map[string]*child
}

// child is a daemon that this very process started, by the name of its Spec.
type child struct {
	ended chan struct{}
	// how it ended, once ended is closed.
	how string
}

// NewTable is the table of the given state folder, whose path must be free of symbolic links, as the
// kernel tells paths of binaries.
func NewTable(l layout.Layout) *Table {
	return &Table{layout: l, stateDir: l.Dir, binDir: l.Bin(""), procRoot: "/proc", children: map[string]*child{}}
}

// All lists every process of ours, shims included.
func (t *Table) All() ([]Process, error) { return t.scan() }

// Find returns the running process of a component.
func (t *Table) Find(name string) (Process, bool, error) {
	if pid, err := t.readPID(name); err == nil {
		if p, ok := t.inspect(pid); ok && p.Component == name && !p.IsShim() {
			return p, true, nil
		}
	}
	all, err := t.scan()
	if err != nil {
		return Process{}, false, err
	}
	for _, p := range all {
		if p.Component == name && !p.IsShim() {
			return p, true, nil
		}
	}
	return Process{}, false, nil
}

// dead reports whether a component has ended, and how if that is known. Of a daemon that this process
// started its exit tells, of any other /proc.
func (t *Table) dead(name string) (how string, dead bool, err error) {
	t.mu.Lock()
	c := t.children[name]
	t.mu.Unlock()
	if c == nil {
		_, alive, err := t.Find(name)
		return "found no more", !alive, err
	}
	select {
	case <-c.ended:
		return c.how, true, nil
	default:
		return "", false, nil
	}
}

// Ensure makes the daemon run exactly as the Spec says: one that does is left alone, one that differs
// (other arguments, configuration, binary or namespace) is stopped first.
func (t *Table) Ensure(s Spec) (started bool, err error) {
	identity, err := s.identity()
	if err != nil {
		return false, err
	}
	p, ok, err := t.Find(s.Name)
	if err != nil {
		return false, err
	}
	if ok && p.Identity == identity && !p.Replaced && (s.NetNS == 0 || p.NetNS == s.NetNS) {
		return false, t.writePID(s.Name, p.PID)
	}
	if ok {
		if err := t.Stop(s.Name); err != nil {
			return false, err
		}
	}
	return true, t.start(s, identity)
}

func (t *Table) start(s Spec, identity string) error {
	log, err := t.openLog(s.Name)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Dir = t.stateDir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{
		"PATH=" + t.layout.Bin("") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + t.stateDir,
		envState + "=" + t.stateDir, envComponent + "=" + s.Name, envIdentity + "=" + identity,
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	enter := s.Enter
	if enter == nil {
		enter = func(start func() error) error { return start() }
	}
	if err := enter(cmd.Start); err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	// Reaped here while devcluster runs, by init after that.
	c := &child{ended: make(chan struct{})}
	go func() { c.how = fmt.Sprint(cmd.Wait()); close(c.ended) }()
	t.mu.Lock()
	t.children[s.Name] = c
	t.mu.Unlock()
	t.awaitIdentity(cmd.Process.Pid, c.ended)
	return t.writePID(s.Name, cmd.Process.Pid)
}

// awaitIdentity returns once the process can be told as ours, or has ended. The kernel closes the
// descriptors of an exec, which is what exec.Cmd's Start waits for, before it lays out the new
// environment: for a moment /proc/PID/environ is empty, and the process would pass for a dead one.
func (t *Table) awaitIdentity(pid int, ended <-chan struct{}) {
	tooLate := time.After(30 * time.Second)
	for tick := time.Tick(time.Millisecond); ; {
		if _, ok := t.inspect(pid); ok {
			return
		}
		select {
		case <-ended:
			return
		case <-tooLate:
			return
		case <-tick:
		}
	}
}

// Stop ends the named components: SIGTERM, then SIGKILL for what is left after ten seconds.
func (t *Table) Stop(names ...string) error {
	var found []Process
	for _, n := range names {
		p, ok, err := t.Find(n)
		if err != nil {
			return err
		}
		if ok {
			found = append(found, p)
		}
	}
	if err := t.End(found, grace); err != nil {
		return err
	}
	for _, n := range names {
		if err := os.Remove(t.pidFile(n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the pid file of %s: %w", n, err)
		}
	}
	return nil
}

// End stops the given processes: SIGTERM (none if patience is 0), then SIGKILL for what is left after
// patience. It returns when they are gone.
func (t *Table) End(ps []Process, patience time.Duration) error {
	if patience > 0 {
		if err := t.signal(ps, syscall.SIGTERM); err != nil {
			return err
		}
		if t.gone(ps, patience) {
			return nil
		}
	}
	if err := t.signal(ps, syscall.SIGKILL); err != nil {
		return err
	}
	if t.gone(ps, grace) {
		return nil
	}
	return fmt.Errorf("processes %v do not end, even by SIGKILL: the kernel holds them; see /proc/PID/stack", pids(ps))
}

func (t *Table) signal(ps []Process, sig syscall.Signal) error {
	var errs []error
	for _, p := range ps {
		errs = append(errs, Signal(p.PID, sig, func(pid int) bool { return t.same(p, pid) }))
	}
	return errors.Join(errs...)
}

func (t *Table) same(p Process, pid int) bool {
	now, ok := t.inspect(pid)
	return ok && now.Component == p.Component && now.Exe == p.Exe
}

func (t *Table) gone(ps []Process, patience time.Duration) bool {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		left := false
		for _, p := range ps {
			left = left || t.same(p, p.PID)
		}
		if !left || time.Now().After(deadline) {
			return !left
		}
	}
}

// LastWords are the last lines of a component's log that are worth showing.
func (t *Table) LastWords(name string) string {
	b, err := os.ReadFile(t.layout.Log(name))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

func (s Spec) identity() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q", s.Path, s.Args)
	for _, f := range s.ConfigFiles {
		b, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("read the configuration of %s: %w", s.Name, err)
		}
		fmt.Fprintf(h, " %x", sha256.Sum256(b))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (t *Table) openLog(name string) (*os.File, error) {
	path := t.layout.Log(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create the folder of logs: %w", err)
	}
	if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("keep the last log of %s: %w", name, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	return f, nil
}

func (t *Table) pidFile(name string) string { return filepath.Join(t.layout.Run(), name+".pid") }

func (t *Table) readPID(name string) (int, error) {
	b, err := os.ReadFile(t.pidFile(name))
	if err != nil {
		return 0, fmt.Errorf("read the pid file of %s: %w", name, err)
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

func (t *Table) writePID(name string, pid int) error {
	return record.WriteFile(t.pidFile(name), fmt.Appendf(nil, "%d\n", pid), 0o644)
}

func pids(ps []Process) []int {
	var out []int
	for _, p := range ps {
		out = append(out, p.PID)
	}
	return out
}
