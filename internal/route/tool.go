package route

import (
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// remoteTimeout bounds a call of a remote MCP server whose tool says nothing, in seconds. Toolsets have the same default of their own.
const remoteTimeout = 30

// compileTool makes the backend of an MCPTool. It is served only as long as its controller accepts it as it is now.
func (c *compiler) compileTool(g grant) (compiled, *refusal) {
	tool := c.Tools[g.name]
	if tool == nil || tool.DeletionTimestamp != nil {
		return compiled{}, c.missing("MCPTool", g.name, tool != nil)
	}
	kept := compiled{tool: loneTool(tool), files: c.mountedStill(tool)}
	if refused := judged(tool); refused != nil {
		return kept, refused
	}
	if tool.Spec.Type == mcpv1alpha1.ToolMCP && c.isOwnEndpoint(tool.Spec.Endpoint) {
		return kept, &refusal{mcpv1alpha1.VerdictInvalid, "endpoint: is this agent's own endpoint, whose tools would come back to it: " +
			"grant the MCPTool to other agents alone"}
	}
	definition, err := definitionOf(tool, c.Schemas[tool.Name])
	if err != nil {
		return kept, &refusal{mcpv1alpha1.VerdictInvalid, err.Error()}
	}
	out, err := toolBackendOf(tool, definition, c.AllowPrivate)
	if err != nil {
		return kept, &refusal{mcpv1alpha1.VerdictInvalid, err.Error()}
	}
	out.note = unreachable(tool)
	return out, nil
}

// mountedStill are the files of a tool that stay mounted though it is not served. Those of one that is accepted do, and of any other those
// that are mounted already: a Secret that goes for a moment and comes back would replace the gateway's pods twice. What nobody said may be
// sent is not mounted anew, and what must not be sent not at all.
func (c *compiler) mountedStill(tool *mcpv1alpha1.MCPTool) files {
	accepted := apimeta.FindStatusCondition(tool.Status.Conditions, mcpv1alpha1.ConditionAccepted)
	asked := filesOf(&tool.Spec)
	switch {
	case accepted == nil:
	case accepted.Reason == mcpv1alpha1.ReasonSecretNotAllowed:
		c.forbidden.addAll(asked)
		return files{}
	case awaitsJudgement(tool):
		c.awaits = true
	case accepted.Status == metav1.ConditionTrue:
		return asked
	}
	return asked.among(c.Mounted)
}

// awaitsJudgement says whether the last edit of a tool is to be judged in a moment.
func awaitsJudgement(tool *mcpv1alpha1.MCPTool) bool {
	accepted := apimeta.FindStatusCondition(tool.Status.Conditions, mcpv1alpha1.ConditionAccepted)
	return accepted != nil && accepted.ObservedGeneration != tool.Generation
}

// isOwnEndpoint says whether a URL leads to the agent's own gateway: by any name of its Service, or by gateway.publicURL and what is
// below that. Of that the host alone proves nothing, since several agents may be published at one.
func (c *compiler) isOwnEndpoint(endpoint string) bool {
	at, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host, agent := hostName(at), c.Agent
	if slices.Contains(serviceHosts(agent, c.ClusterDomain), host) {
		return true
	}
	if agent.Spec.Gateway == nil || agent.Spec.Gateway.PublicURL == "" {
		return false
	}
	public, err := url.Parse(agent.Spec.Gateway.PublicURL)
	if err != nil || hostName(public) != host || portOf(public.String()) != portOf(at.String()) {
		return false
	}
	folder := strings.TrimSuffix(path.Join("/", public.Path), "/") + "/"
	return strings.HasPrefix(path.Join("/", at.Path)+"/", folder)
}

// hostName is the host of a URL as names are compared: in small letters, without the dot of the root.
func hostName(u *url.URL) string { return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) }

// loneTool is the name of the one tool that an MCPTool is, empty if it may be several.
func loneTool(tool *mcpv1alpha1.MCPTool) string {
	if tool.Spec.Type == mcpv1alpha1.ToolHTTP || tool.Spec.Type == mcpv1alpha1.ToolPostgres {
		return tool.Name
	}
	return ""
}

// judged refuses a tool that its controller did not accept, or not yet.
func judged(tool *mcpv1alpha1.MCPTool) *refusal {
	needed := []string{mcpv1alpha1.ConditionAccepted}
	if tool.Spec.Type == mcpv1alpha1.ToolOpenAPI { // what it excludes now may be in the definitions of before
		needed = append(needed, mcpv1alpha1.ConditionApplied)
	}
	for _, kind := range needed {
		condition := apimeta.FindStatusCondition(tool.Status.Conditions, kind)
		switch {
		case condition == nil || condition.ObservedGeneration != tool.Generation:
			return &refusal{mcpv1alpha1.VerdictPending, "the MCPTool has not been checked yet"}
		case condition.Status == metav1.ConditionTrue:
		case condition.Status == metav1.ConditionFalse && kind == mcpv1alpha1.ConditionAccepted:
			return &refusal{mcpv1alpha1.VerdictInvalid, condition.Message}
		default:
			return &refusal{mcpv1alpha1.VerdictPending, condition.Message}
		}
	}
	if tool.Spec.Type == mcpv1alpha1.ToolOpenAPI && tool.Status.Definitions == nil {
		return &refusal{mcpv1alpha1.VerdictPending, "the tools of the OpenAPI document are not there yet"}
	}
	// The gateway's dial guard would refuse it as well, later and call by call.
	reachable := apimeta.FindStatusCondition(tool.Status.Conditions, mcpv1alpha1.ConditionReachable)
	if tool.Spec.Type == mcpv1alpha1.ToolMCP && isFalse(reachable, tool.Generation) && reachable.Reason == mcpv1alpha1.ReasonAddressDenied {
		return &refusal{mcpv1alpha1.VerdictUnavailable, reachable.Message}
	}
	return nil
}

// unreachable is what the operator found of the tool's endpoint, if it cannot be connected to.
func unreachable(tool *mcpv1alpha1.MCPTool) string {
	if reachable := apimeta.FindStatusCondition(tool.Status.Conditions, mcpv1alpha1.ConditionReachable); isFalse(reachable, tool.Generation) {
		return reachable.Message
	}
	return ""
}

// toolBackendOf makes the backend of an MCPTool, which the table has not seen yet.
func toolBackendOf(tool *mcpv1alpha1.MCPTool, definition Definition, allowPrivate bool) (compiled, error) {
	spec := &tool.Spec
	out := compiled{tool: loneTool(tool), files: files{}}
	out.backend = table.Backend{
		Name: desired.ToolBackend(tool.Name), Transport: table.TransportToolset, URL: spec.Endpoint, TimeoutSeconds: int(spec.TimeoutSeconds),
		AllowPrivate: allowPrivate, Trusted: true,
	}
	b := &out.backend
	switch spec.Type {
	case mcpv1alpha1.ToolHTTP:
		b.Toolset = &table.Toolset{HTTP: []table.HTTPTool{*definition.HTTP}}
	case mcpv1alpha1.ToolPostgres:
		b.URL, b.Toolset = "", &table.Toolset{Postgres: definition.Postgres}
	case mcpv1alpha1.ToolOpenAPI:
		file := tool.Status.Definitions
		if b.URL == "" {
			b.URL = file.Endpoint
		}
		b.Toolset = &table.Toolset{Files: []table.ToolFile{{ConfigMap: file.Name, Key: string(file.Key), SHA256: file.SHA256}}}
	case mcpv1alpha1.ToolMCP:
		if err := checkRemoteHost(spec.Endpoint, allowPrivate); err != nil {
			return out, err
		}
		remoteBackend(b, spec)
	}
	if err := authenticate(&out, spec); err != nil {
		return out, err
	}
	file, err := out.files.bundle(spec.CABundle)
	if err != nil {
		return out, invalid("caBundle: %s", err)
	}
	b.CAFile = file
	return out, nil
}

func remoteBackend(b *table.Backend, spec *mcpv1alpha1.MCPToolSpec) {
	b.Transport, b.Guarded, b.Trusted = table.TransportHTTP, true, false
	if b.TimeoutSeconds == 0 {
		b.TimeoutSeconds = remoteTimeout
	}
	if spec.MCP == nil {
		return
	}
	b.Prefix, b.Trusted, b.Tools = string(spec.MCP.Prefix), spec.MCP.Trusted, policyOf(spec.MCP.Tools)
	if spec.MCP.Transport == mcpv1alpha1.TransportSSE {
		b.Transport = table.TransportSSE
	}
}

// sharedRange is that of carriers (RFC 6598), which is as private as the others.
var sharedRange = netip.MustParsePrefix("100.64.0.0/10")

// checkRemoteHost refuses hosts that are denied addresses by how they are written. What names resolve to is looked at by who dials.
func checkRemoteHost(endpoint string, allowPrivate bool) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil //nolint:nilerr // the table says what is wrong with it
	}
	host := hostName(u)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return invalid("endpoint: is at the gateway's own host, which is never dialled")
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return nil //nolint:nilerr // a name
	}
	switch address = address.Unmap(); {
	case address.IsLoopback(), address.IsUnspecified(), address.IsLinkLocalUnicast(), address.IsMulticast():
		return invalid("endpoint: is at a loopback, link-local or multicast address, which is never dialled")
	case !allowPrivate && (address.IsPrivate() || sharedRange.Contains(address)):
		return invalid("endpoint: is at a private address, which the operator was not told to allow (--allow-private-endpoints)")
	}
	return nil
}

// postgresEndpoint reads postgres://host:port/database. Its errors do not quote it: what is wrong may be that it has a password in it.
func postgresEndpoint(raw string) (host string, port int, database string, err error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", 0, "", invalid("endpoint: must be postgres://host:5432/database")
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(raw, "#") {
		return "", 0, "", invalid("endpoint: must be postgres://host:5432/database, without user, password, query and fragment; give auth and postgres.user")
	}
	database = strings.TrimPrefix(u.Path, "/")
	if u.Hostname() == "" || database == "" || strings.Contains(database, "/") {
		return "", 0, "", invalid("endpoint: must have a host and the name of one database, as in postgres://host:5432/database")
	}
	port = 5432
	if text := u.Port(); text != "" || strings.HasSuffix(u.Host, ":") {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return "", 0, "", invalid("endpoint: must have a port of 1 to 65535, or none for 5432")
		}
		port = int(n)
	}
	return u.Hostname(), port, database, nil
}
