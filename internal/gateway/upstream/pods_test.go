package upstream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// fleet is pods behind a headless Service: a resolver, a network, and a server for each address.
type fleet struct {
	mu   sync.Mutex
	dns  []netip.Addr
	err  error
	pods map[string]*recorder // by address; nil refuses connections
	real map[string]string
}

func newFleet(t *testing.T, addresses ...string) *fleet {
	t.Helper()
	f := &fleet{pods: map[string]*recorder{}, real: map[string]string{}}
	for _, a := range addresses {
		f.dns = append(f.dns, netip.MustParseAddr(a))
		f.pods[a] = &recorder{Handler: newScript()}
		f.real[a] = strings.TrimPrefix(serve(t, f.pods[a]).URL, "http://")
	}
	return f
}

func (f *fleet) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]netip.Addr(nil), f.dns...), f.err
}

func (f *fleet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port != "8080" {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	f.mu.Lock()
	if host == "web.default.svc" {
		host = f.dns[0].String()
	}
	at := f.real[host]
	f.mu.Unlock()
	if at == "" {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	return (&net.Dialer{}).DialContext(ctx, network, at)
}

// remove takes a pod away: from the network, and perhaps from DNS.
func (f *fleet) remove(address string, fromDNS bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.real, address)
	if fromDNS {
		kept := f.dns[:0]
		for _, a := range f.dns {
			if a.String() != address {
				kept = append(kept, a)
			}
		}
		f.dns = kept
	}
}

func (f *fleet) open(t *testing.T) *Backend {
	t.Helper()
	return f.openAt(t, "/mcp")
}

func (f *fleet) openAt(t *testing.T, path string) *Backend {
	t.Helper()
	return open(t, "http://web.default.svc:8080"+path, func(c *table.Backend, o *Options) {
		c.PodsHost, o.Resolver, o.Dial, o.Credential = "web-pods.default.svc", f, f.dial, fixedCredential{}
	})
}

func TestASessionStaysAtItsPod(t *testing.T) {
	f := newFleet(t, "10.0.0.1", "10.0.0.2", "10.0.0.3")
	b := f.open(t)
	perPod := map[string]int{}
	for range 30 {
		channel, handle := openSession(t, b)
		perPod[handle.Address]++
		host, _, _ := strings.Cut(handle.Address, ":")
		before := len(f.pods[host].with("ping"))
		resumed, err := b.Resume(handle)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(ping(t, channel), ping(t, resumed)); err != nil {
			t.Fatal(err)
		}
		got := f.pods[host].with("ping")
		if len(got) != before+2 || got[before].host != "web.default.svc:8080" {
			t.Fatalf("%s got %d pings, Host %s", host, len(got)-before, got[len(got)-1].host)
		}
	}
	for address, n := range perPod {
		if n != 10 {
			t.Errorf("%s has %d sessions of 30 on 3 pods", address, n)
		}
	}
}

func TestASessionWhosePodIsGoneIsLost(t *testing.T) {
	t.Parallel()
	for name, fromDNS := range map[string]bool{"from the network": false, "from DNS too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, "10.0.0.1", "10.0.0.2")
			b := f.open(t)
			b.options.Hold = time.Minute // which it does not wait for
			channel, handle := openSession(t, b)
			host, _, _ := strings.Cut(handle.Address, ":")
			f.remove(host, fromDNS)
			b.transport.CloseIdleConnections()
			began := time.Now()
			if err := ping(t, channel); !errors.Is(err, backend.ErrSession) || classOf(t, err).Sent {
				t.Fatalf("%v", err)
			}
			if took := time.Since(began); took > deadline/2 {
				t.Errorf("that took %s", took)
			}
			for range 5 {
				if _, again := openSession(t, b); again.Address == handle.Address {
					t.Error("a new session was opened with the pod that is gone")
				}
			}
		})
	}
}

// TestAnAddressThatIsNoPodGetsNothing has a handle name an address that DNS does not: another tenant's pod by now.
func TestAnAddressThatIsNoPodGetsNothing(t *testing.T) {
	f := newFleet(t, "10.0.0.1", "10.0.0.9")
	f.mu.Lock()
	f.dns = f.dns[:1]
	f.mu.Unlock()
	b := f.open(t)
	channel, err := b.Resume(backend.Handle{Address: "10.0.0.9:8080", Session: "s", Version: "2025-11-25", Server: b.place})
	if err != nil {
		t.Fatal(err)
	}
	if err := ping(t, channel); !errors.Is(err, backend.ErrSession) {
		t.Errorf("%v", err)
	}
	if n := len(f.pods["10.0.0.9"].with("")); n != 0 {
		t.Errorf("it got %d requests", n)
	}
}

func TestASessionLeavesAPodThatLeftDNSOnlyForAnother(t *testing.T) {
	outage := &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	for name, tc := range map[string]struct {
		others []string
		away   time.Duration
		fails  error
		stays  bool
	}{
		"for a moment":                                     {others: []string{"10.0.0.2"}, stays: true},
		"for longer":                                       {others: []string{"10.0.0.2"}, away: podAway + time.Second},
		"and there is no other":                            {away: podAway + time.Second, stays: true},
		"so long ago that it may be another":               {away: podMemory + time.Second},
		"as far as a DNS server knows that fails":          {others: []string{"10.0.0.2"}, away: podMemory + time.Second, stays: true, fails: outage},
		"as far as one knows that has failed for too long": {others: []string{"10.0.0.2"}, away: nameMemory + time.Second, fails: outage},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "10.0.0.1")
			b := f.open(t)
			channel, _ := openSession(t, b)
			f.mu.Lock()
			if f.err = tc.fails; tc.fails == nil {
				f.dns = nil
			}
			for _, other := range tc.others {
				f.dns = append(f.dns, netip.MustParseAddr(other))
			}
			f.mu.Unlock()
			b.pods.mu.Lock()
			b.pods.asked, b.pods.seen["10.0.0.1:8080"] = time.Time{}, time.Now().Add(-tc.away)
			b.pods.mu.Unlock()
			before := len(f.pods["10.0.0.1"].with(""))
			err := ping(t, channel)
			if tc.stays != (err == nil) || err != nil && (!errors.Is(err, backend.ErrSession) || classOf(t, err).Sent) {
				t.Errorf("%v", err)
			}
			if n := len(f.pods["10.0.0.1"].with("")) - before; tc.stays != (n > 0) {
				t.Errorf("the pod got %d requests", n)
			}
		})
	}
}

func TestSessionsGoOnWhileDNSFails(t *testing.T) {
	f := newFleet(t, "10.0.0.1")
	b := f.open(t)
	channel, _ := openSession(t, b)
	f.mu.Lock()
	f.dns, f.err = nil, &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	f.mu.Unlock()
	b.pods.mu.Lock()
	b.pods.asked = time.Time{} // as if the answer were old
	b.pods.mu.Unlock()
	if err := ping(t, channel); err != nil {
		t.Error(err)
	}
	if _, _, err := b.Open(testContext(t), backend.Client{}); err != nil {
		t.Error(err)
	}
}

func TestAServerWithoutSessionsIsSpokenToByItsService(t *testing.T) {
	f := newFleet(t, "10.0.0.1", "10.0.0.2")
	for _, pod := range f.pods {
		pod.Handler.(*script).stateless = true //nolint:forcetypeassert // newFleet made it
	}
	b := f.open(t)
	if _, handle := openSession(t, b); handle.Address != "" {
		t.Errorf("%+v", handle)
	}
}

func TestAPodThatFailsAtOnceIsPassedOver(t *testing.T) {
	f := newFleet(t, "10.0.0.1", "10.0.0.2")
	f.remove("10.0.0.2", false)
	b := f.open(t)
	for range 6 {
		if _, handle := openSession(t, b); handle.Address != "10.0.0.1:8080" {
			t.Errorf("%+v", handle)
		}
	}
}
