// Package v1alpha1 is the compatibility API: the MCPServer of the Kubernetes SIG Apps project (mcp.x-k8s.io/v1alpha1, as of its
// version 0.3.0). Fields, defaults, rules, columns and the status are those that its users have; docs/compatibility.md compares
// it with our own kind. Its limits are not ours to tighten: an object that was accepted once must be accepted again.
//
// +kubebuilder:object:generate=true
// +groupName=mcp.x-k8s.io
package v1alpha1
