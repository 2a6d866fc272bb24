package operator

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// neverFilled is a cache whose API server does not answer.
type neverFilled struct{ cache.Cache }

func (neverFilled) WaitForCacheSync(ctx context.Context) bool {
	<-ctx.Done()
	return false
}

func TestAManagerThatEndsWaitsForNoCache(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	close(end)
	if !(endingCache{Cache: neverFilled{}, end: end}).WaitForCacheSync(t.Context()) {
		t.Error("its manager would go on waiting")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if (endingCache{Cache: neverFilled{}, end: make(chan struct{})}).WaitForCacheSync(ctx) {
		t.Error("a cache that was not filled passes for one that was")
	}
}
