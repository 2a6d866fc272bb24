package mcptool

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reach"
)

// endpoint is what is connected to for the tool.
func (s *scope) endpoint(ctx context.Context) (reach.Endpoint, error) {
	trust, err := s.trust(ctx)
	if err != nil {
		return reach.Endpoint{}, err
	}
	raw := s.tool.Spec.Endpoint
	switch {
	case raw != "":
	case s.definitions != nil:
		raw = s.definitions.baseURL
	case s.isOpenAPI() && s.before.Status.Definitions != nil:
		raw = s.before.Status.Definitions.Endpoint
	default:
		return reach.Endpoint{}, invalid("the endpoint is not known yet")
	}
	host, port, err := hostOf(raw)
	if err != nil {
		return reach.Endpoint{}, err
	}
	e := reach.Endpoint{Subject: s.subject(), Host: host, Port: port, Security: reach.Plain, Trust: trust}
	auth := s.tool.Spec.Auth
	e.ClientCertificate = auth != nil && auth.Type == mcpv1alpha1.AuthClientCertificate
	postgres := s.tool.Spec.Postgres
	switch {
	case postgres != nil && postgres.TLS != "Disable":
		e.Security = reach.PostgresTLS
		e.Trust.AnyHost = postgres.TLS == "VerifyCA"
	case postgres == nil && strings.HasPrefix(raw, "https:"):
		e.Security = reach.TLS
	}
	return e, nil
}

func (s *scope) subject() reach.Subject { return reach.Subject{UID: s.tool.UID, Key: s.key()} }

// ports are those of the schemes.
var ports = map[string]string{"http": "80", "https": "443", "postgres": "5432", "postgresql": "5432"}

// hostOf returns host and port of a URL.
func hostOf(raw string) (host, port string, err error) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || ports[u.Scheme] == "" {
		return "", "", invalid("endpoint: is no URL with a host")
	}
	port = u.Port()
	if port == "" {
		port = ports[u.Scheme]
	}
	return u.Hostname(), port, nil
}

// authorities are those that a certificate is verified by.
type authorities struct {
	roots    *x509.CertPool // nil: the system's
	identity string
}

// trust returns how to verify the endpoint's certificate. A bundle in a Secret is not read: gateways, which mount it, verify by it.
func (s *scope) trust(ctx context.Context) (reach.Trust, error) {
	bundle := s.tool.Spec.CABundle
	if bundle != nil && bundle.ConfigMapRef == nil {
		_, err := s.metadata(ctx, reference{"Secret", bundle.SecretRef.Name, "caBundle.secretRef"})
		return reach.Trust{Identity: "secret", Blind: true}, err
	}
	return s.trustIn(ctx, false)
}

// documentTrust returns how to verify the certificate of where the document is, which need not be where the endpoint is: the system's
// authorities are good there as well, and the only ones if the bundle is in a Secret.
func (s *scope) documentTrust(ctx context.Context) (reach.Trust, error) {
	trust, err := s.trustIn(ctx, true)
	if bundle := s.tool.Spec.CABundle; bundle != nil && bundle.ConfigMapRef == nil {
		trust.Bundle = reach.UnreadBundle
	}
	return trust, err
}

// trustIn returns how to verify by the bundle, if it is in a ConfigMap, and else by the system's authorities.
func (s *scope) trustIn(ctx context.Context, beside bool) (reach.Trust, error) {
	given, err := s.authorities(ctx, beside)
	if err != nil {
		return reach.Trust{}, err
	}
	trust := reach.Trust{Roots: given.roots, Identity: given.identity}
	if given.roots != nil {
		trust.Bundle = reach.ReadBundle
	}
	return trust, nil
}

// authorities reads the bundle, if it is in a ConfigMap; beside adds the system's to it.
func (s *scope) authorities(ctx context.Context, beside bool) (*authorities, error) {
	bundle := s.tool.Spec.CABundle
	if bundle == nil || bundle.ConfigMapRef == nil {
		return &authorities{identity: "system"}, nil
	}
	want := wanted{ref: bundle.ConfigMapRef, field: "caBundle.configMapRef"}
	if beside {
		want.purpose = " beside the system's"
	}
	return fromConfigMap(ctx, s, want, func(version string, content []byte) (*authorities, error) {
		return s.memory.bundle(version+want.purpose, func() (*authorities, error) { return parse(bundle.ConfigMapRef, content, beside) })
	})
}

func parse(from *mcpv1alpha1.KeyRef, content []byte, beside bool) (*authorities, error) {
	roots := x509.NewCertPool()
	if beside {
		if system, err := x509.SystemCertPool(); err == nil {
			roots = system
		}
	}
	if !roots.AppendCertsFromPEM(content) {
		return nil, invalid("ConfigMap '%s' (caBundle.configMapRef): the key '%s' holds no PEM certificate", from.Name, from.Key)
	}
	return &authorities{roots, digestOf(content)}, nil
}

// checkCredential says whether the Secret is there, and may be sent to where the endpoint is.
func (s *scope) checkCredential(ctx context.Context, endpoint string) error {
	auth := s.tool.Spec.Auth
	if auth == nil {
		return nil
	}
	ref := reference{"Secret", auth.SecretRef.Name, "auth.secretRef"}
	hosts, given, err := s.allowedHosts(ctx, ref)
	if err != nil || !given {
		return err
	}
	host, port, err := hostOf(endpoint)
	if err != nil {
		return err
	}
	if !isAllowed(hosts, host, port) {
		return &ValidationError{reason: mcpv1alpha1.ReasonSecretNotAllowed, Message: fmt.Sprintf(
			"%s must not be sent to %s: its annotation %s does not list that host", ref, net.JoinHostPort(host, port), mcpv1alpha1.AnnotationAllowedHosts)}
	}
	return nil
}

// isNotAllowed says whether an error is that a Secret must not be sent somewhere.
func isNotAllowed(err error) bool {
	wrong, ok := errors.AsType[*ValidationError](err)
	return ok && wrong.reason == mcpv1alpha1.ReasonSecretNotAllowed
}

// isAllowed says whether a list of hosts has one: "api.example.com", "*.example.com" (any name below), each with or without a port.
// Without one it is for every port.
func isAllowed(hosts, host, port string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for entry := range strings.SplitSeq(hosts, ",") {
		entry = strings.ToLower(strings.TrimSpace(entry))
		name, wantedPort, err := net.SplitHostPort(entry)
		if err != nil {
			name, wantedPort = strings.Trim(entry, "[]"), port
		}
		name = strings.TrimSuffix(name, ".")
		domain, isWild := strings.CutPrefix(name, "*.")
		fits := host == name
		if isWild {
			fits = domain != "" && strings.HasSuffix(host, "."+domain)
		}
		if fits && name != "" && wantedPort == port {
			return true
		}
	}
	return false
}
