package apply

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// condition returns Applied of the generation 2.
func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: "Applied", Status: status, Reason: reason, Message: message, ObservedGeneration: 2}
}

func TestTheErrorOfWritingAChildBecomesApplied(t *testing.T) {
	t.Parallel()
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	cause := errors.New("exceeded quota")
	tests := map[string]struct {
		err      error
		want     metav1.Condition
		kept     bool // the stored condition stays
		returned bool // to be tried again with back-off
		after    time.Duration
	}{
		"a conflict with another writer tells a user nothing": {
			err: apierrors.NewConflict(deployments, "demo", cause), kept: true, returned: true,
		},
		"a child that somebody made a moment ago tells a user nothing": {
			err: fmt.Errorf("create: %w", apierrors.NewAlreadyExists(deployments, "demo")), kept: true, returned: true,
		},
		"an API server that is overloaded tells a user nothing": {
			err: apierrors.NewTooManyRequests("slow down", 1), kept: true, returned: true,
		},
		"a child that the API server finds invalid": {
			err: apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "demo", nil),
			want: condition(metav1.ConditionFalse, "Rejected",
				`Failed to reconcile Deployment: Deployment.apps "demo" is invalid`),
			after: time.Minute,
		},
		"a child that the API server cannot read": {
			err:   apierrors.NewBadRequest("unknown field"),
			want:  condition(metav1.ConditionFalse, "Rejected", "Failed to reconcile Deployment: unknown field"),
			after: time.Minute,
		},
		"a child that a quota forbids": {
			err: apierrors.NewForbidden(deployments, "demo", cause),
			want: condition(metav1.ConditionFalse, "Rejected",
				`Failed to reconcile Deployment: deployments.apps "demo" is forbidden: exceeded quota`),
			returned: true,
		},
		"a child that belongs to somebody else": {
			err:  fmt.Errorf("wrapped: %w", &OwnershipConflictError{Message: "it is not yours"}),
			want: condition(metav1.ConditionFalse, "OwnershipConflict", "Failed to reconcile Deployment: wrapped: it is not yours"),
		},
		"a child that is being deleted": {
			err:  &TerminatingError{Message: "Deployment team/demo is being deleted"},
			want: condition(metav1.ConditionUnknown, "ApplyFailed", "Deployment team/demo is being deleted"),
		},
		"a field that somebody insists on": {
			err:  &FieldConflictError{Message: "it was changed again", After: time.Second},
			want: condition(metav1.ConditionUnknown, "FieldConflict", "it was changed again"), after: time.Second,
		},
		"anything else": {
			err:      cause,
			want:     condition(metav1.ConditionFalse, "ApplyFailed", "Failed to reconcile Deployment: exceeded quota"),
			returned: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := Outcome("Failed to reconcile Deployment", tt.err)
			got, recorded := out.Condition("Applied", 2)
			if recorded == tt.kept {
				t.Errorf("recorded: %t, want %t", recorded, !tt.kept)
			}
			if diff := cmp.Diff(tt.want, got); recorded && diff != "" {
				t.Errorf("condition (-want +got)\n%s", diff)
			}
			if (out.Err() != nil) != tt.returned || tt.returned && !errors.Is(out.Err(), tt.err) {
				t.Errorf("returned: %v, want it: %t", out.Err(), tt.returned)
			}
			if conflict := IsOwnershipConflict(out.Cause()); conflict != IsOwnershipConflict(tt.err) {
				t.Errorf("the cause is an ownership conflict: %t", conflict)
			}
			if out.After != tt.after {
				t.Errorf("a timer of %s, want %s", out.After, tt.after)
			}
		})
	}
}
