package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"bench","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	meta        = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}`
)

// connection is a client's, kept alive, that sends requests which were put together before. It does next to nothing, so that
// what is measured is what it talks to.
type connection struct {
	net.Conn

	host, path string
	in         *bufio.Reader
	body       bytes.Buffer
}

// longest is how long a connection is in use at most.
const longest = 2 * time.Minute

func dial(endpoint string) (*connection, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return nil, err
	}
	// A gateway that hangs ends a run.
	if err := conn.SetDeadline(time.Now().Add(longest)); err != nil {
		return nil, err
	}
	return &connection{Conn: conn, host: u.Host, path: u.Path, in: bufio.NewReaderSize(conn, 1<<10)}, nil
}

// request puts a request together; headers are name, value, name, value.
func (c *connection) request(method, body string, headers ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n", method, c.path, c.host)
	for i := 0; i < len(headers); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", headers[i], headers[i+1])
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return []byte(b.String())
}

// do sends a request and reads the response into c.body.
func (c *connection) do(request []byte) (http.Header, error) {
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	c.body.Reset()
	if _, err := c.body.ReadFrom(r.Body); err != nil {
		return nil, err
	}
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	if r.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s: %.300s", r.Status, c.body.Bytes())
	}
	return r.Header, nil
}

// open opens a session and returns the headers of its requests.
func (c *connection) open(headers ...string) ([]string, error) {
	r, err := c.do(c.request(http.MethodPost, initialize, headers...))
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	headers = append([]string{"MCP-Protocol-Version", legacy, "Mcp-Session-Id", r.Get("Mcp-Session-Id")}, headers...)
	if _, err := c.do(c.request(http.MethodPost, initialized, headers...)); err != nil {
		return nil, fmt.Errorf("initialized: %w", err)
	}
	return headers, nil
}

// shut ends a session.
func (c *connection) shut(headers []string) error {
	_, err := c.do(c.request(http.MethodDelete, "", headers...))
	return err
}

// call is the request of a tool call.
func (c *connection) call(version, text string, headers ...string) []byte {
	params := `"name":"echo","arguments":{"text":"` + text + `"}`
	if version == modern {
		params += "," + meta
		headers = append([]string{"MCP-Protocol-Version", modern, "Mcp-Method", "tools/call", "Mcp-Name", "echo"}, headers...)
	}
	return c.request(http.MethodPost, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{`+params+`}}`, headers...)
}

// client calls one tool, again and again.
type client struct {
	*connection

	request, want []byte
}

// connect makes a client whose first call succeeds. Headers are added to all its requests.
func connect(b *testing.B, endpoint, version, text string, headers ...string) *client {
	b.Helper()
	conn, err := dial(endpoint)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	if version == legacy {
		if headers, err = conn.open(headers...); err != nil {
			b.Fatalf("%s: %v", endpoint, err)
		}
	}
	c := &client{connection: conn, request: conn.call(version, text, headers...), want: []byte(text)}
	if err := c.once(); err != nil {
		b.Fatalf("%s: the first call: %v", endpoint, err)
	}
	return c
}

// once calls, and looks whether the answer is right.
func (c *client) once() error {
	if _, err := c.do(c.request); err != nil {
		return err
	}
	if !bytes.Contains(c.body.Bytes(), c.want) {
		return fmt.Errorf("a wrong answer: %.300s", c.body.Bytes())
	}
	return nil
}
