package operator

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent"
	"github.com/mcp-operator/mcp-operator/internal/engine"
	"github.com/mcp-operator/mcp-operator/internal/probe"
)

func TestTheAddressesOfTheAPIServerAreItsOwnAndThoseOfItsService(t *testing.T) {
	t.Parallel()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Namespace: "default"},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}, {Addresses: []string{"192.0.2.2", "no address"}}},
		Ports:      []discoveryv1.EndpointPort{{Port: new(int32(6443))}, {}},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Namespace: "default"},
		Spec:       corev1.ServiceSpec{ClusterIPs: []string{"10.0.0.1", "2001:db8::1"}, Ports: []corev1.ServicePort{{Port: 443}}},
	}
	tests := map[string]struct {
		objects []runtime.Object
		want    []string
		err     string
	}{
		"both": {
			objects: []runtime.Object{slice, service}, want: []string{"192.0.2.1:6443", "192.0.2.2:6443", "10.0.0.1:443", "[2001:db8::1]:443"},
		},
		"no EndpointSlice": {objects: []runtime.Object{service}, err: "read EndpointSlice default/kubernetes"},
		"no Service":       {objects: []runtime.Object{slice}, err: "read Service default/kubernetes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addresses, err := apiServerAddresses(t.Context(), fake.NewClientset(tt.objects...))
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if err != nil {
				return
			}
			var want []netip.AddrPort
			for _, text := range tt.want {
				want = append(want, netip.MustParseAddrPort(text))
			}
			if diff := cmp.Diff(want, addresses, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
				t.Errorf("addresses (-want +got)\n%s", diff)
			}
		})
	}
}

func TestPodsThatAnswerDNSAreThoseOfTheFlags(t *testing.T) {
	t.Parallel()
	in := func(namespace string, selector metav1.LabelSelector) []networkingv1.NetworkPolicyPeer {
		return []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}, PodSelector: &selector,
		}}
	}
	tests := map[string]struct {
		namespace, selector string
		want                []networkingv1.NetworkPolicyPeer
	}{
		"labels":       {"kube-system", "k8s-app=kube-dns", in("kube-system", metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "kube-dns"}})},
		"all of them":  {"dns", "", in("dns", metav1.LabelSelector{})},
		"no namespace": {"", "k8s-app=kube-dns", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := (&Options{DNSNamespace: tt.namespace, DNSSelector: tt.selector}).dnsPeers()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("peers (-want +got)\n%s", diff)
			}
		})
	}
}

func TestTheControllerOfAgentsIsToldTheFlags(t *testing.T) {
	t.Parallel()
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	dns := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}
	var forwardedTo string
	w := wiring{allowPrivate: true, dns: dns, settings: engine.Settings{
		OperatorNamespace: "own", ClusterDomain: "k8s.example.com", GatewayImage: "gateway:1", HashKey: []byte("key"), Workers: 3,
		ProbeTransport: func(_ probe.Server, pod *probe.Pod) *http.Transport {
			forwardedTo = pod.Name
			return &http.Transport{}
		},
	}}
	agents, err := w.agents(mgr)
	if err != nil {
		t.Fatal(err)
	}
	got := agents.Options
	got.Transport(probe.Pod{Name: "helper-gateway-1"})
	want := mcpagent.Options{
		OperatorNamespace: "own", ClusterDomain: "k8s.example.com", GatewayImage: "gateway:1", MasterKey: []byte("key"), Workers: 3,
		AllowPrivate: true, DNS: dns,
	}
	ignored := cmpopts.IgnoreFields(mcpagent.Options{}, "Client", "APIReader", "Recorder", "ReadPath", "Addresses", "Transport")
	if diff := cmp.Diff(want, got, ignored); diff != "" || forwardedTo != "helper-gateway-1" {
		t.Errorf("outside of the cluster a gateway is asked through %q; options (-want +got)\n%s", forwardedTo, diff)
	}
}

func TestWhatIsNotInstalledIsNamed(t *testing.T) {
	t.Parallel()
	mapper := apimeta.NewDefaultRESTMapper([]schema.GroupVersion{mcpv1alpha1.GroupVersion})
	for _, kind := range []string{"MCPServer", "MCPTool", "MCPAgent"} {
		err := requireCRD(mapper)
		want := "the CustomResourceDefinition " + strings.ToLower(kind) + "s.mcp.operator is not installed: run kubectl apply -k config/crds"
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
		mapper.Add(mcpv1alpha1.GroupVersion.WithKind(kind), apimeta.RESTScopeNamespace)
	}
	if err := requireCRD(mapper); err != nil {
		t.Errorf("all are installed: %v", err)
	}
}
