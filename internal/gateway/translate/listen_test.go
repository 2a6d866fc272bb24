package translate

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// A subscription at a real server begins and goes on as the messages of this package say.
func TestARealServerUnderstandsASubscription(t *testing.T) {
	t.Parallel()
	fixture := newServer()
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return fixture },
		&mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(server.Close)
	b := &bridge{tb: t, server: server.URL, client: backend.Legacy}
	id := json.RawMessage(`"sub"`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	response := b.post(ctx, Filter{Tools: true, URIs: []string{"test://r"}}.Listen(id, backend.Client{}, wire.Version20260728))
	defer response.Body.Close()
	events := wire.NewEventReader(response.Body, 1<<20)
	for _, step := range []struct {
		what string
		do   func()
		want *wire.Message
	}{
		// The fixture takes no subscriptions to resources, so that much is not agreed to.
		{"acknowledgement", func() {}, Filter{Tools: true}.Acknowledge(id)},
		{"list of tools changed", func() { fixture.RemoveTools("ask") }, ToSubscription(wire.NewNotification(ToolsListChanged, nil), id)},
	} {
		step.do()
		e, err := events.Next()
		if err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		wantJSON(t, step.what, e.Data, string(step.want.Raw))
	}
}

// A real client subscribes at what this package says, and is told of a change.
func TestARealClientUnderstandsASubscription(t *testing.T) {
	t.Parallel()
	asked, told := make(chan Filter, 1), make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := wire.Parse(body, wire.DefaultLimits)
		if err != nil || m.Kind != wire.Request {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if m.Method == "server/discover" {
			w.Header().Set("Content-Type", "application/json")
			offer := Offer{Capabilities: json.RawMessage(`{"tools":{"listChanged":true}}`), Info: json.RawMessage(`{"name":"n","version":"1"}`)}
			_, _ = w.Write(wire.NewResult(m.ID, offer.Discover()).Raw)
			return
		}
		f, err := ParseFilter(m)
		if err != nil {
			t.Errorf("%s: %v", m.Raw, err)
		}
		asked <- f
		out := wire.NewEventWriter(w)
		_ = out.Event(f.Acknowledge(m.ID).Raw)
		_ = out.Event(ToSubscription(wire.NewNotification(ToolsListChanged, nil), m.ID).Raw)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { told <- struct{}{} },
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	<-told
	if f := <-asked; !f.Tools || f.Prompts || f.Resources || len(f.URIs) > 0 {
		t.Errorf("the client asked for %+v", f)
	}
}

func BenchmarkToModern(b *testing.B) {
	m := parse(b, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"`+string(bytes.Repeat([]byte("x"), 1000))+`"}}}`)
	client := backend.Client{Capabilities: json.RawMessage(`{"roots":{},"elicitation":{}}`), Info: json.RawMessage(`{"name":"n","version":"1"}`)}
	b.ReportAllocs()
	for b.Loop() {
		ToModern(m, client, wire.Version20260728, "")
	}
}

func BenchmarkToLegacy(b *testing.B) {
	m := ToModern(parse(b, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`), backend.Client{}, wire.Version20260728, "")
	b.ReportAllocs()
	for b.Loop() {
		ToLegacy(m)
	}
}

func BenchmarkStream(b *testing.B) {
	for name, size := range map[string]int{"1KiB": 1 << 10, "1MiB": 1 << 20} {
		in := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + string(bytes.Repeat([]byte("x"), size)) + `"}]}}`)
		buffer := make([]byte, 32<<10)
		drain := func(r io.Reader) {
			for {
				if _, err := r.Read(buffer); err != nil {
					return
				}
			}
		}
		b.Run("modern/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				drain(StreamToModern(bytes.NewReader(in), "tools/call"))
			}
		})
		b.Run("legacy/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				drain(StreamToLegacy(bytes.NewReader(in), json.RawMessage(`1`)))
			}
		})
	}
}
