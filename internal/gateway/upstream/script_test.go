package upstream

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// script is a legacy server whose every answer a test can change. It keeps sessions, and answers calls with an empty result.
type script struct {
	// on takes a message; false leaves it to the script.
	on func(w http.ResponseWriter, r *http.Request, m *wire.Message) bool
	// onGet takes a GET; nil answers 405.
	onGet http.HandlerFunc
	// lost is the answer to a session that is not known.
	lost int
	// version is agreed on.
	version string
	// stateless hands out no session.
	stateless bool

	mu       sync.Mutex
	last     int
	sessions map[string]bool
}

func newScript() *script {
	return &script{lost: http.StatusNotFound, version: wire.Version20251125, sessions: map[string]bool{}}
}

func (s *script) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

func (s *script) live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

func (s *script) known(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stateless || s.sessions[r.Header.Get("Mcp-Session-Id")]
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m, err := wire.Parse(body, wire.DefaultLimits)
	initialize := err == nil && m.Method == "initialize"
	switch {
	case err == nil && s.on != nil && s.on(w, r, m):
	case err == nil && m.Method == "server/discover":
		w.WriteHeader(http.StatusBadRequest)
	case !initialize && !s.known(r):
		asStatus(s.lost, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no valid session id"}}`)(w, r)
	case r.Method == http.MethodDelete:
		s.mu.Lock()
		delete(s.sessions, r.Header.Get("Mcp-Session-Id"))
		s.mu.Unlock()
	case r.Method == http.MethodGet && s.onGet != nil:
		s.onGet(w, r)
	case err != nil:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case initialize:
		s.initialize(w, r, m)
	case m.Kind != wire.Request:
		w.WriteHeader(http.StatusAccepted)
	default:
		asJSON(string(wire.NewResult(m.ID, nil).Raw))(w, r)
	}
}

func (s *script) initialize(w http.ResponseWriter, r *http.Request, m *wire.Message) {
	s.mu.Lock()
	s.last++
	id := fmt.Sprintf("session-%d", s.last)
	if !s.stateless {
		s.sessions[id] = true
		w.Header().Set("Mcp-Session-Id", id)
	}
	s.mu.Unlock()
	result := fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"serverInfo":{"name":"script","version":"1"}}`, s.version)
	asJSON(string(wire.NewResult(m.ID, []byte(result)).Raw))(w, r)
}

// openSession opens a session with a server.
func openSession(t *testing.T, b *Backend) (backend.Channel, backend.Handle) {
	t.Helper()
	channel, handle, err := b.Open(testContext(t), backend.Client{})
	if err != nil {
		t.Fatal(err)
	}
	return channel, handle
}

func ping(t *testing.T, channel backend.Channel) error {
	t.Helper()
	return channel.Call(testContext(t), request(`"p"`, "ping", `{}`), &sink{})
}
