package upstream

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// TestACallAllocatesLittle holds the number of allocations, of which 49 are net/http's.
func TestACallAllocatesLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for way, stream := range map[string]bool{"an object": false, "a stream": true} {
		t.Run(way, func(t *testing.T) {
			b := open(t, canned(t, cannedResponse(stream, 1<<10)))
			for name, channel := range ways(b) {
				call := toolCall(`1`, "echo", fmt.Sprintf(`{"text":%q}`, strings.Repeat("y", 1<<10)), channel.Era())
				got := testing.AllocsPerRun(500, func() {
					if err := channel.Call(t.Context(), call, ignored{}); err != nil {
						t.Fatal(err)
					}
				})
				if got > 80 {
					t.Errorf("%s: %.0f allocations", name, got)
				}
			}
		})
	}
}

// TestALongResponseIsNotHeld measures the heap while a response of 12 MiB passes.
func TestALongResponseIsNotHeld(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector holds memory")
	}
	for way, stream := range map[string]bool{"an object": false, "a stream": true} {
		t.Run(way, func(t *testing.T) {
			b := open(t, canned(t, cannedResponse(stream, 12<<20)))
			runtime.GC()
			var before, during runtime.MemStats
			runtime.ReadMemStats(&before)
			err := ways(b)["modern"].Call(testContext(t), toolCall(`1`, "echo", "", backend.Modern), sinkFunc(func(r io.Reader) error {
				if _, err := io.CopyN(io.Discard, r, 8<<20); err != nil {
					return err
				}
				runtime.GC()
				runtime.ReadMemStats(&during)
				_, err := io.Copy(io.Discard, r)
				return err
			}))
			if err != nil {
				t.Fatal(err)
			}
			if held := int64(during.HeapAlloc) - int64(before.HeapAlloc); held > 256<<10 {
				t.Errorf("%d KiB are held", held>>10)
			}
		})
	}
}

// sinkFunc takes the response.
type sinkFunc func(r io.Reader) error

func (sinkFunc) Message(*wire.Message) error { return nil }

func (f sinkFunc) Response(r io.Reader) error { return f(r) }

// TestConnectionsAreUsedAgain has many calls at once, twice. The callers are gone before the streams end, as the context of an
// HTTP request ends with its handler.
func TestConnectionsAreUsedAgain(t *testing.T) {
	const calls = 100
	for way, stream := range map[string]bool{"objects": false, "streams": true} {
		t.Run(way, func(t *testing.T) {
			type gates struct{ arrived, answer, end chan struct{} }
			var now atomic.Pointer[gates]
			server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				g := now.Load()
				g.arrived <- struct{}{}
				<-g.answer
				if !stream {
					asJSON(result1)(w, r)
					return
				}
				asStream(event(result1))(w, r)
				_ = http.NewResponseController(w).Flush()
				<-g.end
			})
			inBubble(t, server, func(t *testing.T, b *Backend, l *inMemory) {
				t.Helper()
				for range 2 {
					g := &gates{make(chan struct{}, calls), make(chan struct{}), make(chan struct{})}
					now.Store(g)
					var wg sync.WaitGroup
					for range calls {
						wg.Go(func() {
							ctx, leave := context.WithCancel(testContext(t))
							defer leave()
							if err := b.modern().Call(ctx, toolCall(`1`, "echo", "", backend.Modern), ignored{}); err != nil {
								t.Error(err)
							}
						})
					}
					for range calls {
						<-g.arrived
					}
					close(g.answer)
					wg.Wait()
					close(g.end)
					b.tasks.Wait()
				}
				if n := l.dials.Load(); n > calls+calls/10 {
					t.Errorf("%d calls at once, twice, dialled %d times", calls, n)
				}
			})
		})
	}
}

func TestTheCAFileOfTheTableIsTrustedAlone(t *testing.T) {
	s := httptest.NewTLSServer(asJSON(result1))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "ca.crt")
	b := open(t, s.URL, func(c *table.Backend, _ *Options) { c.CAFile = file })
	call := func() error {
		return b.modern().Call(testContext(t), toolCall(`1`, "echo", "", backend.Modern), &sink{})
	}
	if failure := classOf(t, call()); failure.Class != "Credential" || failure.Sent || !strings.HasPrefix(failure.Told, "the bundle in caBundle cannot") {
		t.Errorf("without the file: %+v", failure)
	}
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(file, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the file is read", func() bool { return call() == nil })
}
