package sigserver

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
)

// Each of these says what is wrong in a part of a specification, for its author; empty if nothing is.

// nameProblem refuses names that no Service can have: the schema of this API lets them pass.
func nameProblem(server *sigv1alpha1.MCPServer) string {
	if problems := validation.IsDNS1035Label(server.Name); len(problems) > 0 {
		return fmt.Sprintf("metadata.name '%s' cannot be the name of a Service: it must have at most 63 characters, begin with a letter and consist of "+
			"lower-case letters, digits and '-': use another name", server.Name)
	}
	return ""
}

func storageProblem(server *sigv1alpha1.MCPServer) string {
	for i, mount := range server.Spec.Config.Storage {
		source := mount.Source
		unset := func(kind string) string { return fmt.Sprintf("%s must be set for storage mount at index %d", kind, i) }
		unnamed := func(kind string) string {
			return fmt.Sprintf("%s name must not be empty for storage mount at index %d", kind, i)
		}
		switch source.Type {
		case sigv1alpha1.StorageConfigMap:
			if source.ConfigMap == nil {
				return unset("ConfigMap")
			}
			if source.ConfigMap.Name == "" {
				return unnamed("ConfigMap")
			}
		case sigv1alpha1.StorageSecret:
			if source.Secret == nil {
				return unset("Secret")
			}
			if source.Secret.SecretName == "" {
				return unnamed("Secret")
			}
		case sigv1alpha1.StorageEmptyDir:
			if source.EmptyDir == nil {
				return unset("EmptyDir")
			}
		default:
			return fmt.Sprintf("Unsupported storage type '%s' at index %d", source.Type, i)
		}
	}
	return ""
}

// healthProblem refuses probes that lead away from the pod: the node would connect to wherever the author says.
func healthProblem(server *sigv1alpha1.MCPServer) string {
	if server.Spec.Runtime == nil || server.Spec.Runtime.Health == nil {
		return ""
	}
	for _, named := range []struct {
		name  string
		probe *corev1.Probe
	}{{"livenessProbe", server.Spec.Runtime.Health.LivenessProbe}, {"readinessProbe", server.Spec.Runtime.Health.ReadinessProbe}} {
		probe := named.probe
		if probe != nil && (probe.HTTPGet != nil && probe.HTTPGet.Host != "" || probe.TCPSocket != nil && probe.TCPSocket.Host != "") {
			return fmt.Sprintf("runtime.health.%s must not set host: the node would connect to it; a probe is of the pod itself", named.name)
		}
	}
	return ""
}

// metadataProblem refuses what no child could carry.
func metadataProblem(server *sigv1alpha1.MCPServer) string {
	for _, key := range slices.Sorted(maps.Keys(server.Spec.ExtraLabels)) {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Sprintf("extraLabels key '%s' is not valid: %s", key, problems[0])
		}
		if problems := validation.IsValidLabelValue(server.Spec.ExtraLabels[key]); len(problems) > 0 {
			return fmt.Sprintf("extraLabels['%s'] is not valid: %s", key, problems[0])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(server.Spec.ExtraAnnotations)) {
		if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
			return fmt.Sprintf("extraAnnotations key '%s' is not valid: %s", key, problems[0])
		}
	}
	return ""
}

// environmentProblem refuses variables that cannot reach the pod as they would by any other way than ours.
func environmentProblem(server *sigv1alpha1.MCPServer) string {
	return desired.SIGEnvironmentProblem(server.Spec.Config.Env, server.Spec.Config.EnvFrom...)
}

func networkProblem(server *sigv1alpha1.MCPServer) string {
	network := server.Spec.Network
	if network == nil {
		return ""
	}
	for _, list := range []struct {
		field string
		peers []networkingv1.NetworkPolicyPeer
	}{{"network.ingressFrom", network.IngressFrom}, {"network.egressTo", network.EgressTo}} {
		for i, peer := range list.peers {
			if problem := peerProblem(peer); problem != "" {
				return fmt.Sprintf("%s[%d]%s", list.field, i, problem)
			}
		}
	}
	return ""
}

func peerProblem(peer networkingv1.NetworkPolicyPeer) string {
	block := peer.IPBlock
	switch {
	case block == nil && peer.PodSelector == nil && peer.NamespaceSelector == nil:
		return ": one of ipBlock, podSelector and namespaceSelector must be set"
	case block == nil:
		return ""
	case peer.PodSelector != nil || peer.NamespaceSelector != nil:
		return ": ipBlock must not be combined with podSelector or namespaceSelector"
	case block.CIDR == "":
		return ".ipBlock.cidr must not be empty"
	}
	outer, err := netip.ParsePrefix(block.CIDR)
	if err != nil {
		return fmt.Sprintf(".ipBlock.cidr '%s' is not a valid CIDR such as 10.0.0.0/8", block.CIDR)
	}
	for j, text := range block.Except {
		inner, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Sprintf(".ipBlock.except[%d] '%s' is not a valid CIDR such as 10.0.0.0/8", j, text)
		}
		if inner.Bits() <= outer.Bits() || !outer.Contains(inner.Addr()) {
			return fmt.Sprintf(".ipBlock.except[%d] '%s' is not within cidr '%s'", j, text, block.CIDR)
		}
	}
	return ""
}

func tlsProblem(server *sigv1alpha1.MCPServer) string {
	if tls := tlsOf(server); tls != nil && tls.InsecureSkipVerify && tls.CABundleSecret != nil {
		return "transport.tls: insecureSkipVerify and caBundleSecret are mutually exclusive: remove one of them"
	}
	return ""
}

// tlsOf returns the TLS settings if TLS is enabled.
func tlsOf(server *sigv1alpha1.MCPServer) *sigv1alpha1.TLS {
	if transport := server.Spec.Transport; transport != nil && transport.TLS != nil && transport.TLS.Enabled {
		return transport.TLS
	}
	return nil
}
