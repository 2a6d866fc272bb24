package engine

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcp-operator/mcp-operator/internal/desired"
)

// CacheOptions returns the cache options of a manager that runs this controller. Of Pods the API server sends only those
// that we make; what is kept of them is what the diagnosis and the prober read. Of Deployments, Services and
// NetworkPolicies that are not ours, and of ConfigMaps and Secrets, only the metadata is kept: enough to see that they are there.
func CacheOptions() (cache.Options, error) {
	ours, err := k8slabels.NewRequirement(desired.LabelMCPServer, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("select pods by the label %q: %w", desired.LabelMCPServer, err)
	}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                 {Label: k8slabels.NewSelector().Add(*ours), Transform: trimPod},
			&appsv1.Deployment{}:          {Transform: trimForeign},
			&corev1.Service{}:             {Transform: trimForeign},
			&networkingv1.NetworkPolicy{}: {Transform: trimForeign},
			&corev1.Secret{}:              {Transform: trimMetadata},
			&corev1.ConfigMap{}:           {Transform: trimMetadata},
			&corev1.Namespace{}:           {Transform: trimMetadata},
		},
	}, nil
}

// trimPod drops what is never read.
func trimPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	pod.ManagedFields, pod.Annotations = nil, nil
	var containers []corev1.Container
	for _, c := range pod.Spec.Containers {
		if c.Name == desired.WorkloadName {
			containers = append(containers, corev1.Container{Name: c.Name, Ports: c.Ports})
		}
	}
	pod.Spec = corev1.PodSpec{Containers: containers}
	pod.Status = corev1.PodStatus{
		Phase: pod.Status.Phase, PodIP: pod.Status.PodIP, StartTime: pod.Status.StartTime,
		Conditions:            pod.Status.Conditions,
		ContainerStatuses:     pod.Status.ContainerStatuses,
		InitContainerStatuses: pod.Status.InitContainerStatuses,
	}
	return pod, nil
}

// trimMetadata drops annotations and labels of objects that are watched as metadata: kubectl apply keeps a copy of the whole
// object, of a Secret too, in an annotation.
func trimMetadata(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetAnnotations(nil)
		o.SetLabels(nil)
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// trimForeign keeps only the metadata of objects that we did not make.
func trimForeign(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
		if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "MCPServer" {
			return obj, nil
		}
		o.SetAnnotations(nil)
	}
	switch o := obj.(type) {
	case *appsv1.Deployment:
		o.Spec, o.Status = appsv1.DeploymentSpec{}, appsv1.DeploymentStatus{}
	case *corev1.Service:
		o.Spec, o.Status = corev1.ServiceSpec{}, corev1.ServiceStatus{}
	case *networkingv1.NetworkPolicy:
		o.Spec = networkingv1.NetworkPolicySpec{}
	}
	return obj, nil
}
