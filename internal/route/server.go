package route

import (
	"maps"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// compileServer makes the backend of an MCPServer. One that does not run stays in the table: its gateway says that it is away, and
// serves it again without another table.
func (c *compiler) compileServer(g grant) (compiled, *refusal) {
	server := c.Servers[g.name]
	if server == nil || server.DeletionTimestamp != nil {
		return compiled{}, c.missing("MCPServer", g.name, server != nil)
	}
	conditions := server.Status.Conditions
	accepted := apimeta.FindStatusCondition(conditions, mcpv1alpha1.ConditionAccepted)
	// A server whose last edit is no good goes on serving by the one before, to agents too.
	if isFalse(accepted, server.Generation) && !apimeta.IsStatusConditionTrue(conditions, mcpv1alpha1.ConditionAvailable) {
		return compiled{}, &refusal{mcpv1alpha1.VerdictInvalid, "the MCPServer is not accepted: " + accepted.Message}
	}
	out := compiled{server: server.Name, files: files{}, note: notReady(conditions)}
	if network := server.Spec.Network; network != nil && network.Ingress == mcpv1alpha1.IngressGateways {
		out.closed = true
	}
	b := table.Backend{
		Name: desired.ServerBackend(server.Name), Transport: table.TransportHTTP,
		URL:        desired.Endpoint(server, desired.ServiceName(server.Name), c.ClusterDomain),
		HostHeader: server.Spec.HostHeader, Prefix: string(g.server.Prefix), Tools: policyOf(g.server.Tools), Trusted: g.server.Trusted,
		Guarded: true, AllowPrivate: true, // who may make EndpointSlices could lead the Service to the gateway's own ports
	}
	if server.Spec.Transport == mcpv1alpha1.TransportSSE {
		b.Transport = table.TransportSSE
	}
	if desired.HasPodsService(server) {
		b.PodsHost = desired.PodsDNSName(server, c.ClusterDomain)
	}
	if tls := server.Spec.TLS; tls != nil {
		if tls.InsecureSkipVerify {
			return out, &refusal{mcpv1alpha1.VerdictInvalid, "the MCPServer has tls.insecureSkipVerify, and gateways verify every certificate: " +
				"give it tls.caSecretRef instead"}
		}
		if ref := tls.CASecretRef; ref != nil {
			key := ref.Key
			if key == "" {
				key = "ca.crt" // the schema's default, for objects made without it
			}
			file, err := out.files.add(desired.MountSecret, ref.Name, key)
			if err != nil {
				return out, &refusal{mcpv1alpha1.VerdictInvalid, "tls.caSecretRef: " + err.Error()}
			}
			b.CAFile = file
		}
	}
	out.backend = b
	return out, nil
}

func (c *compiler) missing(kind, name string, deleted bool) *refusal {
	reason := "there is no " + kind + " '" + name + "' in the namespace " + c.Agent.Namespace
	if deleted {
		reason = "the " + kind + " is being deleted"
	}
	return &refusal{mcpv1alpha1.VerdictMissing, reason}
}

// isFalse says whether a condition is False of the current generation.
func isFalse(condition *metav1.Condition, generation int64) bool {
	return condition != nil && condition.Status == metav1.ConditionFalse && condition.ObservedGeneration == generation
}

// notReady is what an object itself says of why it does not serve.
func notReady(conditions []metav1.Condition) string {
	ready := apimeta.FindStatusCondition(conditions, mcpv1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return ""
	}
	return "the MCPServer is not ready (" + ready.Reason + "): " + ready.Message
}

func policyOf(asked *mcpv1alpha1.ToolPolicy) table.ToolPolicy {
	if asked == nil {
		return table.ToolPolicy{}
	}
	policy := table.ToolPolicy{
		Deny: distinct(asked.Deny), ReadOnly: asked.ReadOnly, DenyDestructive: asked.DenyDestructive,
	}
	if asked.Allow != nil { // an empty list lets nothing through
		policy.Allow = append([]string{}, distinct(asked.Allow)...)
	}
	if len(asked.Rename) > 0 {
		policy.Rename = make(map[string]string, len(asked.Rename))
		for original, name := range maps.All(asked.Rename) {
			policy.Rename[original] = string(name)
		}
	}
	return policy
}

// distinct are the values in their order, each once: the table takes none twice.
func distinct(values []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, value := range values {
		if !seen[value] {
			out = append(out, value)
		}
		seen[value] = true
	}
	return out
}
