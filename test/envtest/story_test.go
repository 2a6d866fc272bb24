package envtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
	"github.com/mcp-operator/mcp-operator/internal/probe"
)

func inline(raw string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(raw)} }

// dialer takes every probe to one address: there are no pods to dial here.
type dialer struct{ address atomic.Pointer[string] }

func dialTo(address string) *dialer {
	d := &dialer{}
	d.address.Store(&address)
	return d
}

func (d *dialer) transport(probe.Server, *probe.Pod) *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var direct net.Dialer
		return direct.DialContext(ctx, "tcp", *d.address.Load())
	}}
}

func TestChildrenAreMendedAndWhatOthersAddLivesOn(t *testing.T) {
	f := start(t, nil)
	f.create(f.server("mended"))
	f.condition("mended", "Applied", metav1.ConditionTrue, "Applied")

	deployment, service, policy := &appsv1.Deployment{}, &corev1.Service{}, &networkingv1.NetworkPolicy{}
	f.edit(deployment, "mended", func() {
		deployment.Spec.Template.Spec.Containers[0].Image = "evil:1"
		deployment.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		deployment.Annotations["note"] = "mine"
		deployment.Spec.Template.Spec.Containers = append(deployment.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:1"})
	})
	f.eventually("the image is mended", func() error {
		if err := f.get(deployment, "mended"); err != nil {
			return err
		}
		if got := deployment.Spec.Template.Spec.Containers[0].Image; got != "registry.example.com/server:1" {
			return errors.New(got)
		}
		return nil
	})
	if len(deployment.Spec.Template.Spec.Containers) != 2 || deployment.Annotations["note"] != "mine" ||
		deployment.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != "now" {
		t.Errorf("what others added is gone: %+v", deployment)
	}

	f.edit(service, "mended-svc", func() { service.Spec.Ports[0].Port = 1 })
	f.eventually("the port is mended", func() error {
		if err := f.get(service, "mended-svc"); err != nil {
			return err
		}
		if service.Spec.Ports[0].Port != 8080 || service.Spec.Ports[0].TargetPort != intstr.FromString("mcp") {
			return fmt.Errorf("%v", service.Spec.Ports)
		}
		return nil
	})

	for _, child := range []struct {
		obj  client.Object
		name string
	}{{deployment, "mended"}, {service, "mended-svc"}, {policy, "mended"}} {
		if err := f.get(child.obj, child.name); err != nil {
			t.Fatal(err)
		}
		uid := child.obj.GetUID()
		if err := f.client.Delete(f.ctx, child.obj); err != nil {
			t.Fatal(err)
		}
		f.eventually(fmt.Sprintf("a deleted %T is made anew", child.obj), func() error {
			if err := f.get(child.obj, child.name); err != nil {
				return err
			}
			if child.obj.GetUID() == uid {
				return errors.New("still the old one")
			}
			return nil
		})
	}
}

func TestAWarOverAFieldCostsFewWritesAndIsTold(t *testing.T) {
	f := start(t, nil)
	f.create(f.server("disputed"))
	f.condition("disputed", "Applied", metav1.ConditionTrue, "Applied")
	f.quiet()
	deployment, server := &appsv1.Deployment{}, &mcpv1alpha1.MCPServer{}
	insisted := 0
	insist := func() {
		insisted++
		f.edit(deployment, "disputed", func() { deployment.Spec.Replicas = new(int32(7)) })
	}
	insist()
	f.eventually("corrected at once", func() error {
		if err := f.get(deployment, "disputed"); err != nil {
			return err
		}
		if *deployment.Spec.Replicas != 1 {
			return fmt.Errorf("%d replicas", *deployment.Spec.Replicas)
		}
		return nil
	})
	// Who insists within ten seconds is told of, for as long. On a machine that takes longer one has to insist again.
	f.within(manySoon, "the dispute is told", func() error {
		if err := errors.Join(f.get(deployment, "disputed"), f.get(server, "disputed")); err != nil {
			return err
		}
		applied := apimeta.FindStatusCondition(server.Status.Conditions, "Applied")
		if applied.Status == metav1.ConditionUnknown && applied.Reason == "FieldConflict" {
			return nil
		}
		if *deployment.Spec.Replicas == 1 {
			insist()
		}
		return fmt.Errorf("Applied is %s/%s", applied.Status, applied.Reason)
	})
	f.condition("disputed", "Applied", metav1.ConditionTrue, "Applied")
	if children, _ := split(f.counter.take().writes); children["deployments"] != insisted {
		t.Errorf("%d writes of the Deployment, want one each of the %d times that somebody insisted", children["deployments"], insisted)
	}
}

func TestForeignObjectsAreNotTouchedAndTheServerHealsWhenTheyGo(t *testing.T) {
	f := start(t, nil)
	labels := map[string]string{"who": "me"}
	foreign := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "taken", Namespace: f.namespace},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "mine:1"}}},
			},
		},
	}
	f.create(foreign)
	f.create(f.server("taken"))
	f.condition("taken", "Applied", metav1.ConditionFalse, "OwnershipConflict")
	server := f.condition("taken", "Ready", metav1.ConditionFalse, "DeploymentUnavailable")
	if server.Status.Phase != mcpv1alpha1.PhaseFailed {
		t.Errorf("phase %s", server.Status.Phase)
	}
	now := &appsv1.Deployment{}
	if err := f.get(now, "taken"); err != nil {
		t.Fatal(err)
	}
	if now.ResourceVersion != foreign.ResourceVersion {
		t.Error("the foreign Deployment was touched")
	}
	if err := f.client.Delete(f.ctx, foreign); err != nil {
		t.Fatal(err)
	}
	f.condition("taken", "Applied", metav1.ConditionTrue, "Applied")
}

func TestTheOrphansOfADeletedServerAreAdopted(t *testing.T) {
	f := start(t, nil)
	f.create(f.server("reborn"))
	f.condition("reborn", "Applied", metav1.ConditionTrue, "Applied")
	deployment := &appsv1.Deployment{}
	if err := f.get(deployment, "reborn"); err != nil {
		t.Fatal(err)
	}
	// There is no garbage collector here, so the children stay, as after kubectl delete --cascade=orphan.
	if err := f.client.Delete(f.ctx, f.server("reborn")); err != nil {
		t.Fatal(err)
	}
	server := f.server("reborn")
	f.create(server)
	f.condition("reborn", "Applied", metav1.ConditionTrue, "Applied")
	uid := deployment.UID
	if err := f.get(deployment, "reborn"); err != nil {
		t.Fatal(err)
	}
	if deployment.UID != uid || !metav1.IsControlledBy(deployment, server) || len(deployment.OwnerReferences) != 1 {
		t.Errorf("not adopted: UID %s, owners %v", deployment.UID, deployment.OwnerReferences)
	}
}

func TestMissingReferencesHealByThemselvesAndChangesRollPods(t *testing.T) {
	f := start(t, nil)
	server := f.server("late")
	server.Spec.SecretRefs = []mcpv1alpha1.SecretMount{{ObjectName: mcpv1alpha1.ObjectName{Name: "keys"}}}
	server.Spec.Config = &mcpv1alpha1.ServerConfig{ConfigMapRef: &mcpv1alpha1.ObjectName{Name: "settings"}}
	server.Spec.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "token",
	}}}}
	f.create(server)
	f.condition("late", "Ready", metav1.ConditionFalse, "ConfigurationInvalid")

	f.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: f.namespace}, Data: map[string]string{"a": "1"}})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys", Namespace: f.namespace}, Data: map[string][]byte{"other": []byte("x")}}
	f.create(secret)
	f.eventually("the missing key is named", func() error {
		if err := f.get(server, "late"); err != nil {
			return err
		}
		for _, c := range server.Status.Conditions {
			if c.Type == "Accepted" && strings.Contains(c.Message, "Secret 'keys' (env \"TOKEN\")") && strings.Contains(c.Message, "has no key 'token'") {
				return nil
			}
		}
		return fmt.Errorf("%v", server.Status.Conditions)
	})
	f.edit(secret, "keys", func() { secret.Data["token"] = []byte("one") })
	f.condition("late", "Applied", metav1.ConditionTrue, "Applied")

	hash := func() string {
		d := &appsv1.Deployment{}
		if err := f.get(d, "late"); err != nil {
			t.Fatal(err)
		}
		return d.Spec.Template.Annotations["mcp.operator/config-hash"]
	}
	before := hash()
	f.edit(secret, "keys", func() { secret.Data["token"] = []byte("two") })
	f.eventually("a rotated Secret changes the pods", func() error {
		if hash() == before {
			return errors.New("same hash")
		}
		return nil
	})
	before = hash()
	settings := &corev1.ConfigMap{}
	f.edit(settings, "settings", func() { settings.Data["a"] = "2" })
	f.eventually("a changed ConfigMap changes the pods", func() error {
		if hash() == before {
			return errors.New("same hash")
		}
		return nil
	})
	f.quiet()
	f.edit(settings, "settings", func() { settings.Labels = map[string]string{"touched": "yes"} })
	f.wantWrites("a touched ConfigMap with the same data", map[string]int{}, 0)
}

func TestInlineConfigIsAConfigMapOfOurs(t *testing.T) {
	f := start(t, dialTo(addressOf(t, mcptest.NewServer(t).URL)))
	server := f.server("inline")
	server.Spec.Config = &mcpv1alpha1.ServerConfig{Inline: inline(`{"log":"info"}`)}
	f.create(server)
	config := &corev1.ConfigMap{}
	f.eventually("the ConfigMap", func() error { return f.get(config, "inline-config") })
	if got := config.Data["config.json"]; got != `{"log":"info"}` {
		t.Errorf("config.json is %s", got)
	}
	f.edit(config, "inline-config", func() { config.Data["config.json"] = "tampered" })
	f.eventually("a tampered ConfigMap is mended", func() error {
		if err := f.get(config, "inline-config"); err != nil {
			return err
		}
		if got := config.Data["config.json"]; got != `{"log":"info"}` {
			return errors.New(got)
		}
		return nil
	})
	f.readyPod("inline", "inline-a")
	f.rolledOut("inline", 1)
	f.condition("inline", "Ready", metav1.ConditionTrue, "Available")
	f.quiet()
	f.edit(server, "inline", func() { server.Spec.Config = nil })
	f.wantWrites("the configuration is removed: a pod of the old specification may start and mount it", map[string]int{"deployments": 1}, 2)
	if err := f.get(config, "inline-config"); err != nil {
		t.Errorf("the ConfigMap during the rollout: %v", err)
	}
	f.rolledOut("inline", 1)
	f.eventually("the ConfigMap goes when no pod of the old specification is left", func() error {
		if err := f.get(config, "inline-config"); !apierrors.IsNotFound(err) {
			return errors.New("still there")
		}
		return nil
	})
}

func TestPausedServersAreLeftAlone(t *testing.T) {
	f := start(t, nil)
	server := f.server("paused")
	f.create(server)
	f.condition("paused", "Applied", metav1.ConditionTrue, "Applied")
	f.edit(server, "paused", func() { server.Annotations = map[string]string{mcpv1alpha1.AnnotationPaused: "true"} })
	f.condition("paused", "Paused", metav1.ConditionTrue, "Paused")
	f.quiet()
	f.edit(server, "paused", func() { server.Spec.Args = []string{"-x"} })
	f.wantWrites("an edit while paused", map[string]int{}, 1)
	f.edit(server, "paused", func() { server.Annotations = map[string]string{} })
	f.eventually("the edit is applied afterwards", func() error {
		d := &appsv1.Deployment{}
		if err := f.get(d, "paused"); err != nil {
			return err
		}
		if len(d.Spec.Template.Spec.Containers[0].Args) != 1 {
			return errors.New("not yet")
		}
		return nil
	})
	f.eventually("the condition goes", func() error {
		if err := f.get(server, "paused"); err != nil {
			return err
		}
		for _, c := range server.Status.Conditions {
			if c.Type == "Paused" {
				return errors.New("still paused")
			}
		}
		return nil
	})
}
