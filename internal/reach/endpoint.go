package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/types"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// Security is how a connection is secured.
type Security string

// The kinds of security.
const (
	// Plain is none.
	Plain Security = "Plain"
	// TLS begins with a handshake.
	TLS Security = "TLS"
	// PostgresTLS is asked for in the protocol of PostgreSQL.
	PostgresTLS Security = "PostgresTLS"
)

// Trust is which certificate is accepted of an endpoint.
type Trust struct {
	// Roots replace the system's; nil does not.
	Roots *x509.CertPool
	// Identity names Roots: it is another one whenever they are.
	Identity string
	// AnyHost accepts a certificate by one of Roots for whatever host.
	AnyHost bool
	// Blind accepts any certificate: what it has to be is known to the gateways alone.
	Blind bool
	// Bundle is where caBundle has the certificates, as far as that is worth telling when an authority is not trusted.
	Bundle Bundle
}

// Bundle is where certificates are.
type Bundle string

// The places of certificates.
const (
	// NoBundle is that none are named.
	NoBundle Bundle = ""
	// ReadBundle is that Roots hold them.
	ReadBundle Bundle = "read"
	// UnreadBundle is that a Secret has them, which the operator does not read.
	UnreadBundle Bundle = "unread"
)

func (t Trust) same(other Trust) bool {
	return t.Identity == other.Identity && t.AnyHost == other.AnyHost && t.Blind == other.Blind && t.Bundle == other.Bundle &&
		(t.Roots == nil) == (other.Roots == nil)
}

// Endpoint is what is connected to for a tool.
type Endpoint struct {
	Subject

	// Host is a DNS name or an address, Port a number.
	Host, Port string
	Security   Security
	Trust      Trust
	// ClientCertificate says that the endpoint asks for one, which the operator does not have: having shown its own is enough.
	ClientCertificate bool
}

func (e Endpoint) subject() Subject { return e.Subject }

func (e Endpoint) same(other task) bool {
	o, ok := other.(Endpoint)
	return ok && e.Host == o.Host && e.Port == o.Port && e.Security == o.Security && e.Trust.same(o.Trust) &&
		e.ClientCertificate == o.ClientCertificate
}

// address is what messages call it.
func (e Endpoint) address() string { return net.JoinHostPort(e.Host, e.Port) }

// Verdict is what is known of an endpoint. The zero value knows nothing.
type Verdict struct {
	// Known says that an attempt ended.
	Known bool
	// Reason is one of the reasons of Reachable: Reachable, AddressDenied, DNSFailed, ConnectFailed or TLSFailed.
	Reason string
	// Message is a stable sentence.
	Message string

	failures int // in a row
}

// CheckerOptions are the parts and settings of a Checker. Zero settings mean their defaults.
type CheckerOptions struct {
	// AllowPrivate admits addresses of the cluster and other private ones.
	AllowPrivate bool
	// Dial replaces the guarded dialer; tests do.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLSProfile is applied to the TLS settings; nil leaves Go's defaults.
	TLSProfile func(*tls.Config)
	// Notify is called when the verdict for an object changed. It may block until ctx ends.
	Notify func(ctx context.Context, key types.NamespacedName)
	// Ended is told the reason of every attempt that ended; nil tells nobody. It must not block.
	Ended func(reason string)
	// Workers is how many attempts run at once in each of three lanes, at most half of them for one namespace. Default: 8.
	Workers int
	// Interval is the time between two attempts at what can be reached. Default: 60 s.
	Interval time.Duration
}

// Checker connects to endpoints, again and again. Make it with NewChecker and start it with Start.
type Checker struct {
	*scheduler[Endpoint, Verdict]

	opts CheckerOptions
	dial dialFunc
}

const (
	// attemptTimeout bounds one attempt, connectTimeout the connecting in it.
	attemptTimeout, connectTimeout = 10 * time.Second, 5 * time.Second

	// An endpoint that was reached is told to be out of reach after so many failures in a row.
	patience = 2
)

// NewChecker returns a Checker.
func NewChecker(opts CheckerOptions) *Checker {
	if opts.Workers == 0 {
		opts.Workers = 8
	}
	if opts.Interval == 0 {
		opts.Interval = time.Minute
	}
	c := &Checker{opts: opts, dial: guarded(opts.AllowPrivate, opts.Dial)}
	s := &scheduler[Endpoint, Verdict]{
		pace: pace{interval: opts.Interval, first: time.Second, last: 2 * time.Minute}, workers: opts.Workers,
		do: c.attempt, equal: func(a, b Verdict) bool {
			a.failures, b.failures = 0, 0
			return a == b
		},
		failed: func(last Verdict, err error) Verdict {
			return Verdict{Known: true, Reason: mcpv1alpha1.ReasonConnectFailed, Message: err.Error(), failures: last.failures + 1}
		},
		notify: opts.Notify,
	}
	c.scheduler = s.init()
	return c
}

// Observe tells of an endpoint as it is now, and returns what is known of it. It is cheap.
func (c *Checker) Observe(e Endpoint) Verdict { return c.observe(e) }

func (c *Checker) attempt(ctx context.Context, e Endpoint, last Verdict) (Verdict, bool) {
	timed, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	err := c.connect(timed, e)
	v := Verdict{Known: true, Reason: mcpv1alpha1.ReasonReachable, Message: e.address() + " accepts connections"}
	if err != nil {
		v.Reason, v.Message = c.classify(e, err)
		v.failures = last.failures + 1
	} else if e.Security != Plain {
		v.Message += " and TLS was agreed on"
	}
	if c.opts.Ended != nil && ctx.Err() == nil { // else it was given up
		c.opts.Ended(v.Reason)
	}
	if err != nil && v.failures < patience && last.Reason == mcpv1alpha1.ReasonReachable {
		last.failures = v.failures
		return last, false
	}
	return v, err == nil
}

func (c *Checker) classify(e Endpoint, err error) (reason, message string) {
	return classify(e.Host, e.Port, e.Trust.Bundle, c.opts.AllowPrivate, err)
}

// connect makes a connection as a gateway would, and closes it.
func (c *Checker) connect(ctx context.Context, e Endpoint) error {
	conn, err := c.dial(ctx, "tcp", e.address())
	if err != nil {
		return &stageError{dialling, err}
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })() // a connection that is closed already fails below
	if e.Security == PostgresTLS {
		if err := askPostgres(conn); err != nil {
			return &stageError{securing, err}
		}
	}
	if e.Security == Plain {
		return nil
	}
	config, shown := tlsConfig(e.Host, e.Trust, c.opts.TLSProfile)
	if err := tls.Client(conn, config).HandshakeContext(ctx); err != nil && (!e.ClientCertificate || !shown()) {
		return &stageError{securing, err}
	}
	return nil
}
