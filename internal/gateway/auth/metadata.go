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
// Options.Path, the path for that of the resource, and the root form. All else is 404, and so is everything where everybody may
// call, or where no address is known that a token could be asked for.
func (v *Verifier) MetadataHandler() http.Handler { return http.HandlerFunc(v.serveMetadata) }

// IsMetadata says whether MetadataHandler serves a path, as it was sent: with its percent escapes.
func (v *Verifier) IsMetadata(escaped string) bool {
	rest, isWellKnown := strings.CutPrefix(escaped, wellKnown)
	if v.resource == nil || !isWellKnown {
		return false
	}
	return rest == "" || rest == v.options.Path || rest == pathOf(v.resource)
}

func (v *Verifier) serveMetadata(w http.ResponseWriter, r *http.Request) {
	if !v.IsMetadata(r.URL.EscapedPath()) {
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
	writeJSON(w, http.StatusOK, metadata{
		Resource: v.resourceName, AuthorizationServers: v.authorizationServers,
		ScopesSupported: v.scopes, BearerMethodsSupported: []string{"header"},
	})
}

// metadataURL is where a client finds the metadata: the well-known part comes between host and path. Empty if there is none.
func (v *Verifier) metadataURL() string {
	if v.resource == nil {
		return ""
	}
	return v.resource.Scheme + "://" + v.resource.Host + wellKnown + pathOf(v.resource)
}

// pathOf is what follows the well-known part for a resource, with its percent escapes.
func pathOf(resource *url.URL) string { return strings.TrimSuffix(resource.EscapedPath(), "/") }

// name settles what the endpoint is known by: its public URL, or an audience that is a URL, best one of the endpoint's own path. Never is it
// what a request says: a token for that would be refused, and whoever sends the request, or has somebody send it, could name a place of
// their own.
func (v *Verifier) name(audiences []string) error {
	if address := v.options.PublicURL; address != "" {
		public, err := parsePublicURL(address)
		if err == nil && !v.isOpen {
			v.resource, v.resourceName = public, address
		}
		return err
	}
	for _, audience := range audiences {
		u, err := parsePublicURL(audience)
		if err != nil {
			continue
		}
		isOwn := u.EscapedPath() == v.options.Path
		if v.resource == nil || isOwn {
			v.resource, v.resourceName = u, audience
		}
		if isOwn {
			break
		}
	}
	return nil
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

// isHost says whether the authority of a URL is a name or an address, with or without a port, and nothing else.
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
