package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// The names of an MCPServer's children. The API refuses MCPServer names that are longer than 54 characters or end in one
// of these suffixes, so every name fits into a label of 63 and two objects never mean the same child.

// DeploymentName is the name of the Deployment.
func DeploymentName(server string) string { return server }

// ServiceName is the name of the Service.
func ServiceName(server string) string { return server + "-svc" }

// NetworkPolicyName is the name of the NetworkPolicy.
func NetworkPolicyName(server string) string { return server }

// PodsServiceName is the name of the headless Service, by which gateways find the single pods of a server.
func PodsServiceName(server string) string { return server + "-pods" }

// ConfigMapName is the name of the ConfigMap that holds the inline configuration.
func ConfigMapName(server string) string { return server + "-config" }

// secretVolumeName is the name of the volume of a Secret. Names of Secrets are longer than volume names may be.
func secretVolumeName(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return "secret-" + hex.EncodeToString(sum[:8])
}

// ServiceDNSName is the DNS name of a server's Service, which has the name service. The certificate of a server that speaks HTTPS
// must be for it.
func ServiceDNSName(server *mcpv1alpha1.MCPServer, service, clusterDomain string) string {
	return fmt.Sprintf("%s.%s.svc.%s", service, server.Namespace, clusterDomain)
}

// ServiceHost is the DNS name and port of that Service.
func ServiceHost(server *mcpv1alpha1.MCPServer, service, clusterDomain string) string {
	return net.JoinHostPort(ServiceDNSName(server, service, clusterDomain), strconv.Itoa(int(Port(server))))
}

// Endpoint is the address of a server's MCP endpoint inside the cluster.
func Endpoint(server *mcpv1alpha1.MCPServer, service, clusterDomain string) string {
	return Scheme(server) + "://" + ServiceHost(server, service, clusterDomain) + Path(server)
}

// Scheme is the scheme of a server's endpoint: http, or https when the server speaks TLS itself.
func Scheme(server *mcpv1alpha1.MCPServer) string {
	if server.Spec.TLS != nil {
		return "https"
	}
	return "http"
}

// Port is the port of a server. The schema sets the default too; objects made without it get it here.
func Port(server *mcpv1alpha1.MCPServer) int32 {
	if server.Spec.Port == 0 {
		return 8080
	}
	return server.Spec.Port
}

// Path is the HTTP path of a server's MCP endpoint; of an SSE server, that of its event stream.
func Path(server *mcpv1alpha1.MCPServer) string {
	switch {
	case server.Spec.Path != "":
		return server.Spec.Path
	case server.Spec.Transport == mcpv1alpha1.TransportSSE:
		return "/sse"
	}
	return "/mcp"
}

// Replicas is how many pods are asked for.
func Replicas(server *mcpv1alpha1.MCPServer) int32 {
	if server.Spec.Replicas == nil {
		return 1
	}
	return *server.Spec.Replicas
}
