package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// formerManagers are the field managers by which the operator of Kubernetes SIG Apps writes children: the name of its program.
var formerManagers = sets.New("manager", "mcpserver-controller")

// takeOver makes what another operator wrote into a child ours, before the child is applied for the first time. It wrote by plain
// updates: without this its fields would be co-owned for ever, and none could be given up.
func (a *Applier) takeOver(ctx context.Context, live client.Object) error {
	key := client.ObjectKeyFromObject(live)
	whole := live.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a client.Object is one
	err := a.reader.Get(ctx, key, whole)           // caches drop managed fields
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read who wrote %T %s: %w", live, key, err)
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(whole, formerManagers, a.manager)
	if err != nil {
		return fmt.Errorf("read who wrote %T %s: %w", live, key, err)
	}
	if patch == nil {
		return nil
	}
	opts := []client.PatchOption{client.FieldOwner(a.manager)}
	if isUncached(live) {
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	if err := a.client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch), opts...); err != nil {
		return fmt.Errorf("take over fields of %T %s: %w", live, key, err)
	}
	return nil
}
