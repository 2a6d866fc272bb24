// Package upstream is a backend over HTTP: MCP servers that speak Streamable HTTP, of protocol version 2026-07-28 or of one up to
// 2025-11-25, with sessions or without, and servers that speak only the HTTP+SSE transport of 2024-11-05.
//
// It guarantees that a request that may have reached the server is not sent again, that responses pass through as they arrive,
// that redirects are not followed, that the credential goes to the configured server only and is hidden in what comes back, that nothing
// the server wrote gets into an error's class, and that whatever the server sends is bounded.
package upstream

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/certs"
	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Credential puts what the gateway authenticates with into the headers of a request.
type Credential interface {
	Apply(h http.Header) error
	// Redactor hides it in what servers send.
	Redactor() *credential.Redactor
}

// Resolver finds the addresses of pods; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options are what a Backend is made with besides its entry in the table. All may be left out.
type Options struct {
	// Logger gets changes of what the server speaks; default slog.Default().
	Logger *slog.Logger
	// Panics tells of faults of the gateway's own; default the default logger.
	Panics *panics.Recorder
	// Version is the gateway's build, told to servers; default "dev".
	Version string
	// Credential is sent with every request; default none.
	Credential Credential
	// TLS is the configuration for the next connection, the caller's to change; default trusts the CAFile of the table's entry,
	// or without one the system's roots, and shows the entry's ClientCertificate.
	TLS func() (*tls.Config, error)
	// Limits bound what the server can make the gateway hold and wait for.
	Limits Limits
	// Hold is how long a request waits for a server that accepts no connection, such as one that restarts. Default 10 s.
	Hold time.Duration
	// Resolver finds the pods behind PodsHost; default net.DefaultResolver.
	Resolver Resolver
	// Dial makes the connections; default a net.Dialer. It is where addresses are refused.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Backend is one MCP server over HTTP.
type Backend struct {
	config  table.Backend
	options Options
	limits  Limits
	log     *slog.Logger

	url       *url.URL
	host      string // the Host header
	place     string // for handles
	transport *rotating
	dials     *dialer
	pods      *pods // nil without PodsHost
	discovery discovery
	readers   sync.Pool // of *wire.EventReader
	// noStream is set, by backend.Era, once the server said that it offers no stream, until it is described anew.
	noStream [2]atomic.Bool

	ctx    context.Context //nolint:containedctx // the backend's own life, which every exchange is bound to
	cancel context.CancelCauseFunc

	mu     sync.Mutex // guards what follows
	closed bool
	tasks  sync.WaitGroup // what runs beside the callers; added to under mu while not closed
	pipes  map[string]*pipe
	shared map[string]*shared
	reaper *time.Timer
}

var (
	_ backend.Backend = (*Backend)(nil)
	_ backend.Sharer  = (*Backend)(nil)
)

// errClosed ends what runs when the backend is closed.
var errClosed = errors.New("the gateway gave the backend up")

// errEnded ends one session.
var errEnded = errors.New("the session was ended")

// New makes a Backend of an entry that has a URL. It does not dial.
func New(config table.Backend, options Options) (*Backend, error) {
	u, err := url.Parse(config.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("backend %s: %q is not an absolute http or https URL without user, query and fragment", config.Name, config.URL)
	}
	options = options.withDefaults(&config)
	b := &Backend{
		config: config, options: options, limits: options.Limits, url: u, host: u.Host,
		log: options.Logger.With("backend", config.Name), pipes: map[string]*pipe{}, shared: map[string]*shared{},
	}
	if config.HostHeader != "" {
		b.host = config.HostHeader
	}
	b.place = placeOf(u, b.host)
	// A tool that may take longer than that may also be silent for longer.
	b.limits.StreamIdle = max(b.limits.StreamIdle, time.Duration(config.TimeoutSeconds)*time.Second)
	b.ctx, b.cancel = context.WithCancelCause(context.Background())
	b.dials = newDialer(b)
	b.transport = &rotating{make: b.newTransport, age: b.limits.ConnAge}
	if config.PodsHost != "" {
		b.pods = newPods(config.PodsHost, portOf(u), &options)
	}
	return b, nil
}

// placeOf tells by a short hash which server a session is at.
func placeOf(u *url.URL, host string) string {
	sum := sha256.Sum256([]byte(u.String() + "\n" + host))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// withDefaults fills in what was left out.
func (o Options) withDefaults(config *table.Backend) Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.TLS == nil {
		o.TLS = certs.NewClient(config.CAFile, config.ClientCertificate).Config
	}
	o.TLS = credential.NewTLS(config, o.TLS)
	if o.Hold == 0 {
		o.Hold = 10 * time.Second
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Dial == nil {
		d := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
		if config.Guarded {
			d.Control = mcp.GuardFor(config.AllowPrivate).Control
		}
		o.Dial = d.DialContext
	}
	o.Limits = o.Limits.withDefaults()
	return o
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// Close gives up everything: what is in flight fails, sessions of the gateway's own are ended at the server for as long as ctx
// lives, and connections are closed.
func (b *Backend) Close(ctx context.Context) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	own := make([]*shared, 0, len(b.shared))
	for _, s := range b.shared {
		own = append(own, s)
	}
	clear(b.shared)
	if b.reaper != nil {
		b.reaper.Stop()
	}
	b.mu.Unlock()

	var ends sync.WaitGroup
	for _, s := range own {
		ends.Go(b.contained(func() { s.end(ctx) }))
	}
	done := make(chan struct{})
	go func() {
		ends.Wait()
		b.cancel(errClosed)
		b.tasks.Wait()
		close(done)
	}()
	defer b.transport.CloseIdleConnections()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		b.cancel(errClosed)
		return fmt.Errorf("backend %s: its sessions could not be ended in time: %w", b.config.Name, context.Cause(ctx))
	}
}

// background runs what nobody waits for but Close; not at all, which it reports, once that was called.
func (b *Backend) background(task func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.tasks.Go(b.contained(task))
	}
	return !b.closed
}

// contained keeps what the server sent from being the end of more than the task.
func (b *Backend) contained(task func()) func() {
	return func() {
		defer b.options.Panics.Catch(b.config.Name, nil)
		task()
	}
}

// beside runs what belongs to a caller who does not wait for it, for as long as a notice may take.
func (b *Backend) beside(ctx context.Context, task func(ctx context.Context)) {
	ctx = context.WithoutCancel(ctx)
	b.background(func() {
		ctx, cancel := context.WithTimeout(ctx, b.limits.Notice)
		defer cancel()
		task(ctx)
	})
}

// isModern says whether a protocol version knows no sessions.
func isModern(version string) bool { return version >= wire.Version20260728 }

// legacyVersions are those with sessions that are spoken here, newest first.
var legacyVersions = wire.Versions()[1:]

// looksLikeVersion admits what may be shown as a protocol version.
func looksLikeVersion(v string) bool {
	return v != "" && len(v) <= 32 && strings.Trim(v, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-.") == ""
}
