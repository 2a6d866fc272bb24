package desired

import (
	"net/netip"
	"path"

	networkingv1 "k8s.io/api/networking/v1"
)

// AgentEnvironment is what the children of an MCPAgent depend on besides the object itself.
type AgentEnvironment struct {
	// OperatorNamespace is where the operator runs.
	OperatorNamespace string
	// ClusterDomain is the DNS domain of the cluster.
	ClusterDomain string
	// GatewayImage is the image of the gateway.
	GatewayImage string
	// Table is the routing table, as JSON.
	Table []byte
	// SessionKey seals session ids, at least 32 bytes; StatusToken is what the gateway asks of whoever reads its status.
	SessionKey, StatusToken []byte
	// Mounts are the Secrets and ConfigMaps that the gateway reads, sorted, one for each object.
	Mounts []Mount
	// Definitions are the names of the ConfigMaps with definitions of tools, which the gateway reads from the API server. Sorted.
	Definitions []string
	// Reach is where the gateway connects to.
	Reach Reach
	// ServiceIP is the cluster IP of the gateway's Service; empty while it is not known: then there is no workload of the agent's own yet.
	ServiceIP string
	// APIServer are the addresses of the API server, before and after the Service "kubernetes".
	APIServer []netip.AddrPort
	// DNS are the pods that answer DNS; none means port 53 anywhere.
	DNS []networkingv1.NetworkPolicyPeer
	// ConfigHash is the keyed hash over the ConfigMaps that the agent's own workload reads.
	ConfigHash string
}

// MountKind is the kind of an object that is mounted.
type MountKind string

// The kinds of mounts.
const (
	MountSecret    MountKind = "Secret"
	MountConfigMap MountKind = "ConfigMap"
)

// Mount is an object of which some keys are mounted as files. One that does not exist (yet) keeps no pod from starting.
type Mount struct {
	Kind MountKind
	Name string
	// Keys are sorted, without duplicates.
	Keys []string
}

// File is the path of a key's file.
func (m Mount) File(key string) string { return path.Join(m.folder(), key) }

func (m Mount) folder() string {
	folder := "secrets"
	if m.Kind == MountConfigMap {
		folder = "configmaps"
	}
	return path.Join("/etc/mcp-gateway", folder, m.Name)
}

// Reach is where a gateway connects to.
type Reach struct {
	// Servers are the names of the MCPServers, sorted. Closed are those among them that let in gateways alone (network.ingress: Gateways).
	Servers, Closed []string
	// PublicPorts are ports of endpoints at addresses of the Internet, PrivatePorts of those that may be at private ones too. Sorted.
	PublicPorts, PrivatePorts []int32
}
