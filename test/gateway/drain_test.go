package gateway

import (
	"net/http"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// A connection that a client keeps is closed when the gateway ends, maybe under the client's next request: so the client has to be told before.
func TestAGatewayThatWasToldToStopHasClientsLeaveTheirConnections(t *testing.T) {
	g := replicas(t, table.Backend{Name: "server", URL: "http://127.0.0.1:1/mcp"}).replicas[0]
	leaves := func() bool {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("the gateway closed a connection without having told its client: %v", err)
		}
		_ = resp.Body.Close()
		return resp.Close
	}
	if leaves() {
		t.Error("a gateway that goes on serving closes connections")
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		g.Stop()
	}()
	for told := false; !told; {
		told = leaves()
	}
	<-stopped
}
