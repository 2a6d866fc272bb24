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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientapply "k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
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
	recorder  events.EventRecorder // of what was put back; nil: it is not told

	mu        sync.Mutex
	settled   map[identity]settled // of uncached objects
	corrected map[string]correction
}

// New returns an Applier that writes, as the field manager of that name, and reads caches through c. ConfigMaps and Secrets are cached
// as metadata only. The content of a ConfigMap is read through reader, and only after it changed; that of a Secret is never read.
func New(c client.Client, reader client.Reader, manager string) *Applier {
	return &Applier{
		client: c, reader: reader, manager: manager,
		converter: clientapply.NewTypeConverter(c.Scheme()),
		settled:   map[identity]settled{},
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
		return did(Created, a.create(ctx, desired, content, hash))
	}
	if err := a.own(ctx, owner, live); err != nil {
		return Unchanged, err
	}
	if was := live.GetAnnotations()[AnnotationHash]; was != hash {
		if err := a.prepareFields(ctx, content, live, was); err != nil {
			return Unchanged, err
		}
		_, err := a.correct(ctx, desired, content, hash, live)
		return did(Updated, err)
	}
	fields, err := a.drift(content, live, hash)
	if fields == nil || err != nil {
		return Unchanged, err
	}
	written, err := a.correct(ctx, desired, content, hash, live)
	if err != nil {
		return Unchanged, err
	}
	if left, err := a.difference(content, written); err == nil && left.Empty() { // else the API server, or a policy in it, keeps it otherwise
		a.tell(owner, desired, content, fields)
	}
	return Updated, nil
}

// did is the change if there is no error: what could not be written did not change.
func did(change Change, err error) (Change, error) {
	if err != nil {
		return Unchanged, err
	}
	return change, nil
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

// correct applies content over the live object. What could not be written was not corrected, and is no dispute.
func (a *Applier) correct(
	ctx context.Context, desired client.Object, content *unstructured.Unstructured, hash string, live client.Object,
) (written client.Object, err error) {
	written, err = a.overwrite(ctx, desired, content, hash, live)
	if err != nil {
		a.forgetCorrection(content)
	}
	return written, err
}

func (a *Applier) overwrite(
	ctx context.Context, desired client.Object, content *unstructured.Unstructured, hash string, live client.Object,
) (written client.Object, err error) {
	// The UID makes the API server refuse, should the object have been replaced by a foreign one meanwhile.
	content.SetUID(live.GetUID())
	written, err = a.patch(ctx, desired, content, hash, client.ForceOwnership)
	if !apierrors.IsInvalid(err) {
		return written, err
	}
	if repaired, repairErr := a.repairPorts(ctx, content, live); !repaired || repairErr != nil {
		return nil, errors.Join(err, repairErr)
	}
	return a.patch(ctx, desired, content, hash, client.ForceOwnership)
}

// Remove deletes the object of desired's kind and name if it is a child of owner, and else does nothing.
func (a *Applier) Remove(ctx context.Context, owner, desired client.Object) error {
	gvk, err := apiutil.GVKForObject(desired, a.client.Scheme())
	if err != nil {
		return fmt.Errorf("kind of %T: %w", desired, err)
	}
	live := desired.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	opts := []client.DeleteOption{}
	if isUncached(desired) {
		live = metadataOf(gvk)
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	err = a.client.Get(ctx, client.ObjectKeyFromObject(desired), live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(desired), err)
	}
	controller := metav1.GetControllerOf(live)
	if controller == nil || controller.UID != owner.GetUID() || !live.GetDeletionTimestamp().IsZero() {
		return nil
	}
	uid := live.GetUID()
	err = a.client.Delete(ctx, desired, append(opts, client.Preconditions{UID: &uid})...)
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
// be as hash asks, where that is so. Of what is judged by metadata alone, it returns that.
func (a *Applier) current(ctx context.Context, desired client.Object, hash string) (live client.Object, asIs bool, err error) {
	gvk, err := apiutil.GVKForObject(desired, a.client.Scheme())
	if err != nil {
		return nil, false, fmt.Errorf("kind of %T: %w", desired, err)
	}
	key, reader := client.ObjectKeyFromObject(desired), client.Reader(a.client)
	live = desired.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	if isUncached(desired) {
		meta := metadataOf(gvk)
		err := a.client.Get(ctx, key, meta)
		if apierrors.IsNotFound(err) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("read %s %s: %w", gvk.Kind, key, err)
		}
		if a.isSettled(meta, hash) {
			return nil, true, nil
		}
		reader = a.reader
		if isOpaque(desired) {
			live = metadataOf(gvk)
		}
	}
	err = reader.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read %s %s: %w", gvk.Kind, key, err)
	}
	return live, false, nil
}

// difference returns the fields of live that applying content would change, by the merge rules of Kubernetes' own schema.
func (a *Applier) difference(content *unstructured.Unstructured, live client.Object) (*fieldpath.Set, error) {
	if meta, isMetadata := live.(*metav1.PartialObjectMetadata); isMetadata {
		return a.lost(content, meta)
	}
	live = live.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	live.GetObjectKind().SetGroupVersionKind(content.GroupVersionKind())
	was, err := a.converter.ObjectToTyped(live)
	if err != nil {
		return nil, fmt.Errorf("read fields of live %s %s: %w", content.GetKind(), content.GetName(), err)
	}
	want, err := a.converter.ObjectToTyped(content)
	if err != nil {
		return nil, fmt.Errorf("read fields of desired %s %s: %w", content.GetKind(), content.GetName(), err)
	}
	merged, err := was.Merge(want)
	if err != nil {
		return nil, fmt.Errorf("merge %s %s: %w", content.GetKind(), content.GetName(), err)
	}
	comparison, err := was.Compare(merged)
	if err != nil {
		return nil, fmt.Errorf("compare %s %s: %w", content.GetKind(), content.GetName(), err)
	}
	return comparison.Modified.Union(comparison.Added).Union(comparison.Removed), nil
}

// create makes an object that was not seen. Should a foreign one of this name have appeared a moment ago, the API server
// refuses: an apply without force conflicts in the fields that select pods. Kinds that select none are created plainly.
func (a *Applier) create(ctx context.Context, desired client.Object, content *unstructured.Unstructured, hash string) error {
	if isAppliedFirst(desired) {
		_, err := a.patch(ctx, desired, content, hash)
		return err
	}
	created := desired.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	created.SetOwnerReferences(content.GetOwnerReferences())
	created.SetAnnotations(content.GetAnnotations())
	opts := []client.CreateOption{client.FieldOwner(a.manager)}
	if isUncached(desired) {
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	if err := a.client.Create(ctx, created, opts...); err != nil {
		return fmt.Errorf("create %s %q: %w", content.GetKind(), content.GetName(), err)
	}
	a.remember(created, hash)
	return nil
}

// patch applies content, and returns what came of it.
func (a *Applier) patch(
	ctx context.Context, desired client.Object, content *unstructured.Unstructured, hash string, opts ...client.PatchOption,
) (written client.Object, err error) {
	raw, err := json.Marshal(content.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", content.GetKind(), content.GetName(), err)
	}
	opts = append(opts, client.FieldOwner(a.manager))
	written = desired.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	if isOpaque(desired) {
		written = metadataOf(content.GroupVersionKind())
		written.SetName(desired.GetName())
		written.SetNamespace(desired.GetNamespace())
	}
	if isUncached(desired) {
		// Its cache holds metadata only; to wait for it here would start a second one with all content.
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	if err := a.client.Patch(ctx, written, client.RawPatch(types.ApplyPatchType, raw), opts...); err != nil {
		return nil, fmt.Errorf("apply %s %q: %w", content.GetKind(), content.GetName(), err)
	}
	a.remember(written, hash)
	a.noteVersion(content, written)
	return written, nil
}
