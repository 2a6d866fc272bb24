package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/go-jose/go-jose/v4/json"

	"github.com/mcp-operator/mcp-operator/internal/gateway/certs"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

const (
	// maxDocument is the largest discovery document or key set, in bytes.
	maxDocument = 512 << 10
	// maxHeaders bounds the headers of a response, in bytes.
	maxHeaders = 64 << 10
	// maxRedirects is how often a provider may point elsewhere on its own host.
	maxRedirects = 3
)

// provider is an issuer that publishes its keys: OpenID Connect Discovery 1.0, section 4. Equal values have the same keys.
type provider struct {
	issuer string
	// caFile adds to the system's roots.
	caFile string
	// allowPrivate lets it have private addresses, such as those of the cluster.
	allowPrivate bool
	// loopback lets it live on this host, over plain HTTP.
	loopback bool
}

// fetch finds where the keys are and gets them.
func (p provider) fetch(ctx context.Context, client *http.Client) (*keySet, error) {
	address := strings.TrimRight(p.issuer, "/") + "/.well-known/openid-configuration"
	document, err := p.get(ctx, client, address)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	var discovered struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(document, &discovered); err != nil {
		return nil, fmt.Errorf("discovery: %s is no JSON object of the right form: %w", address, err)
	}
	// Section 4.3: what says to be somebody else is not believed.
	if discovered.Issuer != p.issuer {
		return nil, fmt.Errorf("discovery: %s names another issuer than %q", address, p.issuer)
	}
	set, err := p.get(ctx, client, discovered.Keys)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	keys, err := parseKeys(set)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return keys, nil
}

func (p provider) get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	if err := p.check(address); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: status %d", address, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", address, err)
	}
	if len(body) > maxDocument {
		return nil, fmt.Errorf("GET %s: more than %d bytes", address, maxDocument)
	}
	return body, nil
}

// check refuses URLs that keys must not come from.
func (p provider) check(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("is no URL")
	}
	isLocal := p.loopback && isLoopback(u.Hostname())
	switch {
	case u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q is not an absolute URL without user, query and fragment", address)
	case u.Scheme != "https" && (u.Scheme != "http" || !isLocal):
		return fmt.Errorf("%q is not an https URL", address)
	}
	return nil
}

// client dials the provider and nobody else: no proxy of the environment, no other host, nothing on this host or its links,
// no metadata service, and no private address unless the table lets the issuer have one. Connections are not kept; there are
// two requests in a quarter of an hour.
func (p provider) client() *http.Client {
	guard := mcp.GuardFor(p.allowPrivate)
	if allowed := guard.Allow; p.loopback {
		guard.Allow = func(address netip.Addr) bool { return allowed(address) || address.IsLoopback() }
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            guard.DialContext,
			DialTLSContext:         certs.NewClientBesideSystem(p.caFile).DialTLS(guard.DialContext, "http/1.1"),
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaders,
		},
		CheckRedirect: func(request *http.Request, via []*http.Request) error {
			first := via[0].URL
			if request.URL.Scheme != first.Scheme || request.URL.Host != first.Host || len(via) > maxRedirects {
				return errors.New("redirects to another host or scheme, or too many, are not followed")
			}
			return nil
		},
	}
}

func isLoopback(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.IsLoopback()
	}
	return host == "localhost"
}
