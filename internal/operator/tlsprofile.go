package operator

import (
	"crypto/tls"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The environment variables of the TLS profile. MCP servers get the first two under the same names.
const (
	minVersionVariable   = "TLS_MIN_VERSION"
	cipherSuitesVariable = "TLS_CIPHER_SUITES"
	propagateVariable    = "PROPAGATE_TLS_ENV_VARS"
)

// TLSProfile is which versions and cipher suites of TLS are spoken, by the metrics and the webhook as servers and by the prober as a
// client.
type TLSProfile struct {
	// MinVersion is the lowest version; 0 leaves Go's default.
	MinVersion uint16

	// CipherSuites are the suites of TLS 1.2 and older, of which TLS 1.3 takes no notice; nil leaves Go's.
	CipherSuites []uint16

	// Variables are what MCP servers are told of it; nil tells them nothing.
	Variables []corev1.EnvVar

	// Ignored are values that are not known, each with its variable.
	Ignored []string
}

// ParseTLSProfile reads TLS_MIN_VERSION (VersionTLS10 to VersionTLS13), TLS_CIPHER_SUITES (Go's names, separated by commas) and
// PROPAGATE_TLS_ENV_VARS ("true"). What it does not know it leaves out, and says so in Ignored.
func ParseTLSProfile(getenv func(string) string) TLSProfile {
	var p TLSProfile
	var known []corev1.EnvVar
	if name := strings.TrimSpace(getenv(minVersionVariable)); name != "" {
		versions := map[string]uint16{
			"VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11, "VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
		}
		if p.MinVersion = versions[name]; p.MinVersion == 0 {
			p.Ignored = append(p.Ignored, minVersionVariable+"="+name)
		} else {
			known = append(known, corev1.EnvVar{Name: minVersionVariable, Value: name})
		}
	}
	var suites []string
	for name := range strings.SplitSeq(getenv(cipherSuitesVariable), ",") {
		name = strings.TrimSpace(name)
		switch id, ok := cipherSuite(name); {
		case name == "":
		case !ok:
			p.Ignored = append(p.Ignored, cipherSuitesVariable+"="+name)
		default:
			p.CipherSuites, suites = append(p.CipherSuites, id), append(suites, name)
		}
	}
	if len(suites) > 0 {
		known = append(known, corev1.EnvVar{Name: cipherSuitesVariable, Value: strings.Join(suites, ",")})
	}
	if strings.EqualFold(strings.TrimSpace(getenv(propagateVariable)), "true") {
		p.Variables = known
	}
	return p
}

func cipherSuite(name string) (uint16, bool) {
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if suite.Name == name {
			return suite.ID, true
		}
	}
	return 0, false
}

// Apply sets the profile. It never lowers a version that is asked for already.
func (p TLSProfile) Apply(config *tls.Config) {
	config.MinVersion = max(config.MinVersion, p.MinVersion)
	if p.CipherSuites != nil {
		config.CipherSuites = p.CipherSuites
	}
}
