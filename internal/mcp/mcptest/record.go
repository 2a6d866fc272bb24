package mcptest

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// Request is what a server was sent.
type Request struct {
	// HTTPMethod is POST, DELETE or GET.
	HTTPMethod string
	// RPCMethod is the method of the JSON-RPC message, if there is one.
	RPCMethod string
	// Host is the Host header.
	Host string
	// Header are all other headers.
	Header http.Header
	// Body is the body as sent.
	Body string
}

// maxRequestBytes bounds what is kept of a request.
const maxRequestBytes = 1 << 20

// Serve runs handler on a loopback port until the test ends.
func Serve(tb testing.TB, handler http.Handler) *Server {
	tb.Helper()
	s := &Server{}
	s.http = httptest.NewServer(s.record(handler))
	s.URL = s.http.URL + "/mcp"
	tb.Cleanup(s.http.Close)
	return s
}

// ServeTLS is Serve with TLS and a certificate nobody trusts.
func ServeTLS(tb testing.TB, handler http.Handler) *Server {
	tb.Helper()
	s := &Server{}
	s.http = httptest.NewUnstartedServer(s.record(handler))
	s.http.Config.ErrorLog = discardLog()
	s.http.EnableHTTP2 = true
	s.http.StartTLS()
	s.URL = s.http.URL + "/mcp"
	tb.Cleanup(s.http.Close)
	return s
}

// ServeTLSAs is Serve with TLS and certificates of the test's own.
func ServeTLSAs(tb testing.TB, config *tls.Config, handler http.Handler) *Server {
	tb.Helper()
	s := &Server{}
	s.http = httptest.NewUnstartedServer(s.record(handler))
	s.http.Config.ErrorLog = discardLog()
	s.http.TLS = config
	s.http.StartTLS()
	s.URL = s.http.URL + "/mcp"
	tb.Cleanup(s.http.Close)
	return s
}

// Address is the host and port that the server listens on.
func (s *Server) Address() string { return s.http.Listener.Addr().String() }

// Transport returns a transport that leads to the server: that trusts the
// certificate of ServeTLS, or dials into a Pipe.
func (s *Server) Transport() *http.Transport {
	if s.pipe != nil {
		return &http.Transport{DialContext: s.pipe.dial}
	}
	transport, ok := s.http.Client().Transport.(*http.Transport)
	if !ok {
		return nil
	}
	return transport.Clone()
}

// Requests returns all requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Calls returns the requests so far in short: the JSON-RPC method of each, or
// its HTTP method.
func (s *Server) Calls() []string {
	var calls []string
	for _, r := range s.Requests() {
		if r.RPCMethod != "" {
			calls = append(calls, r.RPCMethod)
			continue
		}
		calls = append(calls, r.HTTPMethod)
	}
	return calls
}

// Forget empties the log.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

func (s *Server) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxRequestBytes))
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var message struct {
			Method string `json:"method"`
		}
		if len(body) > 0 && json.Unmarshal(body, &message) != nil {
			message.Method = "(not JSON)"
		}
		s.mu.Lock()
		s.log = append(s.log, Request{
			HTTPMethod: r.Method, RPCMethod: message.Method, Host: r.Host, Header: r.Header.Clone(), Body: string(body),
		})
		s.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}
