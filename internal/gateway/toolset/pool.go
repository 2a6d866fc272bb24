package toolset

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/certs"
	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

const (
	// maxConnections is how many connections one tool has in one gateway: PostgreSQL allows 100 for everybody.
	maxConnections = 4
	// connectionIdle is when a connection that nobody uses is closed, connectionAge when one is not used again: the next has read the
	// password anew and resolved the name anew.
	connectionIdle = time.Minute
	connectionAge  = 30 * time.Minute
	// resetTime bounds the reset of a connection that is given back.
	resetTime = 2 * time.Second
	// cancelGrace is how long a server may take to end a statement that is given up.
	cancelGrace = 2 * time.Second
	maxPassword = 4 << 10
)

// connection is one to the database. It is idle in the pool, or somebody has a lease of it.
type connection struct {
	*pgconn.PgConn

	meter      *meter
	born, used time.Time
	expiry     *time.Timer // while it is idle
}

// lease is one use of a connection, and a slot. What ends it takes both away, so that nobody goes on with a connection that is somebody
// else's by then.
type lease struct {
	*connection // nil once the use has ended
}

// pool hands out connections, made when they are needed.
type pool struct {
	*Backend

	config *table.PostgresTool
	tls    func() (*tls.Config, error)
	dial   dialFunc
	slots  chan struct{} // one element for each lease
	over   chan struct{} // closed with the pool, under mu

	mu   sync.Mutex
	idle []*connection // the one used last comes last
}

func newPool(b *Backend, config *table.PostgresTool, o Options) *pool {
	guard := mcp.GuardFor(b.config.AllowPrivate)
	if config.TLS == table.TLSDisable {
		guard.Allow = func(a netip.Addr) bool { return mcp.AllowCluster(a) && !mcp.AllowPublic(a) }
	}
	return &pool{Backend: b, config: config, tls: o.TLS, dial: newDial(guard, o.Dial), slots: make(chan struct{}, maxConnections), over: make(chan struct{})}
}

// errClosed ends the wait for a connection of a backend that is given up.
var errClosed = errors.New("the backend is closed")

// get hands out a connection; reused says that it may have died meanwhile. The error is a *backend.Error: nothing was sent.
func (p *pool) get(ctx context.Context, fresh bool) (l *lease, reused bool, err error) {
	select {
	case p.slots <- struct{}{}:
	case <-p.over: // which has taken the slots, or will
		return nil, false, p.failure(classConnect, false, "", errClosed)
	case <-ctx.Done():
		return nil, false, p.failure(classTimeout, false, "all its connections are in use", context.Cause(ctx))
	}
	defer func() {
		if l == nil {
			<-p.slots
		}
	}()
	if p.isOver() { // of two cases that are ready the select takes any
		return nil, false, p.failure(classConnect, false, "", errClosed)
	}
	if !fresh {
		if c := p.take(ctx); c != nil {
			c.meter.handedOut()
			return &lease{c}, true, nil
		}
	}
	read := &meter{}
	conn, err := p.connect(ctx, read)
	if err != nil {
		return nil, false, p.unconnected(ctx, err)
	}
	return &lease{&connection{PgConn: conn, meter: read, born: time.Now()}}, false, nil
}

func (p *pool) isOver() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// take returns an idle connection, and closes those that are too old.
func (p *pool) take(ctx context.Context) *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		last := len(p.idle) - 1
		c := p.idle[last]
		p.idle = p.idle[:last]
		c.expiry.Stop()
		if time.Since(c.used) < connectionIdle && time.Since(c.born) < connectionAge && !c.IsClosed() {
			return c
		}
		p.hangUp(ctx, c)
	}
	return nil
}

// put takes a connection back, without anything of the session that a statement may have left: settings, a role, prepared statements,
// temporary tables, advisory locks. What cannot be rid of that is closed.
func (p *pool) put(ctx context.Context, l *lease) {
	defer p.reclaim(ctx, l) // unless it is kept
	if l.TxStatus() != 'I' {
		return
	}
	resetting, cancel := context.WithTimeout(context.WithoutCancel(ctx), resetTime)
	defer cancel()
	if err := simple(resetting, l.connection, "DISCARD ALL"); err != nil { // by itself: it is refused in a transaction
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isOver() || l.IsClosed() || l.TxStatus() != 'I' || l.meter.settings > maxSettings {
		return
	}
	c := p.end(l)
	c.used = time.Now()
	c.expiry = time.AfterFunc(connectionIdle, func() { p.expire(ctx, c) })
	p.idle = append(p.idle, c)
}

// end ends a use, and returns the connection.
func (p *pool) end(l *lease) *connection {
	c := l.connection
	l.connection = nil
	<-p.slots
	return c
}

// expire closes a connection that has been idle for long enough. One that was used meanwhile has another timer.
func (p *pool) expire(ctx context.Context, c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.idle, c)
	if i < 0 || time.Since(c.used) < connectionIdle {
		return
	}
	p.idle = slices.Delete(p.idle, i, i+1)
	p.hangUp(ctx, c)
}

// drop closes a connection that must not be used again.
func (p *pool) drop(ctx context.Context, l *lease) { p.hangUp(ctx, p.end(l)) }

// reclaim, deferred, drops a connection that was neither put back nor dropped, since what used it panicked.
func (p *pool) reclaim(ctx context.Context, l *lease) {
	if l.connection != nil {
		p.drop(ctx, l)
	}
}

// hangUp closes a connection without waiting for anybody.
func (p *pool) hangUp(ctx context.Context, c *connection) {
	go func() {
		defer p.panics.Catch(p.Backend.config.Name, nil)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelGrace)
		defer cancel()
		_ = c.Close(ctx) // it is of no use any more either way
	}()
}

// close closes the idle connections, and waits as long as ctx lives for those in use to come back.
func (p *pool) close(ctx context.Context) {
	p.mu.Lock()
	if p.isOver() {
		p.mu.Unlock()
		return // or it would wait for the slots that the first one keeps
	}
	close(p.over)
	for _, c := range p.idle {
		c.expiry.Stop()
		p.hangUp(ctx, c)
	}
	p.idle = nil
	p.mu.Unlock()
	for range maxConnections {
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// connect logs in. Nothing of the environment counts, nor any file but those of the table.
func (p *pool) connect(ctx context.Context, read *meter) (*pgconn.PgConn, error) {
	config, err := pgconn.ParseConfig("host=localhost user=none dbname=none sslmode=disable passfile=/dev/null servicefile=/dev/null")
	if err != nil {
		return nil, err
	}
	config.Host, config.Port, config.Database, config.User = p.config.Host, 5432, p.config.Database, p.config.User
	if p.config.Port != 0 {
		config.Port = uint16(p.config.Port) //nolint:gosec // it was validated
	}
	if config.Password, err = p.password(); err != nil {
		return nil, err
	}
	config.Fallbacks = nil
	config.RuntimeParams = map[string]string{"application_name": "mcp-gateway", "client_encoding": "UTF8"}
	if config.TLSConfig, err = p.tlsConfig(); err != nil {
		return nil, err
	}
	config.ConnectTimeout = connectTimeout + certs.HandshakeTimeout
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil } // Dial resolves
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := p.dial(ctx, network, address)
		if err != nil || config.TLSConfig == nil {
			return conn, err
		}
		return &asked{Conn: conn}, nil
	}
	config.BuildFrontend = read.frontend
	config.MaxProtocolMessageBodyLen = p.maxMessage()
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelGrace}
	}
	return pgconn.ConnectConfig(ctx, config)
}

// maxMessage bounds what the server sends in one piece: a row.
func (p *pool) maxMessage() int {
	const room = 64 << 10 // for messages that are no rows
	if p.config.MaxBytes == 0 {
		return defaultRowBytes + room
	}
	return p.config.MaxBytes + room
}

var errPassword = errors.New("the password file cannot be read")

func (p *pool) password() (string, error) {
	if p.config.PasswordFile == "" {
		return "", nil
	}
	content, err := os.ReadFile(p.config.PasswordFile)
	if err != nil {
		return "", errors.Join(errPassword, err)
	}
	password := strings.TrimRight(string(content), "\r\n")
	unfit := &credential.UnfitError{What: "password", File: p.config.PasswordFile}
	switch {
	case password == "":
		unfit.Why = "is empty"
	case len(password) > maxPassword:
		unfit.Why = "is longer than " + strconv.Itoa(maxPassword) + " bytes"
	case strings.ContainsFunc(password, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		unfit.Why = "has a line feed or another control character inside"
	default:
		return password, nil
	}
	return "", errors.Join(errPassword, unfit)
}

func (p *pool) tlsConfig() (*tls.Config, error) {
	if p.config.TLS == table.TLSDisable {
		return nil, nil //nolint:nilnil // which is how pgconn is told so
	}
	config, err := p.tls()
	if err != nil {
		return nil, err
	}
	config.ServerName = p.config.Host
	if p.config.TLS == table.TLSVerifyCA {
		roots := config.RootCAs
		config.InsecureSkipVerify = true // what follows verifies all but the host
		config.VerifyConnection = func(state tls.ConnectionState) error {
			between := x509.NewCertPool()
			for _, certificate := range state.PeerCertificates[1:] {
				between.AddCert(certificate)
			}
			if _, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err != nil {
				return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
			}
			return nil
		}
	}
	return config, nil
}

// unconnected classes the error of a login.
func (p *pool) unconnected(ctx context.Context, err error) *backend.Error {
	state, fromServer := sqlState(err)
	_, isTLS := errors.AsType[*tls.CertificateVerificationError](err)
	_, isNoTLS := errors.AsType[tls.RecordHeaderError](err)
	_, isDial := errors.AsType[*dialError](err)
	_, isOwn := errors.AsType[*credential.TLSError](err)
	isOver := ctx.Err() != nil // looked at once: it may end meanwhile
	switch {
	case errors.Is(err, errPassword), isOwn:
		return p.unready(errPassword.Error(), err)
	case fromServer && strings.HasPrefix(state, "28"):
		return p.failure(classUnauthorized, false, explain(err), err)
	case fromServer:
		return p.failure(classServerError, false, explain(err), err)
	case answerErrorOf(err) != nil:
		return p.failure(classServerError, false, answerErrorOf(err).Error(), err)
	case errors.Is(err, errNotPostgres), isNoTLS: // it agreed to TLS, and sent something else
		return p.failure(classNotPostgres, false, errNotPostgres.Error(), err)
	case pgconn.Timeout(err) && !isDial && !isOver:
		return p.failure(classTimeout, false, "the database did not answer in time", err)
	case isTLS, !isOver && strings.Contains(err.Error(), "tls error"), strings.Contains(err.Error(), "refused TLS"):
		return p.failure(classTLS, false, "the database does not prove by TLS who it is", err)
	}
	failure := p.unreachable(ctx, err)
	failure.Sent = false
	return failure
}
