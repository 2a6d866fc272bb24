// Package reconcile runs a reconciler that is written as a table of phases. Each phase answers for one condition, does
// one thing and returns an Outcome; the runner is the only code that turns outcomes into conditions.
//
// It knows no kind and makes no request. A runner guarantees that acting phases stop at the first problem, that
// observing phases always run, and that an error which will pass by itself (a conflict, an overloaded API server) leaves
// the conditions as they were, so that they never flap.
package reconcile

import (
	"errors"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Outcome is what a phase came to. The zero value is Done.
type Outcome struct {
	kind kind

	// Reason and Message become those of the condition. An empty reason of Done becomes the condition's type.
	Reason, Message string

	// After is when to look again without being woken; 0 means that a watch wakes.
	After time.Duration

	// Generation is the generation that the outcome is about; 0 means the current one.
	Generation int64

	err error
}

type kind int

const (
	done kind = iota
	waiting
	invalid
	failed
	unsettled
	kept
	retried
	leftover
)

// Done says that this part is as asked: True.
func Done(reason, message string) Outcome {
	return Outcome{kind: done, Reason: reason, Message: message}
}

// Wait says that this part is under way: Unknown. A watch wakes, or the timer after (0: none).
func Wait(reason, message string, after time.Duration) Outcome {
	return Outcome{kind: waiting, Reason: reason, Message: message, After: after}
}

// Leftover says that this part is as asked, and that something else failed which nothing depends on, such as removing what is not needed
// any more: True, with a message that tells both, and a retry with back-off. What passes by itself is tried again and not told.
func Leftover(reason, message string, err error) Outcome {
	if !IsTransient(err) {
		message += "; " + err.Error()
	}
	return Outcome{kind: leftover, Reason: reason, Message: message, err: err}
}

// Invalid says that a user must edit something: False, and no retry, since a watch brings the object back.
func Invalid(reason string, err error) Outcome {
	return Outcome{kind: invalid, Reason: reason, Message: err.Error(), err: err}
}

// Failed says that the environment failed: False, and a retry with back-off.
func Failed(reason string, err error) Outcome {
	return Outcome{kind: failed, Reason: reason, Message: err.Error(), err: err}
}

// Retry says that the environment failed, so that nothing is known of this part: Unknown, and a retry with back-off.
func Retry(reason string, err error) Outcome {
	return Outcome{kind: retried, Reason: reason, Message: err.Error(), err: err}
}

// Unsettled says that something observed needs attention: False. It is no error of the operator, and a watch or the timer
// after (0: none) wakes.
func Unsettled(reason, message string, after time.Duration) Outcome {
	return Outcome{kind: unsettled, Reason: reason, Message: message, After: after}
}

// Keep leaves the stored condition as it is; the timer after (0: none) wakes.
func Keep(after time.Duration) Outcome { return Outcome{kind: kept, After: after} }

// IsDone says whether this part is as asked.
func (o Outcome) IsDone() bool { return o.kind == done || o.kind == kept || o.kind == leftover }

// yields says whether a condition is to tell of next instead: of a problem, or of the last of what is well.
func (o Outcome) yields(next Outcome) bool {
	return o.IsDone() && (o.kind != leftover || !next.IsDone())
}

// Err is the error to return from Reconcile: that of Failed, Retry and Leftover, else nil.
func (o Outcome) Err() error {
	if o.kind == failed || o.kind == retried || o.kind == leftover {
		return o.err
	}
	return nil
}

// Cause is the error that made the outcome, also of Invalid; nil if there was none.
func (o Outcome) Cause() error { return o.err }

// Condition is the outcome as a condition. It returns false when the stored condition has to stay: for Keep, and for an
// error that passes by itself.
func (o Outcome) Condition(conditionType string, generation int64) (metav1.Condition, bool) {
	c := metav1.Condition{Type: conditionType, ObservedGeneration: generation, Reason: o.Reason, Message: Truncate(o.Message)}
	if o.kind != leftover && IsTransient(o.Err()) {
		return c, false
	}
	switch o.kind {
	case done, leftover:
		c.Status = metav1.ConditionTrue
	case waiting:
		c.Status = metav1.ConditionUnknown
	case invalid, unsettled:
		c.Status = metav1.ConditionFalse
	case failed:
		c.Status = metav1.ConditionFalse
	case retried:
		c.Status = metav1.ConditionUnknown
	case kept:
		return c, false
	}
	if c.Reason == "" {
		c.Reason = conditionType
	}
	if o.Generation != 0 {
		c.ObservedGeneration = o.Generation
	}
	return c, true
}

// IsTransient says whether an error passes by itself and tells a user nothing: a conflict with another writer, an API
// server that is overloaded, restarting or not reachable.
func IsTransient(err error) bool {
	var network net.Error
	return err != nil && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || errors.As(err, &network))
}

// maxMessage is the length of the longest condition message that we write, in bytes.
const maxMessage = 1024

// Truncate cuts a message to the length that conditions carry, at a rune's boundary.
func Truncate(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	cut := maxMessage - len("…")
	for cut > 0 && message[cut]&0xC0 == 0x80 {
		cut--
	}
	return message[:cut] + "…"
}
