package source

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// network is one in memory, so that time stands still while bytes are on their way.
type network struct {
	mu    sync.Mutex
	down  bool
	conns []net.Conn
	calls chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newNetwork() *network {
	return &network{calls: make(chan net.Conn), done: make(chan struct{})}
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	n.mu.Lock()
	down := n.down
	n.conns = append(n.conns, client)
	n.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	select {
	case n.calls <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// set cuts the network, connections included, or mends it.
func (n *network) set(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
	if down {
		for _, c := range n.conns {
			c.Close()
		}
		n.conns = nil
	}
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.calls:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.once.Do(func() { close(n.done) })
	return nil
}

func (n *network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

// apiServer hands each request to the test, which answers it.
type apiServer struct {
	*network

	requests chan *exchange
	over     chan struct{}
	folder   string
	server   *httptest.Server
}

type exchange struct {
	*http.Request

	w    http.ResponseWriter
	done chan struct{}
}

// newAPIServer starts one. It is part of the test's bubble.
func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{network: newNetwork(), requests: make(chan *exchange), over: make(chan struct{}), folder: t.TempDir()}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &exchange{r, w, make(chan struct{})}
		select {
		case s.requests <- e:
		case <-r.Context().Done():
			return
		}
		select {
		case <-e.done:
		case <-s.over: // Not when the client leaves: the test may be writing.
		}
	}))
	s.server.Listener.Close()
	s.server.Listener = s.network
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.server.StartTLS()
	t.Cleanup(func() {
		close(s.over)
		s.set(true)
		s.server.Close()
	})
	write(t, filepath.Join(s.folder, "token"), "token-1\n")
	write(t, filepath.Join(s.folder, "ca.crt"), s.certificate())
	return s
}

func (s *apiServer) certificate() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw}))
}

// configMap is what to watch.
func (s *apiServer) configMap() *ConfigMap {
	return &ConfigMap{
		Namespace: "team-a", Name: "gateway", Server: "https://127.0.0.1:443", dial: s.dial,
		TokenFile: filepath.Join(s.folder, "token"), CAFile: filepath.Join(s.folder, "ca.crt"),
	}
}

// next waits for a request and holds it to what every request must be.
func (s *apiServer) next(t *testing.T) *exchange {
	t.Helper()
	e := <-s.requests
	if e.Method != http.MethodGet || e.URL.Path != "/api/v1/namespaces/team-a/configmaps" {
		t.Errorf("the request is %s %s", e.Method, e.URL.Path)
	}
	if got := e.URL.Query().Get("fieldSelector"); got != "metadata.name=gateway" {
		t.Errorf("it asks for %q, more than the one ConfigMap", got)
	}
	return e
}

// list answers the request, which must be for a list.
func (s *apiServer) list(t *testing.T, version string, items ...object) {
	t.Helper()
	e := s.next(t)
	if diff := cmp.Diff(url.Values{"fieldSelector": {"metadata.name=gateway"}}, e.URL.Query()); diff != "" {
		t.Errorf("it is no consistent list (-want +got):\n%s", diff)
	}
	listed := object{Items: items}
	listed.Metadata.ResourceVersion = version
	e.write(t, listed)
	close(e.done)
}

// watch begins to answer the request, which must be for a watch from that version.
func (s *apiServer) watch(t *testing.T, version string) *exchange {
	t.Helper()
	e := s.next(t)
	want := url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"300"}, "resourceVersion": {version},
		"fieldSelector": {"metadata.name=gateway"},
	}
	if diff := cmp.Diff(want, e.URL.Query()); diff != "" {
		t.Errorf("it is another watch (-want +got):\n%s", diff)
	}
	e.w.WriteHeader(http.StatusOK)
	e.flush()
	return e
}

// status answers the request so.
func (s *apiServer) status(t *testing.T, code int) {
	t.Helper()
	e := s.next(t)
	e.w.WriteHeader(code)
	close(e.done)
}

// send sends an event.
func (e *exchange) send(t *testing.T, kind string, o object) {
	t.Helper()
	e.write(t, event{kind, o})
}

func (e *exchange) write(t *testing.T, v any) {
	t.Helper()
	if err := json.NewEncoder(e.w).Encode(v); err != nil {
		t.Fatal(err)
	}
	e.flush()
}

func (e *exchange) flush() {
	if flusher, ok := e.w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// configMapOf is the ConfigMap with the table of a revision.
func configMapOf(version, revision string) object {
	o := object{Data: map[string]string{"table.json": tableOf(revision)}}
	o.Metadata.Name, o.Metadata.ResourceVersion = "gateway", version
	return o
}

// otherCertificate is of a CA that signed nothing here.
const otherCertificate = `-----BEGIN CERTIFICATE-----
MIIBRTCB7aADAgECAgEBMAoGCCqGSM49BAMCMBIxEDAOBgNVBAMTB2Fub3RoZXIw
IBcNMDAwMTAxMDAwMDAwWhgPMjEwMDAxMDEwMDAwMDBaMBIxEDAOBgNVBAMTB2Fu
b3RoZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATY9KIEdAuQ2oFYbj8VWkYM
78a/ikLrfVVVCXeEQSwZq4P6rkD/sFV4PpAlK18P+hs8UVD3NzThaQzL7GYabkLT
ozIwMDAPBgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBRfD+GeWsAtHpnv7JnexDX2
YIqWjzAKBggqhkjOPQQDAgNHADBEAiAVO45zyXN4t9YplbajJnVpl/aB39SFvRfP
kBqv1H1D5QIgU8Ib26udW0O4Vm8eXW/ceXr0gtlKPORB9pzaQ+DylKg=
-----END CERTIFICATE-----
`
