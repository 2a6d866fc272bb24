package gateway

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	gw "github.com/mcp-operator/mcp-operator/internal/gateway"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// What a call may cost the gateway, net/http on both sides included.
const (
	maxAllocs = 120
	maxBytes  = 24 << 10
)

func TestACallAllocatesLittle(t *testing.T) {
	// The gateway runs in this process, between a client and a server that allocate nothing themselves.
	backends := []table.Backend{{Name: "server", URL: "http://" + cannedServer(t)}}
	file := filepath.Join(t.TempDir(), "table.json")
	launch.WriteTable(t, file, backends...)
	address := launch.FreeAddress(t)
	options, err := gw.ParseServe([]string{
		"--table", file, "--ephemeral-session-key", "--listen", address, "--health-listen", "0", "--drain-delay", "0s", "--log-level", "error",
	}, func(string) string { return "" }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- gw.Run(ctx, options) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	url := "http://" + address + "/mcp"
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` +
		strings.Repeat("x", 64) + `"},` + meta + `}}`
	launch.Await(t, func() error {
		r, err := http.Get("http://" + address)
		if err == nil {
			err = r.Body.Close()
		}
		return err
	})
	if r, body := post(t, url, call, versionHeader, modern, "Mcp-Method", "tools/call", "Mcp-Name", "echo"); r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", r.Status, body)
	}

	c := dialCanned(t, address, call)
	measure := func(calls int) (allocs, size uint64) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range calls {
			c.call(t)
		}
		runtime.ReadMemStats(&after)
		return (after.Mallocs - before.Mallocs) / uint64(calls), (after.TotalAlloc - before.TotalAlloc) / uint64(calls)
	}
	measure(200) // connections and pools fill
	allocs, size := measure(1000)
	for range 4 { // the whole process is counted: what it does of itself at the same time is no call's
		a, s := measure(1000)
		allocs, size = min(allocs, a), min(size, s)
	}
	t.Logf("a call allocates %d objects, %d bytes", allocs, size)
	if allocs > maxAllocs || size > maxBytes {
		t.Errorf("a call allocates %d objects and %d bytes, at most %d and %d are agreed on", allocs, size, maxAllocs, maxBytes)
	}
}

// cannedClient sends one and the same request.
type cannedClient struct {
	net.Conn

	in      *bufio.Reader
	request []byte
}

func dialCanned(t *testing.T, address, body string) *cannedClient {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	request := fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return &cannedClient{Conn: conn, in: bufio.NewReader(conn), request: []byte(request)}
}

func (c *cannedClient) call(t *testing.T) {
	t.Helper()
	if _, err := c.Write(c.request); err != nil {
		t.Fatal(err)
	}
	if _, err := skipMessage(c.in, nil); err != nil {
		t.Fatal(err)
	}
}

// skipMessage reads an HTTP/1.1 message, and its body into a buffer if there is one. It allocates nothing.
func skipMessage(in *bufio.Reader, into []byte) (body []byte, err error) {
	length, chunked := 0, false
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if len(line) == 2 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length = number(value, 10)
		}
		chunked = chunked || bytes.HasPrefix(line, []byte("Transfer-Encoding: chunked"))
	}
	if !chunked {
		if into == nil {
			_, err = in.Discard(length)
			return nil, err
		}
		_, err = io.ReadFull(in, into[:length])
		return into[:length], err
	}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		size := number(line, 16)
		if _, err := in.Discard(size + 2); err != nil || size == 0 {
			return nil, err
		}
	}
}

func number(digits []byte, base int) int {
	n := 0
	for _, d := range digits {
		switch {
		case d >= '0' && d <= '9':
			n = n*base + int(d-'0')
		case base == 16 && d >= 'a' && d <= 'f':
			n = n*base + int(d-'a') + 10
		default:
			return n
		}
	}
	return n
}

// cannedServer is a server of 2026-07-28 with one tool, which answers what was prepared.
func cannedServer(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answerCanned(conn)
		}
	}()
	return l.Addr().String()
}

var canned = []struct{ method, result string }{
	{`"tools/call"`, `{"resultType":"complete","content":[{"type":"text","text":"` + strings.Repeat("x", 64) + `"}]}`},
	{`"tools/list"`, `{"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`},
	{`"server/discover"`, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`},
}

func answerCanned(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	buffer, out := make([]byte, 64<<10), make([]byte, 0, 4<<10)
	for {
		body, err := skipMessage(in, buffer)
		if err != nil {
			return
		}
		id := []byte(`0`)
		if _, rest, ok := bytes.Cut(body, []byte(`"id":`)); ok {
			if end := bytes.IndexAny(rest, ",}"); end > 0 {
				id = rest[:end]
			}
		}
		result := `{}`
		for _, c := range canned {
			if bytes.Contains(body, []byte(c.method)) {
				result = c.result
				break
			}
		}
		const head, middle, tail = `{"jsonrpc":"2.0","id":`, `,"result":`, `}`
		out = append(out[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "...)
		out = strconv.AppendInt(out, int64(len(head)+len(id)+len(middle)+len(result)+len(tail)), 10)
		out = append(out, "\r\n\r\n"+head...)
		out = append(out, id...)
		out = append(out, middle...)
		out = append(out, result...)
		out = append(out, tail...)
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}
