package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAtTheLimitOfConnectionsIdleOnesKeepNobodyOut: neither those that asked for something and stay, nor those that never said a word.
func TestAtTheLimitOfConnectionsIdleOnesKeepNobodyOut(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"they asked for what there is not": "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"they say nothing":                 "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 20
			g, _ := counted(t, "--max-connections", "20")
			for range 3 * most { // more than there is room for: each of them gets in
				conn, err := net.Dial("tcp", addressOf(g.URL))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close() })
				if says == "" {
					continue
				}
				if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(conn, says); err != nil {
					t.Fatal(err)
				}
				r, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				_ = r.Body.Close()
			}
			body, headers := modernCall("who", `{}`)
			begun := time.Now()
			if r, answer := post(t, g.URL, body, headers...); r.StatusCode != http.StatusOK || time.Since(begun) > 5*time.Second {
				t.Errorf("a call beside them: %s after %s: %s", r.Status, time.Since(begun), answer)
			}
		})
	}
}

// TestHeadersWithoutAnEndDoNotFillTheMemory: nobody was asked for a token before the end of a header.
func TestHeadersWithoutAnEndDoNotFillTheMemory(t *testing.T) {
	const most = 110_000_000        // bytes resident
	t.Setenv("GOMEMLIMIT", "80MiB") // so that garbage is not what is measured
	var short strings.Builder
	for i := range 7000 {
		fmt.Fprintf(&short, "%x:\r\n", i+0x1000)
	}
	for name, tc := range map[string]struct {
		connections int
		lines       string
	}{
		"one long line":             {2500, "X: " + strings.Repeat("x", 60_000)},
		"thousands of the shortest": {500, short.String()},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := counted(t)
			for range tc.connections {
				conn, err := net.Dial("tcp", addressOf(g.URL))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close() })
				_, _ = io.WriteString(conn, "GET /mcp HTTP/1.1\r\nHost: localhost\r\n"+tc.lines) // which may be refused before its end
			}
			body, headers := modernCall("who", `{}`)
			if r, answer := post(t, g.URL, body, headers...); r.StatusCode != http.StatusOK {
				t.Errorf("a call beside them: %s: %s", r.Status, answer)
			}
			size := resident(t, g)
			t.Logf("%d bytes are resident", size)
			if size > most {
				t.Errorf("%d bytes are resident, at most %d are agreed on", size, most)
			}
		})
	}
}
