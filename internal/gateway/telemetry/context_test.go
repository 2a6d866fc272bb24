package telemetry

import (
	"fmt"
	"strings"
	"testing"
)

func TestATraceContextIsReadAsW3CWritesIt(t *testing.T) {
	t.Parallel()
	const ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
	states := make([]string, 33)
	for i := range states {
		states[i] = fmt.Sprintf("k%d=v", i)
	}
	most := strings.Join(states[:32], ",")
	for name, tc := range map[string]struct {
		parent, state string
		want          string // the traceparent passed on, and after a space the tracestate
	}{
		"sampled":                  {parent: "00-" + ids + "-01", want: "00-" + ids + "-01 "},
		"not sampled":              {parent: "00-" + ids + "-00", want: "00-" + ids + "-00 "},
		"flags that are not known": {parent: "00-" + ids + "-ff", want: "00-" + ids + "-01 "},
		"a later version":          {parent: "01-" + ids + "-01-more", want: "00-" + ids + "-01 "},
		"a later version, spoilt":  {parent: "01-" + ids + "-01more"},
		"version 00 with more":     {parent: "00-" + ids + "-01-more"},
		"version ff":               {parent: "ff-" + ids + "-01"},
		"capital letters":          {parent: "00-" + strings.ToUpper(ids) + "-01"},
		"no hexadecimal digits":    {parent: "00-" + strings.Replace(ids, "0a", "0g", 1) + "-01"},
		"a span of zeros":          {parent: "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"},
		"other separators":         {parent: "00_" + ids + "_01"},
		"too short":                {parent: "00-" + ids + "-0"},

		"states":                  {parent: "00-" + ids + "-01", state: "a=1, t@v=x y,b_-*/=!", want: "00-" + ids + "-01 a=1, t@v=x y,b_-*/=!"},
		"as many states as fit":   {parent: "00-" + ids + "-01", state: most, want: "00-" + ids + "-01 " + most},
		"one more":                {parent: "00-" + ids + "-01", state: strings.Join(states, ","), want: "00-" + ids + "-01 "},
		"a state twice":           {parent: "00-" + ids + "-01", state: "a=1,a=2", want: "00-" + ids + "-01 "},
		"a state without a value": {parent: "00-" + ids + "-01", state: "a=", want: "00-" + ids + "-01 "},
		"a state with a capital":  {parent: "00-" + ids + "-01", state: "A=1", want: "00-" + ids + "-01 "},
		"a state with a line":     {parent: "00-" + ids + "-01", state: "a=1\r\nX: y", want: "00-" + ids + "-01 "},
		"a state that is long":    {parent: "00-" + ids + "-01", state: "a=" + strings.Repeat("v", 257), want: "00-" + ids + "-01 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := parseContext(&Carrier{Traceparent: tc.parent, Tracestate: tc.state})
			got := ""
			if c.isValid() {
				got = c.traceparent() + " " + c.state
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSpansAreSampledAsTheEnvironmentSays(t *testing.T) {
	t.Parallel()
	const none, yes, no = "", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	low, high := spanContext{trace: [16]byte{8: 0x10}}, spanContext{trace: [16]byte{8: 0xf0}}
	for name, tc := range map[string]struct {
		sampler, argument, parent string
		wantLow, wantHigh         bool
		wrong                     bool
	}{
		"nothing is said":                  {parent: none, wantLow: true, wantHigh: true},
		"nothing, and the parent is not":   {parent: no},
		"always":                           {sampler: "always_on", parent: no, wantLow: true, wantHigh: true},
		"never":                            {sampler: "ALWAYS_OFF", parent: yes},
		"never without a parent":           {sampler: "parentbased_always_off", parent: yes, wantLow: true, wantHigh: true},
		"never, and there is no parent":    {sampler: "parentbased_always_off", parent: none},
		"half":                             {sampler: "traceidratio", argument: "0.5", parent: no, wantLow: true},
		"half, if there is no parent":      {sampler: "parentbased_traceidratio", argument: "0.5", parent: none, wantLow: true},
		"half, but the parent is sampled":  {sampler: "parentbased_traceidratio", argument: "0.5", parent: yes, wantLow: true, wantHigh: true},
		"a ratio that is not given is all": {sampler: "traceidratio", parent: none, wantLow: true, wantHigh: true},
		"a ratio of 0":                     {sampler: "traceidratio", argument: "0", parent: none},
		"a ratio above 1":                  {sampler: "traceidratio", argument: "1.1", wrong: true},
		"a ratio of no kind":               {sampler: "traceidratio", argument: "half", wrong: true},
		"a sampler of no kind":             {sampler: "jaeger_remote", wrong: true},
		"half of a name":                   {sampler: "parentbased_", wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := newSampler(func(name string) string {
				return map[string]string{"OTEL_TRACES_SAMPLER": tc.sampler, "OTEL_TRACES_SAMPLER_ARG": tc.argument}[name]
			})
			if (err != nil) != tc.wrong {
				t.Fatal(err)
			}
			parent := parseContext(&Carrier{Traceparent: tc.parent})
			if gotLow, gotHigh := s.samples(&parent, &low), s.samples(&parent, &high); !tc.wrong && (gotLow != tc.wantLow || gotHigh != tc.wantHigh) {
				t.Errorf("sampled are %v and %v, want %v and %v", gotLow, gotHigh, tc.wantLow, tc.wantHigh)
			}
		})
	}
}

func TestANewSpanIsInItsParentsTraceOrInOneOfItsOwn(t *testing.T) {
	t.Parallel()
	var none spanContext
	first, second := none.child(), none.child()
	if !first.isValid() || !second.isValid() || first.trace == second.trace || first.span == second.span {
		t.Errorf("%s and %s", first.traceparent(), second.traceparent())
	}
	if next := first.child(); next.trace != first.trace || next.span == first.span {
		t.Errorf("%s is no child of %s", next.traceparent(), first.traceparent())
	}
}
