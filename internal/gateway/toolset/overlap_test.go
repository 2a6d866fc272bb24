package toolset

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func failureOf(t *testing.T, err error) *backend.Error {
	t.Helper()
	failure, ok := errors.AsType[*backend.Error](err)
	if !ok {
		t.Fatalf("%v is no failure of a backend", err)
	}
	return failure
}

// reached is a database tool that is dialled by a function.
func reached(t *testing.T, dial dialFunc) *database {
	t.Helper()
	b := open(t, table.Backend{AllowPrivate: true, Toolset: &table.Toolset{Postgres: &table.PostgresTool{
		Definition: []byte(`{"name":"ask","inputSchema":{"type":"object"}}`), Statement: "SELECT 1 AS a", Host: "127.0.0.1", Database: "d", User: "u",
	}}}, Options{Dial: dial})
	d, ok := b.source.(*database)
	if !ok {
		t.Fatal("it is no database")
	}
	return d
}

func TestACallerWhoLeavesDuringALoginIsNoFaultOfTheDatabasesCertificate(t *testing.T) {
	t.Parallel()
	left := errors.New("the caller has left")
	ctx, leave := context.WithCancelCause(testContext(t))
	d := reached(t, func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			var first [8]byte
			_, _ = theirs.Read(first[:]) // it is asked whether it speaks TLS, and does not answer
			leave(left)
			silent(theirs)
		}()
		return ours, nil
	})
	_, _, err := d.pool.get(ctx, false)
	if failure := failureOf(t, err); failure.Class != classTimeout || failure.Sent || !errors.Is(failure, left) {
		t.Errorf("class %s, sent %t: %v", failure.Class, failure.Sent, err)
	}
}

// TestAWriteThatTakesTooLongIsATimeoutThoughItsContextHasNotEndedYet: the deadline of the connection and that of the context are two clocks.
func TestAWriteThatTakesTooLongIsATimeoutThoughItsContextHasNotEndedYet(t *testing.T) {
	t.Parallel()
	_, d := (&impostor{}).database(t)
	_, err := d.refused(testContext(t), &net.OpError{Op: "write", Err: os.ErrDeadlineExceeded})
	if failure := failureOf(t, err); failure.Class != classTimeout || !failure.Sent {
		t.Errorf("class %s, sent %t: %v", failure.Class, failure.Sent, err)
	}
}

func TestWhatIsForgottenDuringACheckIsCheckedAgainBeforeAnybodyIsAnswered(t *testing.T) {
	t.Parallel()
	for name, isForgotten := range map[string]bool{"it is": true, "it is not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d *database
			var checks atomic.Int64
			impostor := onExplain(func(*conversation) bool {
				if checks.Add(1) == 1 && isForgotten {
					d.forget()
				}
				return false
			})
			_, d = impostor.database(t)
			for range 3 {
				if _, err := d.planned(testContext(t)); err != nil {
					t.Fatal(err)
				}
				if n := checks.Load(); n != 2 && isForgotten || n != 1 && !isForgotten {
					t.Errorf("it was checked %d times", n)
				}
			}
		})
	}
}

func TestWhoComesAfterTheEndWaitsForNoConnection(t *testing.T) {
	t.Parallel()
	_, d := (&impostor{}).database(t)
	d.close(testContext(t))
	begun := time.Now()
	_, _, err := d.pool.get(testContext(t), false)
	if failure := failureOf(t, err); failure.Class != classConnect || failure.Sent || !errors.Is(err, errClosed) {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
	d.close(testContext(t)) // for which nobody waits either
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestWhoComesAtTheEndIsNotConnected(t *testing.T) {
	t.Parallel()
	var dialled atomic.Int64
	d := reached(t, func(context.Context, string, string) (net.Conn, error) {
		dialled.Add(1)
		return nil, errors.New("there is nobody")
	})
	close(d.pool.over) // and its slots are free still
	for range 64 {     // each finds two ways open
		_, _, err := d.pool.get(testContext(t), false)
		if failure := failureOf(t, err); failure.Class != classConnect || !errors.Is(failure, errClosed) {
			t.Fatal(err)
		}
	}
	if n := dialled.Load(); n > 0 || len(d.pool.slots) > 0 {
		t.Errorf("it was dialled %d times, and %d slots are held", n, len(d.pool.slots))
	}
}
