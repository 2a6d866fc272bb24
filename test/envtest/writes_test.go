package envtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// split counts writes of children by resource, and writes of status apart.
func split(writes []string) (children map[string]int, status int) {
	children = map[string]int{}
	for _, line := range writes {
		if strings.HasSuffix(line, "/status") {
			status++
			continue
		}
		parts := strings.Split(line, "/")
		resource := parts[len(parts)-2]
		if strings.HasPrefix(line, http.MethodPost) {
			resource = parts[len(parts)-1]
		}
		children[resource]++
	}
	return children, status
}

// wantWrites waits for these writes of children, and fails the test unless they are all until the operator is quiet.
func (f *fixture) wantWrites(what string, want map[string]int, maxStatus int) {
	f.t.Helper()
	f.awaitWrites(want)
	writes := f.quiet().writes
	children, status := split(writes)
	if diff := cmp.Diff(want, children); diff != "" {
		f.t.Errorf("%s: writes of children (-want +got):\n%s\n%s", what, diff, strings.Join(writes, "\n"))
	}
	if status > maxStatus {
		f.t.Errorf("%s: %d status writes, want at most %d:\n%s", what, status, maxStatus, strings.Join(writes, "\n"))
	}
}

// awaitWrites waits until so many writes of children, or more, were counted: an operator on a busy machine is silent before
// it begins, too. What is missing in the end its caller tells.
func (f *fixture) awaitWrites(want map[string]int) {
	_ = wait.PollUntilContextTimeout(f.ctx, 20*time.Millisecond, manySoon, true, func(context.Context) (bool, error) {
		children, _ := split(f.counter.written())
		for resource, n := range want {
			if children[resource] < n {
				return false, nil
			}
		}
		return true, nil
	})
}

// wantNothing fails the test if the operator asked anything of the API server.
func (f *fixture) wantNothing(what string) {
	f.t.Helper()
	if diff := cmp.Diff(requests{}, f.quiet(), cmp.AllowUnexported(requests{})); diff != "" {
		f.t.Errorf("%s: requests (-want +got):\n%s", what, diff)
	}
}

func TestWritesAreExactlyWhatAChangeNeeds(t *testing.T) {
	f := start(t, nil)
	server := f.server("counted")
	server.Spec.Command = []string{"/server"}
	server.Spec.Args = []string{"-v"}
	f.create(server)
	f.condition("counted", "Applied", metav1.ConditionTrue, "Applied")
	f.wantWrites("a create", map[string]int{"deployments": 1, "services": 2, "networkpolicies": 1}, 2)

	f.edit(server, "counted", func() { server.Spec.Args = []string{"-vv"} })
	f.wantWrites("a one-field edit", map[string]int{"deployments": 1}, 2)

	f.edit(server, "counted", func() { server.Spec.Command = nil })
	f.wantWrites("an optional field removed", map[string]int{"deployments": 1}, 2)
	d := &appsv1.Deployment{}
	if err := f.get(d, "counted"); err != nil {
		t.Fatal(err)
	}
	if got := d.Spec.Template.Spec.Containers[0].Command; got != nil {
		t.Errorf("the removed command is still there: %q", got)
	}

	f.edit(server, "counted", func() { server.Spec.Port = 9090 })
	// The NetworkPolicy names the port, for the pods before and after the edit.
	f.wantWrites("a port edit", map[string]int{"deployments": 1, "services": 2}, 2)
}

func TestSingleServersPodsHaveAServiceWhereThereAreSessions(t *testing.T) {
	f := start(t, nil)
	server := f.server("sticky")
	f.create(server)
	f.condition("sticky", "Applied", metav1.ConditionTrue, "Applied")
	f.quiet()
	pods := &corev1.Service{}
	if err := f.get(pods, "sticky-pods"); err != nil {
		t.Fatal(err)
	}
	if pods.Spec.ClusterIP != corev1.ClusterIPNone || pods.Spec.PublishNotReadyAddresses || !metav1.IsControlledBy(pods, server) {
		t.Errorf("the headless Service is %+v of %+v", pods.Spec, pods.OwnerReferences)
	}

	f.edit(pods, "sticky-pods", func() { pods.Spec.PublishNotReadyAddresses = true; pods.Spec.Selector = map[string]string{"a": "b"} })
	f.wantWrites("somebody changes it", map[string]int{"services": 1}, 0)

	f.edit(server, "sticky", func() { server.Spec.Sessions = mcpv1alpha1.SessionsStateless })
	f.wantWrites("no sessions any more", map[string]int{"services": 2}, 2)
	if err := f.get(pods, "sticky-pods"); !apierrors.IsNotFound(err) {
		t.Errorf("the headless Service is still there: %v", err)
	}

	f.edit(server, "sticky", func() { server.Spec.Sessions = mcpv1alpha1.SessionsAuto })
	f.wantWrites("sessions again", map[string]int{"services": 2}, 2)
}

func TestOfWhatSettledNothingIsWrittenAndNothingRead(t *testing.T) {
	f := start(t, nil)
	server := f.server("resting")
	server.Spec.Config = &mcpv1alpha1.ServerConfig{Inline: inline(`{"a": 1}`)}
	server.Spec.SecretRefs = []mcpv1alpha1.SecretMount{{ObjectName: mcpv1alpha1.ObjectName{Name: "keys"}}}
	f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys", Namespace: f.namespace}})
	f.create(server)
	f.condition("resting", "Applied", metav1.ConditionTrue, "Applied")
	f.quiet()

	f.edit(server, "resting", func() {
		server.Labels = map[string]string{"team": "a"}
		server.Annotations = map[string]string{"note": "b"}
	})
	f.wantNothing("a label and an annotation on the object")

	before := reconciled(t)
	d := &appsv1.Deployment{}
	f.edit(d, "resting", func() { d.Annotations["note"] = "b" })
	f.eventually("a foreign annotation on a child wakes the server", func() error {
		if reconciled(t) == before {
			return errors.New("no pass")
		}
		return nil
	})
	f.wantNothing("a foreign annotation on a child")
}

func TestNoListOfSecretsOrConfigMapsCarriesTheirContent(t *testing.T) {
	f := start(t, nil)
	server := f.server("discreet")
	server.Spec.Config = &mcpv1alpha1.ServerConfig{ConfigMapRef: &mcpv1alpha1.ObjectName{Name: "settings"}}
	server.Spec.SecretRefs = []mcpv1alpha1.SecretMount{{ObjectName: mcpv1alpha1.ObjectName{Name: "keys"}}}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: f.namespace} }
	f.create(&corev1.ConfigMap{ObjectMeta: meta("settings"), Data: map[string]string{"a": "1"}})
	f.create(&corev1.Secret{ObjectMeta: meta("keys"), Data: map[string][]byte{"token": []byte("x")}})
	f.create(server)
	f.condition("discreet", "Applied", metav1.ConditionTrue, "Applied")
	var read []string
	for _, line := range f.quiet().reads {
		if strings.HasSuffix(line, "/secrets/keys") || strings.HasSuffix(line, "/configmaps/settings") {
			read = append(read, line)
		}
	}
	of := "GET /api/v1/namespaces/" + f.namespace
	if diff := cmp.Diff([]string{of + "/configmaps/settings", of + "/secrets/keys"}, read); diff != "" {
		t.Errorf("content is read by name, once (-want +got):\n%s", diff)
	}

	f.counter.mu.Lock()
	defer f.counter.mu.Unlock()
	if f.counter.exposed != nil {
		t.Errorf("lists and watches with content: %v", f.counter.exposed)
	}
	for _, resource := range []string{"GET /api/v1/secrets", "GET /api/v1/configmaps"} {
		if !slices.Contains(f.counter.listed, resource) {
			t.Errorf("%s: no list as metadata was seen; were they %v?", resource, f.counter.listed)
		}
	}
}

func TestSettledObjectsCostNothing(t *testing.T) {
	const servers = 200
	f := start(t, nil)
	for i := range servers {
		server := f.server(fmt.Sprintf("settled-%d", i))
		server.Spec.Config = &mcpv1alpha1.ServerConfig{Inline: inline(`{"a": 1}`)}
		f.create(server)
	}
	f.within(manySoon, "all applied", func() error {
		list := &mcpv1alpha1.MCPServerList{}
		if err := f.client.List(f.ctx, list, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		for _, s := range list.Items {
			if len(s.Status.Conditions) == 0 {
				return errors.New(s.Name + " has no status")
			}
		}
		return nil
	})
	f.wantWrites("a create of each", map[string]int{
		"configmaps": servers, "deployments": servers, "services": 2 * servers, "networkpolicies": servers,
	}, 2*servers)

	f.restart(nil, servers)
	f.wantWrites("a restart of the operator, with all objects read again", map[string]int{}, 0)
}
