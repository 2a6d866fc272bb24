// Package apply writes child objects by server-side apply (KEP-555), as one field owner.
//
// It guarantees that an object which belongs to somebody else is never written, that a write happens only when something
// differs, and that only fields we set are owned: what others add (a restart annotation, a sidecar) lives on, and a field
// that we stop sending is given up.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientapply "k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// FieldManager is the one field owner of everything that the operator writes for objects of our own API. Those of another have
	// another one: were they the same, an object that appears between looking and writing, made for the other, would be taken away
	// from it instead of being a conflict.
	FieldManager = "mcp-operator"

	// AnnotationHash holds the hash of the bytes that were applied.
	AnnotationHash = "mcp.operator/applied-hash"
)

// Applier applies child objects. It is safe for concurrent use.
type Applier struct {
	client    client.Client
	reader    client.Reader
	manager   string
	converter managedfields.TypeConverter

	mu      sync.Mutex
	settled map[client.ObjectKey]settled // uncached objects, which are of one kind

	corrected map[string]correction // by kind and name
}

// settled remembers that an uncached object was seen as asked, so that it is not read again until it changes.
type settled struct {
	uid                   types.UID
	resourceVersion, hash string
}

// New returns an Applier that writes, as the field manager of that name, and reads caches through c. ConfigMaps are cached as metadata
// only, so their content is read through reader, and only after they changed.
func New(c client.Client, reader client.Reader, manager string) *Applier {
	return &Applier{
		client: c, reader: reader, manager: manager,
		converter: clientapply.NewTypeConverter(c.Scheme()),
		settled:   map[client.ObjectKey]settled{},
		corrected: map[string]correction{},
	}
}

// Apply makes desired so, as a child of owner. It returns an *OwnershipConflictError if an object of that name belongs to
// somebody else, a *TerminatingError if one is being deleted, and a *FieldConflictError if somebody else changes it again and again.
func (a *Applier) Apply(ctx context.Context, owner, desired client.Object) (Change, error) {
	content, hash, err := a.encode(owner, desired)
	if err != nil {
		return Unchanged, err
	}
	live, asIs, err := a.current(ctx, desired, hash)
	if err != nil || asIs {
		return Unchanged, err
	}
	if live == nil {
		return Created, a.create(ctx, desired, content, hash)
	}
	if err := a.own(ctx, owner, live); err != nil {
		return Unchanged, err
	}
	switch live.GetAnnotations()[AnnotationHash] {
	case hash:
		done, err := a.asAsked(content, live, hash)
		if done || err != nil {
			return Unchanged, err
		}
	case "":
		if err := a.takeOver(ctx, live); err != nil {
			return Unchanged, err
		}
	}
	return Updated, a.correct(ctx, desired, content, hash, live)
}

// Change is what applying an object did.
type Change int

// The changes.
const (
	Unchanged Change = iota
	Created
	Updated
)

// Claim returns the error that Apply would give if somebody else has an object of desired's name, and writes nothing.
func (a *Applier) Claim(ctx context.Context, owner, desired client.Object) error {
	gvk, err := apiutil.GVKForObject(desired, a.client.Scheme())
	if err != nil {
		return fmt.Errorf("kind of %T: %w", desired, err)
	}
	live := desired.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	err = a.client.Get(ctx, client.ObjectKeyFromObject(desired), live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(desired), err)
	}
	ref, err := controllerReference(owner, a.client.Scheme())
	if err != nil {
		return err
	}
	return conflict(live, gvk.Kind, ref)
}

// asAsked says whether nothing is to be done: the object is as asked, or correcting it was in vain.
func (a *Applier) asAsked(content *unstructured.Unstructured, live client.Object, hash string) (bool, error) {
	same, err := a.same(content, live)
	if err != nil {
		return false, err
	}
	if same {
		a.remember(live, hash)
		return true, nil
	}
	return a.dispute(content, live)
}

// correct applies content over the live object.
func (a *Applier) correct(ctx context.Context, desired client.Object, content *unstructured.Unstructured, hash string, live client.Object) error {
	// The UID makes the API server refuse, should the object have been replaced by a foreign one meanwhile.
	content.SetUID(live.GetUID())
	err := a.patch(ctx, desired, content, hash, client.ForceOwnership)
	if !apierrors.IsInvalid(err) {
		return err
	}
	if repaired, repairErr := a.repairPorts(ctx, content, live); !repaired || repairErr != nil {
		return errors.Join(err, repairErr)
	}
	return a.patch(ctx, desired, content, hash, client.ForceOwnership)
}

// Remove deletes the object of desired's kind and name if it is a child of owner, and else does nothing.
func (a *Applier) Remove(ctx context.Context, owner, desired client.Object) error {
	meta := &metav1.PartialObjectMetadata{}
	gvk, err := apiutil.GVKForObject(desired, a.client.Scheme())
	if err != nil {
		return fmt.Errorf("kind of %T: %w", desired, err)
	}
	meta.SetGroupVersionKind(gvk)
	err = a.client.Get(ctx, client.ObjectKeyFromObject(desired), meta)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(desired), err)
	}
	controller := metav1.GetControllerOf(meta)
	if controller == nil || controller.UID != owner.GetUID() || !meta.DeletionTimestamp.IsZero() {
		return nil
	}
	uid := meta.GetUID()
	err = a.client.Delete(ctx, desired, client.Preconditions{UID: &uid}, client.DisableReadYourWritesConsistency)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(desired), err)
	}
	return nil
}

// encode returns the bytes to apply as an object, with the owner reference and the hash annotation, and the hash.
func (a *Applier) encode(owner, desired client.Object) (*unstructured.Unstructured, string, error) {
	scheme := a.client.Scheme()
	gvk, err := apiutil.GVKForObject(desired, scheme)
	if err != nil {
		return nil, "", fmt.Errorf("kind of %T: %w", desired, err)
	}
	content, err := Content(desired, gvk)
	if err != nil {
		return nil, "", err
	}
	ref, err := controllerReference(owner, scheme)
	if err != nil {
		return nil, "", err
	}
	content.SetOwnerReferences([]metav1.OwnerReference{ref})
	raw, err := json.Marshal(content.Object)
	if err != nil {
		return nil, "", fmt.Errorf("encode %s %s: %w", gvk.Kind, desired.GetName(), err)
	}
	sum := sha256.Sum256(raw)
	hash := hex.EncodeToString(sum[:12])
	annotations := content.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationHash] = hash
	content.SetAnnotations(annotations)
	return content, hash, nil
}

// Content returns the fields of a typed object that are applied: no status, and none of the nulls that Go types add.
func Content(obj client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	delete(fields, "status")
	dropNulls(fields)
	content := &unstructured.Unstructured{Object: fields}
	content.SetGroupVersionKind(gvk)
	return content, nil
}

func dropNulls(fields map[string]any) {
	for key, value := range fields {
		switch v := value.(type) {
		case nil:
			delete(fields, key)
		case map[string]any:
			dropNulls(v)
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					dropNulls(m)
				}
			}
		}
	}
}

// current returns the live object, nil if there is none. For uncached kinds it says instead that the object is known to
// be as hash asks, where that is so.
func (a *Applier) current(ctx context.Context, desired client.Object, hash string) (live client.Object, asIs bool, err error) {
	key := client.ObjectKeyFromObject(desired)
	live = desired.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	reader := client.Reader(a.client)
	if isUncached(desired) {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		err := a.client.Get(ctx, key, meta)
		if apierrors.IsNotFound(err) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("read ConfigMap %s: %w", key, err)
		}
		if a.isSettled(meta, hash) {
			return nil, true, nil
		}
		reader = a.reader
	}
	err = reader.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read %T %s: %w", desired, key, err)
	}
	return live, false, nil
}

func isUncached(obj client.Object) bool {
	_, configMap := obj.(*corev1.ConfigMap)
	return configMap
}

// same says whether applying content would leave live as it is, by the merge rules of Kubernetes' own schema.
func (a *Applier) same(content *unstructured.Unstructured, live client.Object) (bool, error) {
	live = live.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	live.GetObjectKind().SetGroupVersionKind(content.GroupVersionKind())
	was, err := a.converter.ObjectToTyped(live)
	if err != nil {
		return false, fmt.Errorf("read fields of live %s %s: %w", content.GetKind(), content.GetName(), err)
	}
	want, err := a.converter.ObjectToTyped(content)
	if err != nil {
		return false, fmt.Errorf("read fields of desired %s %s: %w", content.GetKind(), content.GetName(), err)
	}
	merged, err := was.Merge(want)
	if err != nil {
		return false, fmt.Errorf("merge %s %s: %w", content.GetKind(), content.GetName(), err)
	}
	comparison, err := was.Compare(merged)
	if err != nil {
		return false, fmt.Errorf("compare %s %s: %w", content.GetKind(), content.GetName(), err)
	}
	return comparison.IsSame(), nil
}

// create makes an object that was not seen. Should a foreign one of this name have appeared a moment ago, the API server
// refuses: an apply without force conflicts in the fields that select pods. A ConfigMap has none, so it is created plainly.
func (a *Applier) create(ctx context.Context, desired client.Object, content *unstructured.Unstructured, hash string) error {
	if !isUncached(desired) {
		return a.patch(ctx, desired, content, hash)
	}
	created := desired.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	created.SetOwnerReferences(content.GetOwnerReferences())
	created.SetAnnotations(content.GetAnnotations())
	if err := a.client.Create(ctx, created, client.FieldOwner(a.manager), client.DisableReadYourWritesConsistency); err != nil {
		return fmt.Errorf("create %s %q: %w", content.GetKind(), content.GetName(), err)
	}
	a.remember(created, hash)
	return nil
}

func (a *Applier) patch(ctx context.Context, desired client.Object, content *unstructured.Unstructured, hash string, opts ...client.PatchOption) error {
	raw, err := json.Marshal(content.Object)
	if err != nil {
		return fmt.Errorf("encode %s %s: %w", content.GetKind(), content.GetName(), err)
	}
	opts = append(opts, client.FieldOwner(a.manager))
	if isUncached(desired) {
		// Its cache holds metadata only; to wait for it here would start a second one with all content.
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	written := desired.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	if err := a.client.Patch(ctx, written, client.RawPatch(types.ApplyPatchType, raw), opts...); err != nil {
		return fmt.Errorf("apply %s %q: %w", content.GetKind(), content.GetName(), err)
	}
	a.remember(written, hash)
	a.noteVersion(content, written)
	return nil
}

func (a *Applier) isSettled(meta *metav1.PartialObjectMetadata, hash string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settled[client.ObjectKeyFromObject(meta)] == settled{meta.GetUID(), meta.GetResourceVersion(), hash}
}

func (a *Applier) remember(obj client.Object, hash string) {
	if !isUncached(obj) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settled[client.ObjectKeyFromObject(obj)] = settled{obj.GetUID(), obj.GetResourceVersion(), hash}
}

// Forget drops what is remembered of a ConfigMap that is gone.
func (a *Applier) Forget(key client.ObjectKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.settled, key)
}
