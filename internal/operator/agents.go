package operator

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcptool"
	"github.com/mcp-operator/mcp-operator/internal/probe"
)

// dnsPeers are the pods that answer DNS; none means anybody.
func (o *Options) dnsPeers() ([]networkingv1.NetworkPolicyPeer, error) {
	if o.DNSNamespace == "" {
		return nil, nil
	}
	selector, err := metav1.ParseToLabelSelector(o.DNSSelector)
	if err != nil {
		return nil, fmt.Errorf("it is not a selector of labels: %w", err)
	}
	return []networkingv1.NetworkPolicyPeer{{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: o.DNSNamespace}},
		PodSelector:       selector,
	}}, nil
}

// tools makes the controller of MCPTools.
func (w wiring) tools(mgr manager.Manager) *mcptool.Reconciler {
	return mcptool.New(mcptool.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(eventSource),
		OperatorNamespace: w.settings.OperatorNamespace, AllowPrivate: w.allowPrivate, TLSProfile: w.tls.Apply,
	})
}

// agents makes the controller of MCPAgents.
func (w wiring) agents(mgr manager.Manager) (*mcpagent.Reconciler, error) {
	clientset, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	opts := mcpagent.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(eventSource),
		OperatorNamespace: w.settings.OperatorNamespace, ClusterDomain: w.settings.ClusterDomain, GatewayImage: w.settings.GatewayImage,
		AllowPrivate: w.allowPrivate, DNS: w.dns, MasterKey: w.settings.HashKey, Workers: w.settings.Workers,
		ReadPath: func(ctx context.Context, path string) ([]byte, error) {
			return clientset.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
		},
		Addresses: func(ctx context.Context) ([]netip.AddrPort, error) { return apiServerAddresses(ctx, clientset) },
	}
	if forward := w.settings.ProbeTransport; forward != nil {
		opts.Transport = func(pod probe.Pod) *http.Transport { return forward(probe.Server{}, &pod) }
	}
	return mcpagent.New(opts), nil
}

// apiService is the name of the Service of the API server, and of its EndpointSlice, both in the namespace default.
const apiService = "kubernetes"

// apiServerAddresses are those of the API server itself and of its Service, which pods dial: which of the two a NetworkPolicy sees differs
// between network plugins.
func apiServerAddresses(ctx context.Context, clientset kubernetes.Interface) ([]netip.AddrPort, error) {
	slice, err := clientset.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(ctx, apiService, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read EndpointSlice default/%s: %w", apiService, err)
	}
	var addresses []netip.AddrPort
	add := func(host string, port int) {
		if address, err := netip.ParseAddr(host); err == nil && port > 0 && port <= 1<<16-1 {
			addresses = append(addresses, netip.AddrPortFrom(address.Unmap(), uint16(port)))
		}
	}
	for _, endpoint := range slice.Endpoints {
		for _, host := range endpoint.Addresses {
			for _, port := range slice.Ports {
				if port.Port != nil {
					add(host, int(*port.Port))
				}
			}
		}
	}
	service, err := clientset.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, apiService, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read Service default/%s: %w", apiService, err)
	}
	for _, host := range service.Spec.ClusterIPs {
		for _, port := range service.Spec.Ports {
			add(host, int(port.Port))
		}
	}
	return addresses, nil
}
