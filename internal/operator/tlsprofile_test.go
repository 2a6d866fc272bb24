package operator

import (
	"crypto/tls"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestTheTLSProfileIsReadFromTheEnvironment(t *testing.T) {
	t.Parallel()
	const good, weak = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA"
	tests := map[string]struct {
		env  map[string]string
		want TLSProfile
	}{
		"nothing": {},
		"the lowest version": {
			env:  map[string]string{"TLS_MIN_VERSION": "VersionTLS10"},
			want: TLSProfile{MinVersion: tls.VersionTLS10},
		},
		"a version that is not known": {
			env:  map[string]string{"TLS_MIN_VERSION": "1.3", "PROPAGATE_TLS_ENV_VARS": "true"},
			want: TLSProfile{Ignored: []string{"TLS_MIN_VERSION=1.3"}},
		},
		"suites, also insecure ones, but those that are not known": {
			env: map[string]string{"TLS_CIPHER_SUITES": good + ", " + weak + ",,tls_lower"},
			want: TLSProfile{
				CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_RC4_128_SHA},
				Ignored:      []string{"TLS_CIPHER_SUITES=tls_lower"},
			},
		},
		"servers are told what is valid": {
			env: map[string]string{
				"TLS_MIN_VERSION": " VersionTLS13 ", "TLS_CIPHER_SUITES": " " + good + ",nonsense," + weak, "PROPAGATE_TLS_ENV_VARS": "TRUE",
			},
			want: TLSProfile{
				MinVersion: tls.VersionTLS13, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_RC4_128_SHA},
				Variables: []corev1.EnvVar{
					{Name: "TLS_MIN_VERSION", Value: "VersionTLS13"}, {Name: "TLS_CIPHER_SUITES", Value: good + "," + weak},
				},
				Ignored: []string{"TLS_CIPHER_SUITES=nonsense"},
			},
		},
		"servers are told nothing by any other word": {
			env:  map[string]string{"TLS_MIN_VERSION": "VersionTLS12", "PROPAGATE_TLS_ENV_VARS": "yes"},
			want: TLSProfile{MinVersion: tls.VersionTLS12},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, ParseTLSProfile(environ(tt.env))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTheTLSProfileNeverLowersAVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ have, profile, want uint16 }{
		{0, 0, 0},
		{0, tls.VersionTLS10, tls.VersionTLS10},
		{tls.VersionTLS12, tls.VersionTLS10, tls.VersionTLS12},
		{tls.VersionTLS12, tls.VersionTLS13, tls.VersionTLS13},
	} {
		config := &tls.Config{MinVersion: tt.have}
		TLSProfile{MinVersion: tt.profile}.Apply(config)
		if config.MinVersion != tt.want {
			t.Errorf("profile %x over %x is %x, want %x", tt.profile, tt.have, config.MinVersion, tt.want)
		}
	}
}
