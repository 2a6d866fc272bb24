package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// object is an API object at generation 2.
type object struct{ conditions []metav1.Condition }

func (*object) GetGeneration() int64                 { return 2 }
func (o *object) GetConditions() *[]metav1.Condition { return &o.conditions }

// summary shows each condition in the order of their types' first record.
func (o *object) summary() []string {
	var list []string
	for _, c := range o.conditions {
		list = append(list, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return list
}

// ran is the state of a pass: the names of the phases that ran.
type ran struct{ names []string }

// step is a phase of a name, for a condition, with a given outcome.
func step(name, condition string, out Outcome) Phase[*ran] {
	return Phase[*ran]{Name: name, Condition: condition, Do: func(r *ran, _ context.Context) Outcome {
		r.names = append(r.names, name)
		return out
	}}
}

func observing(p Phase[*ran]) Phase[*ran] {
	p.Observes = true
	return p
}

func TestRun(t *testing.T) {
	t.Parallel()
	transient := Failed("ApplyFailed", context.DeadlineExceeded)
	tests := map[string]struct {
		phases     []Phase[*ran]
		opts       Options
		ran        []string
		conditions []string
		failed     string
		problem    string
		after      time.Duration
		err        error
	}{
		"all phases run, each recording its condition": {
			phases:     []Phase[*ran]{step("a", "A", Done("Fine", "")), step("b", "B", Done("", "")), observing(step("c", "C", Wait("Soon", "", 0)))},
			ran:        []string{"a", "b", "c"},
			conditions: []string{"A=True/Fine", "B=True/B", "C=Unknown/Soon"},
		},
		"acting stops at the first problem, observing does not": {
			phases: []Phase[*ran]{
				step("a", "A", Invalid("BadPort", errUser)), step("b", "B", Done("", "")),
				observing(step("c", "C", Done("", ""))), step("d", "D", Done("", "")), observing(step("e", "E", Unsettled("Dead", "", 0))),
			},
			ran:        []string{"a", "c", "e"},
			conditions: []string{"A=False/BadPort", "C=True/C", "E=False/Dead"},
			failed:     "a", problem: "BadPort",
		},
		"waiting stops acting too": {
			phases:     []Phase[*ran]{step("a", "A", Wait("Soon", "", time.Second)), step("b", "B", Done("", ""))},
			ran:        []string{"a"},
			conditions: []string{"A=Unknown/Soon"},
			failed:     "a", problem: "Soon", after: time.Second,
		},
		"a kept condition does not stop acting": {
			phases:     []Phase[*ran]{step("a", "A", Keep(time.Minute)), step("b", "B", Done("", ""))},
			ran:        []string{"a", "b"},
			conditions: []string{"B=True/B"},
			after:      time.Minute,
		},
		"a problem that was observed does not stop acting": {
			phases:     []Phase[*ran]{observing(step("a", "A", Unsettled("Dead", "", 0))), step("b", "B", Done("", ""))},
			ran:        []string{"a", "b"},
			conditions: []string{"A=False/Dead", "B=True/B"},
		},
		"a shared condition tells of the first problem": {
			phases: []Phase[*ran]{
				observing(step("a", "A", Done("Fine", ""))), observing(step("b", "A", Unsettled("Dead", "", 0))),
				observing(step("c", "A", Unsettled("Later", "", 0))), observing(step("d", "A", Done("Fine", ""))),
			},
			ran:        []string{"a", "b", "c", "d"},
			conditions: []string{"A=False/Dead"},
		},
		"a shared condition is True when all of its phases are done": {
			phases:     []Phase[*ran]{step("a", "A", Done("First", "")), step("b", "A", Done("Second", ""))},
			ran:        []string{"a", "b"},
			conditions: []string{"A=True/Second"},
		},
		"a shared condition with a part that was not reached tells of the problem": {
			phases:     []Phase[*ran]{step("a", "A", Failed("ApplyFailed", errEnv)), step("b", "A", Done("", ""))},
			ran:        []string{"a"},
			conditions: []string{"A=False/ApplyFailed"},
			failed:     "a", problem: "ApplyFailed", err: errEnv,
		},
		"what is left over stops nothing, and is told and returned": {
			phases:     []Phase[*ran]{step("a", "A", Leftover("Fine", "", errEnv)), step("b", "A", Done("Other", "")), step("c", "B", Done("", ""))},
			ran:        []string{"a", "b", "c"},
			conditions: []string{"A=True/Fine", "B=True/B"},
			err:        errEnv,
		},
		"a problem is told before what is left over": {
			phases:     []Phase[*ran]{step("a", "A", Leftover("Fine", "", errEnv)), step("b", "A", Invalid("BadPort", errUser))},
			ran:        []string{"a", "b"},
			conditions: []string{"A=False/BadPort"},
			failed:     "b", problem: "BadPort", err: errEnv,
		},
		"what passes by itself stops acting and is returned, and records nothing": {
			phases:     []Phase[*ran]{step("a", "A", transient), step("b", "B", Done("", "")), observing(step("c", "C", Done("", "")))},
			ran:        []string{"a", "c"},
			conditions: []string{"C=True/C"},
			failed:     "a", problem: "ApplyFailed", err: context.DeadlineExceeded,
		},
		"the first error is returned": {
			phases:     []Phase[*ran]{step("a", "A", Failed("X", errEnv)), observing(step("b", "B", Failed("Y", errUser)))},
			ran:        []string{"a", "b"},
			conditions: []string{"A=False/X", "B=False/Y"},
			failed:     "a", problem: "X", err: errEnv,
		},
		"an error of observing is returned": {
			phases:     []Phase[*ran]{step("a", "A", Done("", "")), observing(step("b", "B", Failed("Y", errEnv)))},
			ran:        []string{"a", "b"},
			conditions: []string{"A=True/A", "B=False/Y"},
			err:        errEnv,
		},
		"what is to be tried again stops acting, is Unknown, and is returned": {
			phases: []Phase[*ran]{
				step("a", "A", Retry("Unknown", errEnv)), step("b", "B", Done("", "")), observing(step("c", "C", Retry("Unknown", errUser))),
			},
			ran:        []string{"a", "c"},
			conditions: []string{"A=Unknown/Unknown", "C=Unknown/Unknown"},
			failed:     "a", problem: "Unknown", err: errEnv,
		},
		"the shortest time wakes": {
			phases: []Phase[*ran]{
				step("a", "A", Keep(time.Hour)), observing(step("b", "B", Wait("Soon", "", time.Minute))),
				observing(step("c", "C", Unsettled("Dead", "", 2*time.Minute))), observing(step("d", "D", Wait("Soon", "", 0))),
			},
			ran:        []string{"a", "b", "c", "d"},
			conditions: []string{"B=Unknown/Soon", "C=False/Dead", "D=Unknown/Soon"},
			after:      time.Minute,
		},
		"paused, only observing phases run": {
			phases:     []Phase[*ran]{step("a", "A", Failed("X", errEnv)), observing(step("b", "B", Done("", ""))), step("c", "C", Done("", ""))},
			opts:       Options{Paused: true},
			ran:        []string{"b"},
			conditions: []string{"B=True/B"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, obj := &ran{}, &object{}
			result := Run(t.Context(), state, obj, tt.phases, tt.opts)
			if diff := cmp.Diff(tt.ran, state.names); diff != "" {
				t.Errorf("phases that ran (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tt.conditions, obj.summary()); diff != "" {
				t.Errorf("conditions (-want +got)\n%s", diff)
			}
			if result.Failed != tt.failed || result.Problem.Reason != tt.problem {
				t.Errorf("failed phase %q with %q, want %q with %q", result.Failed, result.Problem.Reason, tt.failed, tt.problem)
			}
			if result.After != tt.after || !errors.Is(result.Err, tt.err) {
				t.Errorf("after %s, error %v; want %s, %v", result.After, result.Err, tt.after, tt.err)
			}
		})
	}
}

func TestConditionsThatAreNotAnsweredForStay(t *testing.T) {
	t.Parallel()
	stored := []metav1.Condition{
		{Type: "A", Status: metav1.ConditionTrue, Reason: "Fine", Message: "as it was", ObservedGeneration: 1},
		{Type: "B", Status: metav1.ConditionTrue, Reason: "Fine", Message: "as it was", ObservedGeneration: 1},
		{Type: "Foreign", Status: metav1.ConditionUnknown, Reason: "Other", ObservedGeneration: 1},
	}
	tests := map[string]struct {
		phases []Phase[*ran]
		opts   Options
	}{
		"paused":                  {[]Phase[*ran]{step("a", "A", Done("New", ""))}, Options{Paused: true}},
		"an error that passes":    {[]Phase[*ran]{step("a", "A", Failed("X", context.DeadlineExceeded)), step("b", "B", Done("New", ""))}, Options{}},
		"a retry that passes":     {[]Phase[*ran]{step("a", "A", Retry("X", context.DeadlineExceeded))}, Options{}},
		"kept":                    {[]Phase[*ran]{step("a", "A", Keep(0))}, Options{}},
		"kept in a shared one":    {[]Phase[*ran]{step("a", "A", Done("New", "")), step("b", "A", Keep(0))}, Options{}},
		"no phase answers at all": {nil, Options{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := &object{conditions: append([]metav1.Condition{}, stored...)}
			Run(t.Context(), &ran{}, obj, tt.phases, tt.opts)
			if diff := cmp.Diff(stored, obj.conditions); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTransitionTimeMovesOnlyWithTheStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		obj := &object{}
		pass := func(out Outcome) time.Time {
			Run(t.Context(), &ran{}, obj, []Phase[*ran]{step("a", "A", out)}, Options{})
			return apimeta.FindStatusCondition(obj.conditions, "A").LastTransitionTime.Time
		}
		start := time.Now()
		if got := pass(Done("Fine", "")); !got.Equal(start) {
			t.Errorf("first record: %s, want %s", got, start)
		}
		<-time.After(time.Hour)
		if got := pass(Done("Other", "other message")); !got.Equal(start) {
			t.Errorf("another reason moved the time to %s", got)
		}
		if got := pass(Unsettled("Dead", "", 0)); !got.Equal(start.Add(time.Hour)) {
			t.Errorf("another status: %s, want %s", got, start.Add(time.Hour))
		}
	})
}

func TestOnlyNamedPhasesThatRanAreTimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(name string, out Outcome) Phase[*ran] {
			return Phase[*ran]{Name: name, Condition: "A", Do: func(*ran, context.Context) Outcome {
				<-time.After(time.Second)
				return out
			}}
		}
		got := map[string]time.Duration{}
		phases := []Phase[*ran]{slow("", Done("", "")), slow("first", Failed("X", errEnv)), slow("second", Done("", ""))}
		Run(t.Context(), &ran{}, &object{}, phases, Options{Observe: func(phase string, took time.Duration) { got[phase] = took }})
		if diff := cmp.Diff(map[string]time.Duration{"first": time.Second}, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
