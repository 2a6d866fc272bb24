// Package v1alpha1 is the contract of mcp-operator: the kinds of the API group mcp.operator, version v1alpha1.
//
// Every rule that can be said in a schema is said here, as OpenAPI limits and CEL, so that a wrong object is
// refused when it is written and not when it is reconciled.
//
// +kubebuilder:object:generate=true
// +groupName=mcp.operator
// +groupGoName=MCP
package v1alpha1
