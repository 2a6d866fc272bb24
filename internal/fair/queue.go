// Package fair has queues, with workers or without, and a gate, at which namespaces come in turn, so that no tenant holds up what another one waits for.
package fair

import "slices"

// Order is in which order what waits of one namespace comes.
type Order int

const (
	// Alternating is the newest and the oldest in alternation: somebody waits for what is new, however many before it are dead, and what is
	// old is not overtaken without end.
	Alternating Order = iota
	// NewestFirst is the last to come first.
	NewestFirst
	// OldestFirst is the first to come first.
	OldestFirst
)

// Queue serves namespaces in turn: whatever one of them has waiting, another waits for no more than one of it. The zero value is empty, and
// lets one of each namespace be busy at a time. It is not safe for concurrent use.
type Queue[T any] struct {
	// Most is how many of one namespace may be busy at once; 0 is one.
	Most int

	// Order is that within a namespace.
	Order Order

	waiting map[string]*bench[T]
	order   []string // namespaces that have something waiting; the first is next
	busy    map[string]int
}

// bench is what waits of one namespace.
type bench[T any] struct {
	items  []T
	oldest bool // is next, if they alternate
}

func (b *bench[T]) take(order Order) T {
	at := len(b.items) - 1
	if order == OldestFirst || order == Alternating && b.oldest {
		at = 0
	}
	item := b.items[at]
	b.items, b.oldest = slices.Delete(b.items, at, at+1), !b.oldest
	return item
}

// Push adds an item.
func (q *Queue[T]) Push(namespace string, item T) {
	b := q.waiting[namespace]
	if b == nil {
		if q.waiting == nil {
			q.waiting, q.busy = map[string]*bench[T]{}, map[string]int{}
		}
		b = &bench[T]{}
		q.waiting[namespace] = b
		q.order = append(q.order, namespace)
	}
	b.items = append(b.items, item)
}

// Pop takes the item whose turn it is; none if all that waits is of namespaces that are busy enough. The caller calls Done when it is.
func (q *Queue[T]) Pop() (namespace string, item T, ok bool) {
	for i, namespace := range q.order {
		if q.busy[namespace] >= max(q.Most, 1) {
			continue
		}
		b := q.waiting[namespace]
		item = b.take(q.Order)
		q.order = slices.Delete(q.order, i, i+1)
		if len(b.items) == 0 {
			delete(q.waiting, namespace)
		} else {
			q.order = append(q.order, namespace)
		}
		q.busy[namespace]++
		return namespace, item, true
	}
	return "", item, false
}

// Done says that one of a namespace is not busy any more.
func (q *Queue[T]) Done(namespace string) {
	if q.busy[namespace]--; q.busy[namespace] <= 0 {
		delete(q.busy, namespace)
	}
}
