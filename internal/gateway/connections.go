package gateway

import (
	lru "container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// connections bounds how many connections of a listener are open. Where there is no room for another, the one that has been without a
// request for the longest is closed for it: else those who open connections and ask nothing would keep out all others. Only when each
// of them has a request under way a new one waits. The server's ConnState must be note.
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
}

// connection is one of them.
type connection struct {
	net.Conn

	of *connections
	// place is its own among those that wait; nil while it has a request. It is guarded by the lock of of, as closed is.
	place  *lru.Element
	closed bool
}

func newConnections(l net.Listener, most int) *connections {
	return &connections{Listener: l, most: most, over: make(chan struct{}), changed: make(chan struct{}, 1), waiting: lru.New()}
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
	var oldest *connection
	if front := c.waiting.Front(); front != nil {
		oldest, _ = front.Value.(*connection)
	}
	c.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return false
}

// note is told by the server whether a connection has a request.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	m, ok := conn.(*connection)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.place != nil {
		c.waiting.Remove(m.place)
		m.place = nil
	}
	if m.closed || state != http.StateNew && state != http.StateIdle {
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

// Close closes the connection, and makes room.
func (m *connection) Close() error {
	m.of.mu.Lock()
	if !m.closed {
		m.closed = true
		m.of.open--
		if m.place != nil {
			m.of.waiting.Remove(m.place)
			m.place = nil
		}
		m.of.tell()
	}
	m.of.mu.Unlock()
	return m.Conn.Close()
}
