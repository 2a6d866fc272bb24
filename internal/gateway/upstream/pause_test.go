package upstream

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestAServerThatIsDownIsAskedOnceASecondHoweverManyAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dials []time.Time
		b, err := New(table.Backend{Name: "a", URL: "http://a.example/mcp"}, Options{
			Logger: slog.New(slog.DiscardHandler),
			Dial: func(context.Context, string, string) (net.Conn, error) {
				dials = append(dials, time.Now())
				return nil, errors.New("refused")
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); time.Since(begun) < time.Minute; {
			if _, err := b.Describe(t.Context()); !isUnreached(err) {
				t.Fatal(err)
			}
			backend.Pause(t.Context(), 10*time.Millisecond)
		}
		if n := len(dials); n < 60 || n > 65 {
			t.Errorf("it was asked %d times in a minute", n)
		}
		for i := 1; i < len(dials); i++ {
			if pause := dials[i].Sub(dials[i-1]); pause > longestPause+20*time.Millisecond {
				t.Errorf("it was asked after a pause of %s", pause)
			}
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
