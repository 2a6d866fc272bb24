package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// The names of an MCPAgent's children. The API holds the names of agents to the rules for those of servers.

// GatewayName is the name of everything that the gateway consists of: Deployment, Service, ConfigMap, ServiceAccount, Role and so on.
func GatewayName(agent string) string { return agent + "-gateway" }

// ServersPolicyName is the name of the NetworkPolicy that lets the gateway in at servers which let in gateways alone.
func ServersPolicyName(agent string) string { return agent + "-gateway-servers" }

// SessionSecretName is the name of the Secret with the key that seals session ids, and the token for the gateway's status.
func SessionSecretName(agent string) string { return agent + "-session" }

// RuntimeName is the name of the Deployment, ServiceAccount and NetworkPolicy of the agent's own workload.
func RuntimeName(agent string) string { return agent }

// GatewayPort is where a gateway serves MCP, GatewayHealthPort where it answers /livez, /readyz, /metrics and /status.
const (
	GatewayPort       = int32(8080)
	GatewayHealthPort = int32(8081)
)

// GatewayDNSName is the DNS name of the gateway's Service. The certificate of gateway.tls must be for it.
func GatewayDNSName(agent *mcpv1alpha1.MCPAgent, clusterDomain string) string {
	return fmt.Sprintf("%s.%s.svc.%s", GatewayName(agent.Name), agent.Namespace, clusterDomain)
}

// GatewayScheme is the scheme of the agent's endpoint: https with gateway.tls, else http.
func GatewayScheme(agent *mcpv1alpha1.MCPAgent) string {
	if agent.Spec.Gateway != nil && agent.Spec.Gateway.TLS != nil {
		return "https"
	}
	return "http"
}

// GatewayEndpoint is the address of the agent's MCP endpoint inside the cluster.
func GatewayEndpoint(agent *mcpv1alpha1.MCPAgent, clusterDomain string) string {
	host := net.JoinHostPort(GatewayDNSName(agent, clusterDomain), strconv.Itoa(int(GatewayPort)))
	return GatewayScheme(agent) + "://" + host + gatewayPath
}

const gatewayPath = "/mcp"

// PodsDNSName is the DNS name of a server's headless Service.
func PodsDNSName(server *mcpv1alpha1.MCPServer, clusterDomain string) string {
	return ServiceDNSName(server, PodsServiceName(server.Name), clusterDomain)
}

// HasPodsService says whether a server has a headless Service: there is none where there are no sessions.
func HasPodsService(server *mcpv1alpha1.MCPServer) bool {
	return server.Spec.Sessions != mcpv1alpha1.SessionsStateless
}

// ServerBackend is the name of an MCPServer in a routing table, ToolBackend that of an MCPTool.
func ServerBackend(server string) string { return backendName("server-" + server) }

// ToolBackend is the name of an MCPTool in a routing table.
func ToolBackend(tool string) string { return backendName("tool-" + tool) }

var notInBackendNames = regexp.MustCompile(`[^a-z0-9-]`)

// maxBackendName is how long the names of backends may be.
const maxBackendName = 63

// backendName is name as far as it may be one. What cannot, since a reference may be longer than what it can refer to, is cut, with a
// digest at its end, so that two are never the same.
func backendName(name string) string {
	legal := notInBackendNames.ReplaceAllString(name, "-")
	if legal == name && len(name) <= maxBackendName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := hex.EncodeToString(sum[:6])
	return strings.TrimRight(legal[:min(len(legal), maxBackendName-1-len(digest))], "-") + "-" + digest
}

// mountVolumeName is the name of the volume of a Mount.
func mountVolumeName(m Mount) string {
	if m.Kind == MountSecret {
		return secretVolumeName(m.Name)
	}
	sum := sha256.Sum256([]byte(m.Name))
	return "configmap-" + hex.EncodeToString(sum[:8])
}

// GatewayReplicas is how many pods of the gateway are asked for, and whether that is for an autoscaler to say, who then begins there.
func GatewayReplicas(agent *mcpv1alpha1.MCPAgent) (replicas int32, scaled bool) {
	switch {
	case agent.Spec.Scaling != nil && !HasRuntime(agent):
		return minReplicas(agent.Spec.Scaling), true
	case agent.Spec.Gateway != nil && agent.Spec.Gateway.Replicas != 0:
		return agent.Spec.Gateway.Replicas, false
	}
	return 2, false
}

func minReplicas(scaling *mcpv1alpha1.Scaling) int32 {
	if scaling.MinReplicas == 0 {
		return 2
	}
	return scaling.MinReplicas
}

// HasRuntime says whether the agent has a workload of its own.
func HasRuntime(agent *mcpv1alpha1.MCPAgent) bool {
	return agent.Spec.Runtime != nil && agent.Spec.Runtime.Image != ""
}
