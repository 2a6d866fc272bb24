package sigserver

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/engine"
)

// makeServer returns a valid MCPServer at generation 2, changed as asked.
func makeServer(changes ...func(*sigv1alpha1.MCPServer)) *sigv1alpha1.MCPServer {
	server := &sigv1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "team", UID: "uid-demo", Generation: 2, ResourceVersion: "7"},
		Spec: sigv1alpha1.MCPServerSpec{
			Source: sigv1alpha1.Source{
				Type: sigv1alpha1.SourceContainerImage, ContainerImage: &sigv1alpha1.ContainerImage{Ref: "registry.example.com/server:1"},
			},
			Config: sigv1alpha1.Config{Port: 8080, Path: "/mcp"},
		},
	}
	for _, change := range changes {
		change(server)
	}
	return server
}

// makeDeployment returns the Deployment of that server, with one ready pod, changed as asked.
func makeDeployment(changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "team", Generation: 5},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1))},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 5, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{says(appsv1.DeploymentAvailable, corev1.ConditionTrue, ""), progressing},
		},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

var progressing = says(appsv1.DeploymentProgressing, corev1.ConditionTrue, "")

func says(conditionType appsv1.DeploymentConditionType, status corev1.ConditionStatus, message string) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: conditionType, Status: status, Message: message}
}

// noneReady takes a Deployment's pods from it, and gives it conditions.
func noneReady(conditions ...appsv1.DeploymentCondition) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Status.ReadyReplicas, d.Status.Conditions = 0, conditions }
}

// The conditions that the engine finds.
var (
	valid      = found("Accepted", metav1.ConditionTrue, "Valid", "Configuration is valid")
	invalid    = found("Accepted", metav1.ConditionFalse, "Invalid", "ConfigMap 'c' not found in namespace 'team'")
	unjudged   = found("Accepted", metav1.ConditionUnknown, "Unknown", "read ConfigMap team/c: forbidden")
	applied    = found("Applied", metav1.ConditionTrue, "Applied", "All child objects are up to date")
	unapplied  = found("Applied", metav1.ConditionFalse, "OwnershipConflict", "Failed to reconcile Service: resource team/demo is owned by A/b")
	available  = found("Available", metav1.ConditionTrue, "Available", "1 of 1 replicas are ready")
	verified   = found("Verified", metav1.ConditionTrue, "Verified", "Answered MCP 2025-11-25")
	asks       = found("Verified", metav1.ConditionTrue, "AuthRequired", "It asks for a token")
	notMCP     = found("Verified", metav1.ConditionFalse, "NotMCP", "It is no MCP server.")
	unreached  = found("Verified", metav1.ConditionFalse, "ServiceUnreachable", engine.ServiceUnreachable)
	ready      = found("Ready", metav1.ConditionTrue, "Available", "MCP server is ready (1 of 1 instances healthy)")
	starting   = found("Ready", metav1.ConditionUnknown, "Initializing", "The first MCP handshake is under way")
	unanswered = found("Ready", metav1.ConditionFalse, "MCPEndpointUnavailable", "MCP endpoint is not serving a valid MCP protocol: It is no MCP server.")
	misconfig  = found("Ready", metav1.ConditionFalse, "ConfigurationInvalid", "Configuration must be fixed: "+invalid.Message)
	noService  = found("Ready", metav1.ConditionFalse, "ServiceUnavailable", unapplied.Message)
)

func found(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: 2}
}

// makePass returns a pass that saw a Deployment and found conditions, changed as asked.
func makePass(d *appsv1.Deployment, conditions ...metav1.Condition) engine.Pass {
	server := &mcpv1alpha1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "team", Generation: 2}}
	server.Status.Conditions = conditions
	return engine.Pass{Server: server, Deployment: d, Seen: true}
}
