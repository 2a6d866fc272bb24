package mcpagent

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var unexported = cmp.AllowUnexported(value{})

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team", UID: types.UID("uid-" + name)}, Data: data}
}

func readContents(t *testing.T, c *contents, keys map[string][]string) map[string]map[string]value {
	t.Helper()
	values, err := c.read(t.Context(), "team", keys)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func TestAConfigMapIsReadOncePerVersionAndOnlyForWhatIsWanted(t *testing.T) {
	t.Parallel()
	settings := configMap("settings", map[string]string{"level": "debug", "colour": "red", "large": "text that nobody asked for"})
	r, _ := makeReconciler(t, settings)
	counted := &countingReader{Reader: r.Client}
	c := newContents(r.Client, counted)
	want := map[string]map[string]value{"settings": {"level": {text: "debug"}}}
	for range 2 {
		if diff := cmp.Diff(want, readContents(t, c, map[string][]string{"settings": {"level", "none"}, "absent": {"x"}}), unexported); diff != "" {
			t.Errorf("values (-want +got)\n%s", diff)
		}
	}
	if counted.n != 1 {
		t.Errorf("read %d times, want once", counted.n)
	}
	settings.Data["level"] = "info"
	if err := r.Client.Update(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	want["settings"] = map[string]value{"level": {text: "info"}, "colour": {text: "red"}}
	if diff := cmp.Diff(want, readContents(t, c, map[string][]string{"settings": {"level", "colour"}}), unexported); diff != "" || counted.n != 2 {
		t.Errorf("read %d times, want twice; values after an edit (-want +got)\n%s", counted.n, diff)
	}
	if len(c.kept) != 3 || c.used.Len() != 3 {
		t.Errorf("kept are %v, want level, colour and none, each once", c.kept)
	}
}

// TestWhatAgentsReadIsKeptOnceAndBounded: many small agents may read one large ConfigMap, or many.
func TestWhatAgentsReadIsKeptOnceAndBounded(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 1000)
	var objects []client.Object
	for _, name := range []string{"a", "b", "c", "d"} {
		objects = append(objects, configMap(name, map[string]string{"k": large}))
	}
	r, _ := makeReconciler(t, objects...)
	counted := &countingReader{Reader: r.Client}
	c := newContents(r.Client, counted)
	c.limit = 3200
	for _, step := range []struct {
		name        string
		reads, kept int
	}{
		{"a", 1, 1}, {"a", 1, 1}, {"b", 2, 2}, {"c", 3, 3}, {"a", 3, 3}, {"d", 4, 3}, // b was not asked for longest
		{"a", 4, 3}, {"b", 5, 3},
	} {
		got := readContents(t, c, map[string][]string{step.name: {"k"}})
		if got[step.name]["k"].text != large || counted.n != step.reads || len(c.kept) != step.kept || c.size > c.limit {
			t.Fatalf("after %s: %d reads, want %d; %d are kept, want %d; %d bytes", step.name, counted.n, step.reads, len(c.kept), step.kept, c.size)
		}
	}
	c.limit = 100
	if got := readContents(t, c, map[string][]string{"c": {"k"}}); got["c"]["k"].text != large || len(c.kept) != 0 || c.size != 0 {
		t.Errorf("of one that is larger than the limit %d are kept, of %d bytes", len(c.kept), c.size)
	}
}

// countingReader counts reads.
type countingReader struct {
	client.Reader

	n int
}

func (c *countingReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.n++
	return c.Reader.Get(ctx, key, obj, opts...)
}
