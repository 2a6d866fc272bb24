package apply

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// rejectedRetry is when a child that was refused is tried again: what refuses may be a policy, which nothing watches.
const rejectedRetry = time.Minute

// Outcome is what the error of Apply or Remove comes to, for a phase that answers for Applied. failure begins the message, such as
// "Failed to reconcile Service".
func Outcome(failure string, err error) reconcile.Outcome {
	told := fmt.Errorf("%s: %w", failure, err)
	var terminating *TerminatingError
	var disputed *FieldConflictError
	switch {
	case errors.As(err, &disputed):
		return reconcile.Wait(mcpv1alpha1.ReasonFieldConflict, disputed.Message, disputed.After)
	case errors.As(err, &terminating):
		return reconcile.Wait(mcpv1alpha1.ReasonApplyFailed, terminating.Message, 0)
	case IsOwnershipConflict(err):
		return reconcile.Invalid(mcpv1alpha1.ReasonOwnershipConflict, told)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		out := reconcile.Invalid(mcpv1alpha1.ReasonRejected, told)
		out.After = rejectedRetry
		return out
	case apierrors.IsForbidden(err):
		return reconcile.Failed(mcpv1alpha1.ReasonRejected, told)
	}
	return reconcile.Failed(mcpv1alpha1.ReasonApplyFailed, told)
}
