package front

import (
	"sync"
	"time"
)

const (
	// largeCatalogs are catalogs whose reading leaves enough behind to care, in bytes.
	largeCatalogs = 1 << 20
	// releaseDelay is how long is waited for further changes: backends are read all at once at the start, and mostly come back together.
	releaseDelay = 2 * time.Second
	// releasePause is the shortest time between two releases, which are a garbage collection each.
	releasePause = 10 * time.Second
)

// releaser gives memory back after the catalogs were made anew. What is read and thrown away for that is several times what is kept, and the
// runtime would let the heap grow to twice that before it collected anything, and give back little by little what it does not need. A gateway
// whose backends change now and then would stay as large for ever as it was at its start.
type releaser struct {
	// release collects garbage and gives back what is free.
	release func()

	mu   sync.Mutex
	due  bool
	last time.Time
}

// compiled says that catalogs of a size were made.
func (r *releaser) compiled(size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if size < largeCatalogs || r.due {
		return
	}
	r.due = true
	time.AfterFunc(max(releaseDelay, time.Until(r.last.Add(releasePause))), func() {
		r.mu.Lock()
		r.due, r.last = false, time.Now()
		r.mu.Unlock()
		r.release()
	})
}
