package gateway

import (
	"bytes"
	lru "container/list"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

const (
	// maxHeaders bounds what headers that are being read take in memory, of all connections of a listener together, in bytes: nobody has
	// been asked for a token yet.
	maxHeaders = 16 << 20
	// freeHeader is how much of each header does not count, in bytes.
	freeHeader = 4 << 10
	// lineCost is what a line of a header takes besides its own bytes: net/http makes a place for it in a map, and strings.
	lineCost = 128
)

// connections bounds how many connections of a listener are open. Where there is no room for another, the one that has been without a
// request for the longest is closed for it: else those who open connections and ask nothing would keep out all others. Only when each
// of them has a request under way a new one waits. It bounds what is in memory of headers without an end, too: where they become too
// much, the connection is closed that has held some of it for the longest. The server's ConnState must be note.
type connections struct {
	net.Listener

	most int
	// over is closed with the listener.
	over chan struct{}
	once sync.Once
	// changed gets an element when there may be room.
	changed chan struct{}

	mu   sync.Mutex
	open int
	// waiting are those without a request; the front has been so for the longest.
	waiting *lru.List // of *connection
	// headers is what the connections of holding hold together, in bytes; the front of holding has held some for the longest.
	headers int
	holding *lru.List // of *connection
}

// connection is one of them.
type connection struct {
	net.Conn

	of *connections
	// ciphered says that what is read tells nothing of lines.
	ciphered bool
	// header is what was read since a header is awaited, in bytes with the cost of lines; below zero while there is a request.
	header atomic.Int64

	// What follows is guarded by the lock of of.

	// place is its own among those that wait; nil while it has a request.
	place *lru.Element
	// holds is its place among those that hold a part of headers, and held that part; nil and 0 if it holds none.
	holds  *lru.Element
	held   int
	closed bool
}

func newConnections(l net.Listener, most int) *connections {
	return &connections{
		Listener: l, most: most, over: make(chan struct{}), changed: make(chan struct{}, 1), waiting: lru.New(), holding: lru.New(),
	}
}

// Accept returns the next connection, once there is room for it.
func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	next := &connection{Conn: conn, of: c}
	for !c.admit(next) {
		select {
		case <-c.changed:
		case <-c.over:
			_ = conn.Close()
			return nil, net.ErrClosed
		}
	}
	return next, nil
}

// Close closes the listener.
func (c *connections) Close() error {
	c.once.Do(func() { close(c.over) })
	return c.Listener.Close()
}

// admit says whether there is room for a connection. If there is none, it makes some, where it can.
func (c *connections) admit(next *connection) bool {
	c.mu.Lock()
	if c.open < c.most {
		c.open++
		next.place = c.waiting.PushBack(next)
		c.mu.Unlock()
		return true
	}
	oldest := first(c.waiting)
	c.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return false
}

// first is the connection at the front of a list; nil if there is none.
func first(of *lru.List) *connection {
	front := of.Front()
	if front == nil {
		return nil
	}
	m, _ := front.Value.(*connection)
	return m
}

// note is told by the server whether a connection has a request. Until the whole header of one was read it has none.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	if s, ok := conn.(*secured); ok {
		conn = s.raw
	}
	m, ok := conn.(*connection)
	if !ok {
		return
	}
	awaits := state == http.StateNew || state == http.StateIdle
	if awaits {
		m.header.Store(0)
	} else {
		m.header.Store(-1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.leave()
	if m.closed || !awaits {
		return
	}
	m.place = c.waiting.PushBack(m)
	c.tell()
}

// tell says that there may be room. The caller holds the lock.
func (c *connections) tell() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// charge has a connection hold n bytes more, and closes those that have held some for the longest until the rest is within bounds.
// It says whether the connection itself is still open.
func (c *connections) charge(m *connection, n int) bool {
	c.mu.Lock()
	if m.closed {
		c.mu.Unlock()
		return false
	}
	if m.holds == nil {
		m.holds = c.holding.PushBack(m)
	}
	m.held += n
	c.headers += n
	for c.headers > maxHeaders {
		oldest := first(c.holding)
		c.mu.Unlock()
		_ = oldest.Close()
		c.mu.Lock()
	}
	open := !m.closed
	c.mu.Unlock()
	return open
}

// Read counts what is read of a header.
func (m *connection) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if n <= 0 || m.header.Load() < 0 {
		return n, err
	}
	cost := n
	if !m.ciphered {
		cost += linesCost(p[:n])
	}
	if !m.count(cost) {
		// What was read may have been the end of a request that nobody would get the answer to.
		return 0, net.ErrClosed
	}
	return n, err
}

func linesCost(of []byte) int {
	return lineCost * bytes.Count(of, []byte{'\n'})
}

// count counts n bytes of a header. It says whether the connection is open still.
func (m *connection) count(n int) bool {
	beyond := m.header.Add(int64(n)) - freeHeader
	return beyond <= 0 || m.of.charge(m, min(n, int(beyond)))
}

// Close closes the connection, and makes room.
func (m *connection) Close() error {
	m.of.mu.Lock()
	if !m.closed {
		m.closed = true
		m.of.open--
		m.leave()
		m.of.tell()
	}
	m.of.mu.Unlock()
	return m.Conn.Close()
}

// leave takes a connection out of those that wait, and out of those that hold a part of headers. The caller holds the lock.
func (m *connection) leave() {
	if m.place != nil {
		m.of.waiting.Remove(m.place)
		m.place = nil
	}
	if m.holds != nil {
		m.of.holding.Remove(m.holds)
		m.of.headers -= m.held
		m.holds, m.held = nil, 0
	}
}
