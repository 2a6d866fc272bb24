package reach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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

func TestAGateLetsNamespacesThroughInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := &Gate{}
		var mu sync.Mutex
		var order []string
		tell := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, what)
		}
		told := func() []string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(order)
		}
		inside := 0
		enter := func(ctx context.Context, namespace, name string) {
			go func() {
				err := gate.Do(ctx, namespace, func() {
					if inside++; inside > 1 {
						t.Errorf("%d are inside", inside)
					}
					<-time.After(time.Second)
					tell(name)
					inside--
				})
				if err != nil {
					tell(name + ": " + err.Error())
				}
			}()
			synctest.Wait()
		}
		gone, leave := context.WithCancelCause(t.Context())
		for i := range 4 {
			enter(t.Context(), "hostile", fmt.Sprint("h", i))
		}
		enter(gone, "hasty", "gone")
		enter(t.Context(), "honest", "a")
		leave(errors.New("it has no time"))
		<-time.After(time.Minute)
		if want := []string{"gone: context canceled", "h0", "h3", "a", "h1", "h2"}; !slices.Equal(told(), want) {
			t.Errorf("order %v, want %v", told(), want)
		}
		enter(t.Context(), "later", "b")
		<-time.After(2 * time.Second)
		if got := told(); got[len(got)-1] != "b" {
			t.Errorf("when all have left it is not open: %v", got)
		}
	})
}
