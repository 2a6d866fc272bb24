package reach

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Job is something that is made, once, of what the cluster holds.
type Job struct {
	Subject

	// Purpose says what is made of what: another one makes it be made anew.
	Purpose string
}

func (j Job) subject() Subject { return j.Subject }

func (j Job) same(other task) bool {
	o, ok := other.(Job)
	return ok && j.Purpose == o.Purpose
}

// Made is what became of a job. The zero value is not known yet.
type Made[V any] struct {
	// Known says that an attempt ended.
	Known bool
	// Problem is a sentence that says why nothing can be made; empty if Value is what was made.
	Problem string
	Value   V
}

// MakerOptions are the parts and settings of a Maker. Zero settings mean their defaults.
type MakerOptions[V any] struct {
	// Make does a job. It returns false if that has to be tried again, less and less often. It returns soon after ctx ended.
	Make func(ctx context.Context, job Job) (made Made[V], ok bool)
	// Notify is as in CheckerOptions.
	Notify func(ctx context.Context, key types.NamespacedName)
	// Workers is how many jobs are done at once of what is new, and of what is tried again. Default: 2.
	Workers int
}

// Maker does jobs. Make it with NewMaker and start it with Start.
type Maker[V any] struct {
	*scheduler[Job, Made[V]]
}

// NewMaker returns a Maker.
func NewMaker[V any](opts MakerOptions[V]) *Maker[V] {
	if opts.Workers == 0 {
		opts.Workers = 2
	}
	s := &scheduler[Job, Made[V]]{
		pace: pace{once: true, first: 2 * time.Second, last: 10 * time.Minute}, workers: opts.Workers,
		do:     func(ctx context.Context, job Job, _ Made[V]) (Made[V], bool) { return opts.Make(ctx, job) },
		equal:  func(a, b Made[V]) bool { return a.Known == b.Known && a.Problem == b.Problem },
		failed: func(_ Made[V], err error) Made[V] { return Made[V]{Known: true, Problem: err.Error()} },
		notify: opts.Notify,
	}
	return &Maker[V]{s.init()}
}

// Observe tells of a job as it is now, and returns what is known of it. It is cheap.
func (m *Maker[V]) Observe(job Job) Made[V] { return m.observe(job) }
