package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// policySoon is how long the network plugin may take to enforce a policy, or to let a new pod through.
const policySoon = 5 * time.Second

// reaches waits until a pod gets any HTTP answer at an address.
func reaches(t *testing.T, what string, from client.ObjectKey, address string) {
	t.Helper()
	await(t, what+" reaches it", policySoon, func() string {
		out, err := fetch(t.Context(), from, address)
		if !answered(out) {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
}

// posts waits until the answer to a POST of a pod, with more arguments of `echo post`, has a word: the network plugin may
// know a new pod later than the kubelet says that it is ready.
func posts(t *testing.T, from client.ObjectKey, word string, arguments ...string) {
	t.Helper()
	command := append([]string{"/echo", "post", "-H", "Accept: application/json, text/event-stream"}, arguments...)
	await(t, fmt.Sprintf("a POST of pod %s is answered with %s", from.Name, word), policySoon, func() string {
		out, err := execute(t.Context(), from, command...)
		if err != nil || !strings.Contains(out, word) {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
}

// isKeptOut waits until a pod tries to connect to an address and gets no answer. That its name is not found, or that the
// pod cannot be asked, does not count.
func isKeptOut(t *testing.T, what string, from client.ObjectKey, address string) {
	t.Helper()
	await(t, what+" is kept out", policySoon, func() string {
		out, err := fetch(t.Context(), from, address)
		switch {
		case answered(out):
			return "it got an answer: " + out
		case err == nil || !strings.Contains(err.Error(), "echo: ") || strings.Contains(err.Error(), "lookup "):
			return fmt.Sprintf("it did not come to a connection: %v", err)
		}
		return ""
	})
}

func fetch(ctx context.Context, from client.ObjectKey, address string) (string, error) {
	return execute(ctx, from, "/echo", "get", "-timeout", "1s", address)
}

// answered says whether `echo get` printed a status: of an MCP server it is 405, since it wants POST.
func answered(out string) bool {
	var status int
	_, err := fmt.Sscanf(out, "%d in ", &status)
	return err == nil
}

func TestOnlyWhoIsLetInReachesAServerAndTheOperatorAlwaysIs(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("guarded"))
	ready := s.awaitReady(readySoon)
	address, mark := ready.Status.Endpoint, s.mark()
	near := f.echo(echoPod("near", "sleep"))
	stranger := echoPod("far", "sleep")
	stranger.Namespace = newNamespace(t)
	far := f.echo(stranger)

	reaches(t, "a pod of the same namespace", near, address)
	isKeptOut(t, "a pod of another namespace", far, address)

	// Ready at the new generation is the proof that the operator was let in under the new policy.
	listed := s.edit(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Network = &mcpv1alpha1.Network{Ingress: mcpv1alpha1.IngressListed}
	})
	s.await("is Ready for nobody", readySoon, readyAt(listed))
	isKeptOut(t, "a pod of the same namespace that is not listed", near, address)
	isKeptOut(t, "a pod of another namespace", far, address)

	invited := s.edit(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Network.IngressFrom = []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: far.Namespace}},
			PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"name": "far"}},
		}}
	})
	s.await("is Ready for the one who is listed", readySoon, readyAt(invited))
	reaches(t, "the listed pod of another namespace", far, address)
	isKeptOut(t, "a pod of the same namespace that is not listed", near, address)
	s.stayedReady(mark)
}

func TestServerWithListedEgressReachesThoseAndDNSAlone(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, name := range []string{"friend", "other"} {
		f.echo(echoPod(name, "serve"))
		ports := []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}
		f.create(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Selector: map[string]string{"name": name}, Ports: ports},
		})
	}
	urlOf := func(name string) string { return fmt.Sprintf("http://%s.%s.svc.cluster.local", name, f.namespace) }
	s := f.run(server("caller").echo("serve"))
	from := s.runningPod()
	reaches(t, "by default, a server: a pod", from, urlOf("friend"))
	reaches(t, "by default, a server: another pod", from, urlOf("other"))

	s.edit(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Network = &mcpv1alpha1.Network{EgressTo: []networkingv1.NetworkPolicyPeer{
			{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "friend"}}},
		}}
	})
	isKeptOut(t, "with egressTo, a server: a pod that is not named", from, urlOf("other"))
	reaches(t, "with egressTo, a server: the named pod, by its DNS name", from, urlOf("friend"))
	s.edit(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Network = &mcpv1alpha1.Network{EgressPorts: []mcpv1alpha1.NetworkPort{{Port: 443}}}
	})
	isKeptOut(t, "with egressPorts alone, a server: a pod at another port", from, urlOf("friend"))
	s.edit(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Network = &mcpv1alpha1.Network{EgressPorts: []mcpv1alpha1.NetworkPort{{Port: 8080}}}
	})
	reaches(t, "with egressPorts alone, a server: a pod at that port, by its DNS name", from, urlOf("other"))
	if now := s.runningPod(); now != from {
		t.Errorf("an edit of the network replaced the pod %s by %s", from, now)
	}
}

func TestServerReachesNoMetadataAddress(t *testing.T) {
	t.Parallel()
	f := start(t)
	node := f.listenOnMetadataAddress()
	pinned := echoPod("unprotected", "sleep")
	pinned.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	unprotected := f.echo(pinned)
	s := f.run(server("curious").echo("serve").with(func(spec *mcpv1alpha1.MCPServerSpec) {
		spec.Scheduling = &mcpv1alpha1.Scheduling{NodeSelector: map[string]mcpv1alpha1.LabelValue{corev1.LabelHostname: mcpv1alpha1.LabelValue(node)}}
	}))
	reaches(t, "a pod without a policy", unprotected, "http://"+metadataAddress)
	isKeptOut(t, "a server's pod", s.runningPod(), "http://"+metadataAddress)
	reaches(t, "a pod without a policy, still,", unprotected, "http://"+metadataAddress)
}

// T49: nobody writes an exception by hand. What the operator makes for its objects adds up with what the namespace denies.
func TestANamespaceThatDeniesEverythingHasServersAndAgentsAllTheSame(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.create(&networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "deny-all"},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}},
	})
	f.run(server("web"))
	f.run(server("pipes").image("server-everything").overStdio(nodeBinary, everythingScript, "stdio"))
	a := f.agent("team", granted("web", "pipes"))
	a.awaitReady("web_test_simple_text", "pipes_echo")
	a.answers("web_test_simple_text", `{}`, "simple text")
	a.answers("pipes_echo", `{"message": "hello"}`, "hello")
}
