package operator

import (
	"crypto/tls"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func TestTheControllersAreToldTheTLSProfile(t *testing.T) {
	t.Parallel()
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	profile := ParseTLSProfile(environ(map[string]string{"TLS_MIN_VERSION": "VersionTLS13", "PROPAGATE_TLS_ENV_VARS": "true"}))
	reconciler := wiring{tls: profile}.reconciler(mgr)
	if diff := cmp.Diff(profile.Variables, reconciler.TLSEnvVars); diff != "" || len(profile.Variables) == 0 {
		t.Errorf("MCP servers are told (-want +got)\n%s", diff)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	reconciler.TLSProfile(config)
	if config.MinVersion != tls.VersionTLS13 {
		t.Errorf("connections to MCP servers begin at %s", tls.VersionName(config.MinVersion))
	}
}
