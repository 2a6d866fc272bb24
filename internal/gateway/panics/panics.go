// Package panics keeps a panic on the data of one backend from ending the process that serves all of them. Each goroutine that works on
// what others sent defers Catch at one place; what it does then is what it does when the work fails.
package panics

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
)

// Recorder tells of panics. The zero value, and nil, tell the default logger. It is safe for concurrent use.
type Recorder struct {
	log   *slog.Logger
	count func(backend string)

	mu   sync.Mutex
	told map[place]bool
}

// New makes a Recorder that calls count for each panic.
func New(log *slog.Logger, count func(backend string)) *Recorder {
	return &Recorder{log: log, count: count}
}

// place is where a panic came from, on whose data.
type place struct {
	backend string
	callers [16]uintptr
}

const (
	// maxPlaces bounds the places whose stack was logged, maxWords what is logged of a panic's own words, in bytes: they may be another's.
	maxPlaces = 256
	maxWords  = 256
)

// Err is what a panic becomes. Nothing of its words is in it: they may be a backend's.
var Err = errors.New("the gateway failed at what was sent to it: a fault of its own, which its log has")

// Catch is deferred: it ends a panic and makes it an error, if there is a variable for it. The stack is logged once for each place, and every
// panic is counted. The backend is the one whose data it was; empty is that of none. An http.ErrAbortHandler is none: it goes on.
func (r *Recorder) Catch(backend string, failed *error) {
	what := recover() //nolint:revive // whoever calls this defers it
	switch what {
	case nil:
		return
	case http.ErrAbortHandler:
		panic(what)
	}
	r.tell(backend, what)
	if failed != nil {
		*failed = Err
	}
}

// tell counts a panic, and logs the first of its place.
func (r *Recorder) tell(backend string, what any) {
	at := place{backend: backend}
	const own = 3 // runtime.Callers, tell and Catch
	runtime.Callers(own, at.callers[:])
	if r == nil {
		r = &Recorder{}
	}
	if r.count != nil {
		r.count(backend)
	}
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
	log := r.log
	if log == nil {
		log = slog.Default()
	}
	words := fmt.Sprint(what)
	log.Error("a fault of the gateway's: what was at work is given up, and all else goes on", "backend", backend,
		"panic", words[:min(len(words), maxWords)], "stack", string(debug.Stack()))
}
