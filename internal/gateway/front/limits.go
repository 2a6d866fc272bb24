package front

import (
	"sync"
	"time"
)

// Limits bound what a client can make the gateway do. The zero value of a field is its default.
type Limits struct {
	// Body is the largest request body, in bytes. Default 4 MiB.
	Body int
	// Bodies is how much of request bodies one caller may have in memory, in bytes, TotalBodies all together; those of up to 4 KiB
	// do not count. Defaults 16 MiB and 64 MiB.
	Bodies, TotalBodies int
	// Depth is the deepest nesting of a request's JSON, and Members how many one object of it may have. Defaults 64 and 10,000.
	Depth, Members int
	// Calls is how many requests of one caller are answered at once, and how many messages without an answer are passed on besides.
	// Where there are several backends, half of the calls may be at one. Default 100.
	Calls int
	// Streams is how many event streams one caller may hold open. Default 50.
	Streams int
	// Sessions is how many sessions of one caller are kept. When it is reached, the one idle for longest is ended; if none is
	// idle, no other is opened. Default 100.
	Sessions int
	// Tools is how many tools of one backend its catalog takes. Default 512.
	Tools int
	// TotalCalls and TotalStreams are the same for all callers together. Defaults 1,000 and 5,000.
	TotalCalls, TotalStreams int
	// TotalSessions is how many sessions are kept in memory. A session that falls out goes on, since its id holds all that
	// is needed to resume it. Default 20,000.
	TotalSessions int
	// Call is how long a call may take, if its backend says nothing else. Default 60 s.
	Call time.Duration
	// Listing is how long the answer to a list, or to initialize, waits for a slow backend. Default 2 s.
	Listing time.Duration
	// StreamAge is when an event stream is ended, so that the client opens another. Default 1 h.
	StreamAge time.Duration
	// KeepAlive is the pause after which a comment is sent on a silent stream. Default 20 s.
	KeepAlive time.Duration
	// Write is how long a client may stop reading, or take to send a request. Default 30 s.
	Write time.Duration
	// SessionIdle is when an unused session is forgotten, and what only this gateway knows of it is closed at backends. Default 30 min.
	SessionIdle time.Duration
	// SessionAge is how long a session id is valid. Default 7 days.
	SessionAge time.Duration
}

// withDefaults fills in what is zero.
func (l Limits) withDefaults() Limits {
	number := func(v *int, n int) {
		if *v == 0 {
			*v = n
		}
	}
	span := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	number(&l.Body, 4<<20)
	number(&l.Bodies, 16<<20)
	number(&l.TotalBodies, 64<<20)
	number(&l.Depth, 64)
	number(&l.Members, 10_000)
	number(&l.Calls, 100)
	number(&l.Streams, 50)
	number(&l.Sessions, 100)
	number(&l.Tools, 512)
	number(&l.TotalCalls, 1000)
	number(&l.TotalStreams, 5_000)
	number(&l.TotalSessions, 20_000)
	span(&l.Call, time.Minute)
	span(&l.Listing, 2*time.Second)
	span(&l.StreamAge, time.Hour)
	span(&l.KeepAlive, 20*time.Second)
	span(&l.Write, 30*time.Second)
	span(&l.SessionIdle, 30*time.Minute)
	span(&l.SessionAge, 7*24*time.Hour)
	return l
}

// quota counts what each caller, and all together, hold of something.
type quota struct {
	perCaller, total int

	mu   sync.Mutex
	held map[string]int
	sum  int
}

func newQuota(perCaller, total int) *quota {
	return &quota{perCaller: perCaller, total: total, held: map[string]int{}}
}

// verdict of a quota.
type quotaVerdict int

const (
	quotaGranted quotaVerdict = iota
	quotaCallerFull
	quotaFull
)

// take takes n for the caller; if it is granted, give must follow.
func (q *quota) take(caller string, n int) quotaVerdict {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.held[caller]+n > q.perCaller:
		return quotaCallerFull
	case q.sum+n > q.total:
		return quotaFull
	}
	q.held[caller] += n
	q.sum += n
	return quotaGranted
}

func (q *quota) give(caller string, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sum -= n
	if q.held[caller] -= n; q.held[caller] == 0 {
		delete(q.held, caller)
	}
}
