package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

func TestASessionThatIsIdleAtOneReplicaGoesOnAtAnother(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	addTool(server, "session", func(_ context.Context, r *mcp.CallToolRequest, _ none) (string, error) { return r.Session.ID(), nil })
	handler := streamable(nil)(server)
	var ended sync.Map // by session id; those of the gateways' own among them
	backend := table.Backend{Name: "server", URL: serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			ended.Store(r.Header.Get("Mcp-Session-Id"), nil)
		}
		handler.ServeHTTP(w, r)
	}))}
	s := replicasOf(t, binary, []string{"--session-idle", "5s"}, backend)
	opened, other := s.replicas[0], s.replicas[1]
	r, body := post(t, opened.URL, initialize)
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("no session: %s: %s", r.Status, body)
	}
	call := func() string {
		t.Helper()
		r, body := post(t, other.URL, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"session","arguments":{}}}`, "Mcp-Session-Id", id)
		if r.StatusCode != http.StatusOK || !strings.Contains(body, `"content"`) {
			t.Fatalf("%s: %s", r.Status, body)
		}
		return body
	}
	before := call()
	launch.Await(t, func() error {
		call() // it is in use here
		if _, metrics := request(t, http.MethodGet, opened.Health+"/metrics", ""); !strings.Contains(metrics, "mcp_gateway_sessions 0\n") {
			return errors.New("the session is not idle yet")
		}
		return nil
	})
	if after := call(); after != before {
		t.Errorf("the backend's session was another one: %s, before that %s", after, before)
	}
	opened.Stop()
	if after := call(); after != before {
		t.Errorf("when its first replica had ended, the backend's session was another one: %s, before that %s", after, before)
	}
	if r, body := request(t, http.MethodDelete, other.URL, "", "Mcp-Session-Id", id); r.StatusCode != http.StatusNoContent {
		t.Errorf("delete: %s: %s", r.Status, body)
	}
	launch.Await(t, func() error {
		for id := range ended.Range {
			if strings.Contains(before, id.(string)) { //nolint:forcetypeassert // nothing else is stored
				return nil
			}
		}
		return errors.New("the client's DELETE did not reach the backend")
	})
}
