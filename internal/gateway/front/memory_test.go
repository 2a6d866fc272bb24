package front

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryIsGivenBackAMomentAfterLargeCatalogsWereMadeAndNotOnAndOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var released atomic.Int64
		r := releaser{release: func() { released.Add(1) }}
		r.compiled(largeCatalogs - 1)
		<-time.After(time.Minute)
		if released.Load() != 0 {
			t.Error("small catalogs cost a garbage collection")
		}
		const changing = time.Minute
		for range changing / (100 * time.Millisecond) {
			r.compiled(largeCatalogs)
			<-time.After(100 * time.Millisecond)
		}
		if most, n := int64(changing/releasePause)+1, released.Load(); n < 2 || n > most {
			t.Errorf("while catalogs changed for %s memory was given back %d times, at most %d are due", changing, n, most)
		}
		before := released.Load()
		r.compiled(largeCatalogs)
		<-time.After(releasePause + time.Second)
		if released.Load() <= before {
			t.Error("after the last change nothing was given back")
		}
	})
}
