package reach

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcp-operator/mcp-operator/internal/bounded"
)

// maxRecent bounds the documents that are kept, in bytes; one alone may have an eighth of that.
const maxRecent = 16 << 20

// recent keeps documents that were fetched a short while ago, of which something else may have to be made. If there are too many, the oldest
// give way. The zero value is empty.
type recent struct {
	mu    sync.Mutex
	known bounded.Map[types.UID, *copied]
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
	if len(c.content) > maxRecent/8 {
		r.known.Drop(uid) // it is not that any more
		return
	}
	r.known.Put(uid, &c, len(c.content), maxRecent)
}

// confirm notes that a document is still what it was.
func (r *recent) confirm(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.known.Get(uid); ok {
		c.at = time.Now()
	}
}

// get returns what would be fetched, if it was fetched in the same way less than so long ago.
func (r *recent) get(d Document, age time.Duration) (copied, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.known.Get(d.UID)
	if !ok {
		return copied{}, false
	}
	c := *known
	c.document.Purpose, c.document.Trust.Roots = d.Purpose, d.Trust.Roots // of which the identity tells
	return c, c.document.same(d) && time.Since(c.at) < age
}
