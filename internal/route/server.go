package route

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

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
	out := compiled{server: server.Name, note: notReady(conditions), closed: c.isClosed(server)}
	how, refused := c.connectionOf(server)
	if refused != nil {
		return out, refused
	}
	out.files = how.files
	out.backend = table.Backend{
		Name: desired.ServerBackend(server.Name), Transport: how.transport, URL: how.url, HostHeader: how.hostHeader, PodsHost: how.podsHost,
		CAFile: how.caFile, Prefix: string(g.server.Prefix), Tools: policyOf(g.server.Tools), Trusted: g.server.Trusted,
		TimeoutSeconds: int(g.server.TimeoutSeconds),
		Guarded:        true, AllowPrivate: true, // who may make EndpointSlices could lead the Service to the gateway's own ports
	}
	if was := c.written(out.backend.Name); c.withdraws && was != nil {
		if err := checkAlone(out.backend); err != nil { // what it would be granted is nothing
			return out, &refusal{mcpv1alpha1.VerdictInvalid, err.Error()}
		}
		narrowPolicy(&out.backend, was)
	}
	return out, nil
}

// isClosed says whether a server lets in gateways alone. One whose last edit is refused does as it did.
func (c *compiler) isClosed(server *mcpv1alpha1.MCPServer) bool {
	conditions := server.Status.Conditions
	applied := apimeta.FindStatusCondition(conditions, mcpv1alpha1.ConditionApplied)
	inForce := applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == server.Generation
	if isFalse(apimeta.FindStatusCondition(conditions, mcpv1alpha1.ConditionAccepted), server.Generation) && !inForce {
		return slices.Contains(c.LetIn, server.Name)
	}
	return server.Spec.Network != nil && server.Spec.Network.Ingress == mcpv1alpha1.IngressGateways
}

// connection is how a gateway reaches a server. With podsHost it dials single pods at the port of the URL, which must be that of them all:
// while a port is being edited it is not, and only the Service leads to pods of before and after.
type connection struct {
	transport                         table.Transport
	url, hostHeader, podsHost, caFile string
	files                             files
}

// connectionOf is how a server is reached. Until it serves by its newest specification, that is how it was before.
func (c *compiler) connectionOf(server *mcpv1alpha1.MCPServer) (connection, *refusal) {
	asked := desired.Endpoint(server, desired.ServiceName(server.Name), c.ClusterDomain)
	if isCurrent(server) {
		return c.askedConnection(server, asked)
	}
	was := c.written(desired.ServerBackend(server.Name))
	if server.Status.Endpoint == "" || !c.isServiceOf(server, server.Status.Endpoint) {
		how, refused := c.askedConnection(server, asked)
		if was != nil && (was.PodsHost == "" || portOf(was.URL) != portOf(asked)) {
			how.podsHost = ""
		}
		return how, refused
	}
	how := connection{transport: table.TransportHTTP, url: server.Status.Endpoint, files: files{}} // it finds out about SSE
	switch {
	case was != nil:
		how.transport, how.hostHeader = was.Transport, was.HostHeader
		if portOf(was.URL) == portOf(how.url) && !losesPods(server) {
			how.podsHost = was.PodsHost
		}
		if isHTTPS(how.url) {
			how.caFile, how.files = was.CAFile, at(was.CAFile, c.Mounted)
		}
		return how, nil
	case how.url != asked && !isHTTPS(how.url):
		return how, nil
	}
	how, refused := c.askedConnection(server, asked)
	how.podsHost = "" // where its pods listen is not known: the Service finds the port of each by its name
	return how, refused
}

// losesPods says whether the headless Service of a server goes with an edit that is being rolled out.
func losesPods(server *mcpv1alpha1.MCPServer) bool {
	accepted := apimeta.FindStatusCondition(server.Status.Conditions, mcpv1alpha1.ConditionAccepted)
	return !desired.HasPodsService(server) && !isFalse(accepted, server.Generation)
}

func (c *compiler) askedConnection(server *mcpv1alpha1.MCPServer, url string) (connection, *refusal) {
	how := connection{transport: table.TransportHTTP, url: url, hostHeader: server.Spec.HostHeader, files: files{}}
	if server.Spec.Transport == mcpv1alpha1.TransportSSE {
		how.transport = table.TransportSSE
	}
	if desired.HasPodsService(server) {
		how.podsHost = desired.PodsDNSName(server, c.ClusterDomain)
	}
	if server.Spec.TLS == nil {
		return how, nil
	}
	if server.Spec.TLS.InsecureSkipVerify {
		return how, &refusal{mcpv1alpha1.VerdictInvalid, "the MCPServer has tls.insecureSkipVerify, and gateways verify every certificate: " +
			"give it tls.caSecretRef instead"}
	}
	if ref := server.Spec.TLS.CASecretRef; ref != nil {
		file, err := how.files.add(desired.MountSecret, ref.Name, cmp.Or(ref.Key, "ca.crt")) // the schema's default, for objects made without it
		if err != nil {
			return how, &refusal{mcpv1alpha1.VerdictInvalid, "tls.caSecretRef: " + err.Error()}
		}
		how.caFile = file
	}
	return how, nil
}

// isCurrent says whether a server is known to serve by its newest specification. Else it may serve by one before, since the newest is
// refused or being rolled out; if it has an endpoint, that is what was verified.
func isCurrent(server *mcpv1alpha1.MCPServer) bool {
	ready := apimeta.FindStatusCondition(server.Status.Conditions, mcpv1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == server.Generation
}

// isServiceOf says whether a URL leads to a server's Service.
func (c *compiler) isServiceOf(server *mcpv1alpha1.MCPServer, endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && u.Hostname() == desired.ServiceDNSName(server, desired.ServiceName(server.Name), c.ClusterDomain)
}

func isHTTPS(endpoint string) bool { return strings.HasPrefix(endpoint, "https://") }

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
