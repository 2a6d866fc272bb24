package upstream

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// errSlow ends a reader that does not keep up.
var errSlow = errors.New("its reader is too slow")

// queue holds messages for one reader of a stream that several share, so that a slow one holds up nobody else.
type queue struct {
	limit int // of bytes that wait, responses not counted
	wake  chan struct{}

	mu       sync.Mutex
	messages []*wire.Message
	bytes    int
	err      error // of the end, after the messages
}

func newQueue(limit int) *queue { return &queue{limit: limit, wake: make(chan struct{}, 1)} }

// put adds a message, which must not change any more. A reader that is too slow is cut off.
func (q *queue) put(m *wire.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return
	}
	if m.Kind != wire.Response {
		q.bytes += len(m.Raw)
	}
	if q.bytes > q.limit {
		q.err, q.messages = errSlow, nil
	} else {
		q.messages = append(q.messages, m)
	}
	q.signal()
}

// end lets the reader know, after what it has to read yet, that nothing more comes.
func (q *queue) end(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next waits for a message.
func (q *queue) next(ctx context.Context) (*wire.Message, error) {
	for {
		if m, err := q.take(); m != nil || err != nil {
			return m, err
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (q *queue) take() (*wire.Message, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.messages) == 0 {
		return nil, q.err
	}
	m := q.messages[0]
	q.messages = q.messages[1:]
	if m.Kind != wire.Response {
		q.bytes -= len(m.Raw)
	}
	return m, nil
}

// hub hands messages out to all who listen.
type hub struct {
	mu        sync.Mutex
	listeners []*queue
	err       error
}

func (h *hub) join(q *queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		q.end(h.err)
		return
	}
	h.listeners = append(h.listeners, q)
}

func (h *hub) leave(q *queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners = slices.DeleteFunc(h.listeners, func(other *queue) bool { return other == q })
}

// size is how many listen.
func (h *hub) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.listeners)
}

// publish gives a message to all listeners, and a request to the one that came last, since one must answer it. It reports
// whether there was anybody.
func (h *hub) publish(m *wire.Message) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	to := h.listeners
	if m.Kind == wire.Request && len(to) > 0 {
		to = to[len(to)-1:]
	}
	for _, q := range to {
		q.put(m)
	}
	return len(to) > 0
}

// end ends all listeners, and those that come after.
func (h *hub) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	for _, q := range h.listeners {
		q.end(err)
	}
}
