package child

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// unthoughtOf owns a process whose words it panics at.
type unthoughtOf struct{}

func (unthoughtOf) take(*process, *wire.Message) { panic("nobody thought of that") }

func (unthoughtOf) patience() time.Duration { return time.Second }

func TestAFaultAtWhatAChildSaysEndsThatChildAlone(t *testing.T) {
	var faults atomic.Int64
	r := newRig(t, script{}, func(o *Options) {
		o.Panics = panics.New(slog.New(slog.DiscardHandler), func(string) { faults.Add(1) })
		o.Command = []string{"/bin/sh", "-c", `echo '{"jsonrpc":"2.0","method":"notifications/message","params":{}}'; exec sleep 60`}
	})
	p, err := r.start(backend.Legacy, unthoughtOf{})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.exited:
	case <-r.context().Done():
		t.Fatal("it runs on, and nobody reads what it says")
	}
	if !errors.Is(p.killed, panics.Err) || faults.Load() != 1 {
		t.Errorf("after %d faults it ended: %v", faults.Load(), p.killed)
	}
}

func TestAFaultAtAChildsGreetingIsAFailedStart(t *testing.T) {
	var faults atomic.Int64
	r := newRig(t, script{}, func(o *Options) {
		o.Panics = panics.New(slog.New(slog.DiscardHandler), func(string) { faults.Add(1) })
	})
	c := r.try(r.context(), backend.Modern, unthoughtOf{}, nil) // nothing to greet it with
	c.wait(testPatience)
	if !errors.Is(c.why(), panics.Err) || faults.Load() != 1 {
		t.Errorf("after %d faults it ended: %v", faults.Load(), c.why())
	}
	c.end()
}
