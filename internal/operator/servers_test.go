package operator

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

func TestBothServersSpeakTheTLSOfTheCommandLine(t *testing.T) {
	t.Parallel()
	type spoken struct {
		Protocols []string
		Version   uint16
		Suites    []uint16
	}
	tests := map[string]struct {
		options Options
		want    spoken
	}{
		"by default":  {want: spoken{Protocols: []string{"http/1.1"}}},
		"with HTTP/2": {options: Options{EnableHTTP2: true}, want: spoken{Protocols: []string{"h2", "http/1.1"}}},
		"with a profile": {
			options: Options{TLS: TLSProfile{MinVersion: tls.VersionTLS13, CipherSuites: []uint16{1}}},
			want:    spoken{[]string{"http/1.1"}, tls.VersionTLS13, []uint16{1}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.options.MetricsSecure = true
			for server, change := range map[string][]func(*tls.Config){
				"metrics": metricsOptions(tt.options).TLSOpts, "webhook": webhookOptions(tt.options).TLSOpts,
			} {
				var got tls.Config
				for _, f := range change {
					f(&got)
				}
				if diff := cmp.Diff(tt.want, spoken{got.NextProtos, got.MinVersion, got.CipherSuites}); diff != "" {
					t.Errorf("%s (-want +got)\n%s", server, diff)
				}
			}
		})
	}
}

// writeCertificate writes a certificate and its key as PEM files.
func writeCertificate(t *testing.T, files CertFiles, cert tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		files.Key:  {Type: "PRIVATE KEY", Bytes: key},
		files.Name: {Type: "CERTIFICATE", Bytes: cert.Certificate[0]},
	} {
		if err := os.WriteFile(filepath.Join(files.Dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheWebhookServesTheCertificateOfItsFilesAndTheNextOneWithoutARestart(t *testing.T) {
	t.Parallel()
	files := CertFiles{Dir: t.TempDir(), Name: "a.crt", Key: "a.key"}
	first, second := mcptest.NewAuthority(t, "first").Certificate("first.example"), mcptest.NewAuthority(t, "second").Certificate("second.example")
	writeCertificate(t, files, first)
	const host = "127.78.0.1" // where nobody else looks for a port: it is free for a moment
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	address, _ := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	options := webhookOptions(Options{WebhookCert: files, TLS: TLSProfile{MinVersion: tls.VersionTLS13}})
	options.Host, options.Port = host, address.Port
	done := make(chan error, 1)
	go func() { done <- ctrlwebhook.NewServer(options).Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	awaitCertificate(t, address.String(), first)
	old, err := tls.Dial("tcp", address.String(), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err == nil {
		_ = old.Close()
		t.Error("it speaks TLS 1.2, below the lowest version of the profile")
	}
	writeCertificate(t, files, second)
	awaitCertificate(t, address.String(), second)
}

// awaitCertificate waits until a server shows a certificate: five times as long as it takes to look at the files unasked.
func awaitCertificate(t *testing.T, address string, want tls.Certificate) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 50*time.Second, true, func(context.Context) (bool, error) {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
		if err != nil {
			return false, nil //nolint:nilerr // it is not there yet
		}
		shown := conn.ConnectionState().PeerCertificates[0].Raw
		return bytes.Equal(shown, want.Certificate[0]), conn.Close()
	})
	if err != nil {
		t.Fatalf("the certificate is not shown: %v", err)
	}
}
