package envtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		children[parts[len(parts)-2]]++
	}
	return children, status
}

func (f *fixture) wantWrites(what string, want map[string]int, maxStatus int) {
	f.t.Helper()
	writes := f.quiet()
	children, status := split(writes)
	if diff := cmp.Diff(want, children); diff != "" {
		f.t.Errorf("%s: writes of children (-want +got):\n%s\n%s", what, diff, strings.Join(writes, "\n"))
	}
	if status > maxStatus {
		f.t.Errorf("%s: %d status writes, want at most %d:\n%s", what, status, maxStatus, strings.Join(writes, "\n"))
	}
}

func TestWritesAreExactlyWhatAChangeNeeds(t *testing.T) {
	f := start(t, nil)
	server := f.server("counted")
	server.Spec.Command = []string{"/server"}
	server.Spec.Args = []string{"-v"}
	f.create(server)
	f.condition("counted", "Applied", metav1.ConditionTrue, "Applied")
	f.wantWrites("a create", map[string]int{"deployments": 1, "services": 1, "networkpolicies": 1}, 2)

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
	f.wantWrites("a port edit", map[string]int{"deployments": 1, "services": 1, "networkpolicies": 1}, 2)

	f.edit(server, "counted", func() {
		server.Labels = map[string]string{"team": "a"}
		server.Annotations = map[string]string{"note": "b"}
	})
	f.wantWrites("a label and an annotation on the object", map[string]int{}, 0)
}

func TestSettledObjectsCostNothing(t *testing.T) {
	const servers = 200
	f := start(t, nil)
	for i := range servers {
		server := f.server(fmt.Sprintf("settled-%d", i))
		server.Spec.Config = &mcpv1alpha1.ServerConfig{Inline: inline(`{"a": 1}`)}
		f.create(server)
	}
	f.eventually("all applied", func() error {
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
	writes := f.quiet()
	children, status := split(writes)
	want := map[string]int{"configmaps": servers, "deployments": servers, "services": servers, "networkpolicies": servers}
	if diff := cmp.Diff(want, children); diff != "" {
		t.Errorf("writes of children (-want +got):\n%s", diff)
	}
	if status > 2*servers {
		t.Errorf("%d status writes for %d servers", status, servers)
	}

	f.stop()
	f.run(nil)
	f.wantWrites("a restart of the operator, with all objects read again", map[string]int{}, 0)
}
