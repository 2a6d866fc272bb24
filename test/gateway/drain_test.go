package gateway

import (
	"errors"
	"net/http"
	"os"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// A connection that a client keeps is closed when the gateway ends, maybe under the client's next request: so the client has to be told before.
func TestAGatewayThatWasToldToStopHasClientsLeaveTheirConnections(t *testing.T) {
	// It serves on for longer than it takes until somebody asks, however busy the machine is, and is then not waited for.
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: "http://127.0.0.1:1/mcp"}}, "--drain-delay", "1m")
	defer g.Kill()
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
	if err := g.Process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	launch.Await(t, func() error {
		if !leaves() {
			return errors.New("it was told to stop, and has clients keep their connections")
		}
		return nil
	})
}
