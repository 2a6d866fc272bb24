// Package toolset is a backend that is no MCP server: the gateway itself offers the operations of an HTTP API, or one SQL statement,
// as tools of protocol version 2026-07-28.
//
// It guarantees that no argument changes what is asked but in the place it is for: every one is checked against the tool's
// inputSchema before anything is sent, and encoded for its place or bound. A request leaves neither the base URL nor, by name or by
// address, the host; redirects are not followed; the credential goes to that host only and into no result, error or log line.
package toolset

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/certs"
	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Options are what a Backend is made with besides its entry in the table. All may be left out.
type Options struct {
	// Logger gets what is wrong with single tools; default slog.Default().
	Logger *slog.Logger
	// Panics tells of faults of the gateway's own; default the default logger.
	Panics *panics.Recorder
	// Version is the gateway's build, told to clients and to APIs; default "dev".
	Version string
	// Credential is sent with every HTTP request; default none.
	Credential Credential
	// TLS is the configuration for the next connection, the caller's to change; default trusts the CAFile of the table's entry,
	// or without one the system's roots, and shows the entry's ClientCertificate.
	TLS func() (*tls.Config, error)
	// Dial makes the connections, to the host and port of the table's entry only. Default a dialer that refuses the addresses
	// that the entry does not allow, after resolution.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Definitions has the content of the files that are in ConfigMaps; default nobody, so that such files are a failure.
	Definitions Definitions
	// HeaderBytes bounds the header of an API's response. Default 64 KiB.
	HeaderBytes int64
	// CheckInterval is how long the verdict on a statement is believed. Default 5 min.
	CheckInterval time.Duration
}

// Credential is what the gateway authenticates with.
type Credential interface {
	// Apply puts it into the headers of a request.
	Apply(h http.Header) error
	// Redactor hides it in what comes back.
	Redactor() *credential.Redactor
}

// Definitions are contents that are fetched beside the calls.
type Definitions interface {
	// Read returns a file's content. The error is a stable sentence that the name of the ConfigMap is put before.
	Read(file table.ToolFile) ([]byte, error)
	// Await returns when the file can be read, or is not waited for any longer.
	Await(ctx context.Context, file table.ToolFile)
	// Arrival is closed when the file can be read.
	Arrival(file table.ToolFile) <-chan struct{}
}

// defaultTimeout bounds a call whose entry says nothing.
const defaultTimeout = 30 * time.Second

// Backend offers one toolset.
type Backend struct {
	config  table.Backend
	log     *slog.Logger
	panics  *panics.Recorder
	version string
	timeout time.Duration
	source  source
}

// source is what the tools are made of.
type source interface {
	// tools are those offered now, in order. An error is a *backend.Error, or panics.Err.
	tools(ctx context.Context) ([]*tool, error)
	// call carries out a call whose arguments fit. The error, a *backend.Error, is for what the caller cannot mend.
	call(ctx context.Context, t *tool, args arguments) (*result, error)
	// check is what is known of the source's health, without asking anybody.
	check() error
	// renewed is closed when the failure of tools may be over; nil says nothing.
	renewed() <-chan struct{}
	// forget has the next tools look again.
	forget()
	close(ctx context.Context)
}

var (
	_ backend.Backend = (*Backend)(nil)
	_ backend.Renewer = (*Backend)(nil)
	_ backend.Checker = (*Backend)(nil)
)

// New makes a Backend of an entry that has a valid Toolset. It neither dials nor reads files: what is wrong there is told by
// Describe.
func New(config table.Backend, options Options) (*Backend, error) {
	set := config.Toolset
	if set == nil {
		return nil, fmt.Errorf("backend %s: it has no toolset", config.Name)
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if options.Version == "" {
		options.Version = "dev"
	}
	if options.TLS == nil {
		options.TLS = certs.NewClient(config.CAFile, config.ClientCertificate).Config
	}
	if options.HeaderBytes == 0 {
		options.HeaderBytes = defaultHeaderBytes
	}
	b := &Backend{
		config: config, version: options.Version, log: options.Logger.With("backend", config.Name), panics: options.Panics,
		timeout: time.Duration(config.TimeoutSeconds) * time.Second,
	}
	if b.timeout == 0 {
		b.timeout = defaultTimeout
	}
	options.TLS = credential.NewTLS(&b.config, options.TLS)
	if set.Postgres != nil {
		b.source = newDatabase(b, set.Postgres, options)
		return b, nil
	}
	var err error
	if b.source, err = newAPI(b, set, options); err != nil {
		return nil, fmt.Errorf("backend %s: %w", config.Name, err)
	}
	return b, nil
}

// Check says what is wrong with the toolset, as far as it is known: a database that refuses the statement, a file that is not as
// expected, tools that are not offered since their schema cannot be used. The error is a *backend.Error whose Detail is a stable
// sentence, without a word of a server's, which only its Told may have. Nil is also for a toolset that was not looked at yet.
func (b *Backend) Check() error { return b.source.check() }

// Renewed is closed when a file that Describe failed for can be read; nil if there is none.
func (b *Backend) Renewed() <-chan struct{} { return b.source.renewed() }

// Describe says what the gateway offers here. A database is asked whether it takes the statement, at first and then whenever the
// last answer is older than Options.CheckInterval.
func (b *Backend) Describe(ctx context.Context) (*backend.Description, error) {
	if _, err := b.source.tools(ctx); err != nil {
		return nil, err
	}
	return &backend.Description{Modern: true, Versions: []string{wire.Version20260728}, Discover: b.discover()}, nil
}

// Forget has the next Describe look again.
func (b *Backend) Forget() { b.source.forget() }

// Open fails: there are no sessions here.
func (b *Backend) Open(context.Context, backend.Client) (backend.Channel, backend.Handle, error) {
	return nil, backend.Handle{}, b.noEra()
}

// Resume fails: there are no sessions here.
func (b *Backend) Resume(backend.Handle) (backend.Channel, error) { return nil, b.noEra() }

func (b *Backend) noEra() error { return fmt.Errorf("backend %s: %w", b.config.Name, backend.ErrEra) }

// Modern is the way to call the tools.
func (b *Backend) Modern(context.Context) (backend.Channel, error) { return channel{b}, nil }

// Close closes idle connections, and those in use once they are not.
func (b *Backend) Close(ctx context.Context) error {
	b.source.close(ctx)
	return nil
}

// The classes of table.BackendStatus.ErrorClass that a toolset can have.
const (
	classDNS          = "DNS"
	classConnect      = "Connect"
	classTLS          = "TLS"
	classTimeout      = "Timeout"
	classUnauthorized = "Unauthorized"
	classCredential   = "Credential"
	classServerError  = "ServerError"
	classDenied       = "Denied"
	classDefinition   = "Definition"
	classStatement    = "Statement"
	classNotPostgres  = "NotPostgres"
)

// unready is the failure of a call for want of what the gateway itself brings: a credential, its certificate, the certificates it knows the
// server by. What is wrong with their content is told to whoever runs the gateway, in words that hold nothing of it.
func (b *Backend) unready(detail string, err error) *backend.Error {
	failure := b.failure(classCredential, false, detail, err)
	told, ofCertificates := credential.Told(err)
	failure.Told, failure.Detail = told, cmp.Or(ofCertificates, failure.Detail)
	return failure
}

// failure is an error whose detail clients are told.
func (b *Backend) failure(class string, sent bool, detail string, err error) *backend.Error {
	if err == nil {
		err = errors.New(detail)
	}
	return &backend.Error{Backend: b.config.Name, Class: class, Sent: sent, Detail: detail, Err: err}
}
