package desired

import (
	"testing"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func TestAPodServesOnForAWhileBeforeItIsToldToEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		server *mcpv1alpha1.MCPServer
		grace  *int64
		want   int64
	}{
		"for 15 s of the 30 of the default":             {server: serverNamed("demo"), want: 15},
		"for no more of a long grace period":            {server: serverNamed("demo"), grace: new(int64(600)), want: 15},
		"for half of a short one":                       {server: serverNamed("demo"), grace: new(int64(5)), want: 2},
		"but not where there is no time":                {server: serverNamed("demo"), grace: new(int64(1))},
		"nor where the bridge does":                     {server: stdioServer(nil)},
		"nor where the next pod starts only afterwards": {server: recreated(serverNamed("demo"))},
	} {
		tt.server.Spec.TerminationGracePeriodSeconds = tt.grace
		template := podTemplate(tt.server, Environment{GatewayImage: "gateway"}, "")
		var got int64
		if hooks := template.Spec.Containers[0].Lifecycle; hooks != nil {
			got = hooks.PreStop.Sleep.Seconds
		}
		if got != tt.want {
			t.Errorf("%s: it sleeps for %d s, want %d", name, got, tt.want)
		}
	}
}

func recreated(server *mcpv1alpha1.MCPServer) *mcpv1alpha1.MCPServer {
	server.Spec.UpdateStrategy = &mcpv1alpha1.UpdateStrategy{Type: mcpv1alpha1.UpdateRecreate}
	return server
}
