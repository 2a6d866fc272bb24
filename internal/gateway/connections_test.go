package gateway

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// crowded is a server of the gateway's kind with room for so many connections. A request to /slow is answered when slow is closed.
type crowded struct {
	address string
	config  *tls.Config // nil without TLS
	open    *connections
	slow    chan struct{}
	served  chan error
	began   chan struct{}
}

func newCrowded(t *testing.T, most int, secured bool) *crowded {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &crowded{
		address: inner.Addr().String(), open: newConnections(inner, most),
		slow: make(chan struct{}), served: make(chan error, 1), began: make(chan struct{}, 10),
	}
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			c.began <- struct{}{}
			<-c.slow
		}
		http.NotFound(w, r)
	}), slog.New(slog.DiscardHandler), 0)
	server.ConnState, server.ReadHeaderTimeout = c.open.note, time.Minute // a slow machine needs its time for a flood
	listener := net.Listener(c.open)
	if secured {
		certified := httptest.NewUnstartedServer(nil)
		certified.StartTLS()
		t.Cleanup(certified.Close)
		listener = &securedConnections{
			connections: c.open, config: &tls.Config{Certificates: certified.TLS.Certificates}, logger: slog.New(slog.DiscardHandler),
		}
		c.config = &tls.Config{InsecureSkipVerify: true}
	}
	go func() { c.served <- server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return c
}

// dial opens a connection that is kept open, and whose silence is bounded.
func (c *crowded) dial(t *testing.T) net.Conn {
	t.Helper()
	var conn net.Conn
	var err error
	if c.config != nil {
		conn, err = tls.Dial("tcp", c.address, c.config)
	} else {
		conn, err = net.Dial("tcp", c.address)
	}
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(20 * time.Second))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// awaitWaiting waits until the server has noted that so many connections have no request.
func (c *crowded) awaitWaiting(n int) {
	for {
		c.open.mu.Lock()
		waiting := c.open.waiting.Len()
		c.open.mu.Unlock()
		if waiting == n {
			return
		}
		<-time.After(time.Millisecond)
	}
}

func send(t *testing.T, conn net.Conn, path string) {
	t.Helper()
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
}

// answer is the status that comes; 0 for a connection that was closed.
func answer(t *testing.T, conn net.Conn) int {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("no answer came")
	}
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	_, _ = io.Copy(io.Discard, r.Body)
	return r.StatusCode
}

func TestConnectionsThatAskNothingMakeRoomForTheNextTheLongestIdleFirst(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ secured, silent bool }{
		"after a request":           {},
		"after a request, over TLS": {secured: true},
		"they never said a word":    {silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 4
			c := newCrowded(t, most, tc.secured)
			var idle []net.Conn
			for range most {
				conn := c.dial(t)
				if !tc.silent {
					send(t, conn, "/")
					answer(t, conn)
				}
				idle = append(idle, conn)
				c.awaitWaiting(len(idle))
			}
			statuses := []int{}
			for range 2 {
				conn := c.dial(t)
				send(t, conn, "/")
				statuses = append(statuses, answer(t, conn))
				c.awaitWaiting(most)
			}
			for _, conn := range idle[:2] { // which made room
				statuses = append(statuses, answer(t, conn))
			}
			for _, conn := range idle[2:] {
				send(t, conn, "/")
				statuses = append(statuses, answer(t, conn))
			}
			if diff := cmp.Diff([]int{404, 404, 0, 0, 404, 404}, statuses); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAConnectionWithARequestUnderWayIsNotClosedForAnother(t *testing.T) {
	t.Parallel()
	c := newCrowded(t, 2, false)
	busy := []net.Conn{c.dial(t), c.dial(t)}
	for _, conn := range busy {
		send(t, conn, "/slow")
		<-c.began
	}
	next := c.dial(t)
	send(t, next, "/")
	if err := next.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := next.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("there is room for a third: %v", err)
	}
	if err := next.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	close(c.slow)
	for _, conn := range append(busy, next) {
		if status := answer(t, conn); status != http.StatusNotFound && conn != busy[0] { // which may have made room, once it was answered
			t.Error(status)
		}
	}
}

func TestAListenerIsClosedWhileAConnectionWaitsForRoom(t *testing.T) {
	t.Parallel()
	c := newCrowded(t, 1, false)
	busy := c.dial(t)
	send(t, busy, "/slow")
	<-c.began
	waiting := c.dial(t)
	_ = c.open.Close()
	if err := <-c.served; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if status := answer(t, waiting); status != 0 {
		t.Error(status)
	}
	close(c.slow)
}
