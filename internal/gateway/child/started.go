package child

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
)

// started are the processes whose exit status is waited for by pid, in the whole program.
var started = registry{pids: map[int]bool{}}

type registry struct {
	mu   sync.Mutex
	pids map[int]bool
	once sync.Once
}

// start starts a process and notes it before anybody can take it for an orphan.
func (r *registry) start(cmd *exec.Cmd) error {
	if os.Getpid() == 1 {
		r.once.Do(func() { go reapOrphans() })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	r.pids[cmd.Process.Pid] = true
	return nil
}

func (r *registry) forget(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pids, pid)
}

// signalGroup signals a process group; one that is gone is fine.
func signalGroup(group int, s syscall.Signal) { _ = syscall.Kill(-group, s) }

// children are the processes of one backend.
type children struct {
	mu     sync.Mutex
	set    map[*process]bool
	closed bool
}

// start starts a process, unless the backend was closed.
func (c *children) start(p *process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errStopped
	}
	if err := started.start(p.cmd); err != nil {
		return err
	}
	p.pid = p.cmd.Process.Pid
	if c.set == nil {
		c.set = map[*process]bool{}
	}
	c.set[p] = true
	return nil
}

func (c *children) forget(p *process) {
	started.forget(p.pid)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.set, p)
}

// close lets no more processes be started.
func (c *children) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

func (c *children) all() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.set))
}
