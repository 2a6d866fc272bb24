package child

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// servers are the shared processes of a program, one for each era it speaks; the other is nil.
type servers struct {
	legacy      *legacyServer
	modern      *modernServer
	describing  sync.Mutex // held from the look at what they said until the description is in place
	description atomic.Pointer[backend.Description]
	// gone says that a process answered as one that no longer speaks its era. Backend.mu guards it.
	gone bool
}

// describe puts together what the processes said last.
func (s *servers) describe() {
	s.describing.Lock()
	defer s.describing.Unlock()
	d := &backend.Description{Legacy: s.legacy != nil, Modern: s.modern != nil}
	if s.modern != nil {
		d.Discover = *s.modern.discovered.Load()
		d.Versions = versionsIn(d.Discover)
	}
	if s.legacy != nil {
		d.Initialize = *s.legacy.initialized.Load()
		if v := versionOf(d.Initialize); !slices.Contains(d.Versions, v) {
			d.Versions = append(d.Versions, v)
		}
	}
	s.description.Store(d)
}

func versionOf(initialize json.RawMessage) string {
	v, _ := wire.String(wire.Field(initialize, "protocolVersion"))
	return v
}

// found waits until it is known what the program speaks.
func (b *Backend) found(ctx context.Context) (*servers, error) {
	if s := b.servers.Load(); s != nil {
		return s, nil
	}
	hold := time.NewTimer(b.options.HoldTimeout)
	defer hold.Stop()
	late := false
	for {
		b.mu.Lock()
		s, failure, changed := b.servers.Load(), b.failure, b.changed
		if s == nil && !b.finding && b.ctx.Err() == nil {
			b.finding = true
			b.tasks.Go(b.find)
		}
		b.mu.Unlock()
		switch {
		case s != nil:
			return s, nil
		case b.ctx.Err() != nil:
			return nil, b.failed(errStopped, false)
		case late && failure != nil:
			return nil, b.failed(failure, false)
		}
		select {
		case <-changed:
		case <-hold.C:
			late = true
		case <-b.ctx.Done():
		case <-ctx.Done():
			return nil, b.failed(errors.Join(ended(ctx), failure), false)
		}
	}
}

// find finds out what the program speaks, again and again until that is known.
func (b *Backend) find() {
	var pause backoff
	for {
		s, err := b.probe(b.ctx)
		err = b.settle(s, err)
		if err == nil || b.ctx.Err() != nil {
			return
		}
		b.counts.exited(err)
		b.options.Logger.Warn("child does not answer MCP", "error", err)
		if !backend.Pause(b.ctx, pause.next()) {
			return
		}
		b.counts.restarts.Add(1)
	}
}

// settle takes into use what an attempt found, or notes why it found nothing, which it returns.
func (b *Backend) settle(s *servers, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && s.gone { // before anybody used them
		err = errRefused
		b.giveUp(s)
	}
	b.failure = err
	if err == nil {
		b.servers.Store(s)
		b.finding = false
	}
	close(b.changed)
	b.changed = make(chan struct{})
	return err
}

// lost makes the next caller find out again. It is called by a keeper when its process no longer speaks its era.
func (b *Backend) lost(s *servers) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.gone = true
	if b.ctx.Err() != nil || !b.servers.CompareAndSwap(s, nil) {
		return
	}
	b.options.Logger.Warn("child speaks other protocol versions than before")
	b.giveUp(s)
}

// giveUp ends the processes of servers that are not in use any more, beside.
func (b *Backend) giveUp(s *servers) {
	b.tasks.Go(func() {
		if s.legacy != nil {
			s.legacy.keeper.stop(b.ctx)
		}
		if s.modern != nil {
			s.modern.keeper.stop(b.ctx)
			s.modern.hub.end()
		}
	})
}

// probe finds out what the program speaks, each era on a fresh process of its own, and keeps the processes that answered.
func (b *Backend) probe(ctx context.Context) (found *servers, err error) {
	defer b.options.Panics.Catch(b.options.Name, &err)
	s := &servers{legacy: newLegacyServer(b), modern: newModernServer(b)}
	var legacy, modern *candidate
	if b.options.ProtocolVersion != wire.Version20251125 {
		modern = b.try(ctx, backend.Modern, s.modern, s.modern.hello)
		modern.wait(b.options.DiscoverTimeout)
	}
	if b.options.ProtocolVersion != wire.Version20260728 && !s.modern.alone(modern) {
		if modern.refused() {
			modern.end() // before the next, which may want its port, its lock or its memory
		}
		legacy = b.try(ctx, backend.Legacy, s.legacy, s.legacy.hello)
		legacy.wait(b.options.StartTimeout)
	}
	if legacy.answers() {
		modern.wait(b.options.DiscoverTimeout / 2) // its silence may have been a slow start, which is over by now
	}
	if !legacy.answers() {
		modern.wait(b.options.StartTimeout)
	}
	if !modern.answers() {
		modern.end()
		s.modern = nil
	}
	if !legacy.answers() {
		legacy.end()
		s.legacy = nil
	}
	if s.modern == nil && s.legacy == nil {
		return nil, both(legacy.why(), modern.why())
	}
	if s.legacy != nil {
		s.legacy.keeper = b.keep(ctx, legacy.process, s.legacy.again(s), func() { b.lost(s) })
	}
	if s.modern != nil {
		s.modern.keeper = b.keep(ctx, modern.process, s.modern.again(s), func() { b.lost(s) })
	}
	s.describe()
	return s, nil
}

// both joins two errors, of which the second is left out if it says the same.
func both(first, second error) error {
	if first != nil && second != nil && first.Error() == second.Error() {
		return first
	}
	return errors.Join(first, second)
}

// candidate is a fresh process that was asked whether it speaks an era. The nil candidate was not asked, and does not.
type candidate struct {
	process  *process
	cancel   context.CancelFunc
	answered chan struct{} // closed when err is known
	err      error
}

// try starts a process and begins the conversation with it.
func (e *environment) try(ctx context.Context, era backend.Era, own owner, hello hello) *candidate {
	c := &candidate{answered: make(chan struct{})}
	ctx, c.cancel = e.starting(ctx)
	if c.process, c.err = e.start(era, own); c.err != nil {
		c.cancel()
		close(c.answered)
		return c
	}
	go func() {
		defer close(c.answered)
		defer c.cancel()
		c.err = greet(ctx, c.process, hello)
	}()
	return c
}

// wait waits for an answer.
func (c *candidate) wait(d time.Duration) {
	if c == nil {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.answered:
	case <-timer.C:
	}
}

func (c *candidate) answers() bool { return c != nil && done(c.answered) && c.err == nil }

func (c *candidate) refused() bool { return c != nil && done(c.answered) && c.err != nil }

// why says why the process is not one of the era; nil if it was not asked.
func (c *candidate) why() error {
	if c == nil {
		return nil
	}
	return c.err
}

// end ends the process. One that answered at the very last did not answer in time.
func (c *candidate) end() {
	if c == nil {
		return
	}
	c.cancel()
	<-c.answered
	c.err = cmp.Or(c.err, errSilent)
	if c.process != nil {
		c.process.discard()
	}
}
