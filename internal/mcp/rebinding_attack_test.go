package mcp

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// TestANameIsJudgedByTheAddressThatIsDialledEachTime: what it stood for a moment ago, or stands for in the other family, does not count.
func TestANameIsJudgedByTheAddressThatIsDialledEachTime(t *testing.T) {
	_, port := mcptest.Everywhere(t)
	stand := mcptest.Names(t)
	const allowed, refused = "127.0.0.2", "127.0.0.3"
	guard := Guard{Allow: func(address netip.Addr) bool { return address.Unmap() == netip.MustParseAddr(allowed) }}
	dial := func() (string, error) {
		dialer := &net.Dialer{Timeout: 5 * time.Second, Control: guard.Control}
		conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort("api.example.com", port))
		if err != nil {
			return "", err
		}
		defer conn.Close()
		host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
		return host, err
	}
	for name, tc := range map[string]struct {
		stands []string
		want   string // empty: refused
	}{
		"an address that is allowed":            {[]string{allowed}, allowed},
		"then another":                          {[]string{refused}, ""},
		"both, the refused one first":           {[]string{refused, allowed}, allowed},
		"the allowed one, and IPv6 that is not": {[]string{allowed, "::1"}, allowed},
		"IPv6 alone that is not":                {[]string{"::1"}, ""},
		"the refused one, written as IPv6":      {[]string{"::ffff:127.0.0.3"}, ""},
		"metadata":                              {[]string{"169.254.169.254"}, ""},
	} {
		stand(tc.stands...)
		got, err := dial()
		if got != tc.want || tc.want == "" && !errors.Is(err, ErrAddressDenied) {
			t.Errorf("%s: dialled %q, %v; want %q", name, got, err, tc.want)
		}
	}
	// And in the midst of it: every other answer is one that is not allowed.
	for n := range 20 {
		stand([]string{allowed, refused}[n%2])
		if got, err := dial(); (got == allowed) != (n%2 == 0) {
			t.Errorf("the answer %d: dialled %q, %v", n, got, err)
		}
	}
}
