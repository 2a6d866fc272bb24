package mcpagent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

func fromIssuer(bundle *mcpv1alpha1.CABundleSource) func(*mcpv1alpha1.MCPAgent) {
	return func(agent *mcpv1alpha1.MCPAgent) {
		agent.Spec.Auth = mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens, OIDC: []mcpv1alpha1.OIDCIssuer{
			{Issuer: "https://login.example.com"}, {Issuer: "https://login.internal.example.com", CABundle: bundle},
		}}
	}
}

func TestTheCertificatesOfAnIssuerAreLookedUpAndHoldUpNothing(t *testing.T) {
	t.Parallel()
	const until = "; until then all tokens of such an issuer are refused, and everybody else is served"
	configMapRef := func(key string) *mcpv1alpha1.CABundleSource {
		return &mcpv1alpha1.CABundleSource{ConfigMapRef: &mcpv1alpha1.KeyRef{ObjectName: mcpv1alpha1.ObjectName{Name: "ca"}, Key: mcpv1alpha1.DataKey(key)}}
	}
	secretRef := &mcpv1alpha1.CABundleSource{SecretRef: &mcpv1alpha1.KeyRef{ObjectName: mcpv1alpha1.ObjectName{Name: "ca"}, Key: "ca.crt"}}
	held := configMap("ca", map[string]string{"ca.crt": mcptest.NewAuthority(t, "ca").PEM, "text": "no certificate"})
	held.BinaryData = map[string][]byte{"binary.crt": []byte(mcptest.NewAuthority(t, "ca").PEM)}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ca", Namespace: "team"}}
	tests := map[string]struct {
		bundle  *mcpv1alpha1.CABundleSource
		change  func(*mcpv1alpha1.MCPAgent)
		objects []client.Object
		status  metav1.ConditionStatus
		want    string
	}{
		"none is named":              {status: "True", want: valid},
		"it is there":                {bundle: configMapRef("ca.crt"), objects: []client.Object{held}, status: "True", want: valid},
		"it is there as binary data": {bundle: configMapRef("binary.crt"), objects: []client.Object{held}, status: "True", want: valid},
		"the ConfigMap is not there": {
			bundle: configMapRef("ca.crt"), status: "False", want: "ConfigMap 'ca' (auth.oidc[1].caBundle) not found: create it" + until,
		},
		"a Secret of its name is not it": {
			bundle: configMapRef("ca.crt"), objects: []client.Object{secret}, status: "False",
			want: "ConfigMap 'ca' (auth.oidc[1].caBundle) not found: create it" + until,
		},
		"the key is not there": {
			bundle: configMapRef("ca.cert"), objects: []client.Object{held}, status: "False",
			want: "ConfigMap 'ca' (auth.oidc[1].caBundle) has no key 'ca.cert': add it" + until,
		},
		"the key holds no certificate": {
			bundle: configMapRef("text"), objects: []client.Object{held}, status: "False",
			want: "ConfigMap 'ca' (auth.oidc[1].caBundle): the key 'text' holds no PEM certificate: correct it" + until,
		},
		"the Secret is not there": {
			bundle: secretRef, objects: []client.Object{held}, status: "False",
			want: "Secret 'ca' (auth.oidc[1].caBundle) not found: create it" + until,
		},
		"of a Secret the keys are unknown": {
			bundle: secretRef, objects: []client.Object{secret}, status: "True",
			want: valid + "; whether these keys are there is not known, since the operator does not read Secrets: " +
				"'ca.crt' of Secret 'ca' (auth.oidc[1].caBundle)",
		},
		"beside what the own workload lacks": {
			bundle: secretRef, change: withRuntime(fromSettings("level", false)), status: "False",
			want: `ConfigMap 'settings' (runtime.env "LEVEL") not found: create it, and the agent goes on by itself; ` +
				"Secret 'ca' (auth.oidc[1].caBundle) not found: create it" + until,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := makeAgent(fromIssuer(tt.bundle))
			if tt.change != nil {
				tt.change(agent)
			}
			r, _ := makeReconciler(t, append([]client.Object{makeServer(), agent}, copies(tt.objects)...)...)
			s := makeScope(t, r, agent)
			reconcile.Run(t.Context(), s, s.agent, phases, reconcile.Options{})
			got := s.current(mcpv1alpha1.ConditionAccepted)
			if got.Status != tt.status || got.Message != tt.want {
				t.Errorf("Accepted is %s: %q\nwant %s: %q", got.Status, got.Message, tt.status, tt.want)
			}
			if got := s.progressing(); (got.Status == metav1.ConditionTrue) != (s.missing == nil) {
				t.Errorf("before there are pods, Progressing is %s: %q", got.Status, got.Message)
			}
			if !s.gatewayApplied || s.agent.Status.TableRevision == "" {
				t.Errorf("the gateway is held up: applied is %t, the table %q", s.gatewayApplied, s.agent.Status.TableRevision)
			}
		})
	}
}

func TestWhatIsStoredOfAPausedAgentIsNotOverwrittenByItsIssuers(t *testing.T) {
	t.Parallel()
	agent := makeAgent(fromIssuer(nil))
	agent.Status.Conditions = []metav1.Condition{condition(mcpv1alpha1.ConditionAccepted, "False", mcpv1alpha1.ReasonInvalid, "as it was")}
	r, _ := makeReconciler(t, makeServer(), agent)
	s := makeScope(t, r, agent)
	reconcile.Run(t.Context(), s, s.agent, phases, reconcile.Options{Paused: true})
	if got := s.current(mcpv1alpha1.ConditionAccepted); got.Message != "as it was" {
		t.Errorf("Accepted is %+v", got)
	}
}

func TestAnAgentIsWokenByWhatItsIssuersAreVerifiedBy(t *testing.T) {
	t.Parallel()
	ref := &mcpv1alpha1.KeyRef{ObjectName: mcpv1alpha1.ObjectName{Name: "ca"}, Key: "ca.crt"}
	got := map[string][]string{
		"by a Secret":    issuerSecrets(makeAgent(fromIssuer(&mcpv1alpha1.CABundleSource{SecretRef: ref}))),
		"by a ConfigMap": configMapsOf(makeAgent(fromIssuer(&mcpv1alpha1.CABundleSource{ConfigMapRef: ref}), withRuntime(fromSettings("level", true)))),
		"neither":        issuerSecrets(makeAgent(fromIssuer(&mcpv1alpha1.CABundleSource{ConfigMapRef: ref}))),
	}
	want := map[string][]string{"by a Secret": {"ca"}, "by a ConfigMap": {"settings", "ca"}, "neither": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("indexed names (-want +got)\n%s", strings.TrimSpace(diff))
	}
}
