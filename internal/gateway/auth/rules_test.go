package auth

import (
	"net/http"
	"net/http/httptest"
	"testing"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestWhomARuleLetsIn(t *testing.T) {
	type (
		of  = []table.OIDC
		has = map[string]any
		all = map[string]string
	)
	list := func(items ...string) []string { return items }
	for name, c := range map[string]struct {
		rules  of
		claims has
		want   Reason
	}{
		"everybody of the issuer":            {rules: of{{}}},
		"a listed subject":                   {rules: of{{Subjects: list("bob", "alice")}}},
		"a subject not listed":               {rules: of{{Subjects: list("bob")}}, want: ReasonSubject},
		"a subject in another case":          {rules: of{{Subjects: list("Alice")}}, want: ReasonSubject},
		"an equal claim":                     {rules: of{demand("team", "red")}, claims: has{"team": "red"}},
		"a claim in a list":                  {rules: of{demand("team", "red")}, claims: has{"team": list("blue", "red")}},
		"a claim that is true":               {rules: of{demand("email_verified", "true")}, claims: has{"email_verified": true}},
		"a claim that is false":              {rules: of{demand("email_verified", "true")}, claims: has{"email_verified": false}, want: ReasonClaims},
		"no claim":                           {rules: of{demand("team", "red")}, want: ReasonClaims},
		"no claim, and emptiness demanded":   {rules: of{demand("team", "")}, want: ReasonClaims},
		"a part of a claim":                  {rules: of{demand("team", "red")}, claims: has{"team": "red blue"}, want: ReasonClaims},
		"a claim that is a number":           {rules: of{demand("team", "1")}, claims: has{"team": 1}, want: ReasonClaims},
		"a claim that is an object":          {rules: of{demand("team", "red")}, claims: has{"team": all{"red": "red"}}, want: ReasonClaims},
		"a list with other than strings":     {rules: of{demand("team", "red")}, claims: has{"team": []any{1, "red"}}, want: ReasonClaims},
		"a claim in another case":            {rules: of{demand("team", "red")}, claims: has{"Team": "red"}, want: ReasonClaims},
		"one of two claims":                  {rules: of{{Claims: all{"a": "1", "b": "2"}}}, claims: has{"a": "1"}, want: ReasonClaims},
		"both claims":                        {rules: of{{Claims: all{"a": "1", "b": "2"}}}, claims: has{"a": "1", "b": "2"}},
		"a listed subject without the claim": {rules: of{{Subjects: list("alice"), Claims: all{"a": "1"}}}, want: ReasonClaims},
		"a scope among others":               {rules: of{demand("scope", "mcp:call")}, claims: has{"scope": "openid mcp:call"}},
		"two scopes in another order":        {rules: of{demand("scope", "b a")}, claims: has{"scope": "a c b"}},
		"a scope that is a part of another":  {rules: of{demand("scope", "mcp")}, claims: has{"scope": "mcp:call"}, want: ReasonScope},
		"no scope":                           {rules: of{demand("scope", "mcp:call")}, want: ReasonScope},
		"a demand for no scope":              {rules: of{demand("scope", " ")}, claims: has{"scope": "a"}, want: ReasonScope},
		"no scope and not the claim":         {rules: of{{Claims: all{"scope": "x", "a": "1"}}}, want: ReasonClaims},
		"the second rule":                    {rules: of{{Subjects: list("bob")}, demand("team", "red")}, claims: has{"team": "red"}},
		"neither rule":                       {rules: of{{Subjects: list("bob")}, demand("team", "red")}, want: ReasonClaims},
		"an audience of its own":             {rules: of{{Audiences: list("mine")}}, claims: has{"aud": "mine"}},
		"its own replaces the others":        {rules: of{{Audiences: list("mine")}}, want: ReasonAudience},
		"another rule's audience":            {rules: of{{Audiences: list("own"), Subjects: list("bob")}, {}}, claims: has{"aud": "own"}, want: ReasonSubject},
		"nobody is told that a scope is due": {rules: of{{Subjects: list("bob"), Claims: all{"scope": "x"}}}, want: ReasonSubject},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, keySetOf(publicKey("k", p256Key(), nil)))
			base := p.oidc(t)
			for i := range c.rules {
				c.rules[i].Issuer, c.rules[i].CAFile = base.Issuer, base.CAFile
			}
			v := newVerifier(t, oidcAuth(c.rules...), nil)
			if got := reasonOf(t, v, p.token(c.claims)); got != c.want {
				t.Errorf("refused for %q, want %q", got, c.want)
			}
		})
	}
}

func demand(claim, value string) table.OIDC {
	return table.OIDC{Claims: map[string]string{claim: value}}
}

func TestAServiceAccountThatIsNotListedIsNotLetIn(t *testing.T) {
	a := clusterAuth()
	token := func(subject string) string {
		return sign(edKey(), jose.EdDSA, "ed", claimsOf(map[string]any{"sub": subject}), nil)
	}
	if got := reasonOf(t, newVerifier(t, a, nil), token("system:serviceaccount:team:other")); got != ReasonSubject {
		t.Errorf("refused for %q", got)
	}
	a.ServiceAccounts.Subjects = nil
	if got := reasonOf(t, newVerifier(t, a, nil), token(agent)); got != ReasonSubject {
		t.Errorf("without any subject listed: refused for %q", got)
	}
}

// A session is bound to Principal.Subject: two callers must never share one.
func TestTheSameNameAtTwoIssuersIsTwoPrincipals(t *testing.T) {
	keys := keySetOf(publicKey("k", p256Key(), nil))
	one, two := newProvider(t, keys), newProvider(t, keys)
	v := newVerifier(t, oidcAuth(one.oidc(t), two.oidc(t)), nil)
	subjects := map[string]bool{}
	for _, token := range []string{
		one.token(nil), two.token(nil), one.token(map[string]any{"sub": "bob"}),
		one.token(map[string]any{"sub": "x " + two.issuer() + " alice"}), one.token(map[string]any{"sub": anonymous.Subject}),
	} {
		p, err := v.Verify(request(token))
		if err != nil {
			t.Fatal(err)
		}
		subjects[p.Subject] = true
	}
	if len(subjects) != 5 || subjects[anonymous.Subject] {
		t.Errorf("not five principals: %v", subjects)
	}
}

// A key vouches for the issuer that published it and for no other.
func TestAnIssuerCannotSignForAnother(t *testing.T) {
	one, two := newProvider(t, keySetOf(publicKey("one", p256Key(), nil))), newProvider(t, keySetOf(publicKey("two", p384Key(), nil)))
	v := newVerifier(t, oidcAuth(one.oidc(t), two.oidc(t)), nil)
	forged := sign(p384Key(), jose.ES384, "two", claimsOf(map[string]any{"iss": one.issuer()}), nil)
	if got := reasonOf(t, v, forged); got != ReasonKey {
		t.Errorf("refused for %q", got)
	}
}

func TestATableThatLetsInOtherThanItSaysIsRefused(t *testing.T) {
	keys := keySetOf(publicKey("k", edKey(), nil))
	accounts := func(s table.ServiceAccounts) table.Auth {
		return table.Auth{Type: table.AuthTokens, ServiceAccounts: &s}
	}
	audience := []string{"https://x"}
	example := table.OIDC{Issuer: "https://i.example", Audiences: audience}
	withBundle, oddScope := example, example
	withBundle.CAFile = "x"
	oddScope.Claims = map[string]string{"scope": `a"b`}
	clusterTwice := clusterAuth()
	clusterTwice.OIDC = []table.OIDC{{Issuer: cluster}}
	secret := keySetOf(map[string]any{"kty": "oct", "k": "AAAA"})
	for name, c := range map[string]struct {
		auth   table.Auth
		public string
	}{
		"no type":                   {auth: table.Auth{}, public: endpoint},
		"unknown type":              {auth: table.Auth{Type: "Token"}, public: endpoint},
		"tokens of nobody":          {auth: table.Auth{Type: table.AuthTokens}, public: endpoint},
		"no audience":               {auth: oidcAuth(table.OIDC{Issuer: "https://i.example"})},
		"an empty audience":         {auth: oidcAuth(table.OIDC{Issuer: "https://i.example", Audiences: []string{""}})},
		"plain HTTP":                {auth: oidcAuth(table.OIDC{Issuer: "http://i.example", Audiences: audience})},
		"no URL":                    {auth: oidcAuth(table.OIDC{Issuer: "i.example", Audiences: audience})},
		"user in the URL":           {auth: oidcAuth(table.OIDC{Issuer: "https://u:p@i.example", Audiences: audience})},
		"query in the URL":          {auth: oidcAuth(table.OIDC{Issuer: "https://i.example/?x", Audiences: audience})},
		"space in the issuer":       {auth: oidcAuth(table.OIDC{Issuer: "https://i.example/a b", Audiences: audience})},
		"scope with a quote":        {auth: oidcAuth(oddScope)},
		"one issuer, two bundles":   {auth: oidcAuth(example, withBundle)},
		"the cluster is OIDC too":   {auth: clusterTwice, public: endpoint},
		"no cluster issuer":         {auth: accounts(table.ServiceAccounts{Keys: keys}), public: endpoint},
		"no cluster keys":           {auth: accounts(table.ServiceAccounts{Issuer: cluster}), public: endpoint},
		"only secret cluster keys":  {auth: accounts(table.ServiceAccounts{Issuer: cluster, Keys: secret}), public: endpoint},
		"public URL with a query":   {auth: clusterAuth(), public: endpoint + "?x"},
		"public URL of no host":     {auth: clusterAuth(), public: "https:///mcp"},
		"public URL that is a path": {auth: clusterAuth(), public: "/mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(t.Context(), c.auth, Options{PublicURL: c.public, Path: "/mcp"}, nil); err == nil {
				t.Error("accepted")
			} else {
				t.Log(err)
			}
		})
	}
}

func TestAPrivateKeyInASetIsNotUsed(t *testing.T) {
	private := must(jose.JSONWebKey{Key: edKey(), KeyID: "k"}.MarshalJSON())
	if _, err := parseKeys([]byte(`{"keys":[` + string(private) + `]}`)); err == nil {
		t.Error("accepted")
	}
}

func TestForbiddenIsNotUnauthorized(t *testing.T) {
	p := newProvider(t, keySetOf(publicKey("k", p256Key(), nil)))
	rule := p.oidc(t)
	rule.Subjects = []string{"bob"}
	v := newVerifier(t, oidcAuth(rule), nil)
	r := request(p.token(nil))
	_, err := v.Verify(r)
	w := httptest.NewRecorder()
	v.Challenge(w, err)
	if w.Code != http.StatusForbidden || w.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("answered with %d and %v", w.Code, w.Header())
	}
}
