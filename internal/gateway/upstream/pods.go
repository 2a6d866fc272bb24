package upstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
)

const (
	// podsFresh is how long an answer of the DNS server is used. Kubernetes' own lets it live for 5 s by default, and may give out what
	// is as old.
	podsFresh = 2 * time.Second
	// podAway is how long after DNS last named a pod it is still spoken to while there are others. One that it does not name ends, or is
	// not ready: sessions move on before its process is told to end, which would cut their calls off. The two, and the 6 s that an
	// endpoint and DNS may be late, add up to less than the 15 s that pods of an MCPServer wait for that (desired.lingers).
	podAway = 4 * time.Second
	// podMemory is how long after that one is if there is no other; nameMemory if DNS fails. Then its address may be somebody else's, who
	// must get neither the session nor the credential.
	podMemory = 30 * time.Second
	// podAvoided is how long a pod that took no connection is the last choice.
	podAvoided = 5 * time.Second
	// podPatience is how long a session's pod may accept no connection while there are others.
	podPatience = time.Second
	// podLookup bounds one look-up.
	podLookup = 2 * time.Second
)

// pods are the pods behind a headless Service. A nil *pods is a backend that has one address.
type pods struct {
	host, port string
	resolver   Resolver
	panics     *panics.Recorder

	mu       sync.Mutex
	asked    time.Time
	asking   chan struct{} // closed when the look-up that runs has ended; nil if none does
	err      error         // of the last look-up
	current  []string      // addresses, sorted
	seen     map[string]time.Time
	sessions map[string]int
	avoided  map[string]time.Time
}

func newPods(host, port string, o *Options) *pods {
	return &pods{
		host: host, port: port, resolver: o.Resolver, panics: o.Panics,
		seen: map[string]time.Time{}, sessions: map[string]int{}, avoided: map[string]time.Time{},
	}
}

// look begins to look the pods up, unless that was done a moment ago: then it returns nil, else what is closed at the end. Of several
// callers one does it.
func (p *pods) look(ctx context.Context) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.asked) < podsFresh && p.err == nil {
		return nil
	}
	if p.asking == nil {
		p.asking = make(chan struct{})
		go p.ask(context.WithoutCancel(ctx), p.asking)
	}
	return p.asking
}

// refresh looks the pods up, unless that was done a moment ago, and waits for it.
func (p *pods) refresh(ctx context.Context) error {
	asking := p.look(ctx)
	if asking == nil {
		return nil
	}
	select {
	case <-asking:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *pods) ask(ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, podLookup)
	defer cancel()
	found, err := p.lookUp(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(done)
	now := time.Now()
	p.asking, p.asked, p.err = nil, now, err
	switch {
	case err == nil:
		p.current = p.current[:0]
		for _, ip := range found {
			p.current = append(p.current, net.JoinHostPort(ip.Unmap().String(), p.port))
		}
		slices.Sort(p.current)
		for _, address := range p.current {
			p.seen[address] = now
		}
	case isNotFound(err):
		p.current = nil
	}
	for address, at := range p.seen {
		if now.Sub(at) > nameMemory {
			delete(p.seen, address)
			delete(p.sessions, address)
		}
	}
	// While the DNS server fails, the pods it named last are taken to be there still, for as long as they are remembered.
	p.current = slices.DeleteFunc(p.current, func(address string) bool {
		_, isRemembered := p.seen[address]
		return !isRemembered
	})
	for address, at := range p.avoided {
		if now.Sub(at) > podAvoided {
			delete(p.avoided, address)
		}
	}
}

func (p *pods) lookUp(ctx context.Context) (found []netip.Addr, err error) {
	defer p.panics.Catch("", &err)
	return p.resolver.LookupNetIP(ctx, "ip", p.host)
}

// pick chooses the pod for a new session: one that has the fewest, as far as this gateway knows, and did not fail just now.
func (p *pods) pick(ctx context.Context) (string, error) {
	if p == nil {
		return "", nil
	}
	err := p.refresh(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.current) == 0 {
		return "", fmt.Errorf("%s: no pods: %w", p.host, errors.Join(err, errNoPods))
	}
	var best []string
	least := math.MaxInt
	for _, address := range p.current {
		load := p.sessions[address]
		if at, ok := p.avoided[address]; ok && time.Since(at) < podAvoided {
			load += math.MaxInt32 // the last choice
		}
		if load < least {
			least, best = load, best[:0]
		}
		if load == least {
			best = append(best, address)
		}
	}
	return best[rand.N(len(best))], nil //nolint:gosec // it only spreads load
}

var errNoPods = errors.New("the name has no addresses")

// knows says whether a session may go on at an address: it belongs to one of the pods, or did until a moment ago.
func (p *pods) knows(ctx context.Context, address string) bool {
	if p == nil {
		return address == ""
	}
	switch away, ok := p.away(address); {
	case ok && away < podsFresh:
		return true
	case ok && (away < podAway || away < nameMemory && p.isBlind()):
		p.look(ctx) // for the next one: this one need not wait
		return true
	}
	_ = p.refresh(ctx) // if it fails, what was seen before counts
	away, ok := p.away(address)
	return ok && (away < podAway || away < nameMemory && p.isBlind() || away < podMemory && !p.hasOther(address))
}

// isBlind says that DNS failed when it was last asked, and so did not say that a pod is gone.
func (p *pods) isBlind() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil && !isNotFound(p.err)
}

// away is how long ago DNS last named a pod, if that is not forgotten.
func (p *pods) away(address string) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.seen[address]
	return time.Since(at), ok
}

// haveOther says whether there is a pod besides that of the address.
func (p *pods) haveOther(ctx context.Context, address string) bool {
	_ = p.refresh(ctx) // if it fails, what was seen before counts
	return p.hasOther(address)
}

func (p *pods) hasOther(address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.current, func(other string) bool { return other != address })
}

// opened and closed count the sessions of a pod.
func (p *pods) opened(address string) { p.count(address, 1) }
func (p *pods) closed(address string) { p.count(address, -1) }

func (p *pods) count(address string, n int) {
	if p == nil || address == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n += p.sessions[address]; n > 0 {
		p.sessions[address] = n
	} else {
		delete(p.sessions, address) // the last one may end after its pod was forgotten
	}
}

// avoid makes a pod the last choice for a while.
func (p *pods) avoid(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.avoided[address] = time.Now()
}
