package reach

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestAJobIsDoneOnceForEachPurpose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var done, woken []string
		m := NewMaker(MakerOptions[string]{
			Make: func(_ context.Context, job Job) (Made[string], bool) {
				done = append(done, job.Purpose)
				switch {
				case job.Purpose == "bad":
					return Made[string]{Known: true, Problem: "it is bad"}, true
				case job.Purpose == "broken" && len(done) < 4:
					return Made[string]{}, false
				}
				return Made[string]{Known: true, Value: "made of " + job.Purpose}, true
			},
			Notify: func(_ context.Context, key types.NamespacedName) { woken = append(woken, key.Name) }, Workers: 1,
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.Start(ctx) }()
		for _, step := range []struct {
			purpose     string
			want        Made[string]
			done, woken int
		}{
			{"good", Made[string]{Known: true, Value: "made of good"}, 1, 1},
			{"bad", Made[string]{Known: true, Problem: "it is bad"}, 2, 2},
			{"broken", Made[string]{Known: true, Value: "made of broken"}, 4, 3},
		} {
			job := Job{Subject: demo, Purpose: step.purpose}
			if before := m.Observe(job); before.Known {
				t.Errorf("%s is known before it was done: %+v", step.purpose, before)
			}
			<-time.After(time.Hour)
			if diff := cmp.Diff(step.want, m.Observe(job)); diff != "" || len(done) != step.done || len(woken) != step.woken {
				t.Errorf("%s: done %v, woken %v (-want +got)\n%s", step.purpose, done, woken, diff)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
