package sigserver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/engine"
)

func mounting(sources ...sigv1alpha1.StorageSource) func(*sigv1alpha1.MCPServer) {
	return func(s *sigv1alpha1.MCPServer) {
		for _, source := range sources {
			s.Spec.Config.Storage = append(s.Spec.Config.Storage, sigv1alpha1.StorageMount{Path: "/p", Source: source})
		}
	}
}

func callers(peers ...networkingv1.NetworkPolicyPeer) func(*sigv1alpha1.MCPServer) {
	return func(s *sigv1alpha1.MCPServer) { s.Spec.Network = &sigv1alpha1.Network{IngressFrom: peers} }
}

func destination(block networkingv1.IPBlock) func(*sigv1alpha1.MCPServer) {
	return func(s *sigv1alpha1.MCPServer) {
		s.Spec.Network = &sigv1alpha1.Network{EgressTo: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}, {IPBlock: &block}}}
	}
}

func probing(health sigv1alpha1.Health) func(*sigv1alpha1.MCPServer) {
	return func(s *sigv1alpha1.MCPServer) { s.Spec.Runtime = &sigv1alpha1.Runtime{Health: &health} }
}

func tls(asked sigv1alpha1.TLS) func(*sigv1alpha1.MCPServer) {
	return func(s *sigv1alpha1.MCPServer) { s.Spec.Transport = &sigv1alpha1.Transport{TLS: &asked} }
}

func TestWhatTheSchemaLetsPassIsJudged(t *testing.T) {
	t.Parallel()
	block := func(cidr string, except ...string) *networkingv1.IPBlock {
		return &networkingv1.IPBlock{CIDR: cidr, Except: except}
	}
	everybody := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}}
	emptyDir := sigv1alpha1.StorageSource{Type: "EmptyDir", EmptyDir: &corev1.EmptyDirVolumeSource{}}
	ca := &sigv1alpha1.SecretReference{Name: "ca"}
	for name, tt := range map[string]struct {
		change func(*sigv1alpha1.MCPServer)
		want   string // part of the message; empty: valid
		late   bool   // judged after references
	}{
		"the smallest server":     {func(*sigv1alpha1.MCPServer) {}, "", false},
		"a name with a dot":       {func(s *sigv1alpha1.MCPServer) { s.Name = "a.b" }, "metadata.name 'a.b' cannot be the name of a Service", false},
		"a name with a digit":     {func(s *sigv1alpha1.MCPServer) { s.Name = "1a" }, "cannot be the name of a Service", false},
		"a name of 64 characters": {func(s *sigv1alpha1.MCPServer) { s.Name = strings.Repeat("a", 64) }, "at most 63 characters", false},
		"a name of 63 characters": {func(s *sigv1alpha1.MCPServer) { s.Name = strings.Repeat("a", 63) }, "", false},
		"a ConfigMap that is nil": {
			mounting(emptyDir, sigv1alpha1.StorageSource{Type: "ConfigMap"}), "ConfigMap must be set for storage mount at index 1", false,
		},
		"a Secret that is nil": {mounting(sigv1alpha1.StorageSource{Type: "Secret"}), "Secret must be set for storage mount at index 0", false},
		"a folder that is nil": {mounting(sigv1alpha1.StorageSource{Type: "EmptyDir"}), "EmptyDir must be set for storage mount at index 0", false},
		"a ConfigMap without name": {
			mounting(sigv1alpha1.StorageSource{Type: "ConfigMap", ConfigMap: &corev1.ConfigMapVolumeSource{}}),
			"ConfigMap name must not be empty for storage mount at index 0", false,
		},
		"a Secret without name": {
			mounting(sigv1alpha1.StorageSource{Type: "Secret", Secret: &corev1.SecretVolumeSource{}}),
			"Secret name must not be empty for storage mount at index 0", false,
		},
		"another type": {mounting(sigv1alpha1.StorageSource{Type: "HostPath"}), "Unsupported storage type 'HostPath' at index 0", false},
		"a probe of another host": {
			probing(sigv1alpha1.Health{LivenessProbe: &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "169.254.169.254"}},
			}}),
			"runtime.health.livenessProbe must not set host", false,
		},
		"a connection to another host": {
			probing(sigv1alpha1.Health{ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "db"}}}}),
			"runtime.health.readinessProbe must not set host", false,
		},
		"a probe of the pod": {
			probing(sigv1alpha1.Health{ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{}}}}), "", false,
		},
		"a label key": {
			func(s *sigv1alpha1.MCPServer) { s.Spec.ExtraLabels = map[string]string{"a b": "c"} }, "extraLabels key 'a b' is not valid", false,
		},
		"a label value": {func(s *sigv1alpha1.MCPServer) { s.Spec.ExtraLabels = map[string]string{"a": "b c"} }, "extraLabels['a'] is not valid", false},
		"an annotation key": {
			func(s *sigv1alpha1.MCPServer) { s.Spec.ExtraAnnotations = map[string]string{"a/b/c": ""} }, "extraAnnotations key 'a/b/c' is not valid",
			false,
		},
		"an annotation":     {func(s *sigv1alpha1.MCPServer) { s.Spec.ExtraAnnotations = map[string]string{"Example.com/A": "b c\n"} }, "", false},
		"a peer of nothing": {callers(everybody, networkingv1.NetworkPolicyPeer{}), "network.ingressFrom[1]: one of ipBlock", true},
		"a block and a pod": {
			callers(networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}, IPBlock: block("10.0.0.0/8")}),
			"network.ingressFrom[0]: ipBlock must not be combined", true,
		},
		"an empty block":     {destination(networkingv1.IPBlock{}), "network.egressTo[1].ipBlock.cidr must not be empty", true},
		"an address":         {destination(networkingv1.IPBlock{CIDR: "10.0.0.1"}), "network.egressTo[1].ipBlock.cidr '10.0.0.1' is not a valid CIDR", true},
		"a wrong exception":  {destination(*block("10.0.0.0/8", "10.1.0.0/16", "x")), "network.egressTo[1].ipBlock.except[1] 'x' is not a valid CIDR", true},
		"one outside":        {destination(*block("10.0.0.0/8", "11.0.0.0/16")), "except[0] '11.0.0.0/16' is not within cidr '10.0.0.0/8'", true},
		"one that is larger": {destination(*block("10.0.0.0/8", "10.0.0.0/7")), "is not within cidr", true},
		"one within":         {destination(*block("fd00::/8", "fd00:1::/32")), "", true},
		"two ways to trust":  {tls(sigv1alpha1.TLS{Enabled: true, InsecureSkipVerify: true, CABundleSecret: ca}), "mutually exclusive", true},
		"two ways to trust, and TLS is off": {
			tls(sigv1alpha1.TLS{InsecureSkipVerify: true, CABundleSecret: ca}), "", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := Dialect{}.Validate(makeServer(tt.change))
			got, other := first, second
			if tt.late {
				got, other = second, first
			}
			if other != nil {
				t.Errorf("it is judged at another time, too: %v", other)
			}
			if (got != nil) != (tt.want != "") || got != nil && !strings.Contains(got.Error(), tt.want) {
				t.Errorf("it is judged %v, want %q", got, tt.want)
			}
		})
	}
}

func TestMessagesAboutReferencesBeginAsScriptsKnowThem(t *testing.T) {
	t.Parallel()
	object := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	server := makeServer(mounting(
		sigv1alpha1.StorageSource{Type: "ConfigMap", ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: object("c"), Items: []corev1.KeyToPath{{Key: "k", Path: "p"}},
		}},
		sigv1alpha1.StorageSource{Type: "Secret", Secret: &corev1.SecretVolumeSource{SecretName: "s", Optional: new(true)}},
	), func(s *sigv1alpha1.MCPServer) {
		s.Spec.Config.EnvFrom = []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: object("s")}},
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: object("c")}},
		}
		s.Spec.Config.Env = []corev1.EnvVar{
			{Name: "PLAIN", Value: "x"},
			{Name: "V", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: object("s"), Key: "t"}}},
			{
				Name: "W",
				ValueFrom: &corev1.EnvVarSource{
					ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: object("c"), Key: "u", Optional: new(true)},
				},
			},
		}
	})
	want := []engine.Reference{
		{Kind: "ConfigMap", Name: "c", Subject: "ConfigMap 'c'"},
		{Kind: "ConfigMap", Name: "c", Key: "k", Subject: "ConfigMap 'c'"},
		{Kind: "Secret", Name: "s", Optional: true, Subject: "Secret 's'"},
		{Kind: "Secret", Name: "s", Subject: "Secret 's' (envFrom index 0)"},
		{Kind: "ConfigMap", Name: "c", Subject: "ConfigMap 'c' (envFrom index 1)"},
		{Kind: "Secret", Name: "s", Key: "t", Subject: "Secret 's' referenced by env var 'V' (env index 1)"},
		{Kind: "ConfigMap", Name: "c", Key: "u", Optional: true, Subject: "ConfigMap 'c' referenced by env var 'W' (env index 2)"},
	}
	if diff := cmp.Diff(want, Dialect{}.References(server)); diff != "" {
		t.Errorf("references (-want +got)\n%s", diff)
	}
}
