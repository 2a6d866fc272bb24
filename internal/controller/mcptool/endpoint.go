package mcptool

import (
	"context"
	"crypto/x509"
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

// authorities are those of a bundle, alone and beside the system's.
type authorities struct {
	only, beside *x509.CertPool
	identity     string
}

// trust returns how to verify the endpoint's certificate. A bundle in a Secret is not read: gateways, which mount it, verify by it.
func (s *scope) trust(ctx context.Context) (reach.Trust, error) {
	bundle := s.tool.Spec.CABundle
	if bundle != nil && bundle.ConfigMapRef == nil {
		_, err := s.metadata(ctx, reference{"Secret", bundle.SecretRef.Name, "caBundle.secretRef"})
		return reach.Trust{Identity: "secret", Blind: true}, err
	}
	given, err := s.authorities(ctx)
	return reach.Trust{Roots: given.only, Identity: given.identity}, err
}

// documentTrust returns how to verify the certificate of where the document is, which need not be where the endpoint is.
func (s *scope) documentTrust(ctx context.Context) (reach.Trust, error) {
	given, err := s.authorities(ctx)
	return reach.Trust{Roots: given.beside, Identity: given.identity}, err
}

// authorities reads the bundle, if it is in a ConfigMap.
func (s *scope) authorities(ctx context.Context) (authorities, error) {
	bundle := s.tool.Spec.CABundle
	if bundle == nil || bundle.ConfigMapRef == nil {
		return authorities{identity: "system"}, nil
	}
	return fromConfigMap(ctx, s, bundle.ConfigMapRef, "caBundle.configMapRef", "", func(content []byte) (authorities, error) {
		beside, err := x509.SystemCertPool()
		if err != nil {
			beside = x509.NewCertPool()
		}
		given := authorities{only: x509.NewCertPool(), beside: beside, identity: digestOf(content)}
		if !given.only.AppendCertsFromPEM(content) {
			return authorities{}, invalid("ConfigMap '%s' (caBundle.configMapRef): the key '%s' holds no PEM certificate",
				bundle.ConfigMapRef.Name, bundle.ConfigMapRef.Key)
		}
		given.beside.AppendCertsFromPEM(content)
		return given, nil
	})
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
