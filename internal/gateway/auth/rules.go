package auth

import (
	"slices"
	"strconv"
	"strings"
)

// scopeClaim is a list of words in one string (RFC 8693, section 4.2).
const scopeClaim = "scope"

// rule is what a token of an issuer must say. A token that one of the issuer's rules fits is let in.
type rule struct {
	// audiences are those of which a token must have one.
	audiences []string
	// subjects are let in if isListed, else all are.
	subjects []string
	isListed bool
	// claims must be equal in the token, or contained where it has a list.
	claims map[string]string
}

// checkAudience refuses a token that was made for somebody else (RFC 8707, RFC 9068).
func (i *issuer) checkAudience(t *token) *Error {
	if slices.ContainsFunc(i.rules, func(r rule) bool { return r.fitsAudience(t) }) {
		return nil
	}
	return fail(ReasonAudience, "the token is not meant for this endpoint: its aud names others")
}

// authorize refuses the callers whom no rule lets in. The token is verified by then.
func (i *issuer) authorize(t *token) *Error {
	failure := forbidden(ReasonSubject, "this caller is not let in here")
	for _, r := range i.rules {
		if !r.fitsAudience(t) || r.isListed && !slices.Contains(r.subjects, t.subject) {
			continue
		}
		switch lacks := r.lacks(t); {
		case len(lacks) == 0:
			return nil
		case len(lacks) == 1 && lacks[0] == scopeClaim:
			failure = insufficientScope(strings.Join(r.scopes(), " "))
		case failure.Reason == ReasonSubject:
			failure = forbidden(ReasonClaims, "the token's claims do not let its bearer in here")
		}
	}
	return failure
}

func (r rule) fitsAudience(t *token) bool {
	return slices.ContainsFunc(t.audiences, func(audience string) bool { return slices.Contains(r.audiences, audience) })
}

// lacks names the claims that are not as they must be.
func (r rule) lacks(t *token) []string {
	var names []string
	for name, want := range r.claims {
		if !fitsClaim(name, t.claims[name], want) {
			names = append(names, name)
		}
	}
	return names
}

// scopes are what the rule demands in the scope claim.
func (r rule) scopes() []string { return strings.Fields(r.claims[scopeClaim]) }

// isScope says whether a word is a scope-token, which can stand in a quoted string as it is.
func isScope(word string) bool {
	return !strings.ContainsFunc(word, func(c rune) bool { return c < '!' || c > '~' || c == '"' || c == '\\' })
}

func fitsClaim(name string, claim any, want string) bool {
	if isTrue, isBool := claim.(bool); isBool {
		return strconv.FormatBool(isTrue) == want
	}
	has, isText := stringsOf(claim)
	if !isText {
		return false
	}
	if name != scopeClaim {
		return slices.Contains(has, want)
	}
	words := strings.Fields(strings.Join(has, " "))
	wanted := strings.Fields(want)
	return len(wanted) > 0 && !slices.ContainsFunc(wanted, func(word string) bool { return !slices.Contains(words, word) })
}
