package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// answers is a server that answers each method in its own way; nil hangs until the caller leaves.
func answers(byMethod map[string]http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		method := r.Method
		if m, err := wire.Parse(body, wire.DefaultLimits); err == nil {
			method = m.Method
		}
		handler, ok := byMethod[method]
		switch {
		case !ok:
			w.WriteHeader(http.StatusBadRequest)
		case handler == nil:
			<-r.Context().Done()
		default:
			handler(w, r)
		}
	}
}

// always answers everything alike.
func always(h http.HandlerFunc) map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"server/discover": h, "initialize": h, "GET": h}
}

func website(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(w, "<html>")
}

const (
	greets   = `{"jsonrpc":"2.0","id":"gateway-initialize","result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`
	greetsAs = `{"jsonrpc":"2.0","id":"gateway-initialize","result":{"protocolVersion":"`
	modernOK = `{"jsonrpc":"2.0","id":"gateway-discover","result":{"supportedVersions":["2025-11-25","2026-07-28","<script>","2026-07-28"],"capabilities":{}}}`
	legacyOK = `{"jsonrpc":"2.0","id":"gateway-discover","result":{"supportedVersions":["2025-06-18","2025-11-25"],"capabilities":{}}}`
	refuses  = `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`
)

func TestServersOfEveryKindAreDescribed(t *testing.T) {
	t.Parallel()
	type want struct {
		Legacy, Modern bool
		Versions       []string
		Class          string
	}
	for name, c := range map[string]struct {
		server map[string]http.HandlerFunc
		pin    string
		want   want
	}{
		"refuses discover by 400, greets by stream": {
			server: map[string]http.HandlerFunc{"server/discover": asStatus(400, refuses), "initialize": asStream(event(greets))},
			want:   want{Legacy: true, Versions: []string{"2025-11-25"}},
		},
		"answers discover with legacy versions": {
			server: map[string]http.HandlerFunc{"server/discover": asJSON(legacyOK), "initialize": asJSON(greets)},
			want:   want{Legacy: true, Versions: []string{"2025-11-25", "2025-06-18"}},
		},
		"is modern alone": {
			server: map[string]http.HandlerFunc{"server/discover": asStream(event(modernOK)), "initialize": asStatus(400, refuses)},
			want:   want{Modern: true, Versions: []string{"2026-07-28", "2025-11-25"}},
		},
		"is both": {
			server: map[string]http.HandlerFunc{"server/discover": asJSON(modernOK), "initialize": asJSON(greets)},
			want:   want{Legacy: true, Modern: true, Versions: []string{"2026-07-28", "2025-11-25"}},
		},
		"is both, pinned to legacy": {
			server: map[string]http.HandlerFunc{"server/discover": asJSON(modernOK), "initialize": asJSON(greets)}, pin: "2025-11-25",
			want: want{Legacy: true, Versions: []string{"2025-11-25"}},
		},
		"is both, pinned to modern": {
			server: map[string]http.HandlerFunc{"server/discover": asJSON(modernOK), "initialize": asJSON(greets)}, pin: "2026-07-28",
			want: want{Modern: true, Versions: []string{"2026-07-28", "2025-11-25"}},
		},
		"is silent to discover": {
			server: map[string]http.HandlerFunc{"server/discover": nil, "initialize": asJSON(greets)},
			want:   want{Legacy: true, Versions: []string{"2025-11-25"}},
		},
		"fails at discover": {
			server: map[string]http.HandlerFunc{"server/discover": asStatus(500, ""), "initialize": asJSON(greets)},
			want:   want{Legacy: true, Versions: []string{"2025-11-25"}},
		},
		"is old": {
			server: map[string]http.HandlerFunc{"initialize": asJSON(greetsAs + `2025-03-26","capabilities":{}}}`)},
			want:   want{Legacy: true, Versions: []string{"2025-03-26"}},
		},
		"is of the future": {
			server: map[string]http.HandlerFunc{"initialize": asJSON(greetsAs + `2031-01-01","capabilities":{}}}`)},
			want:   want{Class: "NotMCP"},
		},
		"is silent": {server: map[string]http.HandlerFunc{"server/discover": nil, "initialize": nil}, want: want{Class: "Timeout"}},
		"is modern, pinned to legacy": {
			server: map[string]http.HandlerFunc{"server/discover": asJSON(modernOK), "initialize": asStatus(400, refuses)}, pin: "2025-11-25",
			want: want{Class: "NotMCP"},
		},
		"wants a credential":  {server: always(asStatus(401, "")), want: want{Class: "Unauthorized"}},
		"forbids":             {server: always(asStatus(403, "")), want: want{Class: "Forbidden"}},
		"is at another path":  {server: always(asStatus(404, "")), want: want{Class: "NotFound"}},
		"fails at everything": {server: always(asStatus(500, "")), want: want{Class: "ServerError"}},
		"is an empty stream":  {server: always(asStream("hello\n\n")), want: want{Class: "ServerError"}},
		"is a website":        {server: always(website), want: want{Class: "NotMCP"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, answers(c.server), func(t *testing.T, b *Backend, _ *inMemory) {
				t.Helper()
				d, err := b.Describe(testContext(t))
				var got want
				if err != nil {
					got.Class = classOf(t, err).Class
				} else {
					got = want{Legacy: d.Legacy, Modern: d.Modern, Versions: d.Versions}
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s\n%v", diff, err)
				}
			}, func(b *table.Backend, _ *Options) { b.ProtocolVersion = c.pin })
		})
	}
}

func TestAVersionThatTheServerAsksForIsOffered(t *testing.T) {
	var asked []string
	server := newScript()
	server.version = "2025-03-26"
	server.on = func(w http.ResponseWriter, r *http.Request, m *wire.Message) bool {
		version, _ := m.StringParam("protocolVersion")
		if m.Method != "initialize" || version == "2025-03-26" {
			return false
		}
		asked = append(asked, version)
		data := []byte(`{"supported":["2025-03-26","2024-11-05"],"requested":"2025-11-25"}`)
		asStatus(http.StatusBadRequest, string(wire.NewError(m.ID, wire.CodeUnsupportedVersion, "no", data).Raw))(w, r)
		return true
	}
	b := open(t, serve(t, server).URL)
	d, err := b.Describe(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"2025-03-26"}, d.Versions); diff != "" || len(asked) != 1 {
		t.Errorf("asked %q, versions (-want +got):\n%s", asked, diff)
	}
}

func TestManyWhoAskAreAnsweredByOneLook(t *testing.T) {
	r := &recorder{Handler: newScript()}
	b := open(t, serve(t, r).URL)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := b.Describe(testContext(t)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(r.with("server/discover")); n != 1 {
		t.Errorf("the server was asked %d times", n)
	}
	b.Forget()
	if _, err := b.Describe(testContext(t)); err != nil || len(r.with("server/discover")) != 2 {
		t.Errorf("after Forget: %v, asked %d times", err, len(r.with("server/discover")))
	}
}

func TestWhatIsKnownOfAServerStandsWhileItCannotBeReached(t *testing.T) {
	r := &recorder{Handler: newScript()}
	var down atomic.Bool
	b := open(t, serve(t, r).URL, func(_ *table.Backend, o *Options) {
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if down.Load() {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
	})
	known, err := b.Describe(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	down.Store(true)
	b.transport.CloseIdleConnections()
	b.Forget()
	stands, err := b.Describe(testContext(t))
	if err != nil || stands != known {
		t.Errorf("while it restarts: %+v, %v", stands, err)
	}
	down.Store(false)
	ctx := testContext(t)
	for tick := time.Tick(10 * time.Millisecond); ; {
		if anew, err := b.Describe(ctx); err != nil {
			t.Fatal(err)
		} else if anew != known {
			return
		}
		select {
		case <-tick:
		case <-ctx.Done():
			t.Fatal("it is back, and was not asked anew")
		}
	}
}

func TestAGuardedServerIsNotDialledWhereItMustNotBe(t *testing.T) {
	for name, tt := range map[string]struct {
		url          string
		allowPrivate bool
	}{
		"the gateway's own ports":            {"http://127.0.0.1:1/mcp", true},
		"by a name":                          {"http://localhost:1/mcp", true},
		"metadata":                           {"http://169.254.169.254/mcp", true},
		"inside, when only outside is asked": {"http://10.0.0.1/mcp", false},
		"inside, written as IPv6":            {"http://[::ffff:10.0.0.1]/mcp", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, tt.url, func(config *table.Backend, _ *Options) { config.Guarded, config.AllowPrivate = true, tt.allowPrivate })
			_, err := b.Describe(testContext(t))
			if failure := classOf(t, err); failure.Class != "Denied" || failure.Sent {
				t.Errorf("class %q, sent %t: %v", failure.Class, failure.Sent, err)
			}
		})
	}
}

func TestAServerThatIsDownIsNotAskedByEverybody(t *testing.T) {
	var dials atomic.Int64
	b := open(t, "http://192.0.2.1/mcp", func(_ *table.Backend, o *Options) {
		o.Dial = func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
	})
	for range 1000 {
		if _, err := b.Describe(testContext(t)); classOf(t, err).Class != "Connect" {
			t.Fatal(err)
		}
	}
	if n := dials.Load(); n > 20 {
		t.Errorf("it was dialled %d times", n)
	}
	if err := b.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
}

// TestAServerThatChangedIsAskedAnew has a server learn 2026-07-28 and forget about sessions while the gateway runs.
func TestAServerThatChangedIsAskedAnew(t *testing.T) {
	var upgraded atomic.Bool
	old, fresh := newScript(), answers(map[string]http.HandlerFunc{"server/discover": asJSON(modernOK), "initialize": asStatus(404, "")})
	b := open(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if upgraded.Load() {
			fresh(w, r)
			return
		}
		old.ServeHTTP(w, r)
	})).URL)
	d, err := b.Describe(testContext(t))
	if err != nil || d.Modern {
		t.Fatalf("%+v, %v", d, err)
	}
	upgraded.Store(true)
	if _, _, err := b.Open(testContext(t), backend.Client{}); classOf(t, err).Class != "NotFound" {
		t.Fatal(err)
	}
	b.discovery.mu.Lock()
	if !b.discovery.doubted {
		t.Error("the description is not doubted")
	}
	b.discovery.next = time.Time{} // as if some time had passed
	b.discovery.mu.Unlock()
	if d, err = b.Describe(testContext(t)); err != nil || !d.Modern || d.Legacy {
		t.Errorf("%+v, %v", d, err)
	}
	if _, _, err := b.Open(testContext(t), backend.Client{}); !errors.Is(err, backend.ErrEra) {
		t.Errorf("Open: %v", err)
	}
	if _, err := b.Modern(testContext(t)); err != nil {
		t.Errorf("Modern: %v", err)
	}
}

func TestAnUnusableURLIsRefused(t *testing.T) {
	for _, url := range []string{
		"", "web:8080/mcp", "ftp://web/mcp", "http://", "http://u:p@web/mcp", "http://web/mcp?a=b", "http://web/mcp#x", "unix:///x", ":",
	} {
		if _, err := New(table.Backend{Name: "web", URL: url}, Options{}); err == nil {
			t.Errorf("%q was accepted", url)
		}
	}
}
