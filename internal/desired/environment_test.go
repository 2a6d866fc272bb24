package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func TestVariablesOfTheOperatorWinOverThoseOfTheUser(t *testing.T) {
	t.Parallel()
	variable := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
	config := &mcpv1alpha1.ServerConfig{ConfigMapRef: &mcpv1alpha1.ObjectName{Name: "settings"}}
	tests := map[string]struct {
		spec  mcpv1alpha1.MCPServerSpec
		extra []corev1.EnvVar
		want  []corev1.EnvVar
	}{
		"nothing is asked": {
			want: []corev1.EnvVar{variable("HOME", "/tmp")},
		},
		"extra variables come after the user's": {
			spec:  mcpv1alpha1.MCPServerSpec{Env: []corev1.EnvVar{variable("A", "user")}},
			extra: []corev1.EnvVar{variable("TLS_MIN_VERSION", "VersionTLS13")},
			want:  []corev1.EnvVar{variable("HOME", "/tmp"), variable("A", "user"), variable("TLS_MIN_VERSION", "VersionTLS13")},
		},
		"an extra variable replaces the user's": {
			spec:  mcpv1alpha1.MCPServerSpec{Env: []corev1.EnvVar{variable("TLS_MIN_VERSION", "VersionTLS10"), variable("A", "user")}},
			extra: []corev1.EnvVar{variable("TLS_MIN_VERSION", "VersionTLS13")},
			want:  []corev1.EnvVar{variable("HOME", "/tmp"), variable("A", "user"), variable("TLS_MIN_VERSION", "VersionTLS13")},
		},
		"an extra variable replaces ours": {
			spec:  mcpv1alpha1.MCPServerSpec{Config: config},
			extra: []corev1.EnvVar{variable("HOME", "/x"), variable("MCP_CONFIG", "/y")},
			want:  []corev1.EnvVar{variable("HOME", "/x"), variable("MCP_CONFIG", "/y")},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serverNamed("a")
			tt.spec.Image = server.Spec.Image
			server.Spec = tt.spec
			got := ForServer(server, Environment{ExtraEnv: tt.extra}, "").Deployment.Spec.Template.Spec.Containers[0].Env
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestConfigHashIsInThePodTemplateAlone(t *testing.T) {
	t.Parallel()
	server := serverNamed("a")
	with, without := ForServer(server, Environment{}, "abc"), ForServer(server, Environment{}, "")
	if got := with.Deployment.Spec.Template.Annotations[AnnotationConfigHash]; got != "abc" {
		t.Errorf("the hash in the pod template is %q, want %q", got, "abc")
	}
	if _, there := without.Deployment.Spec.Template.Annotations[AnnotationConfigHash]; there {
		t.Error("a server that reads nothing has a hash")
	}
	with.Deployment.Spec.Template.Annotations = without.Deployment.Spec.Template.Annotations
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("the hash changes more than the pod template's annotation:\n%s", diff)
	}
}

func TestNetworkPolicyLetsInTheOperatorOfItsNamespace(t *testing.T) {
	t.Parallel()
	policy := ForServer(serverNamed("a"), Environment{OperatorNamespace: "elsewhere"}, "").NetworkPolicy
	first := policy.Spec.Ingress[0].From[0]
	if got := first.NamespaceSelector.MatchLabels[corev1.LabelMetadataName]; got != "elsewhere" {
		t.Errorf("the operator is let in from namespace %q, want %q", got, "elsewhere")
	}
	if diff := cmp.Diff(OperatorLabels(), first.PodSelector.MatchLabels); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
