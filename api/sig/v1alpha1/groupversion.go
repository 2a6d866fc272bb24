package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of the compatibility API.
	GroupVersion = schema.GroupVersion{Group: "mcp.x-k8s.io", Version: "v1alpha1"}

	// SchemeBuilder collects the functions that add this package's kind to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds this package's kind to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &MCPServer{}, &MCPServerList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
