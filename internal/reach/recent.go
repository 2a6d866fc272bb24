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

// confirm notes that a document is what these validators were told of. If what is kept has others, it is of another version, and not what is
// there.
func (r *recent) confirm(uid types.UID, etag, modified string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch c, ok := r.known.Get(uid); {
	case !ok:
	case c.etag == etag && c.modified == modified:
		c.at = time.Now()
	default:
		r.known.Drop(uid)
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
