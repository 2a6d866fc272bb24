package reconcile

import (
	"context"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Object is an API object with conditions.
type Object interface {
	GetGeneration() int64
	GetConditions() *[]metav1.Condition
}

// Phase is one step of a reconciler, S the state of one pass.
type Phase[S any] struct {
	// Name is the value of the label "phase" of the duration metric. Unnamed phases are not timed.
	Name string

	// Condition is the condition type that the phase answers for. Phases in sequence may share one: it is True when all
	// of them are done, and else tells of the first that is not.
	Condition string

	// Observes marks a phase that only looks. It always runs.
	Observes bool

	// Do does the one thing.
	Do func(S, context.Context) Outcome
}

// Options changes how phases run.
type Options struct {
	// Paused skips acting phases; their conditions keep what they say.
	Paused bool

	// Observe is told how long each named phase took; nil tells nobody.
	Observe func(phase string, took time.Duration)
}

// Result sums a pass up.
type Result struct {
	// Failed is the name of the acting phase that was not done; empty if all were.
	Failed string

	// Problem is the outcome of that phase.
	Problem Outcome

	// After is when to look again: the shortest time that a phase asked for, 0 if none did.
	After time.Duration

	// Err is the error to return from Reconcile.
	Err error
}

// Run runs the phases in order and records one condition for each condition type that a phase answered for.
func Run[S any](ctx context.Context, state S, obj Object, phases []Phase[S], opts Options) Result {
	var result Result
	answered := map[string]Outcome{}
	for _, phase := range phases {
		if !phase.Observes && (opts.Paused || result.Failed != "") {
			continue
		}
		out := timed(ctx, state, phase, opts.Observe)
		if first, seen := answered[phase.Condition]; !seen || first.yields(out) {
			answered[phase.Condition] = out
		}
		if !phase.Observes && !out.IsDone() {
			result.Failed, result.Problem = phase.Name, out
		}
		if out.After > 0 && (result.After == 0 || out.After < result.After) {
			result.After = out.After
		}
		if result.Err == nil {
			result.Err = out.Err()
		}
	}
	for _, phase := range phases {
		out, ok := answered[phase.Condition]
		if !ok {
			continue
		}
		if c, record := out.Condition(phase.Condition, obj.GetGeneration()); record {
			apimeta.SetStatusCondition(obj.GetConditions(), c)
		}
		delete(answered, phase.Condition)
	}
	return result
}

func timed[S any](ctx context.Context, state S, phase Phase[S], observe func(string, time.Duration)) Outcome {
	if observe == nil || phase.Name == "" {
		return phase.Do(state, ctx)
	}
	start := time.Now()
	out := phase.Do(state, ctx)
	observe(phase.Name, time.Since(start))
	return out
}

// ConditionOf returns a condition of a list; an Unknown one without a reason if it has none of that type.
func ConditionOf(conditions []metav1.Condition, conditionType string) metav1.Condition {
	if c := apimeta.FindStatusCondition(conditions, conditionType); c != nil {
		return *c
	}
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionUnknown}
}
