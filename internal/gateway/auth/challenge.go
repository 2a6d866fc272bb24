package auth

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// Reason is why a request was refused, in a word that may be a metric's label.
type Reason string

const (
	// ReasonMissing is a request without a bearer token.
	ReasonMissing Reason = "missing"
	// ReasonRequest is a request with more than one Authorization header.
	ReasonRequest Reason = "request"
	// ReasonMalformed is what is no JWT, or one of a form, type or algorithm that is not accepted.
	ReasonMalformed Reason = "malformed"
	// ReasonIssuer is a token by somebody else.
	ReasonIssuer Reason = "issuer"
	// ReasonExpired is a token whose time is over.
	ReasonExpired Reason = "expired"
	// ReasonNotYetValid is a token whose time has not come.
	ReasonNotYetValid Reason = "not_yet_valid"
	// ReasonAudience is a token for another service.
	ReasonAudience Reason = "audience"
	// ReasonKey is a token signed with a key that its issuer does not name.
	ReasonKey Reason = "key"
	// ReasonSignature is a token that was forged or altered.
	ReasonSignature Reason = "signature"
	// ReasonSubject is a good token of a caller who is not let in.
	ReasonSubject Reason = "subject"
	// ReasonClaims is a good token that lacks a claim that is demanded.
	ReasonClaims Reason = "claims"
	// ReasonScope is a good token that lacks a scope that is demanded.
	ReasonScope Reason = "scope"
	// ReasonUnavailable is a token that cannot be judged, because its issuer's keys cannot be had.
	ReasonUnavailable Reason = "unavailable"
)

// The errors of RFC 6750, section 3.1: those that a challenge may name.
const (
	invalidRequest = "invalid_request"
	invalidToken   = "invalid_token"
	lacksScope     = "insufficient_scope"
)

// retryAfter is told to whom cannot be judged, in seconds.
const retryAfter = "5"

// Error is why a request was refused, and how it is answered. Nothing of the token is in it.
type Error struct {
	Reason Reason

	status int
	// code is the error in the body, and in the challenge if it is one of RFC 6750.
	code string
	text string
	// scope is what a caller should ask its issuer for.
	scope string
}

// Error is the text for logs and for the caller.
func (e *Error) Error() string { return e.text }

// fail is a token that is not good.
func fail(reason Reason, text string) *Error {
	return &Error{Reason: reason, status: http.StatusUnauthorized, code: invalidToken, text: text}
}

// missing has no error of RFC 6750: the caller just did not know that a token is needed.
func missing() *Error {
	return &Error{Reason: ReasonMissing, status: http.StatusUnauthorized, code: "unauthorized", text: "a bearer token is needed"}
}

func badRequest(text string) *Error {
	return &Error{Reason: ReasonRequest, status: http.StatusBadRequest, code: invalidRequest, text: text}
}

// forbidden is a good token of somebody who may not call. Another token would not help, so nothing asks for one.
func forbidden(reason Reason, text string) *Error {
	return &Error{Reason: reason, status: http.StatusForbidden, code: "access_denied", text: text}
}

func insufficientScope(scope string) *Error {
	return &Error{
		Reason: ReasonScope, status: http.StatusForbidden, code: lacksScope, scope: scope,
		text: "the token lacks a scope that is needed here",
	}
}

// unavailable says nothing about the token, so that its bearer keeps it and tries again.
func unavailable() *Error {
	return &Error{
		Reason: ReasonUnavailable, status: http.StatusServiceUnavailable, code: "temporarily_unavailable",
		text: "the keys of the token's issuer cannot be had at present: try again",
	}
}

// Challenge answers a request that Verify refused with err: 401, or 403 for a caller who is not let in, 400 for a request
// with two tokens, 503 while the token cannot be judged. Where another token would help there is a challenge (RFC 6750,
// section 3) that names where the metadata is (RFC 9728, section 5.1). An error that is not Verify's is answered like a bad
// token.
func (v *Verifier) Challenge(w http.ResponseWriter, err error) {
	var refusal *Error
	if !errors.As(err, &refusal) {
		refusal = fail(ReasonMalformed, "the token cannot be verified")
	}
	h := w.Header()
	if challenge := v.challenge(refusal); challenge != "" {
		h.Set("WWW-Authenticate", challenge)
	}
	if refusal.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", retryAfter)
	}
	h.Set("Cache-Control", "no-store")
	writeJSON(w, refusal.status, map[string]string{"error": refusal.code, "error_description": refusal.text})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // only for types that JSON cannot hold
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may be gone
}

// challenge is the value of WWW-Authenticate, empty where none is due. Nothing in it needs escaping: texts are ours, and URLs
// and scopes were checked.
func (v *Verifier) challenge(refusal *Error) string {
	var isNamed bool
	switch refusal.code {
	case invalidRequest, invalidToken, lacksScope:
		isNamed = true
	}
	if !isNamed && refusal.status != http.StatusUnauthorized {
		return ""
	}
	var attributes []string
	add := func(name, value string) {
		if value != "" {
			attributes = append(attributes, name+`="`+value+`"`)
		}
	}
	add("resource_metadata", v.metadataURL())
	if isNamed {
		add("error", refusal.code)
		add("error_description", refusal.text)
	}
	scope := refusal.scope
	if refusal.status == http.StatusUnauthorized {
		scope = strings.Join(v.scopes, " ")
	}
	add("scope", scope)
	return strings.TrimSpace("Bearer " + strings.Join(attributes, ", "))
}
