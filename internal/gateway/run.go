package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/certs"
	"github.com/mcp-operator/mcp-operator/internal/gateway/front"
	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/gateway/seal"
	"github.com/mcp-operator/mcp-operator/internal/gateway/source"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/version"
)

// Run serves until ctx ends, then drains.
func Run(ctx context.Context, o Options) error {
	logger := newLogger(os.Stderr, o.LogLevel)
	// What net/http logs of connections to backends by the standard logger quotes what they sent.
	log.SetFlags(0)
	log.SetOutput(serverLog{logger})
	sealer, err := sealerFor(o, logger)
	if err != nil {
		return err
	}
	watch := telemetry.New(telemetry.Options{Logger: logger, Audit: os.Stdout, Version: version.String(), IgnoreEnvironment: o.IgnoreEnvironment})
	faults := panics.New(logger, watch.Panicked)
	listener, open, err := listen(ctx, o, logger)
	if err != nil {
		return err
	}
	f := front.New(front.Options{
		Logger: logger, Panics: faults, Telemetry: watch, Sealer: sealer, Limits: o.Limits, Version: version.String(),
		LoopbackOnly: isLoopback(listener.Addr()),
	})
	// What serves outlives ctx by the time of draining.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g := &gateway{options: o, logger: logger, front: f, panics: faults, telemetry: watch, failed: make(chan error, 2)}
	defer g.close(serving)
	if err := g.serveHealth(ctx); err != nil {
		return err
	}
	if err := g.start(serving); err != nil {
		return err
	}
	server := newServer(contained(g.turnAway(f), faults), logger, o.Header)
	server.ConnState = open.note
	go f.Serve(serving)
	go func() { g.fail(server.Serve(listener)) }()
	logger.Info("serving", "version", version.String(), "address", listener.Addr().String(), "health", o.HealthListen)
	defer time.AfterFunc(startTime, func() {
		if err := trim(); err != nil {
			logger.Debug("memory that the start needed is kept", "error", err)
		}
	}).Stop()
	select {
	case err := <-g.failed:
		return err
	case <-ctx.Done():
	}
	return g.drain(serving, server)
}

// startTime is when the start is over, and what it needed can be given back.
const startTime = 5 * time.Second

// gateway is one running process.
type gateway struct {
	options   Options
	logger    *slog.Logger
	front     *front.Front
	panics    *panics.Recorder
	telemetry *telemetry.Telemetry
	// failed gets what the process cannot go on after.
	failed chan error
	health *http.Server
	// definitions are what tables name in ConfigMaps; nil for stdio.
	definitions *source.Definitions
	tables      tables
}

// fail ends the process, unless the error is that of an orderly end.
func (g *gateway) fail(err error) {
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		select {
		case g.failed <- err:
		default:
		}
	}
}

func sealerFor(o Options, logger *slog.Logger) (*seal.Keyring, error) {
	if o.EphemeralKeys {
		return seal.Ephemeral(), nil
	}
	keys, err := seal.Load(o.SessionKeys, func(err error) { logger.Error("session keys", "error", err) })
	if err != nil {
		return nil, fmt.Errorf("session keys: %w", err)
	}
	return keys, nil
}

// listen opens the address for clients, with TLS if there is a certificate.
// HTTP/1.1 only: the time a client may take to read is the connection's there, and not that of a stream among others.
func listen(ctx context.Context, o Options, logger *slog.Logger) (net.Listener, *connections, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, nil, fmt.Errorf("listen for clients: %w", err)
	}
	open := newConnections(listener, o.Connections)
	if o.TLSCert == "" {
		return open, open, nil
	}
	config, err := certs.Server(o.TLSCert, o.TLSKey, func(err error) {
		logger.Error("the certificate is not renewed, the one before it is shown on", "error", err)
	})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("the certificate for clients: %w", err), listener.Close())
	}
	config.NextProtos = []string{"http/1.1"}
	return &securedConnections{connections: open, config: config, logger: logger}, open, nil
}

func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// newServer makes a server of requests whose header has at most maxHeader bytes.
func newServer(handler http.Handler, logger *slog.Logger, maxHeader int) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(serverLog{logger}, "", 0),
	}
}

// contained keeps a panic at one request from being more than the end of its connection: half an answer must not pass for a whole one.
func contained(next http.Handler, faults *panics.Recorder) http.Handler {
	attempt := func(w http.ResponseWriter, r *http.Request) (err error) {
		defer faults.Catch("", &err)
		next.ServeHTTP(w, r)
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if isLong(r) {
			err = attempt(w, lent(w, r))
			letGo(r)
		} else {
			err = attempt(w, r)
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	})
}

// isLong says whether the header of a request takes much of memory.
func isLong(r *http.Request) bool {
	size := len(r.RequestURI)
	for _, fields := range []http.Header{r.Header, r.Trailer} {
		for name, values := range fields {
			size += len(name) + lineCost
			for _, value := range values {
				size += len(value)
			}
		}
	}
	return size > freeHeader
}

// lent is a copy of a request for its handler: what that leaves behind may look at it when the request is let go.
func lent(w http.ResponseWriter, r *http.Request) *http.Request {
	if len(r.RequestURI) > freeHeader { // an idle connection would keep the line
		w.Header().Set("Connection", "close")
	}
	return r.WithContext(r.Context())
}

// letGo leaves nothing large of the header in a request. net/http holds it until it has found the end of the body, even if nobody wants that,
// and it is counted nowhere by then.
func letGo(r *http.Request) {
	r.Header, r.Trailer, r.URL, r.RequestURI, r.Host = nil, nil, nil, "", ""
	r.Method, r.Proto = apart(r.Method), apart(r.Proto)
}

// apart returns a word that begins or ends a request's line, without the line.
func apart(word string) string {
	for _, usual := range [...]string{http.MethodPost, "HTTP/1.1", http.MethodGet, http.MethodDelete} {
		if word == usual {
			return usual
		}
	}
	return strings.Clone(word)
}

// serverLog takes what net/http logs of connections: mostly what clients and backends do wrong, of which the first words are kept, but
// a panic of a handler is a fault of ours.
type serverLog struct{ logger *slog.Logger }

// maxServerLine bounds a line about what others do wrong, in bytes.
const maxServerLine = 256

func (l serverLog) Write(line []byte) (int, error) {
	level, text := slog.LevelError, strings.TrimSpace(string(line))
	if !strings.HasPrefix(text, "http: panic serving ") {
		level, text = slog.LevelDebug, backend.Line(text, maxServerLine)
	}
	l.logger.Log(context.Background(), level, text)
	return len(line), nil
}

// turnAway has clients open another connection, at another replica, once the gateway drains: one that they keep would be closed under the
// next request that they send on it.
func (g *gateway) turnAway(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.tables.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// drain ends in good order: first nobody is sent here any more, then streams are ended so that their clients come back at
// another replica, then requests in flight finish.
func (g *gateway) drain(ctx context.Context, server *http.Server) error {
	g.logger.Info("draining", "delay", g.options.DrainDelay, "timeout", g.options.DrainTimeout)
	g.tables.draining.Store(true)
	select {
	case <-time.After(g.options.DrainDelay):
	case err := <-g.failed:
		return err
	}
	g.front.Drain()
	ctx, cancel := context.WithTimeout(ctx, g.options.DrainTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		g.logger.Warn("requests were cut off", "error", err)
		return errors.Join(err, server.Close())
	}
	return nil
}

// close gives up everything that is left.
func (g *gateway) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	g.tables.close(ctx)
	if g.health != nil {
		_ = g.health.Close()
	}
	if err := g.telemetry.Close(ctx); err != nil {
		g.logger.Warn("the last traces were not exported", "error", err)
	}
}

// maxHealthConnections bounds those to the listener for health.
const maxHealthConnections = 100

// serveHealth serves what the platform asks, on an address of its own.
func (g *gateway) serveHealth(ctx context.Context) error {
	if g.options.HealthListen == "0" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", g.options.HealthListen)
	if err != nil {
		return fmt.Errorf("listen for health checks: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", g.readyz)
	mux.HandleFunc("GET /metrics", g.metrics)
	if file := g.options.StatusTokenFile; file != "" {
		mux.Handle("GET /status", g.status(file))
	}
	g.health = newServer(contained(mux, g.panics), g.logger, g.options.Header)
	g.health.ReadTimeout, g.health.WriteTimeout = 10*time.Second, 10*time.Second
	open := newConnections(listener, maxHealthConnections)
	g.health.ConnState = open.note
	go func() { g.fail(g.health.Serve(open)) }()
	return nil
}

// metrics serves the metrics, and counts before that what a supervisor counted by itself.
func (g *gateway) metrics(w http.ResponseWriter, r *http.Request) {
	if current := g.tables.current.Load(); current != nil {
		for _, b := range current.Backends {
			for range g.tables.newRestarts(b) {
				g.telemetry.ChildRestarted(b.Config.Name)
			}
		}
	}
	g.telemetry.Handler().ServeHTTP(w, r)
}

// readyz says whether clients should be sent here: there is a table, and a child has answered once. A backend that is down
// does not count, since the gateway answers for it.
func (g *gateway) readyz(w http.ResponseWriter, _ *http.Request) {
	if why := g.unready(); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
	}
}

func (g *gateway) unready() string {
	current := g.tables.current.Load()
	switch {
	case current == nil:
		return "there is no routing table yet"
	case g.tables.draining.Load():
		return "shutting down"
	case g.options.Stdio != nil && !current.Backends[0].Answered():
		return "the server has not answered yet: " + cmp.Or(current.Backends[0].Status().ErrorClass, "it is starting")
	case !g.front.IsSettled():
		return "the backends have not been asked yet"
	}
	return ""
}
