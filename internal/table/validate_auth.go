package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

func (a *Auth) validate(p *problems, hasPublicURL bool) {
	switch a.Type {
	case AuthNone:
		unwanted(p, "auth", "with type None, which lets everybody call",
			field{"audiences", len(a.Audiences) > 0}, field{"serviceAccounts", a.ServiceAccounts != nil}, field{"oidc", len(a.OIDC) > 0})
		return
	case AuthTokens:
	case "":
		p.add("auth.type", "must be given: Tokens, or None to let everybody call")
		return
	default:
		p.add("auth.type", "%s is not known: Tokens or None", clip(string(a.Type)))
		return
	}
	list(p, "auth.audiences", a.Audiences, checkText)
	if a.ServiceAccounts == nil && len(a.OIDC) == 0 {
		p.add("auth", "type Tokens needs serviceAccounts or oidc, or nobody could call")
	}
	hasAudience := hasPublicURL || len(a.Audiences) > 0
	owner := map[string]string{}
	if s := a.ServiceAccounts; s != nil {
		s.validate(p, hasAudience)
		owner[s.Issuer] = "auth.serviceAccounts"
	}
	if len(a.OIDC) > maxListItems {
		p.add("auth.oidc", "has %d entries, the limit is %d", len(a.OIDC), maxListItems)
		return
	}
	for i := range a.OIDC {
		o, path := &a.OIDC[i], index("auth.oidc", i)
		o.validate(p, path, hasAudience)
		// Of two entries for one issuer the looser would win.
		if other, taken := owner[o.Issuer]; taken {
			p.add(path+".issuer", "is the issuer of %s too", other)
			continue
		}
		owner[o.Issuer] = path
	}
}

const noAudience = "has no audience: give auth.audiences or endpoint.publicURL, or tokens meant for others would have to be taken"

func (s *ServiceAccounts) validate(p *problems, hasAudience bool) {
	const path = "auth.serviceAccounts"
	if err := checkText(s.Issuer); err != nil {
		p.add(path+".issuer", "%v", err)
	}
	if !hasAudience {
		p.add(path, noAudience)
	}
	if err := checkKeys(s.Keys); err != nil {
		p.add(path+".keys", "%v", err)
	}
	list(p, path+".subjects", s.Subjects, checkServiceAccount)
}

// checkKeys refuses what is no set of public keys. Whether each key can be used is for who uses it.
func checkKeys(keys json.RawMessage) error {
	if len(keys) == 0 {
		return errors.New("must be the cluster's JSON Web Key Set")
	}
	var set struct {
		Keys []map[string]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(keys, &set); err != nil || len(set.Keys) == 0 {
		return errors.New(`must be a JSON Web Key Set, {"keys":[…]}, with at least one key`)
	}
	for i, key := range set.Keys {
		var kind string
		if err := json.Unmarshal(key["kty"], &kind); err != nil || !slices.Contains([]string{"RSA", "EC", "OKP"}, kind) {
			return fmt.Errorf("key %d must be asymmetric: kty RSA, EC or OKP", i)
		}
		for _, secret := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
			if key[secret] != nil {
				return fmt.Errorf("key %d is a private key (it has %q); the table holds public keys only", i, secret)
			}
		}
	}
	return nil
}

func checkServiceAccount(s string) error {
	account, ok := strings.CutPrefix(s, "system:serviceaccount:")
	namespace, name, two := strings.Cut(account, ":")
	const word = "abcdefghijklmnopqrstuvwxyz" + digits + "-"
	if !ok || !two || !consists(namespace, 1, 63, word) || !consists(name, 1, 253, word+".") {
		return fmt.Errorf("%s must be system:serviceaccount:<namespace>:<name>", clip(s))
	}
	return nil
}

func (o *OIDC) validate(p *problems, path string, hasAudience bool) {
	if err := checkIssuer(o.Issuer); err != nil {
		p.add(path+".issuer", "%v", err)
	}
	if !hasAudience && len(o.Audiences) == 0 {
		p.add(path, noAudience)
	}
	list(p, path+".audiences", o.Audiences, checkText)
	list(p, path+".subjects", o.Subjects, func(s string) error {
		if s == "" || len(s) > maxText || !isPrintable(s, "") {
			return fmt.Errorf("must be 1 to %d bytes of printable text", maxText)
		}
		return nil
	})
	if len(o.Claims) > maxListItems {
		p.add(path+".claims", "has %d entries, the limit is %d", len(o.Claims), maxListItems)
	}
	for _, claim := range sorted(o.Claims) {
		value := o.Claims[claim]
		if claim == "" || len(claim) > maxText || !isPrintable(claim, "") || value == "" || len(value) > maxText || !isPrintable(value, "") {
			p.add(join(path+".claims", claim), "name and value must be 1 to %d bytes of printable text", maxText)
		}
	}
	if o.CAFile != "" {
		if err := checkFile(o.CAFile); err != nil {
			p.add(path+".caFile", "%v", err)
		}
	}
}

// checkIssuer takes https, and http on the loopback interface, where nobody listens in on the keys.
func checkIssuer(issuer string) error {
	u, err := parseURL(issuer)
	if err != nil {
		return err
	}
	if u.Scheme != "https" && !isLoopback(u.Hostname()) {
		return errors.New("must be an https URL")
	}
	return nil
}
