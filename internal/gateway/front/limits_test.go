package front

import "testing"

func TestAQuotaIsPerCallerAndForAllTogether(t *testing.T) {
	t.Parallel()
	q := newQuota(2, 3)
	steps := []struct {
		caller string
		give   bool
		want   quotaVerdict
	}{
		{caller: "a", want: quotaGranted},
		{caller: "a", want: quotaGranted},
		{caller: "a", want: quotaCallerFull},
		{caller: "b", want: quotaGranted},
		{caller: "c", want: quotaFull},
		{caller: "a", give: true},
		{caller: "c", want: quotaGranted},
		{caller: "a", want: quotaFull},
	}
	for i, step := range steps {
		if step.give {
			q.give(step.caller, 1)
			continue
		}
		if got := q.take(step.caller, 1); got != step.want {
			t.Fatalf("step %d, caller %s: got %d, want %d", i, step.caller, got, step.want)
		}
	}
	for _, caller := range []string{"a", "b", "c"} {
		q.give(caller, 1)
	}
	if q.sum != 0 || len(q.held) != 0 {
		t.Errorf("all was given back, and %d by %v is held", q.sum, q.held)
	}
}
