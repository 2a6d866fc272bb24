package child

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
)

func TestAProcessThatEndsBeforeItIsAskedIsOneThatDied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bare(t)
		p := b.process()
		p.ended = true
		left := errors.New("the caller has left")
		initialize := func(ctx context.Context, p *process) error {
			_, err := p.initialize(ctx, backend.Client{})
			return err
		}
		ctx, leave := context.WithCancelCause(t.Context())
		leave(left)
		if err := greet(ctx, p, initialize); !errors.Is(err, left) {
			t.Errorf("to a caller who left: %v", err)
		}
		go func() {
			p.death = &diedError{"exit status 1"}
			close(p.exited)
		}()
		if _, died := errors.AsType[*diedError](greet(t.Context(), p, initialize)); !died {
			t.Error("nobody is told that it died, and so it is not started again")
		}
	})
}

func TestASessionWhoseProcessEndedBeforeItWasKnownIsNotKept(t *testing.T) {
	t.Parallel()
	b := bare(t)
	s := b.newSession()
	s.own = b.process()
	close(s.own.waited)
	b.sessions.add(s)
	if !s.isEnded() || b.sessions.find(s.id) != nil {
		t.Error("it is known though its process has ended")
	}
}
