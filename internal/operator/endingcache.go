package operator

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// endingCache is a cache of a manager that may be stopped before the cache was ever filled. controller-runtime (0.25) waits for
// that, spinning, with a context that does not end with the manager's.
type endingCache struct {
	cache.Cache

	end <-chan struct{}
}

// WaitForCacheSync waits until the cache is filled, or the manager ends: then there is nothing to wait for.
func (c endingCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	filled := make(chan bool, 1)
	go func() { filled <- c.Cache.WaitForCacheSync(ctx) }()
	select {
	case ok := <-filled:
		return ok
	case <-c.end:
		return true
	}
}
