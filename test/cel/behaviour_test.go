package cel

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// TestANewObjectIsToldAsNotObserved: who waits for observedGeneration, as kstatus does, waits for the operator's first word.
func TestANewObjectIsToldAsNotObserved(t *testing.T) {
	t.Parallel()
	for kind, cases := range ownKinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			object := changedFrom(t, cases.minimal, "metadata: {name: not-observed}")
			if err := api.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{"observedGeneration": int64(-1)}, object.Object["status"]); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultsAreSet(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change string
		want   map[string]any // spec
	}{
		"the smallest server gets a transport, a port, one pod and sessions": {"{}", map[string]any{
			"transport": "StreamableHTTP", "port": int64(8080), "replicas": int64(1), "sessions": "Auto",
		}},
		"a network lets the own namespace in, and ports are of TCP": {
			"spec: {transport: StreamableHTTP, port: 1, replicas: 0, sessions: Stateless, network: {egressPorts: [{port: 443}]}}",
			map[string]any{
				"transport": "StreamableHTTP", "port": int64(1), "replicas": int64(0), "sessions": "Stateless",
				"network": map[string]any{"ingress": "Namespace", "egressPorts": []any{map[string]any{"port": int64(443), "protocol": "TCP"}}},
			},
		},
		"an authority's certificates are under ca.crt": {
			"spec: {port: 1, replicas: 0, tls: {caSecretRef: {name: ca}}}",
			map[string]any{
				"transport": "StreamableHTTP", "port": int64(1), "replicas": int64(0), "sessions": "Auto",
				"tls": map[string]any{"caSecretRef": map[string]any{"name": "ca", "key": "ca.crt"}},
			},
		},
		"a rollout replaces pods one by one": {
			"spec: {port: 1, replicas: 0, updateStrategy: {}}",
			map[string]any{
				"transport": "StreamableHTTP", "port": int64(1), "replicas": int64(0), "sessions": "Auto",
				"updateStrategy": map[string]any{"type": "RollingUpdate"},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object, err := submit(t, c.change)
			if err != nil {
				t.Fatal(err)
			}
			c.want["image"] = "registry.example.com/team/server:1.2.3"
			if diff := cmp.Diff(c.want, object.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownFieldsAreRefusedUnderStrictValidation(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]string{
		"spec.imagee":                  "spec: {imagee: x}",
		"spec.probes.readiness.host":   "spec: {probes: {readiness: {host: example.com}}}",
		"spec.podSecurity.privileged":  "spec: {podSecurity: {privileged: true}}",
		"spec.network.egressFrom":      "spec: {network: {egressFrom: []}}",
		"spec.secretRefs[0].namespace": "spec: {secretRefs: [{name: a, namespace: other}]}",
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			_, err := submit(t, change)
			if want := `unknown field "` + field + `"`; !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want a bad request that says %s", err, want)
			}
		})
	}
}

// TestCRDsFitIntoAnAnnotation is what lets a plain `kubectl apply` install them: it stores what it applied in an
// annotation, and the annotations of an object have 256 KiB together.
func TestCRDsFitIntoAnAnnotation(t *testing.T) {
	t.Parallel()
	for kind, crd := range readCRDs(t) {
		content, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		if len(content) >= 262144-1024 {
			t.Errorf("the CRD of %s has %d bytes as JSON, too many for the annotation of kubectl apply", kind, len(content))
		}
	}
}

func TestScaleIsReadAndWritten(t *testing.T) {
	t.Parallel()
	server := &mcpv1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: "scaled", Namespace: namespace},
		Spec:       mcpv1alpha1.MCPServerSpec{Image: "registry.example.com/team/server:1.2.3", Replicas: new(int32(2))},
	}
	if err := api.Create(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	deleteLater(t, server)
	want := autoscalingv1.ScaleStatus{Replicas: 1, Selector: "mcp.operator/server=scaled"}
	server.Status.Replicas, server.Status.Selector = want.Replicas, want.Selector
	if err := api.Status().Update(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{}
	if err := api.SubResource("scale").Get(t.Context(), server, scale); err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 2 || scale.Status != want {
		t.Errorf("scale is %+v %+v, want 2 replicas asked for and %+v", scale.Spec, scale.Status, want)
	}
	for _, replicas := range []int32{0, 7} {
		scale.Spec.Replicas = replicas
		if err := api.SubResource("scale").Update(t.Context(), server, client.WithSubResourceBody(scale)); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(server), server); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&replicas, server.Spec.Replicas); diff != "" {
			t.Errorf("spec.replicas after scaling to %d (-want +got):\n%s", replicas, diff)
		}
	}
	scale.Spec.Replicas = 1001
	err := api.SubResource("scale").Update(t.Context(), server, client.WithSubResourceBody(scale))
	if !apierrors.IsInvalid(err) {
		t.Errorf("scaling to 1001 is answered with %v, want it refused as invalid", err)
	}
}

func TestConfigIsReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	apply := func(config, manager string, options ...client.ApplyOption) (*unstructured.Unstructured, error) {
		object := changed(t, "metadata: {name: atomic}\nspec: {config: "+config+"}")
		options = append(options, client.FieldOwner(manager))
		return object, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), options...)
	}
	deleteLater(t, changed(t, "metadata: {name: atomic}"))
	if _, err := apply("{inline: {a: 1, deep: {b: 2}}, mountPath: /x/y}", "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := apply("{inline: {c: 3}}", "second"); !apierrors.IsConflict(err) {
		t.Errorf("a second manager is answered with %v, want a conflict: both cannot own config", err)
	}
	for config, want := range map[string]map[string]any{
		"{inline: {c: 3}}":          {"inline": map[string]any{"c": int64(3)}},
		"{configMapRef: {name: d}}": {"configMapRef": map[string]any{"name": "d"}},
	} {
		object, err := apply(config, "second", client.ForceOwnership)
		if err != nil {
			t.Fatalf("apply config %s: %v", config, err)
		}
		got, _, err := unstructured.NestedMap(object.Object, "spec", "config")
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("config after %s (%v, -want +got):\n%s", config, err, diff)
		}
	}
}

// deleteLater removes what a test stored.
func deleteLater(t *testing.T, object client.Object) {
	t.Helper()
	t.Cleanup(func() {
		if err := api.Delete(context.WithoutCancel(t.Context()), object); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}
