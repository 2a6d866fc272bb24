package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// OwnershipConflictError says that an object of a child's name belongs to somebody else. It is not touched.
type OwnershipConflictError struct{ Message string }

// Error returns the message.
func (e *OwnershipConflictError) Error() string { return e.Message }

// ConflictError says of an OwnershipConflictError, which it wraps, what it is about.
type ConflictError struct {
	// Resource and Kind are the object in the way.
	Resource client.ObjectKey
	Kind     string

	// Owner is the kind and name of its controller; empty if it has none.
	Owner string

	err *OwnershipConflictError
}

// Error returns the message.
func (c *ConflictError) Error() string { return c.err.Message }

// Unwrap returns the *OwnershipConflictError.
func (c *ConflictError) Unwrap() error { return c.err }

// IsOwnershipConflict says whether err is, or wraps, an *OwnershipConflictError.
func IsOwnershipConflict(err error) bool {
	var conflict *OwnershipConflictError
	return errors.As(err, &conflict)
}

// TerminatingError says that a child is being deleted and can be created again only when it is gone.
type TerminatingError struct{ Message string }

// Error returns the message.
func (e *TerminatingError) Error() string { return e.Message }

func controllerReference(owner client.Object, scheme *runtime.Scheme) (metav1.OwnerReference, error) {
	gvk, err := apiutil.GVKForObject(owner, scheme)
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("kind of %T: %w", owner, err)
	}
	return *metav1.NewControllerRef(owner, gvk), nil
}

// own makes sure that live is a child of owner: it is one; or it is the orphan of a deleted object of owner's kind and
// name, and is adopted. Anything else is an *OwnershipConflictError.
func (a *Applier) own(ctx context.Context, owner, live client.Object) error {
	ref, err := controllerReference(owner, a.client.Scheme())
	if err != nil {
		return err
	}
	gvk, err := apiutil.GVKForObject(live, a.client.Scheme())
	if err != nil {
		return fmt.Errorf("kind of %T: %w", live, err)
	}
	if err := conflict(live, gvk.Kind, ref); err != nil {
		return err
	}
	name := client.ObjectKeyFromObject(live)
	controller := metav1.GetControllerOf(live)
	switch {
	case !live.GetDeletionTimestamp().IsZero():
		return &TerminatingError{fmt.Sprintf("%s %s is being deleted and will be created again when it is gone", gvk.Kind, name)}
	case controller.UID != ref.UID:
		return a.adopt(ctx, live, ref)
	}
	return nil
}

// conflict returns a *ConflictError if live belongs to somebody else than ref.
func conflict(live client.Object, kind string, ref metav1.OwnerReference) error {
	name := client.ObjectKeyFromObject(live)
	controller := metav1.GetControllerOf(live)
	switch {
	case controller == nil:
		return &ConflictError{Resource: name, Kind: kind, err: &OwnershipConflictError{fmt.Sprintf(
			"resource %s exists but has no controller owner; this %s is not touched: delete it, or give the %s another name", name, kind, ref.Kind)}}
	case controller.UID != ref.UID && !isPredecessor(*controller, ref):
		return &ConflictError{Resource: name, Kind: kind, Owner: controller.Kind + "/" + controller.Name, err: &OwnershipConflictError{fmt.Sprintf(
			"resource %s is owned by %s/%s (UID: %s), cannot be managed by %s %s; this %s is not touched",
			name, controller.Kind, controller.Name, controller.UID, ref.Kind, ref.Name, kind)}}
	}
	return nil
}

// isPredecessor says whether old was the same object before it was deleted and created again. The API version may differ.
func isPredecessor(old, ref metav1.OwnerReference) bool {
	return old.Kind == ref.Kind && old.Name == ref.Name && groupOf(old) == groupOf(ref)
}

func groupOf(ref metav1.OwnerReference) string {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return ref.APIVersion
	}
	return gv.Group
}

// adopt replaces the owner references, which server-side apply alone cannot: two controllers are not allowed. The
// resource version makes it fail if the garbage collector or anybody else was faster.
func (a *Applier) adopt(ctx context.Context, live client.Object, ref metav1.OwnerReference) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": live.GetResourceVersion(),
		"ownerReferences": []metav1.OwnerReference{ref},
	}})
	if err != nil {
		return fmt.Errorf("encode owner reference: %w", err)
	}
	opts := []client.PatchOption{client.FieldOwner(a.manager)}
	if isUncached(live) {
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	if err := a.client.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), opts...); err != nil {
		return fmt.Errorf("adopt %T %q: %w", live, live.GetName(), err)
	}
	return nil
}
