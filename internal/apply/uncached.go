package apply

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// isUncached says whether only the metadata of an object's kind is cached.
func isUncached(obj client.Object) bool {
	switch obj.(type) {
	case *corev1.ConfigMap, *corev1.Secret, *metav1.PartialObjectMetadata:
		return true
	}
	return false
}

// isOpaque says whether an object is judged by its metadata, and its content never read: a Secret's is not our business, and an
// immutable ConfigMap's cannot have changed.
func isOpaque(obj client.Object) bool {
	switch o := obj.(type) {
	case *corev1.Secret:
		return true
	case *corev1.ConfigMap:
		return o.Immutable != nil && *o.Immutable
	}
	return false
}

func metadataOf(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(gvk)
	return meta
}

// identity is the kind and name of an object.
type identity struct {
	kind string
	key  client.ObjectKey
}

// settled remembers that an uncached object was seen as asked, so that it is not read again until it changes.
type settled struct {
	uid                   types.UID
	resourceVersion, hash string
}

func (a *Applier) isSettled(meta *metav1.PartialObjectMetadata, hash string) bool {
	id := identity{meta.Kind, client.ObjectKeyFromObject(meta)}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settled[id] == settled{meta.GetUID(), meta.GetResourceVersion(), hash}
}

func (a *Applier) remember(obj client.Object, hash string) {
	id, known := a.identify(obj)
	if !known {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settled[id] = settled{obj.GetUID(), obj.GetResourceVersion(), hash}
}

// Forget drops what is remembered of a ConfigMap or Secret that is gone.
func (a *Applier) Forget(obj client.Object) {
	id, known := a.identify(obj)
	if !known {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.settled, id)
}

// identify returns the identity of an object of which something is remembered; false for those of cached kinds.
func (a *Applier) identify(obj client.Object) (identity, bool) {
	gvk, err := apiutil.GVKForObject(obj, a.client.Scheme())
	if err != nil || !isUncached(obj) {
		return identity{}, false
	}
	return identity{gvk.Kind, client.ObjectKeyFromObject(obj)}, true
}
