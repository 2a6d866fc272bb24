package envtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/controller/sigserver"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// What is applied must equal what the API server makes of it, defaults and all: where it does not, every pass writes.
func TestEveryInputOfTheCompatibilityAPICostsNothingAfterARestart(t *testing.T) {
	f := start(t, nil)
	files, err := filepath.Glob("../../internal/desired/testdata/sig/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden input: %v", err)
	}
	names := map[string]string{"api": "token", "settings": "a", "ca": "ca.crt"}
	for name, key := range names {
		meta := metav1.ObjectMeta{Name: name, Namespace: f.namespace}
		f.create(&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{key: []byte(mcptest.NewAuthority(t, "ca").PEM)}})
		f.create(&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{key: "x"}})
	}
	for i, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		server := &sigv1alpha1.MCPServer{}
		if err := yaml.UnmarshalStrict(raw, server); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		server.Namespace, server.Name = f.namespace, fmt.Sprintf("golden-%d", i)
		f.create(server)
	}
	for i, file := range files {
		f.eventually(filepath.Base(file)+" is applied", func() error {
			name, server := fmt.Sprintf("golden-%d", i), &sigv1alpha1.MCPServer{}
			err := errors.Join(f.get(&appsv1.Deployment{}, name), f.get(&corev1.Service{}, name), f.get(server, name))
			if err == nil && conditionOf(server, "Ready").Type == "" {
				return errors.New("it has no status yet")
			}
			return err
		})
	}
	f.quiet()
	f.restart(nil, len(files))
	f.wantWrites("a restart of the operator", map[string]int{}, 0)
}

func TestChildrenOfTheCompatibilityAPIAreMendedAndWhatOthersAddLivesOn(t *testing.T) {
	f := start(t, nil)
	server := f.sigServer("mended")
	server.Spec.ExtraLabels = map[string]string{"team": "a"}
	f.create(server)
	f.eventually("the children are there", func() error { return f.get(&corev1.Service{}, "mended") })
	f.quiet()

	deployment, service, policy := &appsv1.Deployment{}, &corev1.Service{}, &networkingv1.NetworkPolicy{}
	f.edit(deployment, "mended", func() {
		deployment.Spec.Replicas = new(int32(3)) // an autoscaler's: the server asks for no number
		deployment.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		deployment.Spec.Template.Spec.Containers[0].Image = "evil:1"
		deployment.Spec.Template.Spec.Containers = append(deployment.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:1"})
		delete(deployment.Labels, "team")
	})
	f.eventually("the Deployment is mended", func() error {
		if err := f.get(deployment, "mended"); err != nil {
			return err
		}
		if got := deployment.Spec.Template.Spec.Containers[0].Image; got != "registry.example.com/server:1" || deployment.Labels["team"] != "a" {
			return fmt.Errorf("%s, labels %v", got, deployment.Labels)
		}
		return nil
	})
	if *deployment.Spec.Replicas != 3 || len(deployment.Spec.Template.Spec.Containers) != 2 ||
		deployment.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != "now" {
		t.Errorf("what others added is gone: %+v", deployment.Spec)
	}

	f.edit(service, "mended", func() {
		service.Spec.Type, service.Spec.Ports[0].Port = corev1.ServiceTypeNodePort, 1
		service.Spec.Selector = map[string]string{"mcp-server": "other"}
		service.Labels = map[string]string{"mine": "too"}
	})
	f.eventually("selector, type, port and labels of the Service are mended", func() error {
		if err := f.get(service, "mended"); err != nil {
			return err
		}
		wanted := map[string]string{"app": "mcp-server", "mcp-server": "mended", "team": "a", "mine": "too"}
		spec := service.Spec
		if spec.Type != corev1.ServiceTypeClusterIP || spec.Selector["mcp-server"] != "mended" || len(spec.Ports) != 1 || spec.Ports[0].Port != 8080 ||
			!cmp.Equal(wanted, service.Labels) {
			return fmt.Errorf("%+v %v", spec, service.Labels)
		}
		return nil
	})
	f.edit(policy, "mended", func() { policy.Spec.Ingress, policy.Labels = nil, nil })
	f.eventually("the NetworkPolicy is mended", func() error {
		if err := f.get(policy, "mended"); err != nil {
			return err
		}
		if len(policy.Spec.Ingress) != 1 || policy.Spec.Ingress[0].Ports[0].Port.IntVal != 8080 || policy.Labels["app"] != "mcp-server" {
			return fmt.Errorf("%+v", policy)
		}
		return nil
	})
	for _, child := range []client.Object{deployment, service, policy} {
		uid := child.GetUID()
		if err := f.client.Delete(f.ctx, child); err != nil {
			t.Fatal(err)
		}
		f.eventually(fmt.Sprintf("a deleted %T is made anew", child), func() error {
			if err := f.get(child, "mended"); err != nil {
				return err
			}
			if child.GetUID() == uid {
				return errors.New("still the old one")
			}
			return nil
		})
	}
}

func TestAMissingKeyIsToldAndAChangeOfASecretRollsPodsOnce(t *testing.T) {
	f := start(t, nil)
	server := f.sigServer("keys")
	token := &corev1.SecretVolumeSource{SecretName: "keys", Items: []corev1.KeyToPath{{Key: "token", Path: "token"}}}
	server.Spec.Config.Storage = []sigv1alpha1.StorageMount{{Path: "/keys", Source: sigv1alpha1.StorageSource{Type: "Secret", Secret: token}}}
	f.create(server)
	f.sigCondition("keys", "Accepted", metav1.ConditionFalse, "Invalid")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys", Namespace: f.namespace}}
	f.create(secret)
	f.eventually("the missing key is told", func() error {
		if err := f.get(server, "keys"); err != nil {
			return err
		}
		want := fmt.Sprintf("Secret 'keys' in namespace '%s' has no key 'token'", f.namespace)
		if got := conditionOf(server, "Accepted").Message; len(got) < len(want) || got[:len(want)] != want {
			return errors.New(got)
		}
		return nil
	})
	f.edit(secret, "keys", func() { secret.Data = map[string][]byte{"token": []byte("a")} })
	f.sigCondition("keys", "Accepted", metav1.ConditionTrue, "Valid")
	hash := func() string {
		d := &appsv1.Deployment{}
		f.eventually("the Deployment", func() error { return f.get(d, "keys") })
		return d.Spec.Template.Annotations["mcp.x-k8s.io/config-hash"]
	}
	f.quiet()
	first := hash()
	f.edit(secret, "keys", func() { secret.Data["token"] = []byte("b") })
	f.wantWrites("a change of a Secret", map[string]int{"deployments": 1}, 2)
	if second := hash(); first == "" || second == first {
		t.Errorf("the hash was %q and is %q", first, second)
	}
	f.edit(server, "keys", func() { server.Spec.Config.Storage = nil })
	f.eventually("a server that refers to nothing has no hash", func() error {
		if third := hash(); third != "" {
			return fmt.Errorf("it is %q", third)
		}
		return nil
	})
}

func TestAForeignServiceIsNotTouchedAndTheServerHealsWhenItGoes(t *testing.T) {
	f := start(t, nil)
	foreign := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "taken", Namespace: f.namespace},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}}},
	}
	f.create(foreign)
	f.create(f.sigServer("taken"))
	f.sigCondition("taken", "Ready", metav1.ConditionFalse, "ServiceUnavailable")
	f.hasEvents("taken", "Warning ServiceUnavailable ServiceReconcileFailed")
	now := &corev1.Service{}
	if err := f.get(now, "taken"); err != nil || now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("the foreign Service was touched (%v)", err)
	}
	if err := f.client.Delete(f.ctx, foreign); err != nil {
		t.Fatal(err)
	}
	f.sigCondition("taken", "Ready", metav1.ConditionUnknown, "Initializing")
}

func TestOfTwoAPIsWithOneNameTheSecondIsRefusedAndHealsWhenTheFirstGoes(t *testing.T) {
	f := start(t, nil)
	for name, tt := range map[string]struct {
		first, second client.Object
		refused       func()
		healed        func()
	}{
		"ours-first": {
			f.server("ours-first"), f.sigServer("ours-first"),
			func() { f.sigCondition("ours-first", "Ready", metav1.ConditionFalse, "DeploymentUnavailable") },
			func() { f.sigCondition("ours-first", "Ready", metav1.ConditionUnknown, "Initializing") },
		},
		"theirs-first": {
			f.sigServer("theirs-first"), f.server("theirs-first"),
			func() { f.condition("theirs-first", "Applied", metav1.ConditionFalse, "OwnershipConflict") },
			func() { f.condition("theirs-first", "Applied", metav1.ConditionTrue, "Applied") },
		},
	} {
		f.create(tt.first)
		children := []client.Object{&appsv1.Deployment{}, &networkingv1.NetworkPolicy{}}
		for _, child := range children {
			f.eventually(fmt.Sprintf("%s has its %T", name, child), func() error { return f.get(child, name) })
		}
		f.quiet()
		f.create(tt.second)
		tt.refused()
		f.wantWrites("the second", map[string]int{}, 2)
		for _, child := range children {
			version := child.GetResourceVersion()
			if err := f.get(child, name); err != nil || child.GetResourceVersion() != version || !metav1.IsControlledBy(child, tt.first) {
				t.Errorf("%s: %T is not as the first made it (%v)", name, child, err)
			}
		}
		if err := f.client.Delete(f.ctx, tt.first); err != nil {
			t.Fatal(err)
		}
		// Who has not seen it yet makes the children again, which nobody collects here.
		f.eventually("the operator knows that the first is gone", func() error {
			err := f.known.Get(f.ctx, client.ObjectKeyFromObject(tt.first), tt.first)
			if err == nil {
				return errors.New("it is there")
			}
			return client.IgnoreNotFound(err)
		})
		f.quiet()
		for _, child := range children { // the garbage collector's part
			if err := f.client.Delete(f.ctx, child); err != nil {
				t.Fatal(err)
			}
		}
		tt.healed()
	}
}

// What the other operator wrote by plain updates becomes ours: else its fields could never be given up.
func TestChildrenOfTheOtherOperatorAreTakenOver(t *testing.T) {
	f := start(t, nil)
	f.stop()
	server := f.sigServer("moved")
	f.create(server)
	labels := map[string]string{"app": "mcp-server", "mcp-server": "moved"}
	theirs := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "moved", Namespace: f.namespace, Labels: labels,
			Annotations:     map[string]string{"mcp.x-k8s.io/managed-extra-labels": "{not json"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(server, sigv1alpha1.GroupVersion.WithKind("MCPServer"))},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"mcp-server": "moved"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "mcp-server", Image: "registry.example.com/server:1", Env: []corev1.EnvVar{{Name: "GONE", Value: "since"}},
				}}},
			},
		},
	}
	if err := f.client.Create(f.ctx, theirs, client.FieldOwner("manager")); err != nil {
		t.Fatal(err)
	}
	f.run(nil)
	d := &appsv1.Deployment{}
	f.eventually("it is as the server asks", func() error {
		if err := f.get(d, "moved"); err != nil {
			return err
		}
		if env := d.Spec.Template.Spec.Containers[0].Env; len(env) > 0 || d.Annotations["mcp.x-k8s.io/managed-extra-labels"] != "" {
			return fmt.Errorf("%v %v", env, d.Annotations)
		}
		return nil
	})
	if d.UID != theirs.UID {
		t.Error("it was made anew")
	}
	f.quiet()
	f.restart(nil, 1)
	f.wantWrites("a restart", map[string]int{}, 0)
}

// A cache that does not know yet what the other API's controller just made must not take it away: the first has the name.
func TestWhatTheOtherAPIMadeAMomentAgoIsNotTakenAway(t *testing.T) {
	f := start(t, nil)
	f.stop() // this is about two writers, and no third
	ours, theirs := f.server("raced"), f.sigServer("raced")
	f.create(ours)
	f.create(theirs)
	watching, err := client.NewWithWatch(apiConfig, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	stale := interceptor.NewClient(watching, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		},
	})
	env := desired.Environment{OperatorNamespace: operatorNamespace}
	first, second := desired.ForSIGServer(theirs, env, ""), desired.ForServer(ours, env, "")
	if _, err := apply.New(stale, watching, sigserver.Dialect{}.FieldManager()).Apply(f.ctx, theirs, first.NetworkPolicy); err != nil {
		t.Fatal(err)
	}
	if _, err := apply.New(stale, watching, apply.FieldManager).Apply(f.ctx, ours, second.NetworkPolicy); !apierrors.IsConflict(err) {
		t.Errorf("the second writer got %v, want a conflict", err)
	}
	policy := &networkingv1.NetworkPolicy{}
	if err := f.get(policy, "raced"); err != nil || !metav1.IsControlledBy(policy, theirs) || policy.Spec.PodSelector.MatchLabels["mcp-server"] != "raced" {
		t.Errorf("the NetworkPolicy is %+v (%v)", policy, err)
	}
}
