package auth

import (
	"math"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	jose "github.com/go-jose/go-jose/v4"
	// The library's own JSON: exact keys, and none twice.
	"github.com/go-jose/go-jose/v4/json"
)

const (
	// maxToken is the longest token looked at, in bytes.
	maxToken = 16 << 10
	// maxSubject is the longest sub, in bytes.
	maxSubject = 1024
)

// algorithms are all that are accepted from anybody; each key narrows them down to what it can do.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// bearer is the token of a request, in the one place where it may be (RFC 6750, section 2.1).
func bearer(h http.Header) (string, *Error) {
	values := h["Authorization"]
	if len(values) == 0 {
		return "", missing()
	}
	if len(values) > 1 {
		return "", badRequest("there is more than one Authorization header")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", missing()
	}
	token = strings.Trim(token, " ")
	if len(token) > maxToken {
		return "", fail(ReasonMalformed, "the token is longer than 16 KiB")
	}
	return token, nil
}

// token is a parsed JWT that nobody has verified yet.
type token struct {
	jws             *jose.JSONWebSignature
	algorithm       jose.SignatureAlgorithm
	keyID           string
	issuer, subject string
	audiences       []string
	expiry          time.Time
	// notBefore and issuedAt are zero if absent.
	notBefore, issuedAt time.Time
	claims              map[string]any
}

// parseToken takes a token apart and refuses what no issuer can make good: another form, another algorithm, claims of the
// wrong type.
func parseToken(raw string) (*token, *Error) {
	jws, err := jose.ParseSignedCompact(raw, algorithms)
	if err != nil {
		return nil, fail(ReasonMalformed, "the token is no JWT with an asymmetric signature")
	}
	header := jws.Signatures[0].Protected
	t := &token{jws: jws, algorithm: jose.SignatureAlgorithm(header.Algorithm), keyID: header.KeyID}
	if failure := checkHeader(header); failure != nil {
		return nil, failure
	}
	payload := jws.UnsafePayloadWithoutVerification()
	if !utf8.Valid(payload) {
		return nil, fail(ReasonMalformed, "the token's claims are not UTF-8")
	}
	if err := json.Unmarshal(payload, &t.claims); err != nil {
		return nil, fail(ReasonMalformed, "the token's claims are no JSON object")
	}
	if !t.readClaims() {
		return nil, fail(ReasonMalformed, "the token lacks one of iss, sub, aud and exp, or one of its claims has the wrong type")
	}
	return t, nil
}

// checkHeader refuses extensions that would change what the signature covers, and tokens made for another use (RFC 8725,
// section 3.11). The headers jku, x5u, x5c and jwk are not looked at: keys come from the issuer alone.
func checkHeader(header jose.Header) *Error {
	for _, name := range []jose.HeaderKey{"crit", "b64"} {
		if _, isThere := header.ExtraHeaders[name]; isThere {
			return fail(ReasonMalformed, "the token's header demands an extension")
		}
	}
	kind, isThere := header.ExtraHeaders[jose.HeaderType]
	if !isThere {
		return nil
	}
	name, _ := kind.(string)
	switch strings.TrimPrefix(strings.ToLower(name), "application/") {
	case "jwt", "at+jwt":
		return nil
	}
	return fail(ReasonMalformed, "the token's type is neither JWT nor at+jwt")
}

// readClaims fills in the registered claims and says whether they are there and of the right type.
func (t *token) readClaims() bool {
	var isOK [4]bool
	t.issuer, isOK[0] = t.claims["iss"].(string)
	t.subject, isOK[1] = t.claims["sub"].(string)
	t.audiences, isOK[2] = stringsOf(t.claims["aud"])
	t.expiry, isOK[3] = date(t.claims["exp"])
	if isOK != [4]bool{true, true, true, true} || !isSubject(t.subject) {
		return false
	}
	for name, at := range map[string]*time.Time{"nbf": &t.notBefore, "iat": &t.issuedAt} {
		if value, isThere := t.claims[name]; isThere {
			var isDate bool
			if *at, isDate = date(value); !isDate {
				return false
			}
		}
	}
	return true
}

// checkTimes holds a token to its exp, nbf and iat (RFC 7519, section 4.1).
func (t *token) checkTimes(now time.Time, skew time.Duration) *Error {
	if !now.Before(t.expiry.Add(skew)) {
		return fail(ReasonExpired, "the token has expired")
	}
	if latest := now.Add(skew); t.notBefore.After(latest) || t.issuedAt.After(latest) {
		return fail(ReasonNotYetValid, "the token is not valid yet")
	}
	return nil
}

// date is a NumericDate up to the year 9999.
func date(claim any) (time.Time, bool) {
	const last = 253402300799
	seconds, isNumber := claim.(float64)
	if !isNumber || seconds < 0 || seconds > last {
		return time.Time{}, false
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*float64(time.Second))), true
}

// stringsOf is a claim that may be one string or a list of them.
func stringsOf(claim any) ([]string, bool) {
	switch claim := claim.(type) {
	case string:
		return []string{claim}, true
	case []any:
		list := make([]string, len(claim))
		for i, item := range claim {
			var isString bool
			if list[i], isString = item.(string); !isString {
				return nil, false
			}
		}
		return list, true
	}
	return nil, false
}

// isSubject refuses names that are not the same to everybody who reads them. The replacement character stands for what was no character,
// so that two names with it may be one to us and two to the issuer.
func isSubject(name string) bool {
	return name != "" && len(name) <= maxSubject &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || r == utf8.RuneError })
}

func isSpaceOrControl(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
