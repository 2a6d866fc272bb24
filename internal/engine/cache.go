package engine

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/desired"
)

// CacheOptions returns the cache options of a manager that runs this controller. Of Pods the API server sends only those
// that we make; what is kept of them is what the diagnosis and the prober read. Of ConfigMaps and Secrets, and of all children that are
// not ours, only the metadata is kept: enough to see that they are there.
func CacheOptions() (cache.Options, error) {
	managed, err := k8slabels.NewRequirement(desired.LabelMCPServer, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("select pods by the label %q: %w", desired.LabelMCPServer, err)
	}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                            {Label: k8slabels.NewSelector().Add(*managed), Transform: trimPod},
			&appsv1.Deployment{}:                     {Transform: trimForeign},
			&corev1.Service{}:                        {Transform: trimForeign},
			&networkingv1.NetworkPolicy{}:            {Transform: trimForeign},
			&corev1.ServiceAccount{}:                 {Transform: trimForeign},
			&rbacv1.Role{}:                           {Transform: trimForeign},
			&rbacv1.RoleBinding{}:                    {Transform: trimForeign},
			&autoscalingv2.HorizontalPodAutoscaler{}: {Transform: trimForeign},
			&policyv1.PodDisruptionBudget{}:          {Transform: trimForeign},
			&corev1.Secret{}:                         {Transform: trimMetadata},
			&corev1.ConfigMap{}:                      {Transform: trimMetadata},
			&corev1.Namespace{}:                      {Transform: trimMetadata},
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
		if c.Name == desired.WorkloadName { // of other pods the ports are known
			containers = append(containers, corev1.Container{
				Name: c.Name, Ports: c.Ports, StartupProbe: c.StartupProbe, ReadinessProbe: c.ReadinessProbe, LivenessProbe: c.LivenessProbe,
			})
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

// trimMetadata drops annotations and labels of objects that are watched as metadata, but for those of our domain: kubectl apply keeps
// a copy of the whole object, of a Secret too, in an annotation.
func trimMetadata(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetAnnotations(ours(o.GetAnnotations()))
		o.SetLabels(ours(o.GetLabels()))
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// owners are the kinds whose children are kept whole.
var owners = sets.New("MCPServer", "MCPAgent")

// ours returns the labels or annotations whose keys are of our domain; nil if there are none.
func ours(all map[string]string) map[string]string {
	var kept map[string]string
	for key, value := range all {
		if !strings.HasPrefix(key, mcpv1alpha1.GroupVersion.Group+"/") {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	return kept
}

// trimForeign keeps only the metadata of objects that we did not make.
func trimForeign(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
		if owner := metav1.GetControllerOf(o); owner != nil && owners.Has(owner.Kind) {
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
	case *corev1.ServiceAccount:
		o.Secrets, o.ImagePullSecrets, o.AutomountServiceAccountToken = nil, nil, nil
	case *rbacv1.Role:
		o.Rules = nil
	case *rbacv1.RoleBinding:
		o.Subjects, o.RoleRef = nil, rbacv1.RoleRef{}
	case *autoscalingv2.HorizontalPodAutoscaler:
		o.Spec, o.Status = autoscalingv2.HorizontalPodAutoscalerSpec{}, autoscalingv2.HorizontalPodAutoscalerStatus{}
	case *policyv1.PodDisruptionBudget:
		o.Spec, o.Status = policyv1.PodDisruptionBudgetSpec{}, policyv1.PodDisruptionBudgetStatus{}
	}
	return obj, nil
}
