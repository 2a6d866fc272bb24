package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podStart is how long a pod may take to run or to end: the cluster's part of each promise, on a busy machine.
const podStart = 10 * time.Second

// fixture is a namespace for one test, in which Pod Security enforces the standard restricted.
type fixture struct {
	t         *testing.T
	namespace string
}

func start(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, namespace: newNamespace(t)}
	t.Cleanup(f.dump) // before the namespace is deleted
	return f
}

// newNamespace makes a namespace that is deleted at the end of the test, without waiting for it.
func newNamespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := cluster.client.Create(t.Context(), ns); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() {
		if err := cluster.client.Delete(context.Background(), ns); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete namespace %s: %v", ns.Name, err)
		}
	})
	// The API server refuses pods that a test makes itself until their account is there, and waits no more than a second or two.
	await(t, "the namespace has its account", podStart, func() string {
		if err := cluster.client.Get(t.Context(), client.ObjectKey{Namespace: ns.Name, Name: "default"}, &corev1.ServiceAccount{}); err != nil {
			return err.Error()
		}
		return ""
	})
	return ns.Name
}

func (f *fixture) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: f.namespace, Name: name}
}

// create makes objects in the test's namespace.
func (f *fixture) create(objects ...client.Object) {
	f.t.Helper()
	for _, obj := range objects {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(f.namespace)
		}
		if err := cluster.client.Create(f.t.Context(), obj); err != nil {
			f.t.Fatalf("create %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

// read fills obj in with the object of that name in the test's namespace.
func (f *fixture) read(name string, obj client.Object) {
	f.t.Helper()
	if err := cluster.client.Get(f.t.Context(), f.key(name), obj); err != nil {
		f.t.Fatalf("read %T %s: %v", obj, name, err)
	}
}

// patch changes an object as it is now, whoever changed it meanwhile.
func (f *fixture) patch(name string, obj client.Object, change func()) {
	f.t.Helper()
	f.read(name, obj)
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		f.t.Fatalf("%T is no object", obj)
	}
	change()
	if err := cluster.client.Patch(f.t.Context(), obj, client.MergeFrom(before)); err != nil {
		f.t.Fatalf("change %T %s: %v", obj, name, err)
	}
}

// remove deletes objects of the test's namespace.
func (f *fixture) remove(objects ...client.Object) {
	f.t.Helper()
	for _, obj := range objects {
		obj.SetNamespace(f.namespace)
		if err := cluster.client.Delete(f.t.Context(), obj, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			f.t.Fatalf("delete %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

// kubectl runs kubectl in the test's namespace.
func (f *fixture) kubectl(args ...string) string {
	f.t.Helper()
	out, err := kubectl(f.t.Context(), append([]string{"--namespace=" + f.namespace}, args...)...)
	if err != nil {
		f.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// forward makes a port of a pod reachable here until the test ends, and returns its address.
func (f *fixture) forward(pod client.ObjectKey, port uint16) string {
	f.t.Helper()
	address, err := forward(f.t.Context(), pod, port)
	if err != nil {
		f.t.Fatal(err)
	}
	return address
}

// echo runs a pod of the image echo, which MCPServers have no part in, and waits until it is ready.
func (f *fixture) echo(pod *corev1.Pod) client.ObjectKey {
	f.t.Helper()
	f.create(pod)
	key := client.ObjectKeyFromObject(pod)
	await(f.t, "pod "+pod.Name+" is ready", podStart, func() string {
		if err := cluster.client.Get(f.t.Context(), key, pod); err != nil {
			return err.Error()
		}
		if !isReady(pod) {
			return fmt.Sprintf("it is in phase %q", pod.Status.Phase)
		}
		return ""
	})
	return key
}

// echoPod is a pod of the image echo. Its labels are its name and what is given, as key and value.
func echoPod(name string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(0)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "echo", Image: imageOf("echo"), Args: args,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// admitNoPods has no new pod made in the test's namespace until the returned function is called. Those that are there stay.
func (f *fixture) admitNoPods() (lift func()) {
	f.t.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
	f.create(quota)
	// The API server enforces it when its own watch told it, which may be later than a read.
	await(f.t, "the quota holds", podStart, func() string {
		pod := echoPod("one-too-many", "sleep")
		pod.Namespace = f.namespace
		if err := cluster.client.Create(f.t.Context(), pod, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "exceeded quota") {
			return fmt.Sprintf("making a pod says %v", err)
		}
		return ""
	})
	return func() { f.remove(quota) }
}

// warned says whether there is a Warning event of the server whose reason and note contain all of the words.
func (f *fixture) warned(server string, words ...string) string {
	return f.eventOf(server, corev1.EventTypeWarning, words...)
}

// eventOf says whether there is an event of the server whose reason and note contain all of the words.
func (f *fixture) eventOf(server, eventType string, words ...string) string {
	list := &corev1.EventList{}
	if err := cluster.client.List(f.t.Context(), list, client.InNamespace(f.namespace)); err != nil {
		return err.Error()
	}
	var others []string
	for _, e := range list.Items {
		if e.InvolvedObject.Kind != "MCPServer" || e.InvolvedObject.Name != server || e.Type != eventType {
			continue
		}
		text := e.Reason + ": " + e.Message
		if missing(text, words) == nil {
			return ""
		}
		others = append(others, text)
	}
	return fmt.Sprintf("its %s events are %q", eventType, others)
}

// missing says which words a text does not contain.
func missing(text string, words []string) error {
	var errs []error
	for _, word := range words {
		if !strings.Contains(text, word) {
			errs = append(errs, fmt.Errorf("%q is not in %q", word, text))
		}
	}
	return errors.Join(errs...)
}

// dump shows what a failed test left behind.
func (f *fixture) dump() {
	if !f.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	show := func(filter func(string) string, args ...string) {
		out, err := kubectl(ctx, args...)
		if err != nil {
			out += err.Error()
		}
		f.t.Logf("kubectl %s\n%s", strings.Join(args, " "), filter(out))
	}
	whole := func(s string) string { return s }
	namespace := "--namespace=" + f.namespace
	show(whole, namespace, "get", "mcpservers,mcptools,mcpagents", "--output=yaml")
	show(whole, namespace, "get", "deployments,replicasets,pods,services,networkpolicies", "--output=wide")
	show(whole, namespace, "get", "events", "--sort-by=.metadata.creationTimestamp")
	for _, label := range []string{"mcp.operator/server", "mcp.operator/agent", "mcp-server", "name"} { // the last are pods of tests themselves
		show(whole, namespace, "logs", "--selector="+label, "--all-containers", "--tail=40", "--prefix", "--ignore-errors")
	}
	about := func(log string) string {
		lines := linesWith(log, f.namespace)
		return strings.Join(lines[max(0, len(lines)-40):], "")
	}
	show(about, "--namespace="+operatorNamespace, "logs", "deployment/"+operatorName, "--tail=5000")
}

// linesWith returns the lines that contain all of the words.
func linesWith(text string, words ...string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if missing(line, words) == nil {
			lines = append(lines, line)
		}
	}
	return lines
}
