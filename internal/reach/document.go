package reach

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcp-operator/mcp-operator/internal/fault"
)

// Document is what is fetched for a tool.
type Document struct {
	Subject

	// URL is where it is: http or https.
	URL   string
	Trust Trust
	// Purpose names what is made of it: another purpose makes it be fetched anew.
	Purpose string
}

func (d Document) subject() Subject { return d.Subject }

func (d Document) same(other task) bool {
	o, ok := other.(Document)
	return ok && d.URL == o.URL && d.Purpose == o.Purpose && d.Trust.same(o.Trust)
}

// Fetched is what is known of a document. The zero value knows nothing.
type Fetched[V any] struct {
	// Known says that an attempt ended.
	Known bool
	// Problem says why the last attempt brought nothing that is usable; empty if it did.
	Problem string
	// Found says that an attempt, the last or one before, brought something usable: Value is what was made of it, and Digest the
	// document's SHA-256 in hexadecimal.
	Found  bool
	Value  V
	Digest string

	etag, modified string // of what Value was made of

	refused, refusal string // the SHA-256 of the last document that is of no use, and why
}

// passing is an error that may not be there the next time.
type passing struct{ error }

func (p passing) Unwrap() error { return p.error }

// Passing marks an error of Use as one that may not be there the next time, though the document is the same. Nil stays nil.
func Passing(err error) error {
	if err == nil {
		return nil
	}
	return passing{err}
}

// FetcherOptions are the parts and settings of a Fetcher. Zero settings mean their defaults.
type FetcherOptions[V any] struct {
	// AllowPrivate, Dial, TLSProfile and Notify are as in CheckerOptions.
	AllowPrivate bool
	Dial         func(ctx context.Context, network, address string) (net.Conn, error)
	TLSProfile   func(*tls.Config)
	Notify       func(ctx context.Context, key types.NamespacedName)
	// Use makes something of a document's content. The error is a sentence about the document; it holds for as long as that is the same,
	// unless it is made by Passing. It returns soon after ctx ended.
	Use func(ctx context.Context, document Document, content []byte) (V, error)
	// Ended is told whether an attempt that ended brought something usable, or that nothing is new; nil tells nobody. It must not block.
	Ended func(ok bool)
	// MaxBytes is the size of the largest document.
	MaxBytes int64
	// Workers is how many documents are fetched at once in each of three lanes, at most half of them for one namespace. Default: 4.
	Workers int
	// Interval is the time between two attempts at what could be fetched. Default: 10 min.
	Interval time.Duration
}

// Fetcher fetches documents, again and again. Make it with NewFetcher and start it with Start.
type Fetcher[V any] struct {
	*scheduler[Document, Fetched[V]]

	opts   FetcherOptions[V]
	dial   dialFunc
	recent recent
}

const (
	fetchTimeout   = time.Minute
	headerTimeout  = 15 * time.Second
	maxHeaderBytes = 64 << 10
	maxRedirects   = 5
)

// NewFetcher returns a Fetcher.
func NewFetcher[V any](opts FetcherOptions[V]) *Fetcher[V] {
	if opts.Workers == 0 {
		opts.Workers = 4
	}
	if opts.Interval == 0 {
		opts.Interval = 10 * time.Minute
	}
	f := &Fetcher[V]{opts: opts, dial: guarded(opts.AllowPrivate, opts.Dial)}
	s := &scheduler[Document, Fetched[V]]{
		pace: pace{interval: opts.Interval, first: 2 * time.Second, last: opts.Interval}, workers: opts.Workers,
		do: f.attempt, equal: func(a, b Fetched[V]) bool {
			return a.Known == b.Known && a.Problem == b.Problem && a.Found == b.Found && a.Digest == b.Digest
		},
		failed: func(last Fetched[V], err error) Fetched[V] {
			last.Known, last.Problem = true, err.Error()
			return last
		},
		notify: opts.Notify,
	}
	f.scheduler = s.init()
	return f
}

// Observe tells of a document as it is now, and returns what is known of it. It is cheap.
func (f *Fetcher[V]) Observe(d Document) Fetched[V] { return f.observe(d) }

// attempt fetches a document, if it is another than the last time.
func (f *Fetcher[V]) attempt(ctx context.Context, d Document, last Fetched[V]) (Fetched[V], bool) {
	next := last
	content, err := f.content(ctx, d, &next)
	if err == nil && content != nil {
		err = f.use(ctx, d, content, &next)
	}
	next.Known, next.Problem = true, ""
	if err != nil {
		next.Problem, next.etag, next.modified = err.Error(), last.etag, last.modified // those of Value
	}
	if f.opts.Ended != nil && ctx.Err() == nil { // else it was given up
		f.opts.Ended(err == nil)
	}
	return next, err == nil
}

// content is fetch, or what it returned a short while ago: when something else is to be made of the same document, which may not be there
// now.
func (f *Fetcher[V]) content(ctx context.Context, d Document, known *Fetched[V]) ([]byte, error) {
	if last, ok := f.recent.get(d, f.opts.Interval); ok && !known.Known {
		known.etag, known.modified = last.etag, last.modified
		return last.content, nil
	}
	content, err := f.fetch(ctx, d, known)
	switch {
	case err != nil:
	case content == nil:
		f.recent.confirm(d.UID, known.etag, known.modified)
	default:
		d.Trust.Roots = nil // the identity tells them apart, and they may be large
		f.recent.put(copied{document: d, content: content, etag: known.etag, modified: known.modified, at: time.Now()})
	}
	return content, err
}

// use makes something of a document, unless that was done.
func (f *Fetcher[V]) use(ctx context.Context, d Document, content []byte, known *Fetched[V]) error {
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	switch {
	case known.Found && known.Digest == digest:
		return nil
	case known.refused == digest:
		return errors.New(known.refusal)
	}
	value, err := f.opts.Use(ctx, d, content)
	known.refused, known.refusal = "", ""
	switch _, isPassing := errors.AsType[passing](err); {
	case err == nil:
		known.Found, known.Value, known.Digest = true, value, digest
	case !isPassing:
		known.refused, known.refusal = digest, err.Error()
	}
	return err
}

// fetch returns the content, nil if it is what it was the last time. It notes in f how to tell that the next time.
func (f *Fetcher[V]) fetch(ctx context.Context, d Document, known *Fetched[V]) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, http.NoBody)
	if err != nil {
		return nil, errors.New("its URL cannot be requested")
	}
	request.Header.Set("Accept", "application/json, application/yaml, application/vnd.oai.openapi+json, text/yaml, */*;q=0.1")
	request.Header.Set("User-Agent", "mcp-operator")
	if known.Found && known.etag != "" {
		request.Header.Set("If-None-Match", known.etag)
	}
	if known.Found && known.modified != "" {
		request.Header.Set("If-Modified-Since", known.modified)
	}
	response, err := f.client(d, request.URL).Do(request)
	if err != nil {
		return nil, f.why(request.URL, d.Trust.Bundle, err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotModified && known.Found:
		return nil, nil
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers with the HTTP status %d (%s)", request.URL.Host, response.StatusCode, http.StatusText(response.StatusCode))
	case response.ContentLength > f.opts.MaxBytes:
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", response.ContentLength, f.opts.MaxBytes)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, f.opts.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s broke the transfer off", request.URL.Host)
	}
	if int64(len(content)) > f.opts.MaxBytes {
		return nil, fmt.Errorf("it has more than %d bytes, which is the limit", f.opts.MaxBytes)
	}
	known.etag, known.modified = response.Header.Get("ETag"), response.Header.Get("Last-Modified")
	return content, nil
}

// errRedirect says that a server leads elsewhere.
var errRedirect = errors.New("redirects")

// client makes the client of one attempt. It knows no proxy, keeps no cookies and sends no credentials. It does not ask for
// compression: what is small on the way may be large when unpacked.
func (f *Fetcher[V]) client(d Document, at *url.URL) *http.Client {
	config, _ := tlsConfig(at.Hostname(), d.Trust, f.opts.TLSProfile)
	return &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
				defer fault.Catch(d.Key.String(), &err) // net/http has a goroutine of its own for it
				if conn, err = f.dial(ctx, network, address); err != nil {
					return nil, &stageError{dialling, err}
				}
				return conn, nil
			},
			TLSClientConfig: config, TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: headerTimeout,
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeaderBytes,
		},
		CheckRedirect: func(next *http.Request, before []*http.Request) error {
			if next.URL.Host != at.Host || next.URL.Scheme != at.Scheme || len(before) > maxRedirects {
				return errRedirect
			}
			return nil
		},
	}
}

// why puts the error of a request into our words.
func (f *Fetcher[V]) why(at *url.URL, bundle Bundle, err error) error {
	if errors.Is(err, fault.Err) {
		return fault.Err
	}
	if errors.Is(err, errRedirect) {
		return fmt.Errorf("%s redirects to another host, or too often: name the document's own address", at.Host)
	}
	port := at.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[at.Scheme]
	}
	if failed, ok := errors.AsType[*stageError](err); !ok && at.Scheme == "https" && isTLS(err) {
		err = &stageError{securing, err}
	} else if !ok && failed == nil && !isTimeout(err) {
		return fmt.Errorf("%s gives no HTTP response", at.Host)
	}
	_, message := classify(at.Hostname(), port, bundle, f.opts.AllowPrivate, err)
	return errors.New(message)
}

// isTLS says whether a request failed in the handshake.
func isTLS(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	return verification || record || alert
}
