package desired

import (
	"maps"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

const (
	// LabelApp is the label of every workload we make; its value is WorkloadName.
	LabelApp = "app"

	// LabelMCPServer names the server. Every pod we make carries it, and the pod cache selects by it.
	LabelMCPServer = "mcp-server"

	// LabelServer names the MCPServer (mcp.operator), and is what Deployment, Service and NetworkPolicy select by.
	LabelServer = "mcp.operator/server"

	// LabelAgent names the MCPAgent, and LabelComponent says which of its two workloads it is: by both the children of an agent select.
	LabelAgent     = "mcp.operator/agent"
	LabelComponent = "mcp.operator/component"

	// ComponentGateway is the agent's endpoint, ComponentRuntime its own workload.
	ComponentGateway = "gateway"
	ComponentRuntime = "runtime"

	// GatewayContainerName is the container of a gateway's pod, and the value of its app label; AgentContainerName those of the agent's own.
	GatewayContainerName = "mcp-gateway"
	AgentContainerName   = "mcp-agent"

	// LabelManagedBy is the recommended label that says who manages an object; its value is ManagedBy.
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// ManagedBy is the value of LabelManagedBy on everything the operator makes.
	ManagedBy = "mcp-operator"

	// WorkloadName is the value of the app label and the name of the main container.
	WorkloadName = "mcp-server"

	// AnnotationConfigHash is the pod template's keyed hash over everything that the pods read from ConfigMaps and Secrets.
	AnnotationConfigHash = "mcp.operator/config-hash"
)

// Selector returns the labels that select the pods of a server.
func Selector(server string) map[string]string {
	return map[string]string{LabelServer: server}
}

// childLabels returns the labels of a server's children: the user's, and ours, which win.
func childLabels(server *mcpv1alpha1.MCPServer) map[string]string {
	l := map[string]string{}
	for key, value := range server.Spec.Labels {
		l[key] = string(value)
	}
	maps.Copy(l, labels(server.Name))
	return l
}

// childAnnotations returns the user's annotations of a server's children.
func childAnnotations(server *mcpv1alpha1.MCPServer) map[string]string {
	a := map[string]string{}
	for key, value := range server.Spec.Annotations {
		a[key] = string(value)
	}
	return a
}

// labels returns the labels that we give a server's children.
func labels(server string) map[string]string {
	l := map[string]string{
		LabelApp:                     WorkloadName,
		LabelMCPServer:               server,
		LabelManagedBy:               ManagedBy,
		"app.kubernetes.io/name":     WorkloadName,
		"app.kubernetes.io/instance": server,
	}
	maps.Copy(l, Selector(server))
	return l
}

// AgentSelector returns the labels that select the pods of one of the workloads of an agent.
func AgentSelector(agent, component string) map[string]string {
	return map[string]string{LabelAgent: agent, LabelComponent: component}
}

// agentLabels returns the labels of the children of an agent.
func agentLabels(agent, component string) map[string]string {
	name := GatewayContainerName
	if component == ComponentRuntime {
		name = AgentContainerName
	}
	l := map[string]string{
		LabelApp: name,
		// No MCPServer has a dot in its name.
		LabelMCPServer:               "agent." + agent,
		LabelManagedBy:               ManagedBy,
		"app.kubernetes.io/name":     name,
		"app.kubernetes.io/instance": agent,
	}
	maps.Copy(l, AgentSelector(agent, component))
	return l
}
