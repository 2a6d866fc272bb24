package reach

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxRecent bounds the documents that are kept, in bytes; one alone may have an eighth of that.
const maxRecent = 16 << 20

// recent keeps documents that were fetched a short while ago, of which something else may have to be made. If there are too many, the oldest
// give way. The zero value is empty.
type recent struct {
	mu    sync.Mutex
	known map[types.UID]copied
	order []types.UID
	bytes int
}

// copied is a document as it was fetched.
type copied struct {
	document       Document
	content        []byte
	etag, modified string
	at             time.Time // when it was fetched, or found unchanged
}

func (r *recent) put(c copied) {
	r.mu.Lock()
	defer r.mu.Unlock()
	uid := c.document.UID
	r.remove(uid)
	if len(c.content) > maxRecent/8 {
		return
	}
	if r.known == nil {
		r.known = map[types.UID]copied{}
	}
	r.known[uid] = c
	r.order, r.bytes = append(r.order, uid), r.bytes+len(c.content)
	for r.bytes > maxRecent {
		r.remove(r.order[0])
	}
}

// confirm notes that a document is still what it was.
func (r *recent) confirm(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.known[uid]; ok {
		c.at = time.Now()
		r.known[uid] = c
	}
}

// get returns what would be fetched, if it was fetched in the same way less than so long ago.
func (r *recent) get(d Document, age time.Duration) (copied, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.known[d.UID]
	c.document.Purpose, c.document.Trust.Roots = d.Purpose, d.Trust.Roots // of which the identity tells
	return c, ok && c.document.same(d) && time.Since(c.at) < age
}

func (r *recent) remove(uid types.UID) {
	c, ok := r.known[uid]
	if !ok {
		return
	}
	delete(r.known, uid)
	r.bytes -= len(c.content)
	at := slices.Index(r.order, uid)
	r.order = slices.Delete(r.order, at, at+1)
}
