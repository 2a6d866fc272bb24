// Package auth tells callers apart by bearer tokens. Tokens are JSON Web Tokens (RFC 7519) by issuers that the table names,
// signed with an asymmetric algorithm, valid now, and meant for this endpoint. Whatever else is presented is refused: there
// is no way from a bad token to an anonymous caller.
package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// defaultSkew is how far an issuer's clock may be off.
const defaultSkew = 30 * time.Second

// Principal is a caller.
type Principal struct {
	// Subject names the caller among all issuers, for good: the issuer and the token's sub, with a space between. It is what
	// sessions are bound to. "anonymous" if the table lets everybody call.
	Subject string
	// Issuer is the token's iss; empty for an anonymous caller.
	Issuer string
	// Name is the token's sub, for people who read logs. It is unique for its issuer only.
	Name string
}

// anonymous has no space in its subject, as every other has.
var anonymous = Principal{Subject: "anonymous", Name: "anonymous"}

// Options are what a table's Auth does not say.
type Options struct {
	// PublicURL is table.Endpoint.PublicURL: an audience, and the resource of RFC 9728. Without it the resource is the first audience
	// that is a URL with Path, or else the first that is a URL.
	PublicURL string
	// Path is table.Endpoint.Path.
	Path string
	// ClockSkew is how far an issuer's clock may be off. Default 30 s.
	ClockSkew time.Duration
	// Logger is told why an issuer's keys cannot be had; nil tells nobody.
	Logger *slog.Logger
	// LoopbackIssuers lets issuers live on this host, and there speak plain HTTP. For tests and for a gateway on a laptop.
	LoopbackIssuers bool
	// Panics tells of faults of the gateway's own; default the default logger.
	Panics *panics.Recorder
}

// Verifier verifies the tokens of one table. It is safe for concurrent use.
type Verifier struct {
	options Options
	// isOpen lets everybody call.
	isOpen  bool
	issuers map[string]*issuer
	seen    *seenTokens
	// resource is what the endpoint is known by, or nil, and resourceName the same as it was written: clients compare it, and tokens bear it.
	resource     *url.URL
	resourceName string
	// authorizationServers and scopes are told to clients.
	authorizationServers, scopes []string
}

// issuer is whoever signs tokens, and what they must say.
type issuer struct {
	name  string
	keys  *keySource
	rules []rule
}

// New makes the verifier of a table. It dials nobody itself: keys of OIDC issuers are fetched in the background under ctx,
// which is the gateway's and not the table's. An issuer that cannot be reached costs its own tokens only. Keys that previous
// (which may be nil) holds of an issuer that did not change are kept. It fails if the table would let in other than it says,
// such as tokens for any audience.
func New(ctx context.Context, a table.Auth, o Options, previous *Verifier) (*Verifier, error) {
	if o.ClockSkew == 0 {
		o.ClockSkew = defaultSkew
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	v := &Verifier{options: o, issuers: map[string]*issuer{}, seen: newSeenTokens()}
	v.isOpen = a.Type == table.AuthNone
	if err := v.name(audiencesOf(a)); err != nil {
		return nil, err
	}
	switch a.Type {
	case table.AuthNone:
		return v, nil
	case table.AuthTokens:
	default:
		return nil, fmt.Errorf("auth.type %q is unknown: use %s or %s", a.Type, table.AuthNone, table.AuthTokens)
	}
	if a.ServiceAccounts == nil && len(a.OIDC) == 0 {
		return nil, errors.New("auth: Tokens needs serviceAccounts or oidc")
	}
	audiences := slices.Clone(a.Audiences)
	if o.PublicURL != "" {
		audiences = append(audiences, o.PublicURL)
	}
	if err := v.addServiceAccounts(a.ServiceAccounts, audiences); err != nil {
		return nil, fmt.Errorf("auth.serviceAccounts: %w", err)
	}
	for i, oidc := range a.OIDC {
		if err := v.addOIDC(ctx, oidc, audiences, previous); err != nil {
			return nil, fmt.Errorf("auth.oidc[%d]: %w", i, err)
		}
	}
	// Nobody is dialled for a table that is refused.
	for _, from := range v.issuers {
		if from.keys.current() == nil {
			from.keys.refresh()
		}
	}
	return v, nil
}

// audiencesOf are the audiences that a table names, those for all issuers first.
func audiencesOf(a table.Auth) []string {
	all := slices.Clone(a.Audiences)
	for _, o := range a.OIDC {
		all = append(all, o.Audiences...)
	}
	return all
}

func (v *Verifier) addServiceAccounts(s *table.ServiceAccounts, audiences []string) error {
	if s == nil {
		return nil
	}
	keys, err := parseKeys(s.Keys)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	r := rule{audiences: audiences, subjects: s.Subjects, isListed: true}
	return v.add(s.Issuer, fixedKeys(keys), r)
}

func (v *Verifier) addOIDC(ctx context.Context, o table.OIDC, audiences []string, previous *Verifier) error {
	if len(o.Audiences) > 0 {
		audiences = o.Audiences
	}
	r := rule{audiences: audiences, subjects: o.Subjects, isListed: len(o.Subjects) > 0, claims: o.Claims}
	source := provider{issuer: o.Issuer, caFile: o.CAFile, allowPrivate: o.AllowPrivate, loopback: v.options.LoopbackIssuers}
	if err := source.check(o.Issuer); err != nil {
		return fmt.Errorf("issuer %w", err)
	}
	keys := previous.keysOf(source)
	if known := v.issuers[o.Issuer]; known != nil {
		if known.keys.provider != source {
			return fmt.Errorf("issuer %q is there twice with keys of different origin", o.Issuer)
		}
		keys = known.keys
	}
	if keys == nil {
		keys = remoteKeys(ctx, source, &v.options)
	}
	if !slices.Contains(v.authorizationServers, o.Issuer) {
		v.authorizationServers = append(v.authorizationServers, o.Issuer)
	}
	return v.add(o.Issuer, keys, r)
}

// keysOf gives the keys of a provider, or nil. Any verifier may be asked, nil as well.
func (v *Verifier) keysOf(p provider) *keySource {
	if v == nil || v.issuers[p.issuer] == nil || v.issuers[p.issuer].keys.provider != p {
		return nil
	}
	return v.issuers[p.issuer].keys
}

// add lets in the tokens of an issuer that a rule fits.
func (v *Verifier) add(name string, keys *keySource, r rule) error {
	// A space separates issuer and subject in Principal.Subject.
	if name == "" || len(name) > 1024 || strings.ContainsFunc(name, isSpaceOrControl) {
		return fmt.Errorf("issuer %q is empty, too long, or has spaces", name)
	}
	if len(r.audiences) == 0 {
		return errors.New("no audience: set endpoint.publicURL or auth.audiences, or a token for any other service would be let in")
	}
	if slices.Contains(r.audiences, "") {
		return errors.New("an audience is empty")
	}
	for _, scope := range r.scopes() {
		if !isScope(scope) {
			return fmt.Errorf("claims.scope: %q is no scope (RFC 6749, section 3.3)", scope)
		}
		if !slices.Contains(v.scopes, scope) {
			v.scopes = append(v.scopes, scope)
		}
	}
	known := v.issuers[name]
	if known == nil {
		known = &issuer{name: name, keys: keys}
		v.issuers[name] = known
	}
	known.rules = append(known.rules, r)
	return nil
}

// Verify tells who sent a request. Its error is an *Error, to be answered by Challenge. For a token that nothing is known of
// it may wait for the issuer's keys, at most 5 s and only as long as the request's context lives.
func (v *Verifier) Verify(r *http.Request) (Principal, error) {
	if v.isOpen {
		return anonymous, nil
	}
	raw, failure := bearer(r.Header)
	if failure != nil {
		return Principal{}, failure
	}
	digest := digestOf(raw)
	if p, ok := v.seen.get(digest); ok {
		return p, nil
	}
	p, entry, failure := v.verify(r.Context(), raw)
	if failure != nil {
		return Principal{}, failure
	}
	v.seen.put(digest, entry)
	return p, nil
}

func (v *Verifier) verify(ctx context.Context, raw string) (Principal, seenToken, *Error) {
	t, failure := parseToken(raw)
	if failure != nil {
		return Principal{}, seenToken{}, failure
	}
	from := v.issuers[t.issuer]
	if from == nil {
		return Principal{}, seenToken{}, fail(ReasonIssuer, "the token's issuer is not accepted here")
	}
	// Cheap checks come first: a token that is void anyway makes nobody verify a signature or fetch keys.
	if failure := t.checkTimes(time.Now(), v.options.ClockSkew); failure != nil {
		return Principal{}, seenToken{}, failure
	}
	if failure := from.checkAudience(t); failure != nil {
		return Principal{}, seenToken{}, failure
	}
	keys, failure := from.keys.verify(ctx, t)
	if failure != nil {
		return Principal{}, seenToken{}, failure
	}
	if failure := from.authorize(t); failure != nil {
		return Principal{}, seenToken{}, failure
	}
	p := Principal{Subject: from.name + " " + t.subject, Issuer: from.name, Name: t.subject}
	return p, seenToken{principal: p, until: t.expiry.Add(v.options.ClockSkew), source: from.keys, keys: keys}, nil
}
