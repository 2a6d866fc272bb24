package toolset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/auth"
	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/front"
	"github.com/mcp-operator/mcp-operator/internal/gateway/seal"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/gateway/toolset"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// serve puts a toolset behind a gateway, and returns its URL.
func serve(t *testing.T, config table.Backend) string {
	t.Helper()
	routes := &table.Table{
		Version: table.Version, Endpoint: table.Endpoint{Path: table.DefaultPath}, Auth: table.Auth{Type: table.AuthNone},
		Backends: []table.Backend{config},
	}
	if err := routes.Validate(); err != nil {
		t.Fatal(err)
	}
	dialer := net.Dialer{}
	b, err := toolset.New(config, toolset.Options{Logger: slog.New(slog.DiscardHandler), Dial: dialer.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := auth.New(t.Context(), routes.Auth, auth.Options{Path: table.DefaultPath}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := front.New(front.Options{
		Logger: slog.New(slog.DiscardHandler), Telemetry: telemetry.New(telemetry.Options{}), Sealer: seal.Ephemeral(), Version: "test",
	})
	live := front.NewBackend(config, backend.Backend(b))
	f.Use(&front.State{Table: routes, Verifier: verifier, Backends: []*front.Backend{live}})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go f.Watch(ctx, live)
	select {
	case <-live.Ready():
	case <-time.After(20 * time.Second):
		t.Fatal("the toolset was not described")
	}
	gateway := httptest.NewServer(f)
	t.Cleanup(gateway.Close)
	t.Cleanup(f.Drain)
	return gateway.URL + table.DefaultPath
}

func TestClientsOfEveryVersionUseATool(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"path":%q}`, r.URL.EscapedPath())
	}))
	t.Cleanup(api.Close)
	url := serve(t, table.Backend{Name: "tools", Transport: table.TransportToolset, URL: api.URL, Toolset: &table.Toolset{HTTP: []table.HTTPTool{{
		Definition: json.RawMessage(`{"name":"look","description":"Looks.","annotations":{"readOnlyHint":true},
			"inputSchema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]},
			"outputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`),
		Method: "GET", Path: "/u/{id}",
	}}}})
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil)
			session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			list, err := session.ListTools(ctx, nil)
			if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "look" || !list.Tools[0].Annotations.ReadOnlyHint {
				t.Fatalf("listed %+v, %v", list, err)
			}
			result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "look", Arguments: map[string]any{"id": "a/b ü"}})
			if err != nil {
				t.Fatal(err)
			}
			structured, err := json.Marshal(result.StructuredContent)
			if err != nil || string(structured) != `{"path":"/u/a%2Fb%20%C3%BC"}` || result.IsError {
				t.Errorf("answered %s, %+v, %v", structured, result, err)
			}
			result, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "look", Arguments: map[string]any{"id": ".."}})
			if err != nil || !result.IsError {
				t.Errorf("a hostile argument: %+v, %v", result, err)
			}
		})
	}
}
