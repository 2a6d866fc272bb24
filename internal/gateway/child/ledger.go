package child

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

// heldMin is the size from which a response counts: what is smaller is bounded by the number of calls.
const heldMin = 64 << 10

// ledger bounds the large responses that wait for slow readers, all processes together. When they become too many, the
// reader who had longest to read is cut off.
type ledger struct {
	limit int
	mu    sync.Mutex
	total int
	held  []*holding // oldest first
}

// holding is one large response.
type holding struct {
	ledger *ledger
	size   int
	cut    atomic.Bool
}

// hold enters a response; nil if it is small.
func (l *ledger) hold(size int) *holding {
	if size < heldMin {
		return nil
	}
	h := &holding{ledger: l, size: size}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.held) > 0 && l.total+size > l.limit {
		oldest := l.held[0]
		oldest.cut.Store(true)
		l.total -= oldest.size
		l.held = l.held[1:]
	}
	l.held = append(l.held, h)
	l.total += size
	return h
}

// release is for when the response was read or will not be.
func (h *holding) release() {
	if h == nil {
		return
	}
	h.ledger.mu.Lock()
	defer h.ledger.mu.Unlock()
	if i := slices.Index(h.ledger.held, h); i >= 0 {
		h.ledger.held = slices.Delete(h.ledger.held, i, i+1)
		h.ledger.total -= h.size
	}
}

func (h *holding) reader(raw []byte) io.Reader {
	return &heldReader{holding: h, r: bytes.NewReader(raw)}
}

// heldReader fails once its response was cut.
type heldReader struct {
	*holding

	r *bytes.Reader
}

func (h *heldReader) Read(p []byte) (int, error) {
	if h.cut.Load() {
		return 0, errSlowReader
	}
	return h.r.Read(p)
}
