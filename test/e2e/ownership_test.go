package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// backSoon is what is promised from the deletion of a child to its return.
const backSoon = 10 * time.Second

func inlineConfig(spec *mcpv1alpha1.MCPServerSpec) {
	spec.Config = &mcpv1alpha1.ServerConfig{Inline: &apiextensionsv1.JSON{Raw: []byte(`{"log":"info"}`)}}
}

// childrenOf returns one empty object with its name for each child of a server with an inline configuration.
func childrenOf(name string) map[string]client.Object {
	return map[string]client.Object{
		"Deployment":    &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}},
		"Service":       &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name + "-svc"}},
		"NetworkPolicy": &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}},
		"ConfigMap":     &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name + "-config"}},
	}
}

func TestForeignObjectsOfAChildsNameAreNotTouchedAndTheServerGoesOnWhenTheyGo(t *testing.T) {
	t.Parallel()
	selector := map[string]string{"who": "somebody-else"}
	template := echoPod("foreign")
	template.Labels = selector
	tests := map[string]struct {
		foreign client.Object
		reason  string // of Ready
	}{
		"Deployment": {reason: mcpv1alpha1.ReasonDeploymentUnavailable, foreign: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "taken"},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: selector},
				Template: corev1.PodTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: corev1.PodSpec{Containers: template.Spec.Containers}},
			},
		}},
		"Service": {reason: mcpv1alpha1.ReasonServiceUnavailable, foreign: &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "taken-svc"},
			Spec:       corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Port: 80}}},
		}},
		"NetworkPolicy": {reason: mcpv1alpha1.ReasonNetworkPolicyUnavailable, foreign: &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "taken"},
			Spec:       networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: selector}},
		}},
	}
	for kind, tt := range tests {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := start(t)
			f.create(tt.foreign)
			f.settle(tt.foreign)
			version := tt.foreign.GetResourceVersion()
			s := f.run(server("taken"))
			s.awaitSince(s.created, "says whose it is", 2*time.Second,
				has(mcpv1alpha1.ConditionApplied, metav1.ConditionFalse, mcpv1alpha1.ReasonOwnershipConflict, tt.foreign.GetName(), kind),
				has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, tt.reason, tt.foreign.GetName()))
			await(t, "a Warning event says so too", podStart, func() string { return f.warned("taken", tt.reason, tt.foreign.GetName()) })
			s.neverReady()
			f.read(tt.foreign.GetName(), tt.foreign)
			if now := tt.foreign.GetResourceVersion(); now != version {
				t.Errorf("the foreign %s was written: its resourceVersion was %s and is %s", kind, version, now)
			}
			f.remove(tt.foreign)
			s.await("the foreign "+kind+" is gone -> Ready", readySoon, readyAt(1))
		})
	}
}

// settle waits until Kubernetes' own controllers are done with a new object.
func (f *fixture) settle(obj client.Object) {
	f.t.Helper()
	d, ok := obj.(*appsv1.Deployment)
	if !ok {
		return
	}
	await(f.t, "the foreign Deployment is settled", podStart, func() string {
		f.read(d.Name, d)
		if d.Status.ObservedGeneration != d.Generation || len(d.Status.Conditions) < 2 {
			return fmt.Sprintf("its status is %+v", d.Status)
		}
		return ""
	})
}

func TestChildrenThatAreDeletedComeBackAndReadyIsHonestMeanwhile(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("whole").with(inlineConfig))
	s.awaitReady(readySoon)
	for kind, child := range childrenOf("whole") {
		mark, old := s.mark(), s.podNames()
		f.read(child.GetName(), child)
		was, lift := child.GetUID(), func() {}
		if kind == "Deployment" {
			// A new pod may be ready before any controller has seen that there was none: none is made until that was told.
			lift = f.admitNoPods()
		}
		f.remove(child)
		await(t, kind+" is back", backSoon, func() string {
			err := cluster.client.Get(f.t.Context(), f.key(child.GetName()), child)
			if err != nil {
				return err.Error()
			}
			if child.GetUID() == was || child.GetDeletionTimestamp() != nil {
				return "it is still the old one"
			}
			return ""
		})
		if kind == "Deployment" { // its pods went with it
			s.leavesReady(mark, time.Now())
			lift()
			s.replaced(old, 1)
			continue
		}
		s.await("is Ready with the new "+kind, readySoon, readyAt(1), replicasAre(1))
		s.stayedReady(mark)
	}
}

// leavesReady waits until Ready became False for want of pods, at any time since mark, counting from known.
func (s *running) leavesReady(mark int, known time.Time) {
	s.t.Helper()
	s.history.await(s.t, s.name+" no pod is ready -> not Ready", known, noPodSoon, func([]state) string {
		for _, server := range s.states(mark) {
			if has(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, mcpv1alpha1.ReasonDeploymentUnavailable)(server) == "" {
				return ""
			}
		}
		return "Ready never became False"
	})
}

// comesToRest waits until nothing was told of the server for two seconds: what is counted from then on has another cause.
func (s *running) comesToRest() {
	s.t.Helper()
	last, at := s.mark(), time.Now()
	await(s.t, s.name+" is at rest", podStart, func() string {
		if n := s.mark(); n != last {
			last, at = n, time.Now()
		}
		if time.Since(at) < 2*time.Second {
			return fmt.Sprintf("its state number %d is of a moment ago", last)
		}
		return ""
	})
}

func TestDeletedServerTakesItsChildrenWithIt(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.run(server("mortal").with(inlineConfig))
	s.awaitReady(readySoon)
	for _, child := range childrenOf("mortal") {
		f.read(child.GetName(), child) // it was there
	}
	f.kubectl("delete", "mcpserver", "mortal")
	for kind, child := range childrenOf("mortal") {
		await(t, kind+" is gone", backSoon, func() string {
			if err := cluster.client.Get(f.t.Context(), f.key(child.GetName()), child); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("reading it says %v", err)
			}
			return ""
		})
	}
	await(t, "the pods are gone", podStart, func() string {
		if n := len(s.pods()); n > 0 {
			return fmt.Sprintf("%d are left", n)
		}
		return ""
	})
}

func TestNamespaceWithServersEndsCleanly(t *testing.T) {
	t.Parallel()
	f := start(t)
	servers := []*running{f.run(server("one").with(inlineConfig)), f.run(server("two").with(inlineConfig))}
	for _, s := range servers {
		s.awaitReady(2 * readySoon)
		await(t, "all events of "+s.name+" are there", podStart, func() string { return f.eventOf(s.name, corev1.EventTypeNormal, "Ready=True") })
	}
	for _, s := range servers {
		s.comesToRest()
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	marks := []int{servers[0].mark(), servers[1].mark()}
	if err := cluster.client.Delete(f.t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	// Kubernetes ends none while any API is not served, as metrics are while they start, and tries again in growing intervals.
	await(t, "the namespace is gone", time.Minute, func() string {
		err := cluster.client.Get(f.t.Context(), client.ObjectKeyFromObject(ns), ns)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("it says %+v, %v", ns.Status.Conditions, err)
	})
	for i, s := range servers {
		if states := s.states(marks[i]); len(states) != 1 {
			t.Errorf("the status of %s was written %d times while the namespace ended", s.name, len(states)-1)
		}
	}
	log, err := kubectl(f.t.Context(), "--namespace="+operatorNamespace, "logs", "deployment/"+operatorName, "--tail=-1")
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	failures := linesWith(log, f.namespace, `"level":"error"`)
	// The API server refuses new objects from the first moment, the operator hears of the end by a watch: what it tries to
	// write in between is no failure of its own.
	failures = slices.DeleteFunc(failures, func(line string) bool { return strings.Contains(line, "because it is being terminated") })
	if len(failures) > 0 {
		t.Errorf("the operator failed on a namespace that ended:\n%s", strings.Join(failures, ""))
	}
}
