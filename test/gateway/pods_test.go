package gateway

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/mcp-operator/mcp-operator/internal/gateway"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

const (
	// asPod makes this program a pod: its arguments are an address, and the file that it enters calls in.
	asPod = "serve-as-pod"
	// asReplica makes it a gateway that asks the DNS server named by the environment variable.
	asReplica = "serve"
	dnsServer = "GATEWAY_TEST_DNS"
)

// servePod serves a tool with sessions and without them, by the path. A call is entered in the ledger before it does anything else,
// in one write, which is there also if the pod is killed at that moment.
func servePod(args []string) error {
	address, file := args[0], args[1]
	ledger, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s := mcp.NewServer(&mcp.Implementation{Name: address, Version: "1"}, nil)
	addTool(s, "pay", func(ctx context.Context, r *mcp.CallToolRequest, in textInput) (string, error) {
		if _, err := fmt.Fprintf(ledger, "%s %s\n", in.Text, address); err != nil {
			return "", err
		}
		if token := r.Params.GetProgressToken(); token != nil { // it is an event with an id, after which the stream could be gone on with
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1}); err != nil {
				return "", err
			}
		}
		<-time.After(rand.N(20 * time.Millisecond)) // so that there is something to be killed
		return in.Text, nil
	})
	mux := http.NewServeMux()
	mux.Handle("/stateful", streamable(&mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})(s))
	mux.Handle("/stateless", streamable(&mcp.StreamableHTTPOptions{Stateless: true})(s))
	return http.ListenAndServe(address, mux)
}

// serveReplica is the gateway's main function, but for where names are looked up.
func serveReplica(args []string) error {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", os.Getenv(dnsServer))
	}}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return gateway.Command(ctx, append([]string{asReplica}, args...), os.Getenv, os.Stdout)
}

// fleet is the pods of a server: each a process with an address of its own, all behind one name and one Service.
type fleet struct {
	port, ledger string
	turn         int

	mu   sync.Mutex
	pods []*pod
}

type pod struct {
	*launch.Process

	address string
}

// newFleet starts pods, and the DNS server and the Service that lead to them.
func newFleet(t *testing.T, size int) *fleet {
	t.Helper()
	service, err := net.Listen("tcp", "127.0.0.1:0") // pods have addresses of their own, which nobody else uses, and this port
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(service.Addr().String())
	f := &fleet{port: port, ledger: t.TempDir() + "/ledger"}
	for range size {
		f.start(t)
	}
	dns, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = dns.Close()
		_ = service.Close()
	})
	t.Setenv(dnsServer, dns.LocalAddr().String())
	go f.answer(dns)
	go f.lead(service)
	return f
}

// service is where the Service is.
func (f *fleet) service() string { return net.JoinHostPort("127.0.0.1", f.port) }

// start starts a pod, at an address that none had before.
func (f *fleet) start(t *testing.T) {
	t.Helper()
	f.turn++
	p := &pod{address: net.JoinHostPort(fmt.Sprintf("127.77.0.%d", f.turn), f.port)}
	p.Process = launch.Start(t, os.Args[0], asPod, p.address, f.ledger)
	launch.Await(t, func() error {
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods = append(f.pods, p)
}

// kill kills a pod, and takes it out of the Service and out of DNS.
func (f *fleet) kill(i int) (address string) {
	f.mu.Lock()
	p := f.pods[i]
	f.mu.Unlock()
	p.Kill()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods = slices.DeleteFunc(f.pods, func(other *pod) bool { return other == p })
	return p.address
}

// addresses are those of the pods, in some order.
func (f *fleet) addresses() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, p := range f.pods {
		all = append(all, p.address)
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// answer answers every question for a name by the addresses of the pods.
func (f *fleet) answer(dns net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := dns.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		m.Response, m.Additionals = true, nil
		if m.Questions[0].Type == dnsmessage.TypeA {
			for _, address := range f.addresses() {
				m.Answers = append(m.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddrPort(address).Addr().As4()},
				})
			}
		}
		if packed, err := m.Pack(); err == nil {
			_, _ = dns.WriteTo(packed, from)
		}
	}
}

// lead leads each connection to a pod that takes it, as a Service does: one that was made breaks with its pod.
func (f *fleet) lead(service net.Listener) {
	for {
		client, err := service.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			for _, address := range f.addresses() {
				server, err := net.Dial("tcp", address)
				if err != nil {
					continue
				}
				go func() {
					_, _ = io.Copy(server, client)
					_ = server.Close()
				}()
				_, _ = io.Copy(client, server)
				return
			}
		}()
	}
}
