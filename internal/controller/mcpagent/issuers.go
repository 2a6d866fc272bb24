package mcpagent

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// issuerBundle is where the certificates are that an issuer is verified by.
type issuerBundle struct {
	*mcpv1alpha1.CABundleSource

	field string
}

// issuerBundles lists those of an agent, in the order of the specification.
func issuerBundles(agent *mcpv1alpha1.MCPAgent) []issuerBundle {
	var list []issuerBundle
	for i := range agent.Spec.Auth.OIDC {
		if source := agent.Spec.Auth.OIDC[i].CABundle; source != nil {
			list = append(list, issuerBundle{source, fmt.Sprintf("auth.oidc[%d].caBundle", i)})
		}
	}
	return list
}

// issuerSecrets are the names of the Secrets that hold them.
func issuerSecrets(agent *mcpv1alpha1.MCPAgent) []string {
	var names []string
	for _, b := range issuerBundles(agent) {
		if b.SecretRef != nil {
			names = append(names, b.SecretRef.Name)
		}
	}
	return names
}

// configMapsOf are the names of the ConfigMaps that an agent's own workload and its gateway read.
func configMapsOf(agent *mcpv1alpha1.MCPAgent) []string {
	var names []string
	for _, ref := range runtimeReferences(agent) {
		names = append(names, ref.Name)
	}
	for _, b := range issuerBundles(agent) {
		if b.ConfigMapRef != nil {
			names = append(names, b.ConfigMapRef.Name)
		}
	}
	return names
}

// checkBundles notes which certificates of issuers are not there, and which of them cannot be looked at. Gateways, whose pods start without
// them, refuse all tokens of such an issuer and serve everybody else.
func (s *scope) checkBundles(ctx context.Context, bundles []issuerBundle, values map[string]map[string]value) error {
	var wrong, unseen []string
	for _, b := range bundles {
		switch {
		case b.ConfigMapRef != nil:
			if why := wrongBundle(b, values); why != "" {
				wrong = append(wrong, why)
			}
		case b.SecretRef != nil:
			found, err := s.find(ctx, b.SecretRef.Name, partialMetadata("Secret"))
			if err != nil {
				return err
			}
			if found {
				unseen = append(unseen, fmt.Sprintf("'%s' of Secret '%s' (%s)", b.SecretRef.Key, b.SecretRef.Name, b.field))
			} else {
				wrong = append(wrong, fmt.Sprintf("Secret '%s' (%s) not found: create it", b.SecretRef.Name, b.field))
			}
		}
	}
	if len(wrong) > 0 {
		s.unverified = errors.New(strings.Join(wrong, "; ") + "; until then all tokens of such an issuer are refused, and everybody else is served")
	}
	s.unseen = strings.Join(unseen, ", ")
	return nil
}

// wrongBundle says what is wrong with certificates in a ConfigMap; empty if nothing is.
func wrongBundle(b issuerBundle, values map[string]map[string]value) string {
	ref := b.ConfigMapRef
	named := fmt.Sprintf("ConfigMap '%s' (%s)", ref.Name, b.field)
	of, exists := values[ref.Name]
	found, has := of[string(ref.Key)]
	switch {
	case !exists:
		return named + " not found: create it"
	case !has:
		return fmt.Sprintf("%s has no key '%s': add it", named, ref.Key)
	case !x509.NewCertPool().AppendCertsFromPEM([]byte(found.text)): // as the gateway reads it
		return fmt.Sprintf("%s: the key '%s' holds no PEM certificate: correct it", named, ref.Key)
	}
	return ""
}

// observeIssuers says whether the certificates are there that issuers are verified by. That holds up nothing: the gateway serves everybody
// else.
func (s *scope) observeIssuers(context.Context) reconcile.Outcome {
	switch {
	case !s.validated:
		return reconcile.Keep(0) // what is stored is of before
	case s.unverified != nil:
		return reconcile.Invalid(mcpv1alpha1.ReasonInvalid, s.unverified)
	}
	return reconcile.Done(mcpv1alpha1.ReasonValid, s.validMessage())
}

// validMessage is that of Accepted when nothing is wrong that can be seen.
func (s *scope) validMessage() string {
	if s.unseen == "" {
		return valid
	}
	return valid + "; whether these keys are there is not known, since the operator does not read Secrets: " + s.unseen
}
