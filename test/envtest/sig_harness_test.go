package envtest

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
)

// sigServer returns an MCPServer of the compatibility API that has what is required.
func (f *fixture) sigServer(name string) *sigv1alpha1.MCPServer {
	return &sigv1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec: sigv1alpha1.MCPServerSpec{
			Source: sigv1alpha1.Source{
				Type: sigv1alpha1.SourceContainerImage, ContainerImage: &sigv1alpha1.ContainerImage{Ref: "registry.example.com/server:1"},
			},
			Config: sigv1alpha1.Config{Port: 8080},
		},
	}
}

// sigCondition waits for a condition of a server of the compatibility API.
func (f *fixture) sigCondition(name, conditionType string, status metav1.ConditionStatus, reason string) *sigv1alpha1.MCPServer {
	f.t.Helper()
	server := &sigv1alpha1.MCPServer{}
	f.eventually(fmt.Sprintf("%s: %s=%s/%s", name, conditionType, status, reason), func() error {
		if err := f.get(server, name); err != nil {
			return err
		}
		c := conditionOf(server, conditionType)
		if c.Status == status && c.Reason == reason && c.ObservedGeneration == server.Generation {
			return nil
		}
		return fmt.Errorf("is %s/%s of generation %d: %s", c.Status, c.Reason, c.ObservedGeneration, c.Message)
	})
	return server
}

func conditionOf(server *sigv1alpha1.MCPServer, conditionType string) metav1.Condition {
	for _, c := range server.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return metav1.Condition{}
}

// sigPod plays the kubelet: a pod of a server of the compatibility API that is ready at an address.
func (f *fixture) sigPod(server, name string) *corev1.Pod {
	f.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: f.namespace,
			Labels:          map[string]string{"mcp-server": server, "pod-template-hash": "abc"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: server + "-abc", UID: "played", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "mcp-server", Image: "x:1", Ports: []corev1.ContainerPort{{Name: "mcp", ContainerPort: 8080}},
		}}},
	}
	f.create(pod)
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	if err := f.client.Status().Update(f.ctx, pod); err != nil {
		f.t.Fatal(err)
	}
	return pod
}

// reported plays the Deployment controller: the Deployment is observed and says how many of its pods are ready.
func (f *fixture) reported(name string, ready int32) {
	f.t.Helper()
	status := corev1.ConditionFalse
	if ready > 0 {
		status = corev1.ConditionTrue
	}
	f.rolledOutWith(name, ready, []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: status, Reason: "Played"},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
	})
}

// rolledOutWith is rolledOut with conditions.
func (f *fixture) rolledOutWith(name string, ready int32, conditions []appsv1.DeploymentCondition) {
	f.t.Helper()
	f.eventually("the status of Deployment "+name+" is written", func() error {
		d := &appsv1.Deployment{}
		if err := f.get(d, name); err != nil {
			return err
		}
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas, ReadyReplicas: ready, AvailableReplicas: ready,
			Conditions: conditions,
		}
		return f.client.Status().Update(f.ctx, d) // in conflict where the operator wrote in between, as for the controller that is played
	})
}

// allOf takes every key of a ConfigMap for a variable.
func allOf(configMap string) []corev1.EnvFromSource {
	return []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}}}
}
