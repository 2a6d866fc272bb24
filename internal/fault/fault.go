// Package fault keeps a panic on what others sent from ending the operator, which serves all of them. controller-runtime does that for
// reconcilers; each worker beside them that works on such data defers Catch at one place, and does then what it does when the work fails.
package fault

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Err is what a panic becomes. It is told to users, so nothing of the panic's words is in it: they may be somebody else's.
var Err = errors.New("the operator failed at what was sent to it: a fault of its own, which its log has")

const (
	// maxPlaces bounds the places whose stack was logged, maxWords what is logged of a panic's own words, in bytes.
	maxPlaces = 256
	maxWords  = 256
)

// place is where a panic came from.
type place [16]uintptr

// recorder logs the first panic of each place: what fails is tried again and again.
type recorder struct {
	log logr.Logger

	mu   sync.Mutex
	told map[place]bool
}

var ours = recorder{log: ctrllog.Log.WithName("fault")}

// Catch is deferred: it ends a panic and makes it an error. Its stack is logged, once for each place. about says on whose data it was.
func Catch(about string, failed *error) {
	what := recover() //nolint:revive // whoever calls this defers it
	if what == nil {
		return
	}
	ours.tell(about, what)
	*failed = Err
}

func (r *recorder) tell(about string, what any) {
	var at place
	const own = 3 // runtime.Callers, tell and Catch
	runtime.Callers(own, at[:])
	r.mu.Lock()
	isKnown := r.told[at] || len(r.told) >= maxPlaces
	if !isKnown {
		if r.told == nil {
			r.told = map[place]bool{}
		}
		r.told[at] = true
	}
	r.mu.Unlock()
	if isKnown {
		return
	}
	words := fmt.Sprint(what)
	r.log.Error(Err, "a panic: what was at work failed, and all else goes on", "about", about,
		"panic", words[:min(len(words), maxWords)], "stack", string(debug.Stack()))
}
