package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// TestBodiesInMemoryAreBounded: however many requests send all but the end of a large body; small ones pass all the while.
func TestBodiesInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	const most, each, senders = 8 << 20, 4 << 20, 40
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, modernOnly(small("server", "who")))}},
		"--max-bodies-bytes", fmt.Sprint(most))
	var refused atomic.Int64
	var conns []net.Conn
	var running sync.WaitGroup
	for n := range senders {
		conn, err := net.Dial("tcp", addressOf(g.URL))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		conns = append(conns, conn)
		head, body := fmt.Sprintf("Content-Length: %d", each), strings.Repeat(" ", each-1)
		if n%2 == 1 {
			head, body = "Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n", each-1, body)
		}
		running.Go(func() {
			// The answer may come before all is sent: then sending fails, and that is as good.
			_, _ = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
				"Accept: application/json, text/event-stream\r\n"+head+"\r\n\r\n"+body)
		})
		running.Go(func() {
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			switch {
			case err == nil && r.StatusCode == http.StatusTooManyRequests:
				refused.Add(1)
			case err == nil:
				t.Errorf("a request without its end is answered: %s", r.Status)
			case isReset(err):
				refused.Add(1) // the answer went with the connection, which had data that nobody read
			}
		})
	}
	launch.Await(t, func() error {
		// What the budget has room for is most/each, and one less where bodies grow in steps at the same time.
		if n := refused.Load(); n < senders-most/each {
			return fmt.Errorf("%d of %d were refused", n, senders)
		}
		return nil
	})
	body, headers := modernCall("who", `{}`)
	if r, answer := post(t, g.URL, body, headers...); r.StatusCode != http.StatusOK {
		t.Errorf("a small call beside them: %s: %s", r.Status, answer)
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	running.Wait()
	launch.Await(t, func() error {
		large, headers := modernCall("who", `{"padding":"`+strings.Repeat("x", 3<<20)+`"}`)
		if r, answer := post(t, g.URL, large, headers...); r.StatusCode != http.StatusOK {
			return fmt.Errorf("a large call after them: %s: %.300s", r.Status, answer)
		}
		return nil
	})
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !errors.Is(err, net.ErrClosed)
}

// TestMessagesWithoutAnAnswerHaveAQuotaOfTheirOwn: a server that takes its time for notifications is not sent any number of them.
func TestMessagesWithoutAnAnswerHaveAQuotaOfTheirOwn(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}, 100), make(chan struct{})
	handler := streamable(nil)(small("server", "who"))
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "notifications/roots/list_changed") {
			begun <- struct{}{}
			<-end
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		handler.ServeHTTP(w, r)
	})
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, slow)}}, "--max-calls", "3")
	body, headers := legacyCall(t, g.URL, "who", `{}`)
	const notification = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`
	var running sync.WaitGroup
	for range 3 {
		running.Go(func() {
			if r, answer := post(t, g.URL, notification, headers...); r.StatusCode != http.StatusAccepted {
				t.Errorf("within the quota: %s: %s", r.Status, answer)
			}
		})
		<-begun
	}
	if r, answer := post(t, g.URL, notification, headers...); r.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one more: %s: %s", r.Status, answer)
	}
	if r, answer := post(t, g.URL, body, headers...); r.StatusCode != http.StatusOK {
		t.Errorf("a call beside them: %s: %s", r.Status, answer)
	}
	close(end)
	running.Wait()
}

// TestCallsThatTheirClientsGiveUpDoNotCloseABackend: that a client leaves says nothing of the server.
func TestCallsThatTheirClientsGiveUpDoNotCloseABackend(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 1)
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	addTool(server, "wait", func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (string, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
	addTool(server, "who", answering("me"))
	for version, handler := range map[string]http.Handler{modern: modernOnly(server), legacy: streamable(nil)(server)} {
		g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, handler)}})
		c := connect(t, g.URL, version)
		for range 12 {
			ctx, leave := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := c.try(ctx, "wait", nil)
				ended <- err
			}()
			select {
			case <-begun:
			case err := <-ended:
				t.Fatalf("%s: a call is refused: %v", version, err)
			}
			leave()
			if err := <-ended; err == nil {
				t.Errorf("%s: a call that was given up is answered", version)
			}
		}
		if got := c.call(t, "who", nil); got != "me" {
			t.Errorf("%s: after calls that were given up: %s", version, got)
		}
	}
}

// TestABackendThatHangsTakesNoCallsFromOthers, and when it has hung for a while its callers are told at once, until it is back.
func TestABackendThatHangsTakesNoCallsFromOthers(t *testing.T) {
	t.Parallel()
	var hangs atomic.Bool
	hangs.Store(true)
	var called atomic.Int64
	server := mcp.NewServer(&mcp.Implementation{Name: "lame", Version: "1"}, nil)
	addTool(server, "work", func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (string, error) {
		called.Add(1)
		if hangs.Load() {
			<-ctx.Done()
		}
		return "done", nil
	})
	g := launch.Serve(t, binary, []table.Backend{
		{Name: "lame", Prefix: "lame_", URL: serve(t, modernOnly(server))},
		{Name: "sound", Prefix: "sound_", URL: serve(t, modernOnly(small("sound", "who")))},
	}, "--max-calls", "4", "--call-timeout", "6s") // two calls hang at least until a third was made
	work, workHeaders := modernCall("lame_work", `{}`)
	who, whoHeaders := modernCall("sound_who", `{}`)
	launch.Await(t, func() error {
		if r, answer := post(t, g.URL, who, whoHeaders...); r.StatusCode != http.StatusOK || strings.Contains(answer, `"error"`) {
			return fmt.Errorf("the other backend: %s: %s", r.Status, answer)
		}
		return nil
	})
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			if _, answer := post(t, g.URL, work, workHeaders...); !strings.Contains(answer, `"class":"Timeout","sent":true`) {
				t.Errorf("a call that is not answered: %s", answer)
			}
		})
	}
	launch.Await(t, func() error {
		if n := called.Load(); n < 2 {
			return fmt.Errorf("%d calls are under way", n)
		}
		return nil
	})
	r, answer := post(t, g.URL, work, workHeaders...)
	if r.StatusCode != http.StatusTooManyRequests || !strings.Contains(answer, `"class":"Busy","sent":false`) {
		t.Errorf("a third call to it: %s: %s", r.Status, answer)
	}
	if r, answer := post(t, g.URL, who, whoHeaders...); r.StatusCode != http.StatusOK || strings.Contains(answer, `"error"`) {
		t.Errorf("a call to the other backend: %s: %s", r.Status, answer)
	}
	running.Wait()
	launch.Await(t, func() error { // it takes five that hang, in a row
		before := called.Load()
		_, answer := post(t, g.URL, work, workHeaders...)
		if !strings.Contains(answer, `"class":"Timeout","sent":false`) || called.Load() != before {
			return fmt.Errorf("after %d calls that hang: %s", before, answer)
		}
		return nil
	})
	hangs.Store(false)
	launch.Await(t, func() error {
		if _, answer := post(t, g.URL, work, workHeaders...); !strings.Contains(answer, "done") {
			return fmt.Errorf("it is back, and: %s", answer)
		}
		return nil
	})
}
