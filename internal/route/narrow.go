package route

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// What a specification that is not in force takes away is taken away all the same: of what was written, that stays which the specification
// grants too. Where a table cannot say what both have in common, it says less.

// narrowedFrame is the table that was written without its backends, for whom the specification serves too. It is false if no table can say
// that: it is then for whom it was written, and nothing must be served by it. The keys must be settled.
func (in *Input) narrowedFrame() (*table.Table, bool) {
	was := *in.Written
	was.Backends, was.Revision = []table.Backend{}, ""
	now := was
	now.Endpoint = in.narrowedEndpoint()
	if auth, isSaid := in.narrowedAuth(now.Endpoint.PublicURL); isSaid {
		now.Auth = auth
		if _, err := table.Parse(encode(&now)); err == nil {
			return &now, true
		}
	}
	was.Auth.OIDC = slices.Clone(was.Auth.OIDC)
	for i := range was.Auth.OIDC {
		was.Auth.OIDC[i].AllowPrivate = was.Auth.OIDC[i].AllowPrivate && in.AllowPrivate
	}
	return &was, false
}

// narrowedEndpoint is the endpoint that was written, served to no host, origin or mistaken client that the specification does not serve.
func (in *Input) narrowedEndpoint() table.Endpoint {
	was, asked := in.Written.Endpoint, endpointOf(in.Agent, in.ClusterDomain)
	now := was
	if hosts := common(was.AllowedHosts, asked.AllowedHosts); len(hosts) > 0 {
		now.AllowedHosts = hosts
	} else { // an empty list would serve any
		now.AllowedHosts = asked.AllowedHosts
	}
	now.AllowedOrigins = common(was.AllowedOrigins, asked.AllowedOrigins)
	now.LenientHeaders = was.LenientHeaders && asked.LenientHeaders
	if was.PublicURL != asked.PublicURL || in.isOfAPIServer(was.PublicURL) { // an audience, and an origin
		now.PublicURL = ""
	}
	return now
}

// narrowedAuth is who may call by what was written, and by the specification too. It is false if that is nobody and no table can say so,
// since the keys of the cluster are not known.
func (in *Input) narrowedAuth(publicURL string) (table.Auth, bool) {
	was, asked := &in.Written.Auth, &in.Agent.Spec.Auth
	all := asked.Type == mcpv1alpha1.AgentAuthNone
	if all && was.Type == table.AuthNone {
		return *was, true
	}
	now := table.Auth{Type: table.AuthTokens, Audiences: kept(was.Audiences, func(audience string) bool {
		return !in.isOfAPIServer(audience) && (all || slices.Contains(in.askedAudiences(nil), audience))
	})}
	hasAudience := len(now.Audiences) > 0 || publicURL != ""
	if was.ServiceAccounts != nil && hasAudience {
		accounts := subjectsOf(in.Agent)
		subjects := kept(was.ServiceAccounts.Subjects, func(subject string) bool { return all || slices.Contains(accounts, subject) })
		if len(subjects) > 0 {
			now.ServiceAccounts = &table.ServiceAccounts{Issuer: in.Issuer, Keys: in.Keys, Subjects: subjects}
		}
	}
	for i := range was.OIDC {
		issuer := was.OIDC[i]
		isTaken := now.ServiceAccounts != nil && issuer.Issuer == in.Issuer // the cluster's issuer is another one than it was
		if !isTaken && in.narrowIssuer(&issuer, all) && (hasAudience || len(issuer.Audiences) > 0) {
			now.OIDC = append(now.OIDC, issuer)
		}
	}
	switch {
	case now.ServiceAccounts != nil || len(now.OIDC) > 0:
		return now, true
	case in.keysProblem != nil:
		return table.Auth{}, false
	}
	return table.Auth{
		Type: table.AuthTokens, Audiences: []string{desired.GatewayEndpoint(in.Agent, in.ClusterDomain)},
		ServiceAccounts: &table.ServiceAccounts{Issuer: in.Issuer, Keys: in.Keys, Subjects: []string{}},
	}, true
}

// letsNobodyIn says whether a table refuses every token.
func letsNobodyIn(auth *table.Auth) bool {
	noAccount := auth.ServiceAccounts == nil || len(auth.ServiceAccounts.Subjects) == 0
	return auth.Type != table.AuthNone && noAccount && len(auth.OIDC) == 0
}

// narrowIssuer takes from an issuer that was written what the specification does not let in, and says whether anybody is left. Of a
// specification that lets in all, that is nothing but what the operator does not allow.
func (in *Input) narrowIssuer(o *table.OIDC, all bool) bool {
	o.AllowPrivate = o.AllowPrivate && in.AllowPrivate
	if all {
		before := len(o.Audiences)
		o.Audiences = kept(o.Audiences, func(audience string) bool { return !in.isOfAPIServer(audience) })
		return before == 0 || len(o.Audiences) > 0
	}
	isNamed := false
	for i := range in.Agent.Spec.Auth.OIDC {
		asked := &in.Agent.Spec.Auth.OIDC[i]
		if asked.Issuer != o.Issuer {
			continue
		}
		isNamed = true
		if !in.narrowAudiences(o, asked) || !narrowSubjects(o, asked.Subjects) || !narrowClaims(o, asked.Claims) {
			return false
		}
		if file, err := (files{}).bundle(asked.CABundle); err != nil || file != o.CAFile {
			o.CAFile = "" // whom both trust beside the system's authorities is nobody
		}
	}
	return isNamed
}

// narrowAudiences has an issuer accepted for those audiences alone that the specification accepts of it too.
func (in *Input) narrowAudiences(o *table.OIDC, asked *mcpv1alpha1.OIDCIssuer) bool {
	before := o.Audiences
	switch {
	case len(before) == 0 && len(asked.Audiences) == 0: // those of all issuers, which are narrowed by themselves
		return true
	case len(before) == 0:
		before = slices.Concat(in.Written.Auth.Audiences, []string{in.Written.Endpoint.PublicURL})
	}
	accepted := in.askedAudiences(asked)
	o.Audiences = kept(before, func(audience string) bool {
		return audience != "" && !in.isOfAPIServer(audience) && slices.Contains(accepted, audience)
	})
	return len(o.Audiences) > 0
}

// askedAudiences are what the specification accepts of an issuer, or of those that have none of their own. The endpoint is the agent's by
// either scheme: that another one is asked for takes it from nobody while the gateway serves by the one before.
func (in *Input) askedAudiences(issuer *mcpv1alpha1.OIDCIssuer) []string {
	if issuer != nil && len(issuer.Audiences) > 0 {
		return issuer.Audiences
	}
	_, address, _ := strings.Cut(desired.GatewayEndpoint(in.Agent, in.ClusterDomain), "://")
	audiences := append([]string{"http://" + address, "https://" + address}, in.Agent.Spec.Auth.Audiences...)
	if gateway := in.Agent.Spec.Gateway; gateway != nil && gateway.PublicURL != "" {
		audiences = append(audiences, gateway.PublicURL)
	}
	return audiences
}

// narrowSubjects lets in the subjects that are in both lists; an empty one lets in all.
func narrowSubjects(o *table.OIDC, asked []string) bool {
	switch {
	case len(asked) == 0:
		return true
	case len(o.Subjects) == 0:
		o.Subjects = distinct(asked)
		return true
	}
	o.Subjects = common(o.Subjects, asked)
	return len(o.Subjects) > 0
}

// narrowClaims demands the claims of both. One that must be equal to two values is not said in a table.
func narrowClaims(o *table.OIDC, asked map[string]mcpv1alpha1.ClaimValue) bool {
	if len(asked) == 0 {
		return true
	}
	claims := maps.Clone(o.Claims)
	if claims == nil {
		claims = map[string]string{}
	}
	for claim, value := range asked {
		if before, isDemanded := claims[claim]; isDemanded && before != string(value) {
			return false
		}
		claims[claim] = string(value)
	}
	o.Claims = claims
	return true
}

// narrowPolicy has a backend show what was shown before, less what its new policy holds back. Names stay as they were. That a server's
// annotations count can only hold back more, since nothing but readOnly and denyDestructive asks for them.
func narrowPolicy(b *table.Backend, was *table.Backend) {
	asked := b.Tools
	b.Prefix, b.Tools, b.TimeoutSeconds = was.Prefix, was.Tools, shorter(was.TimeoutSeconds, b.TimeoutSeconds)
	b.Tools.Allow = commonPatterns(was.Tools.Allow, asked.Allow)
	b.Tools.Deny = slices.Concat(was.Tools.Deny, uncovered(asked.Deny, was.Tools.Deny))
	b.Tools.ReadOnly = was.Tools.ReadOnly || asked.ReadOnly
	b.Tools.DenyDestructive = was.Tools.DenyDestructive || asked.DenyDestructive
	b.Trusted = b.Trusted && was.Trusted || b.Tools.ReadOnly || b.Tools.DenyDestructive
}

// shorter is the shorter of two limits of a call, of which 0 is the default.
func shorter(a, b int) int {
	const byDefault = 60
	if cmp.Or(a, byDefault) <= cmp.Or(b, byDefault) {
		return a
	}
	return b
}

// commonPatterns are patterns of what both lists let through, of which nil lets through all: those of each that one of the other covers. Of
// two that only overlap neither is left.
func commonPatterns(a, b []string) []string {
	switch {
	case a == nil:
		return slices.Clone(b)
	case b == nil:
		return slices.Clone(a)
	}
	both := append([]string{}, kept(a, func(pattern string) bool { return covers(b, pattern) })...)
	for _, pattern := range b {
		if covers(a, pattern) && !covers(both, pattern) {
			both = append(both, pattern)
		}
	}
	return both
}

// uncovered are the patterns that none of others covers.
func uncovered(patterns, others []string) []string {
	return kept(patterns, func(pattern string) bool { return !covers(others, pattern) })
}

// covers says whether one of the patterns matches everything that pattern does: a '*' of it is a character that '*' alone matches.
func covers(patterns []string, pattern string) bool {
	policy := table.ToolPolicy{Allow: patterns}
	isLetThrough, rule := policy.Match(pattern)
	return isLetThrough && rule != ""
}

// common are the values of a that b has too.
func common(a, b []string) []string {
	return kept(a, func(value string) bool { return slices.Contains(b, value) })
}

// kept are the values of which keep is true; nil if there is none.
func kept(values []string, keep func(string) bool) []string {
	var out []string
	for _, value := range values {
		if keep(value) {
			out = append(out, value)
		}
	}
	return out
}
