package gateway

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
)

// beginning is what a request begins with.
const beginning = "GET / HTTP/1.1\r\nHost: localhost\r\n"

// awaitHeaders waits until what is held of headers is as it should be. It is never more than is agreed on.
func (c *crowded) awaitHeaders(t *testing.T, ok func(held int) bool) {
	t.Helper()
	for begun := time.Now(); ; <-time.After(time.Millisecond) {
		c.open.mu.Lock()
		held, holding := c.open.headers, c.open.holding.Len()
		c.open.mu.Unlock()
		if held > maxHeaders || (held == 0) != (holding == 0) {
			t.Fatalf("%d connections hold %d bytes, at most %d are agreed on", holding, held, maxHeaders)
		}
		if ok(held) {
			return
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%d connections hold %d bytes", holding, held)
		}
	}
}

func TestHeadersWithoutAnEndAreHeldUpToABoundAndThoseThatBeganFirstAreClosed(t *testing.T) {
	t.Parallel()
	const size, most = 900_000, 18 // so many of them fit into the bound
	for name, tc := range map[string]struct {
		secured bool
		header  string
	}{
		"a long line":           {header: "X: " + strings.Repeat("x", size)},
		"a long line, over TLS": {true, "X: " + strings.Repeat("x", size)},
		"many lines":            {header: strings.Repeat("a:\r\n", size/(4+lineCost)) + "b: b"},
		"many lines, over TLS":  {true, strings.Repeat("a:\r\n", size/(4+lineCost)) + "b: b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowded(t, 100, tc.secured)
			var flood []net.Conn
			for i := range most + 2 {
				conn := c.dial(t)
				if _, err := io.WriteString(conn, beginning+tc.header); err != nil {
					t.Fatal(err)
				}
				flood = append(flood, conn)
				if i >= most { // its close comes before the end of what is read of this one
					answer(t, flood[i-most])
				}
				c.awaitHeaders(t, func(held int) bool { return held >= min(i+1, most)*(size-freeHeader-5*lineCost) })
			}
			proper := c.dial(t)
			if _, err := io.WriteString(proper, beginning+"X: "+strings.Repeat("x", 8<<10)+"\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			statuses := []int{answer(t, proper)}
			for _, conn := range flood {
				_, _ = io.WriteString(conn, "\r\n\r\n") // which fails for one that is closed
				statuses = append(statuses, answer(t, conn))
			}
			want := []int{404, 0, 0}
			for range most {
				want = append(want, 404)
			}
			if diff := cmp.Diff(want, statuses); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
			c.awaitHeaders(t, func(held int) bool { return held == 0 })
		})
	}
}

func TestAHeaderCountsUntilItsEndAndEachOfAConnectionByItself(t *testing.T) {
	t.Parallel()
	c := newCrowded(t, 10, false)
	close(c.slow)
	conn := c.dial(t)
	large := "X: " + strings.Repeat("x", 100_000)
	for range 3 {
		if _, err := io.WriteString(conn, "POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"+large); err != nil {
			t.Fatal(err)
		}
		c.awaitHeaders(t, func(held int) bool { return held > 90_000 && held < 110_000 })
		if _, err := io.WriteString(conn, "\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-c.began
		c.awaitHeaders(t, func(held int) bool { return held == 0 }) // its body does not count
		if _, err := io.WriteString(conn, strings.Repeat("b", 100_000)); err != nil {
			t.Fatal(err)
		}
		if status := answer(t, conn); status != 404 {
			t.Fatal(status)
		}
	}
	if _, err := io.WriteString(conn, beginning+large); err != nil {
		t.Fatal(err)
	}
	c.awaitHeaders(t, func(held int) bool { return held > 90_000 })
	_ = conn.Close()
	c.awaitHeaders(t, func(held int) bool { return held == 0 })
}

func TestTheHeaderOfARequestIsLetGoBeforeTheEndOfItsBodyIsLookedFor(t *testing.T) {
	t.Parallel()
	var seen *http.Request
	handler := contained(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r }), panics.New(slog.New(slog.DiscardHandler), nil))
	r := httptest.NewRequest(http.MethodPost, "/long", strings.NewReader("x"))
	r.Header.Set("X", strings.Repeat("long", freeHeader))
	r.Trailer = http.Header{"Long": nil}
	handler.ServeHTTP(httptest.NewRecorder(), r)
	if r.Header != nil || r.Trailer != nil || r.URL != nil || r.RequestURI != "" || r.Host != "" || r.Method != http.MethodPost {
		t.Errorf("net/http holds on to %v %v %v %q %q, method %s", r.Header, r.Trailer, r.URL, r.RequestURI, r.Host, r.Method)
	}
	if seen.Header.Get("X") == "" || seen.URL.Path != "/long" {
		t.Errorf("what a handler left behind sees %v %v", seen.Header, seen.URL)
	}
}

func TestAConnectionIsNotKeptAfterALongRequestLine(t *testing.T) {
	t.Parallel()
	handler := contained(http.NotFoundHandler(), panics.New(slog.New(slog.DiscardHandler), nil))
	for path, want := range map[string]string{"/short": "", "/" + strings.Repeat("x", freeHeader): "close"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if got := w.Header().Get("Connection"); got != want {
			t.Errorf("after a path of %d bytes: %q, want %q", len(path), got, want)
		}
	}
}

func TestWhoSpeaksWithoutTLSWhereThereIsTLSIsToldSo(t *testing.T) {
	t.Parallel()
	c := newCrowded(t, 10, true)
	c.config = nil
	conn := c.dial(t)
	send(t, conn, "/")
	if status := answer(t, conn); status != 400 {
		t.Error(status)
	}
}
