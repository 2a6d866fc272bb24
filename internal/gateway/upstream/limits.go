package upstream

import "time"

// Limits bound what one server can make the gateway hold, read or wait for. What is zero has its default.
type Limits struct {
	// Connect bounds a TCP connect. Default 2 s.
	Connect time.Duration
	// Handshake bounds a TLS handshake. Default 5 s.
	Handshake time.Duration
	// Dials is how many connections are made at once. Default 64.
	Dials int
	// IdleConns is how many unused connections are kept. Default 1,000.
	IdleConns int
	// IdleConn is how long an unused connection is kept. Default 4 s: the web servers of the two most used SDKs hang up after 5,
	// and a call that meets the hang-up on its way has failed for good.
	IdleConn time.Duration
	// ConnAge is how long a connection is used for new requests. Default 5 s: a pod that ends is out of its Service within a second or
	// two, and is told to end after 15 (desired.lingers).
	ConnAge time.Duration
	// Headers bounds the headers of a response, in bytes. Default 64 KiB.
	Headers int64
	// Response bounds one response, in bytes. Default 16 MiB.
	Response int64
	// Event bounds one notification or request of the server's, in bytes. Default 1 MiB.
	Event int
	// StreamBytes bounds all that comes in a call's stream beside its response, in bytes. Default 64 MiB.
	StreamBytes int64
	// StreamIdle is how long a call's response or stream, once begun, may be silent. Default 5 min, or the backend's
	// timeout if that is longer. A stream outside of calls may be silent for ever: TCP keep-alive tells whether its server lives.
	StreamIdle time.Duration
	// Describe bounds finding out what the server speaks. Default 5 s.
	Describe time.Duration
	// Open bounds opening a session, time on hold not counted. Default 10 s.
	Open time.Duration
	// Notice bounds what nobody waits for: a cancellation, the end of a session. Default 2 s.
	Notice time.Duration
	// Resumes is how often in a row a stream that ended is asked for again, without an event coming: then a call asks once a
	// second at most, and a stream outside of calls has ended. Default 10.
	Resumes int
	// Queue bounds what waits for one slow reader of a stream that several share, in bytes. Default 256 KiB.
	Queue int
	// Sessions is how many sessions the gateway holds open on behalf of others: its own, and those of HTTP+SSE. Beyond it the
	// one that was used longest ago is ended. Default 1,000.
	Sessions int
	// SessionIdle is when such a session is ended if it is not used. Default 30 min.
	SessionIdle time.Duration
}

// withDefaults fills in what is zero.
func (l Limits) withDefaults() Limits {
	span := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	number := func(v *int, n int) {
		if *v == 0 {
			*v = n
		}
	}
	size := func(v *int64, n int64) {
		if *v == 0 {
			*v = n
		}
	}
	span(&l.Connect, 2*time.Second)
	span(&l.Handshake, 5*time.Second)
	number(&l.Dials, 64)
	number(&l.IdleConns, 1000)
	span(&l.IdleConn, 4*time.Second)
	span(&l.ConnAge, 5*time.Second)
	size(&l.Headers, 64<<10)
	size(&l.Response, 16<<20)
	number(&l.Event, 1<<20)
	size(&l.StreamBytes, 64<<20)
	span(&l.StreamIdle, 5*time.Minute)
	span(&l.Describe, 5*time.Second)
	span(&l.Open, 10*time.Second)
	span(&l.Notice, 2*time.Second)
	number(&l.Resumes, 10)
	number(&l.Queue, 256<<10)
	number(&l.Sessions, 1000)
	span(&l.SessionIdle, 30*time.Minute)
	return l
}
