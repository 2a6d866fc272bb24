package child

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// queueBytes bounds the messages that wait for one slow reader. The response, which comes last, does not count.
const queueBytes = 256 << 10

// errSlowReader ends calls and streams whose reader did not keep up.
var errSlowReader = errors.New("the reader is too slow: messages for it piled up")

// queue is what a process said to one call or one stream, between the goroutine that reads the process and the one
// that feeds the sink. The first must not wait for the second.
type queue struct {
	mu    sync.Mutex
	items []*wire.Message
	bytes int
	hand  *wire.Message // what the reader took last, until it comes for more
	err   error         // why nothing more comes
	held  *holding
	wake  chan struct{}
	room  chan struct{}
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// push adds a message. If there is no room it waits for at most patience, and then cuts the reader off. It reports
// whether the message was taken.
func (q *queue) push(m *wire.Message, patience time.Duration) bool {
	taken, over := q.try(m)
	if !taken && !over && patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		for !taken && !over {
			select {
			case <-q.room:
				taken, over = q.try(m)
			case <-timer.C:
				over = true
			}
		}
	}
	if !taken {
		q.fail(errSlowReader)
	}
	return taken
}

// try adds a message if there is room, and says whether there will never be any.
func (q *queue) try(m *wire.Message) (taken, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return false, true
	}
	if q.bytes > 0 && q.bytes+len(m.Raw) > queueBytes {
		return false, false
	}
	q.add(m)
	return true, false
}

// finish adds the response, whatever its size, and enters it in the ledger.
func (q *queue) finish(m *wire.Message, l *ledger) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.held = l.hold(len(m.Raw))
		q.add(m)
	}
}

// close ends the queue on the reader's side.
func (q *queue) close() {
	q.fail(context.Canceled)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held.release()
}

func (q *queue) add(m *wire.Message) {
	q.items = append(q.items, m)
	q.bytes += len(m.Raw)
	poke(q.wake)
}

// fail ends the queue: what is in it is still delivered, unless the reader is too slow.
func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return
	}
	q.err = err
	if errors.Is(err, errSlowReader) {
		q.items, q.bytes = nil, 0
	}
	poke(q.wake)
	poke(q.room)
}

// stop ends the queue, and returns what its reader has not passed on: what it took last without coming for more, and all behind.
func (q *queue) stop() []*wire.Message {
	q.fail(errStopped)
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.items
	if q.hand != nil {
		left = append([]*wire.Message{q.hand}, left...)
	}
	q.hand, q.items, q.bytes = nil, nil, 0
	return left
}

// isOpen reports whether the queue has not ended.
func (q *queue) isOpen() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err == nil
}

// next waits for a message. The one before it has been passed on.
func (q *queue) next(ctx context.Context) (*wire.Message, error) {
	for {
		q.mu.Lock()
		q.hand = nil
		if len(q.items) > 0 {
			m := q.items[0]
			q.hand = m
			q.items[0] = nil
			q.items = q.items[1:]
			q.bytes -= len(m.Raw)
			q.mu.Unlock()
			poke(q.room)
			return m, nil
		}
		err := q.err
		q.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil, ended(ctx)
		}
	}
}

// poke wakes who waits for the channel, now or next.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
