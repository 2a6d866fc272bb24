package auth

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestATokenOfAListedServiceAccountIsLetIn(t *testing.T) {
	v := newVerifier(t, clusterAuth(), nil)
	seconds := float64(time.Now().Unix())
	for name, token := range map[string]string{
		"RS256":                   sign(rsaKey(), jose.RS256, "rsa", claimsOf(nil), nil),
		"RS512":                   sign(rsaKey(), jose.RS512, "rsa", claimsOf(nil), nil),
		"PS256":                   sign(rsaKey(), jose.PS256, "rsa", claimsOf(nil), nil),
		"ES256":                   sign(p256Key(), jose.ES256, "p256", claimsOf(nil), nil),
		"ES384":                   sign(p384Key(), jose.ES384, "p384", claimsOf(nil), nil),
		"EdDSA":                   sign(edKey(), jose.EdDSA, "ed", claimsOf(nil), nil),
		"the only key of its alg": sign(edKey(), jose.EdDSA, "", claimsOf(nil), nil),
		"typ JWT":                 sign(edKey(), jose.EdDSA, "ed", claimsOf(nil), map[string]any{"typ": "JWT"}),
		"typ of RFC 9068":         sign(edKey(), jose.EdDSA, "ed", claimsOf(nil), map[string]any{"typ": "application/at+jwt"}),
		"one audience":            sign(edKey(), jose.EdDSA, "ed", claimsOf(map[string]any{"aud": endpoint}), nil),
		"one of several":          sign(edKey(), jose.EdDSA, "ed", claimsOf(map[string]any{"aud": []string{"x", endpoint}}), nil),
		"fractions of seconds":    sign(edKey(), jose.EdDSA, "ed", claimsOf(map[string]any{"exp": seconds + 60.5}), nil),
		"no nbf and iat":          sign(edKey(), jose.EdDSA, "ed", claimsOf(map[string]any{"nbf": nil, "iat": nil}), nil),
		"expired within the skew": sign(edKey(), jose.EdDSA, "ed", claimsOf(map[string]any{"exp": seconds - 20}), nil),
		"not yet, within it":      sign(edKey(), jose.EdDSA, "ed", claimsOf(map[string]any{"nbf": seconds + 20, "iat": seconds + 20}), nil),
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time from memory
				got, err := v.Verify(request(token))
				if err != nil {
					t.Fatal(err)
				}
				want := Principal{Subject: cluster + " " + agent, Issuer: cluster, Name: agent}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestABadTokenIsRefused(t *testing.T) {
	v := newVerifier(t, clusterAuth(), nil)
	signed := func(changes map[string]any) string { return sign(edKey(), jose.EdDSA, "ed", claimsOf(changes), nil) }
	headed := func(headers map[string]any) string { return sign(edKey(), jose.EdDSA, "ed", claimsOf(nil), headers) }
	ahead, ago := time.Now().Add(time.Minute).Unix(), time.Now().Add(-time.Minute).Unix()
	good := strings.Split(signed(nil), ".")
	altered := base64.RawURLEncoding.EncodeToString(must(json.Marshal(claimsOf(map[string]any{"sub": agent + "x"}))))
	for name, c := range map[string]struct {
		token string
		want  Reason
	}{
		"alg none":                      {raw(map[string]any{"alg": "none"}, claimsOf(nil), nil), ReasonMalformed},
		"alg None, signed":              {raw(map[string]any{"alg": "None", "kid": "rsa"}, claimsOf(nil), []byte("x")), ReasonMalformed},
		"no alg":                        {raw(map[string]any{"kid": "rsa"}, claimsOf(nil), []byte("x")), ReasonMalformed},
		"HS256 with the public key":     {swapped("rsa", publicPEM()), ReasonMalformed},
		"HS256 with the modulus":        {swapped("rsa", rsaKey().N.Bytes()), ReasonMalformed},
		"HS256 with the set's own key":  {swapped("symmetric", []byte("secret-secret-secret-secret-secret")), ReasonMalformed},
		"RS256 named, EdDSA key":        {renamed("RS256", "ed"), ReasonKey},
		"ES256 named, RSA key":          {sign(p256Key(), jose.ES256, "rsa", claimsOf(nil), nil), ReasonKey},
		"ES256 named, P-384 key":        {sign(p256Key(), jose.ES256, "p384", claimsOf(nil), nil), ReasonKey},
		"PS256 with a key for RS256":    {sign(otherRSAKey(), jose.PS256, "rsa-256-only", claimsOf(nil), nil), ReasonKey},
		"key for encryption":            {sign(otherRSAKey(), jose.RS256, "for-encryption", claimsOf(nil), nil), ReasonKey},
		"weak RSA key":                  {weaklySigned(), ReasonKey},
		"unknown kid":                   {sign(edKey(), jose.EdDSA, "ed2", claimsOf(nil), nil), ReasonKey},
		"kid is a path":                 {sign(edKey(), jose.EdDSA, "../../dev/null", claimsOf(nil), nil), ReasonKey},
		"no kid, several keys":          {sign(rsaKey(), jose.RS256, "", claimsOf(nil), nil), ReasonKey},
		"another's key":                 {sign(otherRSAKey(), jose.RS256, "rsa", claimsOf(nil), nil), ReasonSignature},
		"altered claims":                {good[0] + "." + altered + "." + good[2], ReasonSignature},
		"signature cut":                 {good[0] + "." + good[1] + "." + good[2][:40], ReasonSignature},
		"no signature":                  {good[0] + "." + good[1] + ".", ReasonSignature},
		"signature left out":            {good[0] + "." + good[1], ReasonMalformed},
		"five parts":                    {strings.Join(good, ".") + ".e.f", ReasonMalformed},
		"JSON serialisation":            {jsonSerialised(), ReasonMalformed},
		"two tokens":                    {strings.Join(good, ".") + ", " + strings.Join(good, "."), ReasonMalformed},
		"crit":                          {headed(map[string]any{"crit": []string{"exp"}, "exp": 1}), ReasonMalformed},
		"crit of something known":       {headed(map[string]any{"crit": []string{"b64"}, "b64": true}), ReasonMalformed},
		"b64":                           {headed(map[string]any{"b64": true}), ReasonMalformed},
		"typ of a logout token":         {headed(map[string]any{"typ": "logout+jwt"}), ReasonMalformed},
		"typ is no string":              {headed(map[string]any{"typ": 1}), ReasonMalformed},
		"another issuer":                {signed(map[string]any{"iss": "https://evil.example"}), ReasonIssuer},
		"issuer with a slash more":      {signed(map[string]any{"iss": cluster + "/"}), ReasonIssuer},
		"no issuer":                     {signed(map[string]any{"iss": nil}), ReasonMalformed},
		"another audience":              {signed(map[string]any{"aud": "https://kubernetes.default.svc"}), ReasonAudience},
		"audience with a slash more":    {signed(map[string]any{"aud": endpoint + "/"}), ReasonAudience},
		"audience is a prefix":          {signed(map[string]any{"aud": "https://tools.example.com"}), ReasonAudience},
		"no audience":                   {signed(map[string]any{"aud": nil}), ReasonMalformed},
		"empty list of audiences":       {signed(map[string]any{"aud": []string{}}), ReasonAudience},
		"audience in a list in a list":  {signed(map[string]any{"aud": []any{[]string{endpoint}}}), ReasonMalformed},
		"expired":                       {signed(map[string]any{"exp": ago}), ReasonExpired},
		"no expiry":                     {signed(map[string]any{"exp": nil}), ReasonMalformed},
		"expiry is text":                {signed(map[string]any{"exp": "9999999999"}), ReasonMalformed},
		"expiry beyond time":            {signed(map[string]any{"exp": 1e300}), ReasonMalformed},
		"expiry below zero":             {signed(map[string]any{"exp": -1}), ReasonMalformed},
		"expiry is null":                {signed(map[string]any{"exp": json.RawMessage("null")}), ReasonMalformed},
		"not before":                    {signed(map[string]any{"nbf": ahead}), ReasonNotYetValid},
		"not before is text":            {signed(map[string]any{"nbf": "1"}), ReasonMalformed},
		"issued in the future":          {signed(map[string]any{"iat": ahead}), ReasonNotYetValid},
		"no subject":                    {signed(map[string]any{"sub": nil}), ReasonMalformed},
		"empty subject":                 {signed(map[string]any{"sub": ""}), ReasonMalformed},
		"subject with a line feed":      {signed(map[string]any{"sub": agent + "\n"}), ReasonMalformed},
		"subject with half a surrogate": {signed(map[string]any{"sub": json.RawMessage(`"a\ud800"`)}), ReasonMalformed},
		"subject with an invisible":     {signed(map[string]any{"sub": agent + "\u200b"}), ReasonMalformed},
		"claims twice":                  {sign(edKey(), jose.EdDSA, "ed", []byte(`{"sub":"a","sub":"b"}`), nil), ReasonMalformed},
		"claims in another case":        {signed(map[string]any{"iss": nil, "ISS": cluster}), ReasonMalformed},
		"claims are no object":          {sign(edKey(), jose.EdDSA, "ed", []byte(`[]`), nil), ReasonMalformed},
		"claims are null":               {sign(edKey(), jose.EdDSA, "ed", []byte(`null`), nil), ReasonMalformed},
		"claims are no UTF-8":           {sign(edKey(), jose.EdDSA, "ed", notUTF8(), nil), ReasonMalformed},
		"more after the claims":         {sign(edKey(), jose.EdDSA, "ed", []byte(`{} {}`), nil), ReasonMalformed},
		"deep claims":                   {sign(edKey(), jose.EdDSA, "ed", []byte(strings.Repeat("[", 11000)), nil), ReasonMalformed},
		"huge":                          {signed(map[string]any{"x": strings.Repeat("x", 17<<10)}), ReasonMalformed},
		"garbage":                       {"garbage", ReasonMalformed},
		"dots":                          {"..", ReasonMalformed},
		"empty":                         {" ", ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reasonOf(t, v, c.token); got != c.want {
				t.Errorf("refused for %q, want %q", got, c.want)
			}
			w := httptest.NewRecorder()
			_, err := v.Verify(request(c.token))
			v.Challenge(w, err)
			if w.Code != http.StatusUnauthorized || !strings.Contains(w.Header().Get("WWW-Authenticate"), `error="invalid_token"`) {
				t.Errorf("answered with %d and %v", w.Code, w.Header())
			}
		})
	}
}

// The keys that a token brings along or points to are the forger's own.
func TestKeysThatATokenNamesAreNotUsed(t *testing.T) {
	dialled := false
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		dialled = true
		_, _ = w.Write(keySetOf(publicKey("evil", otherRSAKey(), nil)))
	}))
	defer evil.Close()
	v := newVerifier(t, clusterAuth(), nil)
	jwk := jose.JSONWebKey{Key: otherRSAKey().Public(), KeyID: "rsa"}
	for name, headers := range map[string]map[string]any{
		"jku": {"jku": evil.URL},
		"x5u": {"x5u": evil.URL},
		"jwk": {"jwk": jwk},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reasonOf(t, v, sign(otherRSAKey(), jose.RS256, "evil", claimsOf(nil), headers)); got != ReasonKey {
				t.Errorf("with its own kid: refused for %q", got)
			}
			if got := reasonOf(t, v, sign(otherRSAKey(), jose.RS256, "rsa", claimsOf(nil), headers)); got != ReasonSignature {
				t.Errorf("with a kid of the issuer: refused for %q", got)
			}
			if got := reasonOf(t, v, sign(rsaKey(), jose.RS256, "rsa", claimsOf(nil), headers)); got != "" {
				t.Errorf("signed by the issuer: refused for %q", got)
			}
		})
	}
	if dialled {
		t.Error("a URL in a token was dialled")
	}
}

func TestWhereATokenMayBe(t *testing.T) {
	v := newVerifier(t, clusterAuth(), nil)
	token := sign(edKey(), jose.EdDSA, "ed", claimsOf(nil), nil)
	for name, c := range map[string]struct {
		headers []string
		query   string
		want    Reason
	}{
		"in the header":           {headers: []string{"Bearer " + token}},
		"scheme in another case":  {headers: []string{"bEARER " + token}},
		"several spaces":          {headers: []string{"Bearer   " + token}},
		"nowhere":                 {want: ReasonMissing},
		"in the query":            {query: "?access_token=" + token, want: ReasonMissing},
		"with another scheme":     {headers: []string{"Basic " + token}, want: ReasonMissing},
		"without a scheme":        {headers: []string{token}, want: ReasonMissing},
		"in two headers":          {headers: []string{"Bearer " + token, "Bearer " + token}, want: ReasonRequest},
		"beside another scheme":   {headers: []string{"Basic eDp5", "Bearer " + token}, want: ReasonRequest},
		"the scheme and no token": {headers: []string{"Bearer"}, want: ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, endpoint+c.query, http.NoBody)
			r.Header["Authorization"] = c.headers
			_, err := v.Verify(r)
			var refusal *Error
			if errors.As(err, &refusal) != (c.want != "") || refusal != nil && refusal.Reason != c.want {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Every way from a bad token to an anonymous caller has been somebody's advisory.
func TestABadTokenIsNeverAnonymous(t *testing.T) {
	v := newVerifier(t, clusterAuth(), nil)
	for _, header := range []string{"", "Bearer", "Bearer ", "Bearer null", "Bearer undefined", "Basic eDp5", "Bearer " + anonymous.Subject, "x"} {
		r := request("")
		r.Header["Authorization"] = []string{header}
		if p, err := v.Verify(r); err == nil || p != (Principal{}) {
			t.Errorf("Authorization %q gave %+v, %v", header, p, err)
		}
	}
}

func TestEverybodyIsAnonymousWhereTheTableSaysSo(t *testing.T) {
	v := newVerifier(t, table.Auth{Type: table.AuthNone}, nil)
	for _, token := range []string{"", "garbage", sign(edKey(), jose.EdDSA, "ed", claimsOf(nil), nil)} {
		p, err := v.Verify(request(token))
		if err != nil || p != anonymous {
			t.Errorf("%+v, %v", p, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	v := newVerifier(f, clusterAuth(), nil)
	good := sign(edKey(), jose.EdDSA, "ed", claimsOf(nil), nil)
	f.Add(good)
	f.Add(swapped("rsa", []byte("x")))
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		// The last letter of a signature has bits that do not count.
		if strings.HasPrefix(token, good[:len(good)-1]) {
			return
		}
		if reasonOf(t, v, token) == "" {
			t.Errorf("%q was let in", token)
		}
	})
}

// swapped is signed with a secret that everybody can know.
func swapped(keyID string, secret []byte) string {
	token := raw(map[string]any{"alg": "HS256", "kid": keyID}, claimsOf(nil), nil)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.TrimSuffix(token, ".")))
	return token + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// renamed is signed well, by an algorithm that is not the one it names.
func renamed(algorithm, keyID string) string {
	token := strings.TrimSuffix(raw(map[string]any{"alg": algorithm, "kid": keyID}, claimsOf(nil), nil), ".")
	return token + "." + base64.RawURLEncoding.EncodeToString(must(edKey().Sign(nil, []byte(token), crypto.Hash(0))))
}

func weaklySigned() string {
	token := strings.TrimSuffix(raw(map[string]any{"alg": "RS256", "kid": "weak"}, claimsOf(nil), nil), ".")
	digest := sha256.Sum256([]byte(token))
	return token + "." + base64.RawURLEncoding.EncodeToString(must(rsa.SignPKCS1v15(nil, weakRSAKey(), crypto.SHA256, digest[:])))
}

func jsonSerialised() string {
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: edKey()}, nil))
	return must(signer.Sign(must(json.Marshal(claimsOf(nil))))).FullSerialize()
}

// notUTF8 is a claim set that is good but for one byte.
func notUTF8() []byte {
	return bytes.Replace(must(json.Marshal(claimsOf(map[string]any{"team": "?"}))), []byte("?"), []byte{0xff}, 1)
}

func publicPEM() []byte {
	der := must(x509.MarshalPKIXPublicKey(rsaKey().Public()))
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}
