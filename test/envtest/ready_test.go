package envtest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// readyPod plays the kubelet: a pod of a server that is ready at an address.
func (f *fixture) readyPod(server, name string) {
	f.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: f.namespace,
			Labels:          map[string]string{"mcp-server": server, "mcp.operator/server": server, "pod-template-hash": "abc"},
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
}

func addressOf(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func TestReadyFollowsTheHandshakeAndARestartWritesNothing(t *testing.T) {
	server := mcptest.NewServer(t)
	pods := dialTo(addressOf(t, server.URL))
	f := start(t, pods)
	f.create(f.server("truth"))
	f.condition("truth", "Ready", metav1.ConditionUnknown, "Initializing")
	f.readyPod("truth", "truth-a")
	f.rolledOut("truth", 1)
	ready := f.condition("truth", "Ready", metav1.ConditionTrue, "Available")
	if want := fmt.Sprintf("http://truth-svc.%s.svc.cluster.local:8080/mcp", f.namespace); ready.Status.Endpoint != want {
		t.Errorf("endpoint %q, want %q", ready.Status.Endpoint, want)
	}
	status := ready.Status
	if status.ServerInfo == nil || status.ToolCount == nil || len(status.Tools) != int(*status.ToolCount) || status.Tools[0].Digest == "" {
		t.Errorf("what the handshake told is not in the status: %+v", status)
	}
	if ready.Status.Phase != mcpv1alpha1.PhaseReady {
		t.Errorf("phase %s", ready.Status.Phase)
	}
	f.quiet()

	f.restart(pods, 1)
	f.wantWrites("a restart of the operator", map[string]int{}, 0)

	// All pods gone: False, by the Deployment's word alone.
	pod := &corev1.Pod{}
	if err := f.get(pod, "truth-a"); err != nil {
		t.Fatal(err)
	}
	if err := f.client.Delete(f.ctx, pod); err != nil {
		t.Fatal(err)
	}
	f.rolledOut("truth", 0)
	gone := f.condition("truth", "Ready", metav1.ConditionFalse, "DeploymentUnavailable")
	if gone.Status.Endpoint != "" {
		t.Errorf("an endpoint without a pod: %s", gone.Status.Endpoint)
	}
}

func TestAStatusThatSomebodyElseWroteIsCorrected(t *testing.T) {
	server := mcptest.NewServer(t)
	f := start(t, dialTo(addressOf(t, server.URL)))
	f.create(f.server("tampered"))
	f.readyPod("tampered", "tampered-a")
	f.rolledOut("tampered", 1)
	f.eventually("somebody else writes", func() error { // in conflict where the operator wrote in between
		object := f.condition("tampered", "Ready", metav1.ConditionTrue, "Available")
		for i := range object.Status.Conditions {
			if c := &object.Status.Conditions[i]; c.Type == "Ready" || c.Type == "Verified" {
				c.Status, c.Reason = metav1.ConditionFalse, "Tampered"
			}
		}
		object.Status.Endpoint = "http://elsewhere"
		return f.client.Status().Update(f.ctx, object)
	})
	f.condition("tampered", "Verified", metav1.ConditionTrue, "Verified")
	if ready := f.condition("tampered", "Ready", metav1.ConditionTrue, "Available"); ready.Status.Endpoint == "http://elsewhere" {
		t.Error("the endpoint is that of somebody else")
	}
}

func TestANewGenerationKeepsReadyUntilItIsVerifiedItself(t *testing.T) {
	server := mcptest.NewServer(t)
	f := start(t, dialTo(addressOf(t, server.URL)))
	object := f.server("rolling")
	f.create(object)
	f.readyPod("rolling", "rolling-a")
	f.rolledOut("rolling", 1)
	f.condition("rolling", "Ready", metav1.ConditionTrue, "Available")

	f.edit(object, "rolling", func() { object.Spec.Args = []string{"-v"} })
	f.condition("rolling", "Progressing", metav1.ConditionTrue, "RollingOut")
	during := f.condition("rolling", "Ready", metav1.ConditionTrue, "Available")
	for _, c := range during.Status.Conditions {
		if c.Type == "Ready" && c.ObservedGeneration != 1 {
			t.Errorf("Ready claims generation %d, which no pod runs", c.ObservedGeneration)
		}
	}
	f.rolledOut("rolling", 1)
	f.eventually("Ready speaks of the new generation", func() error {
		if err := f.get(object, "rolling"); err != nil {
			return err
		}
		for _, c := range object.Status.Conditions {
			if c.Type == "Ready" {
				if c.Status != metav1.ConditionTrue {
					t.Errorf("Ready flickered: %+v", c)
				}
				if c.ObservedGeneration == object.Generation {
					return nil
				}
			}
		}
		return errors.New("not yet")
	})
}

func TestAServerThatIsNotMCPNeverBecomesReady(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html><h1>Welcome</h1></html>")
	}))
	t.Cleanup(web.Close)
	f := start(t, dialTo(addressOf(t, web.URL)))
	f.create(f.server("web"))
	f.readyPod("web", "web-a")
	f.rolledOut("web", 1)
	server := f.condition("web", "Ready", metav1.ConditionFalse, "MCPEndpointUnavailable")
	f.condition("web", "Verified", metav1.ConditionFalse, "NotMCP")
	if server.Status.Endpoint != "" || server.Status.Phase != mcpv1alpha1.PhaseFailed {
		t.Errorf("endpoint %q, phase %s", server.Status.Endpoint, server.Status.Phase)
	}
}

func TestAnEndingNamespaceIsLeftAlone(t *testing.T) {
	f := start(t, nil)
	f.create(f.server("ending"))
	f.condition("ending", "Applied", metav1.ConditionTrue, "Applied")
	f.quiet()
	// Without a namespace controller the namespace stays Terminating, with everything in it.
	if err := f.client.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}); err != nil {
		t.Fatal(err)
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	f.eventually("the operator knows that the namespace ends", func() error {
		err := f.known.Get(f.ctx, nameOf(f.namespace), ns)
		if err == nil && ns.DeletionTimestamp.IsZero() {
			return errors.New("not yet")
		}
		return err
	})
	f.quiet()
	d := &appsv1.Deployment{}
	if err := f.get(d, "ending"); err != nil {
		t.Fatal(err)
	}
	if err := f.client.Delete(f.ctx, d); err != nil {
		t.Fatal(err)
	}
	f.wantWrites("a child deleted in an ending namespace", map[string]int{}, 0)
}
