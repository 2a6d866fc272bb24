package desired

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func serverNamed(name string) *mcpv1alpha1.MCPServer {
	return &mcpv1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "mcp-system"},
		Spec:       mcpv1alpha1.MCPServerSpec{Image: "example.com/server:1"},
	}
}

// admittedNames are names that look like each other's children, as far as the rules of the CRD let them through, and names
// at the limits of those rules.
func admittedNames(t *testing.T) []string {
	t.Helper()
	parts := []string{"a", "b", "svc", "config", "gateway", "pods", "session"}
	candidates := []string{strings.Repeat("a", 54), strings.Repeat("a", 55), "a" + strings.Repeat("-", 52) + "b", "1a", "a.b", "A", "a-", "-a", "a-svc"}
	for _, first := range parts {
		candidates = append(candidates, first)
		for _, second := range parts {
			candidates = append(candidates, first+"-"+second, first+second)
			for _, third := range parts {
				candidates = append(candidates, first+"-"+second+"-"+third)
			}
		}
	}
	var names []string
	for _, name := range candidates {
		if _, err := admit(t, serverNamed(name)); err == nil {
			names = append(names, name)
		}
	}
	if len(names) < 100 || len(names) == len(candidates) {
		t.Fatalf("%d of %d names are admitted: the rules are too strict or too lax for this test to mean anything", len(names), len(candidates))
	}
	return names
}

func childNames(server string) []string {
	return []string{DeploymentName(server), ServiceName(server), NetworkPolicyName(server), ConfigMapName(server)}
}

// Names differ even between kinds, so that no later child of another kind can collide either.
func TestChildrenOfTwoServersNeverHaveTheSameName(t *testing.T) {
	t.Parallel()
	owner := map[string]string{}
	for _, server := range admittedNames(t) {
		for _, child := range childNames(server) {
			if other, taken := owner[child]; taken && other != server {
				t.Errorf("%q is a child of %q and of %q", child, other, server)
			}
			owner[child] = server
		}
	}
}

func TestNamesAndLabelsOfChildrenAreValid(t *testing.T) {
	t.Parallel()
	for _, name := range admittedNames(t) {
		for _, child := range childNames(name) {
			// The strictest rule of all kinds: that of Services.
			if problems := validation.IsDNS1035Label(child); len(problems) > 0 {
				t.Errorf("server %q: child %q: %v", name, child, problems)
			}
		}
		children := ForServer(serverNamed(name), Environment{OperatorNamespace: "mcp-operator-system"}, "hash")
		for what, labels := range map[string]map[string]string{
			"Deployment":       children.Deployment.Labels,
			"selector":         children.Deployment.Spec.Selector.MatchLabels,
			"pod template":     children.Deployment.Spec.Template.Labels,
			"Service":          children.Service.Labels,
			"Service selector": children.Service.Spec.Selector,
			"NetworkPolicy":    children.NetworkPolicy.Labels,
		} {
			if problems := metav1validation.ValidateLabels(labels, field.NewPath(what)); len(problems) > 0 {
				t.Errorf("server %q: %v", name, problems.ToAggregate())
			}
		}
	}
}

func TestSelectorsSelectThePodsOfTheirServerAlone(t *testing.T) {
	t.Parallel()
	for name, server := range goldenInputs(t) {
		children := ForServer(server, goldenEnvironment, "")
		pod := children.Deployment.Spec.Template.Labels
		if pod[LabelMCPServer] != server.Name || pod[LabelApp] != WorkloadName {
			t.Errorf("%s: the pod cache would not see the pods: %v", name, pod)
		}
		for what, selector := range map[string]map[string]string{
			"Deployment":    children.Deployment.Spec.Selector.MatchLabels,
			"Service":       children.Service.Spec.Selector,
			"NetworkPolicy": children.NetworkPolicy.Spec.PodSelector.MatchLabels,
		} {
			if selector[LabelServer] != server.Name || len(selector) != 1 || pod[LabelServer] != server.Name {
				t.Errorf("%s: the %s selects %v, the pods carry %v", name, what, selector, pod)
			}
		}
	}
}

func TestVolumesHaveValidAndDistinctNames(t *testing.T) {
	t.Parallel()
	server := serverNamed("a")
	server.Spec.Config = &mcpv1alpha1.ServerConfig{ConfigMapRef: &mcpv1alpha1.ObjectName{Name: "settings"}}
	for _, name := range []string{"config", "tmp", "a.b", "a-b", "secret-a", strings.Repeat("a", 253), strings.Repeat("a", 252) + "b"} {
		server.Spec.SecretRefs = append(server.Spec.SecretRefs, mcpv1alpha1.SecretMount{ObjectName: mcpv1alpha1.ObjectName{Name: name}})
	}
	pod := ForServer(server, Environment{}, "").Deployment.Spec.Template.Spec
	source := map[string]corev1.VolumeSource{}
	for _, volume := range pod.Volumes {
		if problems := validation.IsDNS1123Label(volume.Name); len(problems) > 0 {
			t.Errorf("volume %q: %v", volume.Name, problems)
		}
		if _, taken := source[volume.Name]; taken {
			t.Errorf("two volumes are named %q", volume.Name)
		}
		source[volume.Name] = volume.VolumeSource
	}
	mounted := map[string]bool{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		if _, exists := source[mount.Name]; !exists || mounted[mount.MountPath] {
			t.Errorf("mount %q of volume %q: volume exists: %t, path taken: %t", mount.MountPath, mount.Name, exists, mounted[mount.MountPath])
		}
		mounted[mount.MountPath] = true
	}
}

func TestAddressIsThatOfTheService(t *testing.T) {
	t.Parallel()
	const service = "a-svc.mcp-system.svc.cluster.local"
	tests := map[string]struct {
		port         int32
		path         string
		host, wanted string
	}{
		"defaults":     {host: service + ":8080", wanted: "http://" + service + ":8080/mcp"},
		"of the user":  {port: 3000, path: "/x/y", host: service + ":3000", wanted: "http://" + service + ":3000/x/y"},
		"port of HTTP": {port: 80, path: "/", host: service + ":80", wanted: "http://" + service + ":80/"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serverNamed("a")
			server.Spec.Port, server.Spec.Path = tt.port, tt.path
			if got := ServiceHost(server, ServiceName(server.Name), "cluster.local"); got != tt.host {
				t.Errorf("host is %q, want %q", got, tt.host)
			}
			if got := Endpoint(server, ServiceName(server.Name), "cluster.local"); got != tt.wanted {
				t.Errorf("endpoint is %q, want %q", got, tt.wanted)
			}
		})
	}
}
