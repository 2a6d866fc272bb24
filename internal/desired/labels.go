package desired

import "maps"

const (
	// LabelApp is the label of every workload we make; its value is WorkloadName.
	LabelApp = "app"

	// LabelMCPServer names the server. Every pod we make carries it, and the pod cache selects by it.
	LabelMCPServer = "mcp-server"

	// LabelServer names the MCPServer (mcp.operator), and is what Deployment, Service and NetworkPolicy select by.
	LabelServer = "mcp.operator/server"

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

// labels returns the labels of a server's children.
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
