package mcp

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Target is where a server is found.
type Target struct {
	// URL is what is dialled: http or https, without user information and
	// fragment.
	URL string
	// Host is sent as the Host header. Empty: the URL's host.
	Host string
	// SSE says that the server speaks HTTP with SSE (2024-11-05): URL is that of
	// its event stream.
	SSE bool
	// Transport says how to dial and what TLS to use: its DialContext and
	// TLSClientConfig are taken, nothing else of it. Nil: plain dialling and the
	// system's roots. A DialContext must end when its context does.
	Transport *http.Transport
}

// parse returns the one form of the URL that is used for everything, or why
// there is none.
func (t Target) parse() (*url.URL, error) {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		// The error quotes the URL, which may hold a secret.
		return nil, failure(InvalidTarget, nil, "The URL of the MCP server is not valid.")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, failure(InvalidTarget, nil, "The URL of the MCP server must begin with http:// or https://.")
	case u.User != nil || u.Fragment != "" || strings.Contains(t.URL, "#"):
		return nil, failure(InvalidTarget, nil, "The URL of the MCP server must have neither user information nor a fragment.")
	case u.Hostname() == "" || !plainHost(u.Host):
		return nil, failure(InvalidTarget, nil, "The URL of the MCP server must name a host, and nothing but letters, digits, '.', '-', '_' and a port in it.")
	case t.Host != "" && !plainHost(t.Host):
		return nil, failure(InvalidTarget, nil, "The Host header for the MCP server must be a host name, with or without a port.")
	}
	return u, nil
}

// plainHost admits names, addresses and ports, and no character that one part
// of the world would read otherwise than another.
func plainHost(host string) bool {
	return strings.IndexFunc(host, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune(".-_:[]", r)
	}) < 0
}

// port returns the port that is dialled.
func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// localHost returns a Host header that servers take for a caller on their own
// machine.
func localHost(u *url.URL) string {
	return net.JoinHostPort("localhost", port(u))
}
