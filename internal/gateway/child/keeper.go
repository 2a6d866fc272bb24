package child

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
)

const (
	// shortestPause and longestPause bound the pause before a process is started again, healthyAfter is how long one must have
	// lived for the pause to be the shortest.
	shortestPause = 100 * time.Millisecond
	longestPause  = 5 * time.Second
	healthyAfter  = 10 * time.Second
)

// backoff is the pause before the next attempt.
type backoff struct{ pause time.Duration }

func (b *backoff) next() time.Duration {
	b.pause = min(max(2*b.pause, shortestPause), longestPause)
	return b.pause
}

// hello begins the conversation with a new process.
type hello func(ctx context.Context, p *process) error

// greet begins the conversation with a new process, and says of its end what it means for a start. The context is one of starting's: the
// deadline of a caller's own says nothing of the process.
func greet(ctx context.Context, p *process, hello hello) (err error) {
	defer p.options.Panics.Catch(p.options.Name, &err)
	err = hello(ctx, p)
	if errors.Is(err, errUnsent) { // it ended before it was asked, and is about to say how
		select {
		case <-p.exited:
		case <-ctx.Done():
		}
		if over := ended(ctx); over != nil {
			err = errors.Join(errUnsent, over)
		} else {
			err = p.death
		}
	}
	if errors.Is(err, errSilent) {
		err = errSilent
	}
	return err
}

// starting bounds the start of a process.
func (e *environment) starting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, e.options.StartTimeout, errSilent)
}

// keeper keeps one shared process running.
type keeper struct {
	*environment

	era   backend.Era
	owner owner
	hello hello
	// lost is called when a process answers hello as one that no longer speaks the era.
	lost func()

	mu      sync.Mutex
	ready   *process
	failure error         // of the last attempt
	changed chan struct{} // closed and replaced with every change

	cancel context.CancelFunc
	done   chan struct{} // closed when the keeper has ended
}

// keep keeps a process running that is ready.
func (e *environment) keep(ctx context.Context, p *process, hello hello, lost func()) *keeper {
	k := &keeper{
		environment: e, era: p.era, owner: p.owner, hello: hello, lost: lost,
		ready: p, changed: make(chan struct{}), done: make(chan struct{}),
	}
	ctx, k.cancel = context.WithCancel(ctx)
	go k.run(ctx, p)
	return k
}

func (k *keeper) run(ctx context.Context, p *process) {
	defer close(k.done)
	var pause backoff
	for {
		if p != nil {
			select {
			case <-p.exited:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return
			}
			if time.Since(p.started) > healthyAfter {
				pause = backoff{}
			}
			p.mourn()
			k.set(nil, p.death)
		}
		if !backend.Pause(ctx, pause.next()) {
			return
		}
		k.counts.restarts.Add(1)
		var err error
		if p, err = k.attempt(ctx); err != nil && ctx.Err() == nil {
			k.counts.exited(err)
			k.options.Logger.Warn("child does not answer after its restart", "error", err)
		}
		k.set(p, err)
		if errors.Is(err, errRefused) {
			k.lost()
			return
		}
	}
}

// attempt starts a process and waits until it answers.
func (k *keeper) attempt(ctx context.Context) (*process, error) {
	p, err := k.start(k.era, k.owner)
	if err != nil {
		return nil, err
	}
	ctx, cancel := k.starting(ctx)
	defer cancel()
	if err := greet(ctx, p, k.hello); err != nil {
		p.discard()
		return nil, err
	}
	return p, nil
}

func (k *keeper) set(p *process, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ready, k.failure = p, err
	close(k.changed)
	k.changed = make(chan struct{})
}

// get returns a process that is ready, and waits for one until the deadline.
func (k *keeper) get(ctx context.Context, deadline time.Time) (*process, error) {
	p, _, _ := k.state()
	if p != nil {
		return p, nil
	}
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	for {
		p, changed, failure := k.state()
		if p != nil {
			return p, nil
		}
		select {
		case <-changed:
		case <-k.done:
			return nil, errStopped
		case <-late.C:
			return nil, cmp.Or(failure, errUnsent)
		case <-ctx.Done():
			return nil, ended(ctx)
		}
	}
}

// state is the process that is ready, or else why there is none and what to wait for.
func (k *keeper) state() (p *process, changed <-chan struct{}, failure error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ready != nil && !k.ready.over() {
		return k.ready, nil, nil
	}
	return nil, k.changed, k.failure
}

// stop ends the keeper and its process.
func (k *keeper) stop(ctx context.Context) {
	k.cancel()
	<-k.done
	k.mu.Lock()
	p := k.ready
	k.mu.Unlock()
	if p != nil {
		p.stop(ctx)
	}
}
