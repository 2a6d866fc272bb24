package auth

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// wellKnown is the path of RFC 9728, section 3; the resource's own path follows it.
const wellKnown = "/.well-known/oauth-protected-resource"

// metadata is what RFC 9728, section 2, has of us.
type metadata struct {
	Resource               string   `json:"resource"`
	AuthorizationServers   []string `json:"authorization_servers,omitempty"`
	ScopesSupported        []string `json:"scopes_supported,omitempty"`
	BearerMethodsSupported []string `json:"bearer_methods_supported"`
}

// MetadataHandler serves the protected resource's metadata (RFC 9728) to anybody, browsers included, under the path for
// Options.Path, the path for that of PublicURL, and the root form. All else is 404, and so is everything where everybody may
// call. A Host header that is none is 400, if the resource's name depends on it.
func (v *Verifier) MetadataHandler() http.Handler { return http.HandlerFunc(v.serveMetadata) }

// IsMetadata says whether MetadataHandler serves a path.
func (v *Verifier) IsMetadata(path string) bool {
	rest, isWellKnown := strings.CutPrefix(path, wellKnown)
	if v.isOpen || !isWellKnown {
		return false
	}
	return rest == "" || rest == v.options.Path || v.public != nil && rest == strings.TrimSuffix(v.public.Path, "/")
}

func (v *Verifier) serveMetadata(w http.ResponseWriter, r *http.Request) {
	if !v.IsMetadata(r.URL.Path) {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	// Anybody may read this; a web page that speaks MCP must.
	h.Set("Access-Control-Allow-Origin", "*")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", "GET, HEAD")
		h.Set("Access-Control-Allow-Headers", "*")
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "only GET, HEAD and OPTIONS are served here", http.StatusMethodNotAllowed)
		return
	}
	resource := v.resource(r)
	if resource == nil {
		http.Error(w, "the Host header is not valid", http.StatusBadRequest)
		return
	}
	m := metadata{
		Resource: resource.String(), AuthorizationServers: v.authorizationServers,
		ScopesSupported: v.scopes, BearerMethodsSupported: []string{"header"},
	}
	if v.public != nil {
		// As it was written: clients compare it, and tokens bear it.
		m.Resource = v.options.PublicURL
	}
	writeJSON(w, http.StatusOK, m)
}

// metadataURL is where a client finds the metadata: the well-known part comes between host and path. Empty if the request's
// Host header is none.
func (v *Verifier) metadataURL(r *http.Request) string {
	resource := v.resource(r)
	if resource == nil {
		return ""
	}
	at := url.URL{Scheme: resource.Scheme, Host: resource.Host, Path: wellKnown + strings.TrimSuffix(resource.Path, "/")}
	return at.String()
}

// resource is the URL the endpoint is known by, or nil if it depends on a Host header that is none.
func (v *Verifier) resource(r *http.Request) *url.URL {
	if v.public != nil {
		return v.public
	}
	if !isHost(r.Host) {
		return nil
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return &url.URL{Scheme: scheme, Host: strings.ToLower(r.Host), Path: v.options.Path}
}

// parsePublicURL takes an absolute URL that RFC 9728 lets a resource have.
func parsePublicURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("endpoint.publicURL %q is no URL", address)
	}
	isWeb := u.Scheme == "https" || u.Scheme == "http"
	if !isWeb || !isHost(u.Host) || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, fmt.Errorf("endpoint.publicURL %q is not an absolute http(s) URL without user, query and fragment", address)
	}
	return u, nil
}

// isHost says whether a Host header is a name or an address, with or without a port, and nothing else.
func isHost(host string) bool {
	name := host
	if at := strings.LastIndexByte(host, ':'); at >= 0 && !strings.HasSuffix(host, "]") {
		name = host[:at]
		port := host[at+1:]
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 || port[0] == '0' {
			return false
		}
	}
	if inner, isBracketed := strings.CutPrefix(name, "["); isBracketed {
		address, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return err == nil && address.Is6() && address.Zone() == "" && strings.HasSuffix(inner, "]")
	}
	for _, c := range name {
		isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !isLetter && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return name != "" && len(name) <= 253
}
