package mcptool

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// isRestricted: a Secret that says otherwise where it may be sent.
func isRestricted(was, is client.Object) bool {
	before, wasRestricted := was.GetAnnotations()[mcpv1alpha1.AnnotationAllowedHosts]
	now, restricted := is.GetAnnotations()[mcpv1alpha1.AnnotationAllowedHosts]
	return wasRestricted != restricted || before != now
}

// never: a change of content may be anything, and comes as often as its author likes.
func never(client.Object, client.Object) bool { return false }
