package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "mcp.operator", Version: "v1alpha1"}

	// SchemeGroupVersion is GroupVersion under the name that generated clients expect.
	SchemeGroupVersion = GroupVersion

	// SchemeBuilder collects the functions that add this package's kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds this package's kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the group resource of a plural name in this group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &MCPServer{}, &MCPServerList{}, &MCPTool{}, &MCPToolList{}, &MCPAgent{}, &MCPAgentList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
