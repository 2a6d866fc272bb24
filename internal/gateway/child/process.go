package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// drainTime is how long stdout and stderr are read on after a process ended, if others hold them open.
const drainTime = time.Second

// owner takes what a process says that belongs to no call. It is called by the process' reader, and must not wait for long.
type owner interface {
	take(p *process, m *wire.Message)
	// patience is how long the process may be kept waiting for a slow reader.
	patience() time.Duration
}

// process is one child process and the conversation with it.
type process struct {
	*environment

	era     backend.Era
	owner   owner
	cmd     *exec.Cmd
	pid     int
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	out     *outbox
	started time.Time
	// reading is closed at the end of stdout, waited when the process was reaped, exited when both are over.
	reading, waited, exited chan struct{}
	// death says how it ended, after exited.
	death error

	mu    sync.Mutex
	calls map[int64]*call
	last  int64 // the id given last
	ended bool
	// killed says why we killed it, stopping that we wanted it to end.
	killed   error
	stopping bool
	// logs is the call that log messages are for; see claimLogs.
	logs      *call
	logsUntil time.Time
	// owing is since when the child owes an answer without having said anything.
	owing  time.Time
	pinged bool
	// busy says that the reader hands over what the child said, so that the child's silence is ours.
	busy atomic.Bool
}

// environment is what the processes of a backend have in common.
type environment struct {
	options  *Options
	counts   *counts
	ledger   *ledger
	children children
}

// start starts a process. What the conversation is to begin with is the caller's.
func (e *environment) start(era backend.Era, own owner) (*process, error) {
	o := e.options
	var files []*os.File // of stdin, stdout and stderr the end to read and the one to write
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("child: make a pipe: %w", err)
		}
		files = append(files, r, w)
	}
	cmd := exec.Command(o.Command[0], o.Command[1:]...) //nolint:noctx // its end is stop's, which is not sudden
	cmd.Env, cmd.Dir, cmd.SysProcAttr = o.Env, o.Dir, attributes()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], files[5]
	p := &process{
		environment: e, era: era, owner: own, cmd: cmd, stdin: files[1], stdout: files[2], stderr: files[4], out: newOutbox(),
		started: time.Now(), calls: map[int64]*call{},
		reading: make(chan struct{}), waited: make(chan struct{}), exited: make(chan struct{}),
	}
	if err := e.children.start(p); err != nil {
		closeAll(files)
		return nil, fmt.Errorf("%w: %q: %w", errStart, o.Command[0], err)
	}
	closeAll([]*os.File{files[0], files[3], files[5]})
	e.counts.running.Add(1)
	o.Logger.Info("child started", "pid", p.pid)
	go p.write()
	go p.read()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		defer p.options.Panics.Catch(o.Name, nil)
		copyLines(o.Stderr, e.counts, p.stderr)
	}()
	go p.wait(copied)
	go p.watch()
	return p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

func (p *process) write() {
	if err := p.out.run(p.stdin); err != nil && !errors.Is(err, os.ErrClosed) && !p.reaped(drainTime) {
		p.kill(errors.New("it closed its stdin"))
	}
}

// reaped waits for the process to be reaped: one that exits closes its files a moment before.
func (p *process) reaped(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.waited:
		return true
	case <-timer.C:
		return false
	}
}

// wait reaps the process, ends what is left of its group, and fails the calls that it did not answer.
func (p *process) wait(copied <-chan struct{}) {
	err := p.cmd.Wait()
	p.children.forget(p)
	close(p.waited)
	p.out.close()
	signalGroup(p.pid, syscall.SIGKILL)
	deadline := time.Now().Add(drainTime)
	_ = p.stdout.SetReadDeadline(deadline)
	_ = p.stderr.SetReadDeadline(deadline)
	<-p.reading
	<-copied
	closeAll([]*os.File{p.stdin, p.stdout, p.stderr})

	exit := "exit status 0"
	if err != nil {
		exit = err.Error()
	}
	p.mu.Lock()
	if p.killed != nil {
		exit += " (" + p.killed.Error() + ")"
	}
	p.death = &diedError{exit}
	if errors.Is(p.killed, errHung) {
		p.death = fmt.Errorf("%w: %w", errHung, p.death)
	}
	p.ended = true
	calls := p.calls
	p.calls = nil
	p.mu.Unlock()
	for _, c := range calls {
		c.q.fail(p.death)
	}
	p.counts.running.Add(-1)
	close(p.exited)
}

// mourn notes the end of a process that was to live. Ones that were tried and found to be of another era are not noted.
func (p *process) mourn() {
	p.counts.exited(p.death)
	p.options.Logger.Warn("child ended", "pid", p.pid, "error", p.death, "lived", time.Since(p.started).Round(time.Millisecond))
}

// watch restarts a child that hangs: one that owes an answer and said nothing, not even to a ping.
func (p *process) watch() {
	ticker := time.NewTicker(max(p.options.HangTimeout/8, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-p.waited:
			return
		case <-ticker.C:
		}
		switch ping, hangs := p.silent(); {
		case ping:
			p.ping()
		case hangs:
			p.kill(errHung)
		}
	}
}

// silent says whether the child has said nothing for so long that it is to be pinged, or that it hangs. None hangs that was not pinged
// before: we may not have come to look, or to read, for as long. While we hand over what it said, its silence does not begin.
func (p *process) silent() (ping, hangs bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owing.IsZero() {
		return false, false
	}
	if p.busy.Load() {
		p.owing = time.Now()
		return false, false
	}
	owing := time.Since(p.owing)
	ping = !p.pinged && owing > p.options.HangTimeout/2
	p.pinged = p.pinged || ping
	return ping, owing > p.options.HangTimeout
}

// heard notes that the child said something.
func (p *process) heard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owing, p.pinged = time.Time{}, false
	if len(p.calls) > 0 {
		p.owing = time.Now()
	}
}

// kill ends the process at once, and its group with it.
func (p *process) kill(why error) {
	p.mu.Lock()
	if p.killed == nil && !p.stopping {
		p.killed = why
	}
	p.mu.Unlock()
	p.signal(syscall.SIGKILL)
}

// signal signals the process and its group, unless the process is gone.
func (p *process) signal(s syscall.Signal) {
	if !done(p.waited) {
		signalGroup(p.pid, s)
		_ = p.cmd.Process.Signal(s)
	}
}

// stop ends the process as the specification of stdio has it: stdin is closed, then SIGTERM, then SIGKILL; at the end of ctx
// SIGKILL at once. It returns when the process is gone.
func (p *process) stop(ctx context.Context) {
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	p.out.close()
	_ = p.stdin.Close()
	half := p.options.StopGrace / 2
	if p.gone(ctx, half) {
		return
	}
	p.signal(syscall.SIGTERM)
	if p.gone(ctx, half) {
		return
	}
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// discard ends a process that never got as far as to answer.
func (p *process) discard() {
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// stopped reports whether the end of the process was wanted.
func (p *process) stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopping
}

// over reports whether nothing more can be sent.
func (p *process) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopping || p.killed != nil || done(p.waited)
}

func (p *process) gone(ctx context.Context, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// done reports whether a channel was closed.
func done(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
