package engine

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
)

// unverified is said wherever a certificate is not verified.
const unverified = "; the server's certificate is not verified (insecureSkipVerify)"

// trust is how to verify the certificate of a server.
type trust struct {
	// config is nil for plain HTTP.
	config *tls.Config
	// id is another one whenever config trusts something else.
	id string
}

// authorities are the certificates of one version of a Secret's key. Of the Secret nothing else is kept.
type authorities struct {
	secret  types.NamespacedName
	key     string
	version string // UID and resource version
	pool    *x509.CertPool
	id      string
}

// isUnverified says whether a server speaks HTTPS with a certificate that nobody looks at.
func isUnverified(server *mcpv1alpha1.MCPServer) bool {
	return server.Spec.TLS != nil && server.Spec.TLS.InsecureSkipVerify
}

// trust returns how to verify the server's certificate: always for the DNS name of its Service, although pods are dialled by
// address, and never below TLS 1.2, whatever the profile says. The error is a *ValidationError if its author has to act.
func (r *Reconciler) trust(ctx context.Context, server *mcpv1alpha1.MCPServer) (trust, error) {
	asked := server.Spec.TLS
	if asked == nil {
		return trust{}, nil
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: desired.ServiceDNSName(server, r.kind().ServiceName(server.Name), r.settings.ClusterDomain),
		InsecureSkipVerify: asked.InsecureSkipVerify, //nolint:gosec // G402: said aloud by the author, and told in status and events
	}
	if r.TLSProfile != nil {
		r.TLSProfile(config)
		config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	}
	id := "system"
	switch {
	case asked.InsecureSkipVerify:
		id = "none"
	case asked.CASecretRef != nil:
		ca, err := r.refs.authorities(ctx, server, r.kind().Authorities(asked.CASecretRef.Name))
		if err != nil {
			return trust{}, err
		}
		config.RootCAs, id = ca.pool, ca.id
	}
	return trust{config: config, id: config.ServerName + "/" + id}, nil
}

// authorities reads the certificates that caSecretRef names, and again only when the Secret changed.
func (r *references) authorities(ctx context.Context, server *mcpv1alpha1.MCPServer, subject string) (authorities, error) {
	ref := server.Spec.TLS.CASecretRef
	ca := authorities{secret: types.NamespacedName{Namespace: server.Namespace, Name: ref.Name}, key: caKey(ref)}
	meta := partialMetadata("Secret")
	err := r.metadata.Get(ctx, ca.secret, meta)
	if err == nil {
		ca.version = string(meta.UID) + "/" + meta.ResourceVersion
		if known, ok := r.knownAuthorities(client.ObjectKeyFromObject(server)); ok && known.is(ca) {
			return known, nil
		}
	}
	secret := &corev1.Secret{}
	if err == nil {
		err = r.content.Get(ctx, ca.secret, secret)
	}
	if apierrors.IsNotFound(err) {
		return ca, invalidAuthorities("%s not found in namespace '%s': create it, and the server goes on by itself", subject, server.Namespace)
	}
	if err != nil {
		return ca, fmt.Errorf("read Secret %s: %w", ca.secret, err)
	}
	content, found := secret.Data[ca.key]
	if !found {
		return ca, invalidAuthorities("%s in namespace '%s' has no key '%s': add it, and the server goes on by itself", subject, server.Namespace, ca.key)
	}
	ca.pool = x509.NewCertPool()
	if !ca.pool.AppendCertsFromPEM(content) {
		return ca, invalidAuthorities("Key '%s' of %s contains no valid PEM certificates: %s", ca.key, subject, whyNoCertificate(content))
	}
	mac := hmac.New(sha256.New, r.key)
	write(mac, content)
	ca.id = hex.EncodeToString(mac.Sum(nil)[:16])
	// The version that was read, which may be newer than the cache's: then it is read once more.
	ca.version = string(secret.UID) + "/" + secret.ResourceVersion
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trusted[client.ObjectKeyFromObject(server)] = ca
	return ca, nil
}

func invalidAuthorities(format string, args ...any) error {
	return &ValidationError{mcpv1alpha1.ReasonInvalid, fmt.Sprintf(format, args...)}
}

func (r *references) knownAuthorities(server types.NamespacedName) (authorities, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.trusted[server]
	return known, ok
}

// is says whether both are of one version of one key.
func (a authorities) is(other authorities) bool {
	return a.secret == other.secret && a.key == other.key && a.version == other.version
}

// caKey is the key that holds the certificates. The schema sets the default too.
func caKey(ref *mcpv1alpha1.SecretKey) string {
	if ref.Key == "" {
		return "ca.crt"
	}
	return ref.Key
}

// whyNoCertificate tells what was given instead of certificates, without quoting any of it: it may be a secret.
func whyNoCertificate(content []byte) string {
	if len(content) == 0 {
		return "it is empty"
	}
	block, _ := pem.Decode(content)
	switch {
	case block == nil:
		return "it does not hold a -----BEGIN CERTIFICATE----- block"
	case block.Type == "CERTIFICATE":
		return "what its CERTIFICATE block holds is not an X.509 certificate"
	}
	return "its first block is not a CERTIFICATE"
}
