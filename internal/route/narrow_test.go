package route

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

const ownAudience = "http://research-gateway.team.svc.cluster.local:8080/mcp"

// refusedAudience has an agent refused.
const refusedAudience = "https://kubernetes.default.svc"

// wasAndIs returns the input of an agent that was served with the one specification of its callers and is edited to the other.
func wasAndIs(t *testing.T, was, is mcpv1alpha1.AgentAuth) Input {
	t.Helper()
	in := servedInput(t)
	in.Agent.Spec.Auth = was
	out, err := Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Written = Read(out.JSON, out.Table.Revision)
	in.Agent.Spec.Auth = is
	return in
}

// withdrawn is what Withdraw leaves. It leaves the same a second time: at rest nothing is written.
func withdrawn(t *testing.T, in Input) *table.Table {
	t.Helper()
	before := encode(in.Written)
	out, err := Withdraw(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(encode(in.Written))); diff != "" {
		t.Errorf("what was written was changed in memory (-before +after)\n%s", diff)
	}
	in.Written = Read(out.JSON, out.Table.Revision)
	again, err := Withdraw(in)
	if err != nil || again.Table.Revision != out.Table.Revision {
		t.Errorf("a second time another table is made, error %v (-first +second)\n%s", err, cmp.Diff(out.Table, again.Table))
	}
	return out.Table
}

func tokens(audiences []string, accounts ...string) mcpv1alpha1.AgentAuth {
	auth := mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens, Audiences: audiences}
	for _, name := range accounts {
		auth.ServiceAccounts = append(auth.ServiceAccounts, mcpv1alpha1.ObjectName{Name: name})
	}
	return auth
}

func withIssuers(auth mcpv1alpha1.AgentAuth, issuers ...mcpv1alpha1.OIDCIssuer) mcpv1alpha1.AgentAuth {
	auth.OIDC = issuers
	return auth
}

func TestWhoMayCallARefusedAgentIsWhoBothSpecificationsLetIn(t *testing.T) {
	t.Parallel()
	const login = "https://login.example.com"
	none := mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthNone}
	bundle := func(name string) *mcpv1alpha1.CABundleSource {
		return &mcpv1alpha1.CABundleSource{ConfigMapRef: &mcpv1alpha1.KeyRef{ObjectName: mcpv1alpha1.ObjectName{Name: name}, Key: "ca.crt"}}
	}
	subjects := func(names ...string) *table.ServiceAccounts {
		accounts := &table.ServiceAccounts{Issuer: "https://kubernetes.default.svc", Subjects: []string{}}
		for _, name := range names {
			accounts.Subjects = append(accounts.Subjects, "system:serviceaccount:team:"+name)
		}
		return accounts
	}
	nobody := table.Auth{Type: table.AuthTokens, Audiences: []string{ownAudience}, ServiceAccounts: subjects()}
	claims := func(value mcpv1alpha1.ClaimValue) map[string]mcpv1alpha1.ClaimValue {
		return map[string]mcpv1alpha1.ClaimValue{"groups": value}
	}
	// one is an issuer beside the account caller, before and after, and what becomes of it; nil if nothing.
	type one struct {
		was, is mcpv1alpha1.OIDCIssuer
		want    *table.OIDC
	}
	cases := map[string]struct {
		was, is mcpv1alpha1.AgentAuth
		want    table.Auth
	}{
		"everybody, and now tokens are asked for": {none, tokens(nil, "caller"), nobody},
		"tokens, and now everybody is let in": {
			tokens(nil, "caller"), none, table.Auth{Type: table.AuthTokens, Audiences: []string{ownAudience}, ServiceAccounts: subjects("caller")},
		},
		"an account is removed, and another one added": {
			tokens(nil, "caller", "other"), tokens(nil, "caller", "third"),
			table.Auth{Type: table.AuthTokens, Audiences: []string{ownAudience}, ServiceAccounts: subjects("caller")},
		},
		"all accounts are replaced": {tokens(nil, "caller"), tokens(nil, "other"), nobody},
		"an audience is removed": {
			tokens([]string{"a", "b"}, "caller"), tokens([]string{"b", "c"}, "caller"),
			table.Auth{Type: table.AuthTokens, Audiences: []string{ownAudience, "b"}, ServiceAccounts: subjects("caller")},
		},
		"accounts become issuers": {tokens(nil, "caller"), withIssuers(tokens(nil), mcpv1alpha1.OIDCIssuer{Issuer: login}), nobody},
		"an issuer becomes accounts": {
			withIssuers(tokens(nil), mcpv1alpha1.OIDCIssuer{Issuer: login}), tokens(nil, "caller"), nobody,
		},
	}
	for name, tc := range map[string]one{
		"an issuer stays as it is": {
			mcpv1alpha1.OIDCIssuer{Subjects: []string{"a"}, Claims: claims("x"), CABundle: bundle("a")},
			mcpv1alpha1.OIDCIssuer{Subjects: []string{"a"}, Claims: claims("x"), CABundle: bundle("a")},
			&table.OIDC{Subjects: []string{"a"}, Claims: map[string]string{"groups": "x"}, CAFile: "/etc/mcp-gateway/configmaps/a/ca.crt"},
		},
		"an issuer is held to subjects": {mcpv1alpha1.OIDCIssuer{}, mcpv1alpha1.OIDCIssuer{Subjects: []string{"a"}}, &table.OIDC{Subjects: []string{"a"}}},
		"an issuer is held to subjects no more": {
			mcpv1alpha1.OIDCIssuer{Subjects: []string{"a"}}, mcpv1alpha1.OIDCIssuer{}, &table.OIDC{Subjects: []string{"a"}},
		},
		"an issuer's subject is removed": {
			mcpv1alpha1.OIDCIssuer{Subjects: []string{"a", "b"}}, mcpv1alpha1.OIDCIssuer{Subjects: []string{"b", "c"}}, &table.OIDC{Subjects: []string{"b"}},
		},
		"an issuer's subjects are replaced": {mcpv1alpha1.OIDCIssuer{Subjects: []string{"a"}}, mcpv1alpha1.OIDCIssuer{Subjects: []string{"b"}}, nil},
		"an issuer is held to a claim": {
			mcpv1alpha1.OIDCIssuer{Claims: claims("x")},
			mcpv1alpha1.OIDCIssuer{Claims: map[string]mcpv1alpha1.ClaimValue{"team": "y"}},
			&table.OIDC{Claims: map[string]string{"groups": "x", "team": "y"}},
		},
		"an issuer's claim is to have another value": {mcpv1alpha1.OIDCIssuer{Claims: claims("x")}, mcpv1alpha1.OIDCIssuer{Claims: claims("y")}, nil},
		"an issuer is held to an audience": {
			mcpv1alpha1.OIDCIssuer{}, mcpv1alpha1.OIDCIssuer{Audiences: []string{ownAudience, "a"}}, &table.OIDC{Audiences: []string{ownAudience}},
		},
		"an issuer's audience is another one":    {mcpv1alpha1.OIDCIssuer{}, mcpv1alpha1.OIDCIssuer{Audiences: []string{"a"}}, nil},
		"an issuer's audiences are those of all": {mcpv1alpha1.OIDCIssuer{Audiences: []string{"a"}}, mcpv1alpha1.OIDCIssuer{}, nil},
		"an issuer's authority is another one": {
			mcpv1alpha1.OIDCIssuer{CABundle: bundle("a")}, mcpv1alpha1.OIDCIssuer{CABundle: bundle("b")}, &table.OIDC{},
		},
		"an issuer's authority is trusted no more":  {mcpv1alpha1.OIDCIssuer{CABundle: bundle("a")}, mcpv1alpha1.OIDCIssuer{}, &table.OIDC{}},
		"an authority of an issuer comes to others": {mcpv1alpha1.OIDCIssuer{}, mcpv1alpha1.OIDCIssuer{CABundle: bundle("a")}, &table.OIDC{}},
	} {
		tc.was.Issuer, tc.is.Issuer = login, login
		want := table.Auth{Type: table.AuthTokens, Audiences: []string{ownAudience}, ServiceAccounts: subjects("caller")}
		if tc.want != nil {
			tc.want.Issuer = login
			want.OIDC = []table.OIDC{*tc.want}
		}
		cases[name] = struct {
			was, is mcpv1alpha1.AgentAuth
			want    table.Auth
		}{withIssuers(tokens(nil, "caller"), tc.was), withIssuers(tokens(nil, "caller"), tc.is), want}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := wasAndIs(t, tc.was, tc.is)
			if tc.is.Type == mcpv1alpha1.AgentAuthTokens {
				in.Agent.Spec.Auth.Audiences = append(slices.Clone(tc.is.Audiences), refusedAudience)
			} else {
				in.Agent.Spec.ServerRef = &mcpv1alpha1.ObjectName{Name: "web"} // beside servers
			}
			if _, err := Compile(in); err == nil {
				t.Fatal("the agent is not refused")
			}
			got := withdrawn(t, in)
			if got.Auth.ServiceAccounts != nil {
				got.Auth.ServiceAccounts.Keys = nil
			}
			if diff := cmp.Diff(tc.want, got.Auth); diff != "" {
				t.Errorf("who may call (-want +got)\n%s", diff)
			}
			if out, err := Withdraw(in); err != nil || out.LetsNobodyIn != cmp.Equal(tc.want, nobody) {
				t.Errorf("said to let nobody in: %t, error %v", out.LetsNobodyIn, err)
			}
			if len(got.Backends) != 3 {
				t.Errorf("%d backends are served", len(got.Backends))
			}
		})
	}
}

// TestNothingIsServedWhileNoTableCanSayThatNobodyMayCall: that needs the keys of the cluster.
func TestNothingIsServedWhileNoTableCanSayThatNobodyMayCall(t *testing.T) {
	t.Parallel()
	for name, was := range map[string]mcpv1alpha1.AgentAuth{
		"everybody was let in": {Type: mcpv1alpha1.AgentAuthNone},
		"an issuer was":        withIssuers(tokens(nil), mcpv1alpha1.OIDCIssuer{Issuer: "https://login.example.com"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := wasAndIs(t, was, tokens(nil, "caller"))
			keys, issuer := in.Keys, in.Issuer
			in.Keys, in.Issuer = nil, ""
			if _, err := Compile(in); err == nil {
				t.Fatal("the agent is not held up")
			}
			if got := withdrawn(t, in); len(got.Backends) > 0 {
				t.Errorf("%d backends are served", len(got.Backends))
			}
			out, err := Withdraw(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, verdict := range out.Verdicts {
				if verdict.Verdict != mcpv1alpha1.VerdictPending || verdict.Reason != shut {
					t.Errorf("%s is told as %s: %s", verdict.Source, verdict.Verdict, verdict.Reason)
				}
			}
			if len(out.Verdicts) != 3 || !out.LetsNobodyIn {
				t.Errorf("told of %d grants; said to let nobody in: %t", len(out.Verdicts), out.LetsNobodyIn)
			}
			in.Written, in.Keys, in.Issuer = Read(out.JSON, out.Table.Revision), keys, issuer
			if out, err = Compile(in); err != nil || len(out.Table.Backends) != 3 {
				t.Errorf("once the keys are known: %v, %+v", err, out.Verdicts)
			}
		})
	}
}

// TestWhatNoTableTakesOfAnEditIsServedToNobody: the schema refuses it, unless the object is older than that.
func TestWhatNoTableTakesOfAnEditIsServedToNobody(t *testing.T) {
	t.Parallel()
	login := mcpv1alpha1.OIDCIssuer{Issuer: "https://login.example.com"}
	edited := login
	edited.Subjects = []string{""}
	in := wasAndIs(t, withIssuers(tokens(nil), login), withIssuers(tokens(nil), edited))
	if _, err := Compile(in); err == nil {
		t.Fatal("the agent is not refused")
	}
	if got := withdrawn(t, in); len(got.Backends) > 0 {
		t.Errorf("%d backends are served", len(got.Backends))
	}
}

func TestTheEndpointOfARefusedAgentIsServedToWhomBothSpecificationsServe(t *testing.T) {
	t.Parallel()
	in := servedInput(t)
	in.Agent.Spec.Gateway = &mcpv1alpha1.AgentGateway{
		PublicURL: "https://mcp.example.com/a", AllowedHosts: []string{"a", "b"}, AllowedOrigins: []string{"https://a", "https://b"}, LenientHeaders: true,
	}
	out, err := Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	own := serviceHosts(in.Agent, "cluster.local")
	own = append(own, "localhost")
	for name, tc := range map[string]struct {
		gateway *mcpv1alpha1.AgentGateway
		hosts   []string // that were written; nil stands for those that are
		want    table.Endpoint
	}{
		"nothing is served any more": {nil, nil, table.Endpoint{AllowedHosts: own}},
		"something else is": {
			&mcpv1alpha1.AgentGateway{
				PublicURL: "https://mcp.example.com/b", AllowedHosts: []string{"b", "c"}, AllowedOrigins: []string{"https://b", "https://c"},
				LenientHeaders: true,
			}, nil,
			table.Endpoint{
				AllowedHosts: append(slices.Clone(own), "mcp.example.com", "b"), AllowedOrigins: []string{"https://b"}, LenientHeaders: true,
			},
		},
		"the same is": {
			in.Agent.Spec.Gateway, nil, out.Table.Endpoint,
		},
		"an operator that named no hosts wrote the table": {nil, []string{}, table.Endpoint{AllowedHosts: own}},
		"hosts of another domain were written":            {nil, []string{"research-gateway.team.svc.example"}, table.Endpoint{AllowedHosts: own}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := in
			in.Agent = in.Agent.DeepCopy()
			in.Agent.Spec.Gateway, in.Agent.Spec.Auth.Audiences = tc.gateway, []string{refusedAudience}
			written := *out.Table
			if tc.hosts != nil {
				written.Endpoint.AllowedHosts = tc.hosts
			}
			in.Written = &written
			got := withdrawn(t, in)
			tc.want.Name, tc.want.Path = "research", "/mcp"
			if diff := cmp.Diff(tc.want, got.Endpoint); diff != "" {
				t.Errorf("the endpoint (-want +got)\n%s", diff)
			}
		})
	}
}
