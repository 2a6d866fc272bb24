package probe

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcp-operator/mcp-operator/internal/fair"
)

// lane is a queue with workers of its own, so that those in it wait for nobody in another one.
type lane int

const (
	// fresh is for those somebody waits for: new servers, new generations, and servers that only just began to fail.
	fresh lane = iota
	// healthy is for those that answered the last time, and quickly.
	healthy
	// failing is for those that have failed for a while, or that kept a worker waiting, whatever came of it.
	failing

	lanes
)

const (
	// A server with so many failures in a row goes to the failing lane, once that is told: until then somebody waits for the verdict.
	freshFailures = 5

	// One that took so long to fail goes there at once: a few of them would keep all workers of the fresh lane busy.
	slowFailure = time.Second
)

// laneOf returns the lane of an address that does not answer, or was never asked.
func laneOf(s *streak) lane {
	if s.told && s.failures >= freshFailures || s.slow {
		return failing
	}
	return fresh
}

// queue returns an empty queue, in which namespaces come in turn and one of them keeps at most half of the workers busy. In the fresh lane
// the last to come of a namespace is served first: so however many of those before it are dead, a new server waits only until one worker
// is free.
func (l lane) queue(lock sync.Locker, workers int) *fair.Lane[types.UID] {
	order := fair.OldestFirst
	if l == fresh {
		order = fair.NewestFirst
	}
	return fair.NewLane[types.UID](lock, workers, order)
}
