package child

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// outboxBytes bounds what waits to be written to a child that does not read; one message more is always let in.
const outboxBytes = 1 << 20

// outbox is what waits to be written to a process' stdin. Writing is one goroutine's work: a caller who gives up must not leave half
// a message behind, and many small messages go out in one write.
type outbox struct {
	mu      sync.Mutex
	items   []*outgoing
	bytes   int
	closed  bool
	wake    chan struct{}
	waiting bool          // for room
	room    chan struct{} // closed and replaced when room was made for who waits
}

// outgoing is one message on its way out.
type outgoing struct {
	raw []byte
	// taken says that the message is being written or was: it may have reached the child.
	taken bool
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1), room: make(chan struct{})} }

// put queues a message. It fails with errUnsent if the process is over.
func (o *outbox) put(ctx context.Context, m *wire.Message) (*outgoing, error) {
	for {
		o.mu.Lock()
		if o.closed {
			o.mu.Unlock()
			return nil, errUnsent
		}
		if o.bytes <= outboxBytes {
			break
		}
		room := o.room
		o.waiting = true
		o.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return nil, ended(ctx)
		}
	}
	defer o.mu.Unlock()
	item := &outgoing{raw: m.Raw}
	o.items = append(o.items, item)
	o.bytes += len(item.raw)
	poke(o.wake)
	return item, nil
}

// post queues a small message of our own without waiting for room. Such messages are lost on a child that asks and asks and does
// not read.
func (o *outbox) post(m *wire.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed && o.bytes <= 2*outboxBytes {
		o.items = append(o.items, &outgoing{raw: m.Raw})
		o.bytes += len(m.Raw)
		poke(o.wake)
	}
}

// withdraw takes a message back, and reports whether that was still possible.
func (o *outbox) withdraw(item *outgoing) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if item.taken {
		return false
	}
	for i, other := range o.items {
		if other == item {
			o.items = append(o.items[:i], o.items[i+1:]...)
			o.bytes -= len(item.raw)
			o.makeRoom()
			break
		}
	}
	return true
}

// makeRoom wakes who waits for room. The caller holds the lock.
func (o *outbox) makeRoom() {
	if o.waiting {
		close(o.room)
		o.room, o.waiting = make(chan struct{}), false
	}
}

// close lets nothing in or out any more.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed, o.items = true, nil
		close(o.room)
		poke(o.wake)
	}
}

// batch appends the next messages to buf, a line each, up to the size of a pipe or else one; nil after close.
func (o *outbox) batch(buf []byte) []byte {
	for {
		o.mu.Lock()
		if o.closed {
			o.mu.Unlock()
			return nil
		}
		if len(o.items) > 0 {
			break
		}
		o.mu.Unlock()
		<-o.wake
	}
	defer o.mu.Unlock()
	taken := 0
	for _, item := range o.items {
		if taken > 0 && len(buf)+len(item.raw) >= lineBuffer {
			break
		}
		buf = appendLine(buf, item.raw)
		item.taken = true
		o.bytes -= len(item.raw)
		taken++
	}
	rest := copy(o.items, o.items[taken:])
	clear(o.items[rest:])
	o.items = o.items[:rest]
	o.makeRoom()
	return buf
}

// appendLine appends a message as one line: between the tokens of JSON a line feed is as good as a space, and so is a carriage
// return, at which some readers end a line too.
func appendLine(buf, raw []byte) []byte {
	start := len(buf)
	buf = append(buf, raw...)
	for _, end := range []byte("\n\r") {
		line := buf[start:]
		for i := bytes.IndexByte(line, end); i >= 0; i = bytes.IndexByte(line, end) {
			line[i], line = ' ', line[i+1:]
		}
	}
	return append(buf, '\n')
}

// run writes until the outbox is closed or the child's stdin is.
func (o *outbox) run(stdin io.Writer) error {
	var buf []byte
	for {
		if cap(buf) > lineBuffer {
			buf = nil // one large message must not be paid for ever after
		}
		if buf = o.batch(buf[:0]); buf == nil {
			return nil
		}
		if _, err := stdin.Write(buf); err != nil {
			return err
		}
	}
}
