package gateway

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// TestARequestThatIsRefusedHoldsItsConnectionForNoLongTime: its body need not come, which nobody reads.
func TestARequestThatIsRefusedHoldsItsConnectionForNoLongTime(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	g := serveTable(t, table.Table{Auth: i.auth("alice"), Backends: []table.Backend{{Name: "server", URL: serve(t, both(small("server", "who")))}}})
	for name, tc := range map[string]struct {
		request string
		want    int
	}{
		"another path":    {"POST /elsewhere", http.StatusNotFound},
		"no token":        {"POST /mcp", http.StatusUnauthorized},
		"a GET with body": {"GET /mcp", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", addressOf(g.URL))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			begun := time.Now()
			if err := conn.SetDeadline(begun.Add(10 * time.Second)); err != nil { // a body that is read has 30 s
				t.Fatal(err)
			}
			if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{", tc.request); err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != tc.want {
				t.Errorf("%s, want %d", response.Status, tc.want)
			}
			t.Logf("answered after %s, promised within 1s", time.Since(begun).Round(time.Millisecond))
		})
	}
}
