package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
)

func stdio(changes ...func(*mcpv1alpha1.MCPServer)) *mcpv1alpha1.MCPServer {
	return makeServer(append([]func(*mcpv1alpha1.MCPServer){func(server *mcpv1alpha1.MCPServer) {
		server.Spec.Transport, server.Spec.Command = mcpv1alpha1.TransportStdio, []string{"server"}
	}}, changes...)...)
}

// chosen is the gateway image that an operator with an image of its own chooses for a server.
func chosen(server *mcpv1alpha1.MCPServer, image, configHash string) *mcpv1alpha1.MCPServer {
	s := newScope(&Reconciler{settings: Settings{GatewayImage: image}}, server)
	s.chooseGateway(configHash)
	return s.server
}

func TestAnUpgradeOfTheOperatorReplacesNoPod(t *testing.T) {
	t.Parallel()
	deployed := chosen(stdio(), "gateway:1", "hash")
	if deployed.Status.GatewayImage != "gateway:1" {
		t.Fatalf("the first image is %q", deployed.Status.GatewayImage)
	}
	with := func(change func(*mcpv1alpha1.MCPServer)) *mcpv1alpha1.MCPServer {
		changed := deployed.DeepCopy()
		change(changed)
		return changed
	}
	scaled := with(func(server *mcpv1alpha1.MCPServer) { server.Spec.Replicas, server.Generation = new(int32(5)), 3 })
	asked := with(func(server *mcpv1alpha1.MCPServer) {
		server.Annotations = map[string]string{mcpv1alpha1.AnnotationUpgradeGateway: "please"}
	})
	annotations := map[string]string{"example.com/a": "b"}
	network := with(func(s *mcpv1alpha1.MCPServer) { s.Spec.Network = &mcpv1alpha1.Network{} })
	command := with(func(s *mcpv1alpha1.MCPServer) { s.Spec.Command = []string{"other"} })
	tests := map[string]struct {
		server      *mcpv1alpha1.MCPServer
		image, hash string
		want        string
	}{
		"nothing changed":                       {deployed, "gateway:2", "hash", "gateway:1"},
		"an autoscaler wrote replicas":          {scaled, "gateway:2", "hash", "gateway:1"},
		"another annotation":                    {with(func(s *mcpv1alpha1.MCPServer) { s.Annotations = annotations }), "gateway:2", "hash", "gateway:1"},
		"a network changed, which rolls no pod": {network, "gateway:2", "hash", "gateway:1"},
		"pods are replaced: another command":    {command, "gateway:2", "hash", "gateway:2"},
		"pods are replaced: a Secret changed":   {deployed, "gateway:2", "other hash", "gateway:2"},
		"it was asked for":                      {asked, "gateway:2", "hash", "gateway:2"},
		"it was asked for and has been done":    {chosen(asked, "gateway:2", "hash"), "gateway:3", "hash", "gateway:2"},
		"the operator no longer knows an image": {command, "", "hash", "gateway:1"},
		"it is no longer a server of stdio":     {with(func(s *mcpv1alpha1.MCPServer) { s.Spec.Transport = "" }), "gateway:2", "hash", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := chosen(tt.server, tt.image, tt.hash).Status.GatewayImage; got != tt.want {
				t.Errorf("the image is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTheImageThatIsRecordedIsTheOneThatIsDeployed(t *testing.T) {
	t.Parallel()
	r := makeStore(t).reconciler(nil)
	r.settings.GatewayImage, r.settings.OperatorNamespace = "gateway:1", "mcp-operator-system"
	s := newScope(r, stdio())
	if out := s.validate(t.Context()); !out.IsDone() {
		t.Fatalf("not accepted: %+v", out)
	}
	pod := s.children.Deployment.Spec.Template.Spec
	if len(pod.InitContainers) != 1 || pod.InitContainers[0].Image != "gateway:1" || s.server.Status.GatewayImage != "gateway:1" {
		t.Errorf("deployed %+v, recorded %q", pod.InitContainers, s.server.Status.GatewayImage)
	}
	if want := desired.GatewayRevision(s.server, s.environment(), ""); s.server.Status.GatewayRevision != want {
		t.Errorf("recorded the revision %q, want %q", s.server.Status.GatewayRevision, want)
	}
}

func TestWithoutAGatewayImageAStdioServerSaysWhoHasToAct(t *testing.T) {
	t.Parallel()
	s := newScope(&Reconciler{}, stdio())
	s.chooseGateway("")
	out := s.applyDeployment(t.Context()) // there is no applier: anything that is written panics
	got, _ := out.Condition(mcpv1alpha1.ConditionApplied, 2)
	want := condition("Applied", metav1.ConditionFalse, "GatewayImageMissing",
		"A Stdio server needs the bridge, and this operator was started without --gateway-image "+
			"(environment variable MCP_OPERATOR_GATEWAY_IMAGE): whoever runs the operator has to set it")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("condition (-want +got)\n%s", diff)
	}
	if out.Err() != nil || out.After != 0 {
		t.Errorf("it is tried again (%v, %s), though only a restart of the operator helps", out.Err(), out.After)
	}
}
