package cel

// The kinds that have cases, by group and kind.
const (
	ownKind   = "mcp.operator/MCPServer"
	toolKind  = "mcp.operator/MCPTool"
	agentKind = "mcp.operator/MCPAgent"
	sigKind   = "mcp.x-k8s.io/MCPServer"
)

// minimal is the smallest valid MCPServer. Every case is the smallest object of its kind and one change.
const minimal = `
apiVersion: mcp.operator/v1alpha1
kind: MCPServer
metadata: {name: demo, namespace: default}
spec: {image: "registry.example.com/team/server:1.2.3"}
`

// minimalTool is the smallest valid MCPTool.
const minimalTool = `
apiVersion: mcp.operator/v1alpha1
kind: MCPTool
metadata: {name: demo, namespace: default}
spec: {type: http, endpoint: "https://api.example.com/v1"}
`

// minimalAgent is the smallest valid MCPAgent.
const minimalAgent = `
apiVersion: mcp.operator/v1alpha1
kind: MCPAgent
metadata: {name: demo, namespace: default}
spec: {auth: {type: None}, tools: [{name: demo}]}
`

// kindCases are the cases of a kind.
type kindCases struct {
	minimal  string // the smallest valid object
	accepted []accepted
	refused  []refused
}

// ownKinds are the kinds of this project's own API.
func ownKinds() map[string]kindCases {
	return map[string]kindCases{
		ownKind:   {minimal, allAccepted(), allRefused()},
		toolKind:  {minimalTool, acceptedTools(), refusedTools()},
		agentKind: {minimalAgent, acceptedAgents(), refusedAgents()},
	}
}
