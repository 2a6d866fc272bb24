package gateway

import (
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// everywhere starts a gateway that listens on all addresses, as in a pod, and returns its URL by the loopback address.
func everywhere(t *testing.T, content table.Table) string {
	t.Helper()
	g := serveTable(t, content, "--listen", "0.0.0.0:0")
	var port string
	launch.Await(t, func() error {
		found := regexp.MustCompile(`"msg":"serving".*"address":"[^"]*:(\d+)"`).FindSubmatch(g.Log(t))
		if found == nil {
			return errors.New("no address in its log")
		}
		port = string(found[1])
		return nil
	})
	return "http://" + net.JoinHostPort("127.0.0.1", port) + "/mcp"
}

// TestAGatewayThatListensEverywhereServesTheHostsOfItsTable: and no address that it tells is one that a request came up with.
func TestAGatewayThatListensEverywhereServesTheHostsOfItsTable(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	backends := []table.Backend{{Name: "server", URL: serve(t, both(small("server", "who")))}}
	body, headers := modernCall("who", `{}`)
	bearer := append([]string{"Authorization", "Bearer " + i.token("alice", nil)}, headers...)
	const at = "/.well-known/oauth-protected-resource"
	open := everywhere(t, table.Table{Auth: i.auth("alice"), Backends: backends})
	closed := everywhere(t, table.Table{
		Auth: i.auth("alice"), Backends: backends, Endpoint: table.Endpoint{AllowedHosts: []string{"agent-gateway.team.svc", "localhost"}},
	})
	for _, host := range []string{"agent-gateway.team.svc:8080", "localhost:8081"} {
		if r, answer := post(t, closed, body, append(bearer, "Host", host)...); r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s: %s", host, r.Status, answer)
		}
	}
	for _, url := range []string{closed, strings.TrimSuffix(closed, "/mcp") + at} {
		r, answer := post(t, url, body, append(bearer, "Host", "evil.example")...)
		if r.StatusCode != http.StatusForbidden || strings.Contains(answer, "agent-gateway") || !strings.Contains(answer, "gateway.publicURL") {
			t.Errorf("another host at %s: %s: %s", url, r.Status, answer)
		}
	}
	r, answer := post(t, open, body, append(headers, "Host", "evil.example")...)
	if challenge := r.Header.Get("WWW-Authenticate"); r.StatusCode != http.StatusUnauthorized || strings.Contains(challenge+answer, "evil") {
		t.Errorf("without a token: %s, %s: %s", r.Status, challenge, answer)
	}
	r, answer = request(t, http.MethodGet, strings.TrimSuffix(open, "/mcp")+at+"/mcp", "", "Host", "evil.example")
	if r.StatusCode != http.StatusOK || !strings.Contains(answer, `"resource":"`+endpointURL+`"`) || strings.Contains(answer, "evil") {
		t.Errorf("the metadata: %s: %s", r.Status, answer)
	}
}
