package fair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

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
