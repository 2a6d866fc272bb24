package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
)

func TestAServerOfTheCompatibilityAPIBecomesReadyAndIsScaledToZeroAndBack(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	f.create(sigServer("everything", func(spec *sigv1alpha1.MCPServerSpec) {
		spec.Source.ContainerImage.Ref, spec.Config.Arguments = imageOf("everything"), nil
	}))
	ready := f.sigReady("everything")
	want := fmt.Sprintf("http://everything.%s.svc.cluster.local:8080/mcp", f.namespace)
	if ready.Status.Address == nil || ready.Status.Address.URL != want || ready.Status.ServerInfo == nil || ready.Status.ServerInfo.Name == "" ||
		ready.Status.DeploymentName != "everything" || ready.Status.ReadyReplicas != 1 {
		t.Errorf("status %+v, want the address %s", ready.Status, want)
	}
	caller := f.echo(echoPod("caller", "sleep"))
	reaches(t, "a caller at the address that is told", caller, want)
	await(t, "the events are there", readySoon, func() string { return f.eventOf("everything", "Normal", "Available", "is ready; Ready=True") })

	table := f.kubectl("get", "mcpservers.mcp.x-k8s.io")
	if header := strings.Fields(strings.Split(table, "\n")[0]); strings.Join(header, " ") != "NAME READY ACCEPTED IMAGE PORT ADDRESS AGE" {
		t.Errorf("kubectl shows\n%s", table)
	}
	f.sigEdit("everything", runtime(sigv1alpha1.Runtime{Replicas: new(int32(0))}))
	stopped := f.sigSays("everything", readySoon, metav1.ConditionTrue, "ScaledToZero", "scaled to 0 replicas")
	if stopped.Status.Address != nil {
		t.Errorf("without pods it has the address %v", stopped.Status.Address)
	}
	f.sigEdit("everything", runtime(sigv1alpha1.Runtime{Replicas: new(int32(2))}))
	f.sigSays("everything", readySoon+podStart, metav1.ConditionTrue, "Available", "(2 of 2 instances healthy)")
}

// What kubectl takes mcpservers for is the first group of that resource in discovery. Groups of one priority, which all CRDs have, are
// sorted by name: mcp.operator comes before mcp.x-k8s.io.
func TestKubectlGetMCPServersShowsOursBesideTheCompatibilityAPI(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	f.create(server("ours").replicas(0).object, sigServer("theirs", runtime(sigv1alpha1.Runtime{Replicas: new(int32(0))})))
	for what, resource := range map[string]string{"ours": "mcpservers", "theirs": "mcpservers.mcp.x-k8s.io"} {
		if got := strings.TrimSpace(f.kubectl("get", resource, "--output=jsonpath={.items[*].metadata.name}")); got != what {
			t.Errorf("kubectl get %s shows %q, want %s", resource, got, what)
		}
	}
}

func TestEachFailureOfAPodIsToldInTheWordsOfTheCompatibilityAPI(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	f.kubectl("label", "namespace", f.namespace, "pod-security.kubernetes.io/enforce=privileged", "--overwrite") // one asks for root
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(8080)}},
			PeriodSeconds: 1, FailureThreshold: 1,
		}
	}
	memory := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
	failures := map[string]struct {
		change func(*sigv1alpha1.MCPServerSpec)
		words  []string
	}{
		"no-image": {
			func(spec *sigv1alpha1.MCPServerSpec) { spec.Source.ContainerImage.Ref = "registry.invalid/none:1" },
			[]string{`Image pull failed for "registry.invalid/none:1": `, "(pod: no-image-"},
		},
		"crashing": {runs("exit", "3"), []string{"Container crashing: exit code 3, restarts: ", "(pod: crashing-"}},
		"eating": {
			func(spec *sigv1alpha1.MCPServerSpec) {
				spec.Config.Arguments, spec.Runtime = []string{"eat"}, &sigv1alpha1.Runtime{Resources: &corev1.ResourceRequirements{Limits: memory}}
			},
			[]string{"Container OOMKilled: exit code 137, restarts: ", " (pod: eating-"},
		},
		"root": {
			runtime(sigv1alpha1.Runtime{Security: &sigv1alpha1.Security{SecurityContext: &corev1.SecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(0)), AllowPrivilegeEscalation: new(false),
				Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}}}),
			[]string{"Container config error: ", "runAsUser breaks non-root policy", "(pod: root-"},
		},
		"unhealthy": {
			func(spec *sigv1alpha1.MCPServerSpec) {
				spec.Config.Arguments = []string{"serve", "-status", "500"}
				spec.Runtime = &sigv1alpha1.Runtime{Health: &sigv1alpha1.Health{LivenessProbe: nil, ReadinessProbe: probe("/")}}
			},
			[]string{"Waiting for instances to become healthy: Container not passing health checks", "spec.config.port", "(pod: unhealthy-"},
		},
		"nowhere": {
			runtime(sigv1alpha1.Runtime{Resources: &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4000")},
			}}),
			[]string{"Waiting for instances to become healthy: Pod cannot be scheduled", "(pod: nowhere-"},
		},
	}
	for name, failure := range failures {
		f.create(sigServer(name, failure.change))
	}
	for name, failure := range failures {
		f.sigSays(name, 2*podStart, metav1.ConditionFalse, "DeploymentUnavailable", failure.words...)
		await(t, name+": the event is there", readySoon, func() string { return f.warned(name, "DeploymentUnavailable") })
	}
}

func TestReadyIsLostWhenAVerifiedServerBreaksAndNobodyTouchedIt(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	f.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"a": "1"}})
	f.create(sigServer("sticky", func(spec *sigv1alpha1.MCPServerSpec) {
		spec.Config.EnvFrom = allOf("settings")
	}))
	f.sigReady("sticky")
	lift := f.admitNoPods()
	f.kubectl("delete", "pods", "--selector=mcp-server=sticky", "--grace-period=0", "--force")
	f.sigSays("sticky", podStart, metav1.ConditionFalse, "DeploymentUnavailable", "No healthy instances (pod details unavailable): ", "exceeded quota")
	lift()
	f.sigSays("sticky", 30*time.Second, metav1.ConditionTrue, "Available")
}

func TestAChangeOfCapabilitiesIsTold(t *testing.T) {
	t.Parallel()
	f := withCompatibilityAPI(t)
	f.create(sigServer("capable"))
	f.sigReady("capable")
	f.sigEdit("capable", runs("mcp", "-tools="))
	await(t, "it is told", readySoon+podStart, func() string {
		return f.warned("capable", "CapabilityChanged", "MCP server capabilities changed: tools: true->false")
	})
	if server := f.sigReady("capable"); server.Status.ServerInfo.Capabilities.Tools {
		t.Errorf("serverInfo %+v", server.Status.ServerInfo)
	}
}
