package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	pods    = schema.GroupResource{Resource: "pods"}
	errUser = errors.New("port is taken")
	errEnv  = errors.New("quota exceeded")
)

func TestOutcomeBecomesACondition(t *testing.T) {
	t.Parallel()
	of := func(o Outcome, generation int64) Outcome {
		o.Generation = generation
		return o
	}
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: "Applied", Status: status, Reason: reason, Message: message, ObservedGeneration: 7}
	}
	older := condition(metav1.ConditionTrue, "Verified", "answered")
	older.ObservedGeneration = 3
	tests := map[string]struct {
		outcome Outcome
		want    metav1.Condition
		kept    bool // the stored condition stays
		isDone  bool
		after   time.Duration
		err     error // returned from Reconcile
		cause   error
	}{
		"done is True":                      {outcome: Done("Fine", "all there"), want: condition(metav1.ConditionTrue, "Fine", "all there"), isDone: true},
		"done without a reason is the type": {outcome: Outcome{}, want: condition(metav1.ConditionTrue, "Applied", ""), isDone: true},
		"waiting is Unknown": {
			outcome: Wait("Starting", "soon", time.Minute), want: condition(metav1.ConditionUnknown, "Starting", "soon"), after: time.Minute,
		},
		"invalid is False, and no error of the operator": {
			outcome: Invalid("BadPort", errUser), want: condition(metav1.ConditionFalse, "BadPort", "port is taken"), cause: errUser,
		},
		"failed is False, and retried": {
			outcome: Failed("ApplyFailed", errEnv), want: condition(metav1.ConditionFalse, "ApplyFailed", "quota exceeded"), err: errEnv, cause: errEnv,
		},
		"failed by what passes leaves the condition, and is retried": {
			outcome: Failed("ApplyFailed", context.DeadlineExceeded), kept: true, err: context.DeadlineExceeded, cause: context.DeadlineExceeded,
		},
		"retried is Unknown, and an error": {
			outcome: Retry("Unknown", errEnv), want: condition(metav1.ConditionUnknown, "Unknown", "quota exceeded"), err: errEnv, cause: errEnv,
		},
		"retried for what passes leaves the condition": {
			outcome: Retry("Unknown", context.DeadlineExceeded), kept: true, err: context.DeadlineExceeded, cause: context.DeadlineExceeded,
		},
		"invalid by what would pass is told all the same: nothing tries again": {
			outcome: Invalid("BadPort", context.DeadlineExceeded),
			want:    condition(metav1.ConditionFalse, "BadPort", context.DeadlineExceeded.Error()), cause: context.DeadlineExceeded,
		},
		"unsettled is False, and no error": {
			outcome: Unsettled("CrashLooping", "exit 1", time.Second), want: condition(metav1.ConditionFalse, "CrashLooping", "exit 1"), after: time.Second,
		},
		"what is left over is told beside what is True, and retried": {
			outcome: Leftover("Fine", "all there", errEnv), want: condition(metav1.ConditionTrue, "Fine", "all there; quota exceeded"),
			isDone: true, err: errEnv, cause: errEnv,
		},
		"what is left over by what passes is retried, and not told": {
			outcome: Leftover("Fine", "all there", context.DeadlineExceeded), want: condition(metav1.ConditionTrue, "Fine", "all there"),
			isDone: true, err: context.DeadlineExceeded, cause: context.DeadlineExceeded,
		},
		"keep leaves the condition": {outcome: Keep(time.Hour), kept: true, isDone: true, after: time.Hour},
		"an outcome may be about an older generation": {
			outcome: of(Done("Verified", "answered"), 3), want: older, isDone: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, recorded := tt.outcome.Condition("Applied", 7)
			if recorded == tt.kept {
				t.Errorf("recorded: %t, want %t", recorded, !tt.kept)
			}
			if diff := cmp.Diff(tt.want, got); recorded && diff != "" {
				t.Errorf("condition (-want +got)\n%s", diff)
			}
			if tt.outcome.IsDone() != tt.isDone || tt.outcome.After != tt.after {
				t.Errorf("done: %t, after: %s; want %t, %s", tt.outcome.IsDone(), tt.outcome.After, tt.isDone, tt.after)
			}
			if !errors.Is(tt.outcome.Err(), tt.err) || !errors.Is(tt.outcome.Cause(), tt.cause) {
				t.Errorf("error: %v, cause: %v; want %v, %v", tt.outcome.Err(), tt.outcome.Cause(), tt.err, tt.cause)
			}
		})
	}
}

func TestErrorsThatPassByThemselvesAreTransient(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		want bool
	}{
		"conflict":                  {apierrors.NewConflict(pods, "a", errEnv), true},
		"conflict, wrapped":         {fmt.Errorf("apply: %w", apierrors.NewConflict(pods, "a", errEnv)), true},
		"somebody made it first":    {fmt.Errorf("create: %w", apierrors.NewAlreadyExists(pods, "a")), true},
		"server timeout":            {apierrors.NewServerTimeout(pods, "get", 1), true},
		"request timeout":           {apierrors.NewTimeoutError("slow", 1), true},
		"too many requests":         {apierrors.NewTooManyRequests("slow down", 1), true},
		"service unavailable":       {apierrors.NewServiceUnavailable("restarting"), true},
		"connection refused":        {&url.Error{Op: "Patch", URL: "https://api", Err: &net.OpError{Op: "dial", Err: errEnv}}, true},
		"connection cut":            {&url.Error{Op: "Patch", URL: "https://api", Err: errors.New("EOF")}, true},
		"deadline":                  {context.DeadlineExceeded, true},
		"forbidden":                 {apierrors.NewForbidden(pods, "a", errEnv), false},
		"invalid":                   {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), false},
		"not found":                 {apierrors.NewNotFound(pods, "a"), false},
		"internal, such as webhook": {apierrors.NewInternalError(errEnv), false},
		"anything else":             {errEnv, false},
		"none":                      {nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := IsTransient(tt.err); got != tt.want {
				t.Errorf("IsTransient(%v) = %t, want %t", tt.err, got, tt.want)
			}
		})
	}
}

func TestMessagesAreCutAtARune(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ message, want string }{
		"short":              {"short", "short"},
		"empty":              {"", ""},
		"just fits":          {strings.Repeat("a", 1024), strings.Repeat("a", 1024)},
		"one byte too long":  {strings.Repeat("a", 1025), strings.Repeat("a", 1021) + "…"},
		"two-byte runes":     {strings.Repeat("ä", 600), strings.Repeat("ä", 510) + "…"},
		"three-byte runes":   {"a" + strings.Repeat("€", 400), "a" + strings.Repeat("€", 340) + "…"},
		"four-byte runes":    {strings.Repeat("😀", 300), strings.Repeat("😀", 255) + "…"},
		"no rune to cut at":  {strings.Repeat("\x80", 1025), "…"},
		"fits, with a runes": {strings.Repeat("ä", 512), strings.Repeat("ä", 512)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Truncate(tt.message)
			if got != tt.want {
				t.Errorf("%d bytes %q, want %d bytes %q", len(got), got, len(tt.want), tt.want)
			}
			if len(got) > 1024 || !utf8.ValidString(got) {
				t.Errorf("%d bytes, valid: %t", len(got), utf8.ValidString(got))
			}
		})
	}
	c, _ := Failed("Rejected", errors.New(strings.Repeat("x", 5000))).Condition("Applied", 1)
	if len(c.Message) > 1024 {
		t.Errorf("the condition's message has %d bytes", len(c.Message))
	}
}
