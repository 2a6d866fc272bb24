package apply

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestOnlyOursIsRemovedAndOnlyWhatWasSeen(t *testing.T) {
	t.Parallel()
	owned := func(uid types.UID, controller bool) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "demo-config", Namespace: "team", UID: "uid-config",
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "mcp.operator/v1alpha1", Kind: "MCPServer", Name: "demo", UID: uid, Controller: &controller},
			},
		}}
	}
	ending := owned("uid-demo", true)
	ending.DeletionTimestamp, ending.Finalizers = new(metav1.Now()), []string{"example.com/hold"}
	foreign := owned("uid-demo", true)
	foreign.OwnerReferences = nil
	configMaps := schema.GroupResource{Resource: "configmaps"}
	deleted := []write{{verb: "delete", uid: "uid-config"}}
	forbidden := errors.New("forbidden")

	tests := map[string]struct {
		live    *corev1.ConfigMap
		refusal error
		want    []write
		err     string
	}{
		"there is nothing":                          {},
		"it is ours":                                {live: owned("uid-demo", true), want: deleted},
		"it has no owner":                           {live: foreign},
		"it belongs to a server of another UID":     {live: owned("uid-before", true)},
		"it is ours, but another is its controller": {live: owned("uid-demo", false)},
		"it is being deleted already":               {live: ending},
		"somebody was faster":                       {live: owned("uid-demo", true), refusal: apierrors.NewNotFound(configMaps, "demo-config"), want: deleted},
		"the API server refuses": {
			live: owned("uid-demo", true), refusal: forbidden, want: deleted, err: "delete ConfigMap team/demo-config: forbidden",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t)
			if tt.live != nil {
				w = makeWorld(t, tt.live)
			}
			if tt.refusal != nil {
				w.refuse = func(write) error { return tt.refusal }
			}
			unused := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "demo-config", Namespace: "team"}}
			err := w.applier.Remove(t.Context(), makeOwner(), unused)
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, w.writes, cmp.AllowUnexported(write{})); diff != "" {
				t.Errorf("writes (-want +got)\n%s", diff)
			}
		})
	}
}
