package gateway

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// restartable is a server at an address that stays, without anything else that would.
type restartable struct {
	address string
	handler func(*mcp.Server) http.Handler
	server  *http.Server
}

func (r *restartable) start(t *testing.T) {
	t.Helper()
	var l net.Listener
	launch.Await(t, func() (err error) {
		l, err = net.Listen("tcp", r.address)
		return err
	})
	r.server = &http.Server{Handler: r.handler(small("server", "who"))}
	go func() { _ = r.server.Serve(l) }()
	t.Cleanup(func() { _ = r.server.Close() })
}

func TestARestartOfTheServerCostsAClientNothing(t *testing.T) {
	for _, k := range kinds {
		if k.handler == nil {
			continue // package child has tests of that
		}
		t.Run(k.name, func(t *testing.T) {
			server := &restartable{address: launch.FreeAddress(t), handler: k.handler}
			server.start(t)
			// Longer than a busy machine takes to start the server again.
			g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: "http://" + server.address}}, "--hold", "50s")
			clients := []*client{connect(t, g.URL, legacy), connect(t, g.URL, modern)}
			for range 3 {
				for _, c := range clients {
					for range 5 {
						c.call(t, "who", nil)
					}
				}
				if err := server.server.Close(); err != nil {
					t.Fatal(err)
				}
				// Calls that begin while the server is away wait for it.
				var wg sync.WaitGroup
				for _, c := range clients {
					wg.Go(func() {
						got, err := c.try(inTime(t), "who", nil)
						if err != nil && strings.Contains(err.Error(), "may have been carried out") {
							// It went out on a connection that was closed at that moment, so it is not sent again by the gateway.
							got, err = c.try(inTime(t), "who", nil)
						}
						if err != nil || got != "server" {
							t.Errorf("while the server was away: %q, %v", got, err)
						}
					})
				}
				server.start(t)
				wg.Wait()
			}
		})
	}
}

// service sends each request to the next replica that is ready, as a Service of Kubernetes would.
type service struct {
	replicas []*launch.Gateway
	// start starts another one.
	start func() *launch.Gateway

	mu   sync.Mutex
	turn int
	gone map[*launch.Gateway]bool
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	g := s.next()
	if g == nil {
		return nil, errors.New("no replica is ready")
	}
	r = r.Clone(r.Context())
	r.URL.Host = strings.TrimSuffix(strings.TrimPrefix(g.URL, "http://"), "/mcp")
	return http.DefaultTransport.RoundTrip(r)
}

// next is the replica whose turn it is; nil if none is ready.
func (s *service) next() *launch.Gateway {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	for i := range s.replicas {
		if g := s.replicas[(s.turn+i)%len(s.replicas)]; !s.gone[g] {
			return g
		}
	}
	return nil
}

// kill kills a replica, which nobody is sent to any more by then.
func (s *service) kill(i int) *launch.Gateway {
	s.mu.Lock()
	g := s.replicas[i]
	s.gone[g] = true
	s.mu.Unlock()
	g.Kill()
	return g
}

// replace puts another replica in a killed one's place.
func (s *service) replace(i int) {
	g := s.start()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas[i] = g
}

// replicas starts three gateways with the same keys in front of the backends.
func replicas(t *testing.T, backends ...table.Backend) *service {
	t.Helper()
	return replicasOf(t, binary, nil, backends...)
}

func replicasOf(t *testing.T, program string, flags []string, backends ...table.Backend) *service {
	t.Helper()
	dir := t.TempDir()
	launch.Write(t, filepath.Join(dir, "k1"), []byte(strings.Repeat("0123456789abcdef", 4)))
	file := filepath.Join(t.TempDir(), "table.json")
	launch.WriteTable(t, file, backends...)
	s := &service{gone: map[*launch.Gateway]bool{}, start: func() *launch.Gateway {
		t.Helper()
		return launch.Run(t, program, "serve", append([]string{"--table", file, "--session-keys", dir, "--drain-delay", "1s"}, flags...)...)
	}}
	for range 3 {
		s.replicas = append(s.replicas, s.start())
	}
	return s
}

// connect connects a client whose requests go to the replicas in turn.
func (s *service) connect(t *testing.T, version string) *client {
	t.Helper()
	sdk := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	transport := &mcp.StreamableClientTransport{Endpoint: s.replicas[0].URL, HTTPClient: &http.Client{Transport: s}, MaxRetries: -1, DisableStandaloneSSE: true}
	session, err := sdk.Connect(inTime(t), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return &client{ClientSession: session}
}

func TestASessionGoesOnAtEveryReplicaAndEachCallIsCarriedOutOnce(t *testing.T) {
	var backends []table.Backend
	for i, handler := range []func(*mcp.Server) http.Handler{streamable(nil), modernOnly, both} {
		name := fmt.Sprintf("s%d", i)
		backends = append(backends, table.Backend{Name: name, Prefix: name + "_", URL: serve(t, handler(newServer(name)))})
	}
	s := replicas(t, backends...)
	const each = 20
	versions := []string{legacy, legacy, modern, modern}
	var wg sync.WaitGroup
	for _, version := range versions {
		c := s.connect(t, version)
		wg.Go(func() {
			for i := range each {
				for _, b := range backends {
					text := strconv.Itoa(i)
					if got, err := c.try(inTime(t), b.Prefix+"echo", map[string]any{"text": text}); err != nil || got != text {
						t.Errorf("%s: %s: got %q, %v", version, b.Name, got, err)
					}
				}
			}
		})
	}
	wg.Wait()
	c := s.connect(t, modern)
	for _, b := range backends {
		if got, want := c.call(t, b.Prefix+"calls", nil), strconv.Itoa(each*len(versions)); got != want {
			t.Errorf("%s carried out %s calls of %s", b.Name, got, want)
		}
	}
}

func TestReplicasAreReplacedWithoutAFailedCall(t *testing.T) {
	// They serve on until it was seen that they are not ready any more, however long that takes on a busy machine.
	s := replicasOf(t, binary, []string{"--drain-delay", "5s"}, table.Backend{Name: "server", URL: serve(t, both(newServer("server")))})
	stop := make(chan struct{})
	var calls atomic.Int64
	var wg sync.WaitGroup
	for _, version := range []string{legacy, modern} {
		c := s.connect(t, version)
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := c.try(inTime(t), "echo", map[string]any{"text": "x"}); err != nil {
					t.Errorf("a call of %s failed: %v", version, err)
				}
				calls.Add(1)
			}
		})
	}
	for i, g := range s.replicas[:2] { // one is left at the end
		if err := g.Process.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		// The platform takes a replica out of the Service once it says that it is not ready.
		launch.Await(t, func() error {
			r, err := http.Get(g.Health + "/readyz")
			if err != nil {
				return err
			}
			if r.Body.Close(); r.StatusCode != http.StatusServiceUnavailable {
				return fmt.Errorf("replica %d still says that it is ready", i)
			}
			return nil
		})
		s.mu.Lock()
		s.gone[g] = true
		s.mu.Unlock()
		g.Stop()
		before := calls.Load()
		launch.Await(t, func() error {
			if calls.Load() < before+20 {
				return errors.New("calls do not go on")
			}
			return nil
		})
	}
	close(stop)
	wg.Wait()
}

// TestNobodyNoticesThatPodsAndReplicasAreKilledButWhoIsCalledThere kills pods of the server and replicas of the gateway, which the seed
// chooses, while clients of every kind call.
func TestNobodyNoticesThatPodsAndReplicasAreKilledButWhoIsCalledThere(t *testing.T) {
	const size, kills = 3, 6
	f := newFleet(t, size)
	var backends []table.Backend
	for _, kind := range []string{"stateful", "stateless"} {
		backends = append(backends, table.Backend{Name: kind, Prefix: kind + "_", URL: "http://" + f.service() + "/" + kind, PodsHost: "pods.test"})
	}
	s := replicasOf(t, os.Args[0], nil, backends...)
	var payers []*payer
	var wg sync.WaitGroup
	stop := make(chan struct{})
	end := sync.OnceFunc(func() {
		close(stop)
		wg.Wait()
	})
	defer end()
	for i := range 8 {
		p := newPayer(t, s, strconv.Itoa(i), backends[i%2].Prefix+"pay", []string{legacy, modern}[i/2%2])
		payers = append(payers, p)
		wg.Go(func() { p.run(stop) })
	}
	seed := rand.New(rand.NewPCG(1, 2))
	var deaths []death
	for range kills {
		for _, p := range payers {
			p.awaitPaid(t, 10)
		}
		i, at := seed.IntN(size), time.Now()
		if seed.IntN(2) == 0 {
			g := s.kill(i)
			deaths = append(deaths, death{gateway: g, at: at, by: time.Now()})
			s.replace(i)
		} else {
			address := f.kill(i)
			deaths = append(deaths, death{pod: address, at: at, by: time.Now()})
			f.start(t)
		}
	}
	for _, p := range payers {
		p.awaitPaid(t, 10)
	}
	end()
	for i := range size {
		s.kill(i) // there is nothing to be drained for
	}
	audit(t, f, payers, deaths)
}

// audit compares what the clients were told with what the pods did.
func audit(t *testing.T, f *fleet, payers []*payer, deaths []death) {
	t.Helper()
	carriedOut := map[string][]string{}
	content, err := os.ReadFile(f.ledger)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		id, address, _ := strings.Cut(strings.TrimSpace(line), " ")
		carriedOut[id] = append(carriedOut[id], address)
	}
	calls, failed := 0, 0
	for _, payer := range payers {
		for _, p := range payer.payments {
			calls++
			at := carriedOut[p.id]
			if len(at) > 1 {
				t.Errorf("call %s was carried out %d times, at %s; its caller was told %q", p.id, len(at), at, p.failure)
			}
			switch {
			case p.failure == "" && len(at) == 0:
				t.Errorf("call %s was carried out nowhere, and succeeded", p.id)
				continue
			case p.failure == "":
				continue
			case len(at) > 0 && strings.Contains(p.failure, "safe to try again"):
				t.Errorf("call %s was carried out at %s; its caller was told %s", p.id, at, p.failure)
			}
			failed++
			if !slices.ContainsFunc(deaths, func(d death) bool { return d.excuses(&p, strings.Join(at, " ")) }) {
				t.Errorf("call %s failed, and nobody died under it: %s", p.id, p.failure)
			}
		}
	}
	t.Logf("of %d calls %d were in flight where somebody was killed; %d were killed", calls, failed, len(deaths))
}

func TestAHundredClientsOfOneStdioServer(t *testing.T) {
	g := launch.Run(t, binary, "stdio", "--", os.Args[0], asServer)
	var wg sync.WaitGroup
	for i := range 100 {
		version := []string{legacy, modern}[i%2]
		wg.Go(func() {
			sdk := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
			transport := &mcp.StreamableClientTransport{Endpoint: g.URL, MaxRetries: -1, DisableStandaloneSSE: true}
			session, err := sdk.Connect(inTime(t), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Errorf("client %d: %v", i, err)
				return
			}
			defer session.Close()
			c := &client{ClientSession: session}
			for n := range 5 {
				text := fmt.Sprintf("%d of %d", n, i)
				if got, err := c.try(inTime(t), "echo", map[string]any{"text": text}); err != nil || got != text {
					t.Errorf("client %d got %q, %v", i, got, err)
				}
			}
		})
	}
	wg.Wait()
}
