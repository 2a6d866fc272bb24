package mcp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// localOnly lets callers of localhost in, at whatever port it is served.
func localOnly(status int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := strings.Cut(r.Host, ":")
		mcptest.HostGuard(status, next, "localhost:"+port).ServeHTTP(w, r)
	})
}

// refusedHosts are servers that refuse whoever calls them by this name.
var refusedHosts = map[string]verdict{
	"403 for everything": {
		mcptest.Status(http.StatusForbidden),
		mcp.Limits{},
		mcp.Forbidden,
		"The server refuses initialize (HTTP 403), whatever the Host header says.",
	},
	"421 for everything": {
		mcptest.Status(http.StatusMisdirectedRequest),
		mcp.Limits{},
		mcp.HostRefused,
		`The server refuses the Host header "127.0.0.1:PORT" (HTTP 421): it serves no such name. ` + hintHost,
	},
	"421 to all but a name that is not localhost": {
		mcptest.HostGuard(http.StatusMisdirectedRequest, mcptest.Modern(nil), "demo.example.com"),
		mcp.Limits{},
		mcp.HostRefused,
		`The server refuses the Host header "127.0.0.1:PORT" (HTTP 421): it serves no such name. ` + hintHost,
	},
	"403 to all but localhost": {
		localOnly(http.StatusForbidden, mcptest.Legacy(nil)),
		mcp.Limits{},
		mcp.HostRefused,
		`The server refuses the Host header "127.0.0.1:PORT" (HTTP 403), but accepts "localhost:PORT". ` + hintHost,
	},
	"421 to all but localhost": {
		localOnly(http.StatusMisdirectedRequest, mcptest.Legacy(nil)),
		mcp.Limits{},
		mcp.HostRefused,
		`The server refuses the Host header "127.0.0.1:PORT" (HTTP 421), but accepts "localhost:PORT". ` + hintHost,
	},
	"421 to all but localhost, of a server without sessions": {
		localOnly(http.StatusMisdirectedRequest, mcptest.Modern(nil)),
		mcp.Limits{},
		mcp.HostRefused,
		`The server refuses the Host header "127.0.0.1:PORT" (HTTP 421), but accepts "localhost:PORT". ` + hintHost,
	},
}

const hintHost = "Set spec.hostHeader to a name it accepts, or start it with a flag that allows this one (often --allowed-hosts)."

// The transports agree, and so do a probe and a check of a server that had let this name in.
func TestTheRefusedHostHeaderIsNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		server func() http.Handler // one of each subtest: what an SSE server sends goes to all that listen
		sse    bool
	}{
		"no sessions": {server: func() http.Handler { return mcptest.Modern(nil) }},
		"sessions":    {server: func() http.Handler { return mcptest.Legacy(nil) }},
		"SSE":         {server: func() http.Handler { return &mcptest.SSE{} }, sse: true},
	} {
		for _, status := range []int{http.StatusForbidden, http.StatusMisdirectedRequest} {
			t.Run(fmt.Sprintf("%s, %d", name, status), func(t *testing.T) {
				t.Parallel()
				server := mcptest.Pipe(t, mcptest.HostGuard(status, tc.server(), "localhost:8080"))
				probe := func(host string) (*mcp.Result, error) {
					return client.Probe(t.Context(), mcp.Target{URL: server.URL, Host: host, SSE: tc.sse, Transport: server.Transport()})
				}
				accepted, err := probe("localhost:8080")
				if err != nil {
					t.Fatalf("with the Host it accepts: %v", err)
				}
				want := fmt.Sprintf(`The server refuses the Host header "demo-svc.ns.svc" (HTTP %d), but accepts "localhost:8080". %s`, status, hintHost)
				_, probed := probe("demo-svc.ns.svc")
				checked := client.Check(t.Context(),
					mcp.Target{URL: server.URL, Host: "demo-svc.ns.svc", SSE: tc.sse, Transport: server.Transport()}, accepted)
				for what, err := range map[string]error{"probe": probed, "check": checked} {
					if got := mcp.ReasonOf(err); got != mcp.HostRefused {
						t.Errorf("%s: reason %q", what, got)
					}
					if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
						t.Errorf("%s: message (-want +got):\n%s", what, diff)
					}
				}
			})
		}
	}
}

func TestARefusalIsTriedOnceAsALocalCaller(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]mcp.Reason{http.StatusForbidden: mcp.Forbidden, http.StatusMisdirectedRequest: mcp.HostRefused} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			server := mcptest.Serve(t, mcptest.Status(status))
			_, err := client.Probe(t.Context(), target(server))
			if got := mcp.ReasonOf(err); got != want {
				t.Errorf("reason %q, want %q", got, want)
			}
			if diff := cmp.Diff([]string{"server/discover", "server/discover", "initialize"}, server.Calls()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
