package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// formerManagers are the field managers by which the operator of Kubernetes SIG Apps writes children: the name of its program.
var formerManagers = sets.New("manager", "mcpserver-controller")

// prepareFields makes sure, before a child is applied whose content is another than before, that the apply gives up what it should and
// nothing else:
//   - what another operator wrote becomes ours (hash is empty: the child is applied for the first time), and so does what we wrote by
//     creating the child plainly. Both were no applies: without this the fields would be co-owned for ever, and none could be given up;
//   - the replicas of a Deployment that are no longer ours stay what they are, and do not fall back to the default of one.
func (a *Applier) prepareFields(ctx context.Context, content *unstructured.Unstructured, live client.Object, hash string) error {
	isFirst, handsOver := hash == "", leavesReplicas(content)
	if !isFirst && !handsOver && isAppliedFirst(live) {
		return nil
	}
	whole, err := a.withManagers(ctx, live)
	if whole == nil || err != nil {
		return err
	}
	before := whole.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	managers := sets.New[string]()
	if isFirst {
		managers = managers.Union(formerManagers)
	}
	leaves, err := a.leavesFields(content, whole.GetManagedFields())
	if err != nil {
		return err
	}
	if leaves {
		managers.Insert(a.manager)
	}
	if err := csaupgrade.UpgradeManagedFields(whole, managers, a.manager); err != nil {
		return fmt.Errorf("read who wrote %T %s: %w", live, client.ObjectKeyFromObject(live), err)
	}
	if handsOver {
		if err := a.disownReplicas(whole); err != nil {
			return err
		}
	}
	if reflect.DeepEqual(before.GetManagedFields(), whole.GetManagedFields()) {
		return nil
	}
	return a.writeManagers(ctx, live, whole)
}

// withManagers returns the live object with who wrote what, which caches drop; nil if it is gone.
func (a *Applier) withManagers(ctx context.Context, live client.Object) (client.Object, error) {
	whole := live.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	if isUncached(live) {
		return whole, nil // it was read past the cache
	}
	err := a.reader.Get(ctx, client.ObjectKeyFromObject(live), whole)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // the apply that follows finds out what is there instead
	}
	if err != nil {
		return nil, fmt.Errorf("read who wrote %T %s: %w", live, client.ObjectKeyFromObject(live), err)
	}
	return whole, nil
}

// writeManagers writes who wrote what, and fails if the object was changed since it was read.
func (a *Applier) writeManagers(ctx context.Context, live, whole client.Object) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": whole.GetManagedFields()},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": whole.GetResourceVersion()},
	})
	if err != nil {
		return fmt.Errorf("encode who wrote %T %s: %w", live, client.ObjectKeyFromObject(live), err)
	}
	opts := []client.PatchOption{client.FieldOwner(a.manager)}
	if isUncached(live) {
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	if err := a.client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch), opts...); err != nil {
		return fmt.Errorf("take over fields of %T %s: %w", live, client.ObjectKeyFromObject(live), err)
	}
	return nil
}

// isAppliedFirst says whether objects of this kind are created by an apply, and not plainly.
func isAppliedFirst(obj client.Object) bool {
	switch obj.(type) {
	case *appsv1.Deployment, *corev1.Service, *networkingv1.NetworkPolicy:
		return true
	}
	return false
}

// leavesReplicas says whether a Deployment is asked for without replicas: they are an autoscaler's, or somebody else's.
func leavesReplicas(content *unstructured.Unstructured) bool {
	_, asked, _ := unstructured.NestedFieldNoCopy(content.Object, "spec", "replicas")
	return content.GetKind() == "Deployment" && !asked
}

// leavesFields says whether we wrote, by creating the object, a field that is no longer asked for.
func (a *Applier) leavesFields(content *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) (bool, error) {
	asked, err := a.fieldsOf(content)
	if err != nil {
		return false, err
	}
	written, err := owned(entries, a.manager, metav1.ManagedFieldsOperationUpdate)
	if err != nil {
		return false, err
	}
	leaves := false
	written.Leaves().Difference(asked).Iterate(func(field fieldpath.Path) {
		leaves = leaves || !holdsAny(field, asked)
	})
	return leaves, nil
}

// holdsAny says whether a field is a map or list that holds any of the others.
func holdsAny(field fieldpath.Path, others *fieldpath.Set) bool {
	holds := false
	others.Iterate(func(other fieldpath.Path) {
		holds = holds || len(other) > len(field) && other[:len(field)].Equals(field)
	})
	return holds
}

// lost returns the fields of content that are not ours any more. Whoever changes a field by anything but an apply of the same value takes it
// from us: so an object whose content is not read is known to be as it was written if there are none.
func (a *Applier) lost(content *unstructured.Unstructured, live *metav1.PartialObjectMetadata) (*fieldpath.Set, error) {
	asked, err := a.fieldsOf(content)
	if err != nil {
		return nil, err
	}
	ours, err := owned(live.ManagedFields, a.manager, metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate)
	if err != nil {
		return nil, err
	}
	return asked.Difference(unowned).Difference(ours), nil
}

// unowned are the fields that identify an object, which nobody owns.
var unowned = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"),
)

// fieldsOf returns the fields that are asked for.
func (a *Applier) fieldsOf(content *unstructured.Unstructured) (*fieldpath.Set, error) {
	typed, err := a.converter.ObjectToTyped(content)
	if err != nil {
		return nil, fmt.Errorf("read fields of desired %s %s: %w", content.GetKind(), content.GetName(), err)
	}
	set, err := typed.ToFieldSet()
	if err != nil {
		return nil, fmt.Errorf("list fields of desired %s %s: %w", content.GetKind(), content.GetName(), err)
	}
	return set.Leaves(), nil
}

// owned returns the fields that a manager owns by some operations.
func owned(entries []metav1.ManagedFieldsEntry, manager string, operations ...metav1.ManagedFieldsOperationType) (*fieldpath.Set, error) {
	fields := fieldpath.NewSet()
	for _, entry := range entries {
		if !isOf(entry, manager, operations...) {
			continue
		}
		set := fieldpath.NewSet()
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("read the fields of the manager %q: %w", manager, err)
		}
		fields = fields.Union(set)
	}
	return fields, nil
}

func isOf(entry metav1.ManagedFieldsEntry, manager string, operations ...metav1.ManagedFieldsOperationType) bool {
	for _, operation := range operations {
		if entry.Manager == manager && entry.Operation == operation && entry.Subresource == "" && entry.FieldsV1 != nil {
			return true
		}
	}
	return false
}

var replicasPath = fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "replicas"))

// disownReplicas takes spec.replicas out of what we own of an object.
func (a *Applier) disownReplicas(obj client.Object) error {
	entries := obj.GetManagedFields()
	for i := range entries {
		if !isOf(entries[i], a.manager, metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate) {
			continue
		}
		set, err := owned(entries[i:i+1], a.manager, entries[i].Operation)
		if err != nil {
			return err
		}
		if set.Intersection(replicasPath).Empty() {
			continue
		}
		raw, err := set.Difference(replicasPath).ToJSON()
		if err != nil {
			return fmt.Errorf("encode the fields of the manager %q: %w", a.manager, err)
		}
		entries[i].FieldsV1.SetRawBytes(raw)
	}
	obj.SetManagedFields(entries)
	return nil
}
