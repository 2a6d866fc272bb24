package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func stdioServer(change func(*mcpv1alpha1.MCPServer)) *mcpv1alpha1.MCPServer {
	server := serverNamed("demo")
	server.Spec.Transport, server.Spec.Command = mcpv1alpha1.TransportStdio, []string{"server"}
	if change != nil {
		change(server)
	}
	return server
}

func TestTheGatewayRevisionFollowsThePodsAndNotTheImage(t *testing.T) {
	t.Parallel()
	revision := func(server *mcpv1alpha1.MCPServer, image, hash string) string {
		return GatewayRevision(server, Environment{OperatorNamespace: "mcp-operator-system", GatewayImage: image}, hash)
	}
	first := revision(stdioServer(nil), "gateway:1", "hash")
	for name, tt := range map[string]struct {
		got  string
		same bool
	}{
		"the image":               {revision(stdioServer(nil), "gateway:2", "hash"), true},
		"replicas":                {revision(stdioServer(func(s *mcpv1alpha1.MCPServer) { s.Spec.Replicas = new(int32(7)) }), "gateway:1", "hash"), true},
		"the generation":          {revision(stdioServer(func(s *mcpv1alpha1.MCPServer) { s.Generation = 7 }), "gateway:1", "hash"), true},
		"the content of a Secret": {revision(stdioServer(nil), "gateway:1", "other"), false},
		"the command":             {revision(stdioServer(func(s *mcpv1alpha1.MCPServer) { s.Spec.Command = []string{"other"} }), "gateway:1", "hash"), false},
		"a label of the pods": {
			revision(stdioServer(func(s *mcpv1alpha1.MCPServer) { s.Spec.Labels = map[string]mcpv1alpha1.LabelValue{"a": "b"} }), "gateway:1", "hash"), false,
		},
		"a request for another image": {revision(stdioServer(func(s *mcpv1alpha1.MCPServer) {
			s.Annotations = map[string]string{mcpv1alpha1.AnnotationUpgradeGateway: "1"}
		}), "gateway:1", "hash"), false},
	} {
		if (tt.got == first) != tt.same {
			t.Errorf("%s: the revision stays the same: %t, want %t", name, tt.got == first, tt.same)
		}
	}
}

// The digest is stored: it must not change with the operator or its libraries while the pods stay the same.
func TestTheGatewayRevisionIsTheSameInEveryBuild(t *testing.T) {
	t.Parallel()
	got := GatewayRevision(stdioServer(nil), Environment{}, "hash")
	if want := "0ae5fbe0afab5cd3d1cda31bbdd0b05d"; got != want {
		t.Errorf("the revision of a known server is %s, was %s: every server gets the gateway image of the operator that brings this change", got, want)
	}
	object := map[string]any{"a": nil, "b": "", "c": map[string]any{"d": []any{}}, "e": []any{map[string]any{"f": "", "g": int64(0)}}, "h": false}
	prune(object)
	if diff := cmp.Diff(map[string]any{"e": []any{map[string]any{"g": int64(0)}}, "h": false}, object); diff != "" {
		t.Errorf("pruned (-want +got):\n%s", diff)
	}
}

func TestTheEndpointFollowsTransportAndTLS(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*mcpv1alpha1.MCPServer){
		"http://demo-svc.mcp-system.svc.cluster.local:8080/mcp": func(*mcpv1alpha1.MCPServer) {},
		"http://demo-svc.mcp-system.svc.cluster.local:8080/sse": func(s *mcpv1alpha1.MCPServer) { s.Spec.Transport = mcpv1alpha1.TransportSSE },
		"http://demo-svc.mcp-system.svc.cluster.local:9000/mcp": func(s *mcpv1alpha1.MCPServer) {
			s.Spec.Transport, s.Spec.Port = mcpv1alpha1.TransportStdio, 9000
		},
		"https://demo-svc.mcp-system.svc.cluster.local:8080/mcp": func(s *mcpv1alpha1.MCPServer) { s.Spec.TLS = &mcpv1alpha1.ServerTLS{} },
		"https://demo-svc.mcp-system.svc.cluster.local:8080/e": func(s *mcpv1alpha1.MCPServer) {
			s.Spec.Transport, s.Spec.TLS, s.Spec.Path = mcpv1alpha1.TransportSSE, &mcpv1alpha1.ServerTLS{}, "/e"
		},
	} {
		server := serverNamed("demo")
		change(server)
		if got := Endpoint(server, ServiceName(server.Name), "cluster.local"); got != want {
			t.Errorf("endpoint %q, want %q", got, want)
		}
	}
}
