package diagnose

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcp-operator/mcp-operator/internal/desired"
)

// now is the time at which the pure functions are asked.
var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// makeDeployment returns a Deployment, rolled out with one ready pod, changed as asked.
func makeDeployment(changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	isController := true
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "demo", Namespace: "team", Generation: 5, Labels: map[string]string{desired.LabelMCPServer: "demo"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "mcp.operator/v1alpha1", Kind: "MCPServer", Name: "demo", UID: "uid-demo", Controller: &isController,
			}},
		},
		Spec:   appsv1.DeploymentSpec{Replicas: new(int32(1))},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 5, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

// makePod returns a pod of a server that was made an hour ago and whose container runs and is not ready.
func makePod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "demo-1", Namespace: "team", UID: "uid-pod", CreationTimestamp: ago(time.Hour),
			Labels: map[string]string{
				desired.LabelApp: desired.WorkloadName, desired.LabelMCPServer: "demo", desired.LabelServer: "demo", "pod-template-hash": "abc",
			},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "demo-abc", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: desired.WorkloadName, Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
		}}},
		Status: corev1.PodStatus{PodIP: "192.0.2.1", ContainerStatuses: []corev1.ContainerStatus{{
			Name: desired.WorkloadName, Image: "registry.example.com/server:1", State: running(time.Hour),
		}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func ready(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses[0].Ready = true
}

func running(age time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(age)}}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func ended(exitCode int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: reason}}
}
