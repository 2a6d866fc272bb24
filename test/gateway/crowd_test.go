package gateway

import (
	"bufio"
	"io"
	"net"
	"net/http"
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
