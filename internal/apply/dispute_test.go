package apply

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDriftIsCorrectedAtOnceThenDisputedAndNotWhereThatIsFutile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &Applier{corrected: map[string]correction{}}
		content := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "demo", "namespace": "team"}}}
		at := func(version string) *appsv1.Deployment {
			d := &appsv1.Deployment{}
			d.SetResourceVersion(version)
			return d
		}
		step := func(what, version string, wantFutile bool, wantAfter time.Duration) {
			t.Helper()
			futile, err := a.dispute(content, at(version))
			var after time.Duration
			if conflict, ok := errors.AsType[*FieldConflictError](err); ok {
				after = conflict.After
			}
			if futile != wantFutile || after != wantAfter {
				t.Errorf("%s: futile %t, after %s (%v); want %t, %s", what, futile, after, err, wantFutile, wantAfter)
			}
		}
		step("drift", "1", false, 0)
		a.noteVersion(content, at("2"))
		step("the version that came of correcting it differs still", "2", true, 0)
		step("changed by somebody right after", "3", false, disputePause)
		time.Sleep(4 * time.Second) //nolint:forbidigo // virtual time
		step("and again", "4", false, disputePause-4*time.Second)
		time.Sleep(disputePause) //nolint:forbidigo // virtual time
		step("drift later", "5", false, 0)
		time.Sleep(2 * correctionAge) //nolint:forbidigo // virtual time
		step("drift after a long time", "6", false, 0)
		if len(a.corrected) != 1 {
			t.Errorf("%d corrections are remembered", len(a.corrected))
		}
	})
}
