// Package bounded keeps things of which there may be too many, or too large ones.
package bounded

import "slices"

// Map keeps values by key until there are too many bytes of them: then those go that were put first. The zero value is empty. It is not safe
// for concurrent use.
type Map[K comparable, V any] struct {
	kept  map[K]item[V]
	order []K // the first is the oldest
	bytes int
}

type item[V any] struct {
	value V
	bytes int
}

// Put keeps a value of so many bytes in place of what there was, and drops the oldest until there are at most so many of all.
func (m *Map[K, V]) Put(key K, value V, bytes, most int) {
	m.Drop(key)
	if m.kept == nil {
		m.kept = map[K]item[V]{}
	}
	m.kept[key] = item[V]{value, bytes}
	m.order, m.bytes = append(m.order, key), m.bytes+bytes
	for m.bytes > most {
		m.Drop(m.order[0])
	}
}

// Get returns the value of a key.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	i, ok := m.kept[key]
	return i.value, ok
}

// Drop drops the value of a key.
func (m *Map[K, V]) Drop(key K) {
	i, ok := m.kept[key]
	if !ok {
		return
	}
	delete(m.kept, key)
	m.bytes -= i.bytes
	at := slices.Index(m.order, key)
	m.order = slices.Delete(m.order, at, at+1)
}

// Keys returns the keys, from the oldest to the newest.
func (m *Map[K, V]) Keys() []K { return slices.Clone(m.order) }

// Bytes returns how many there are.
func (m *Map[K, V]) Bytes() int { return m.bytes }
