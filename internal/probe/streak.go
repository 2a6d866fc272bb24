package probe

import (
	"time"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

const (
	// An address that never answered is told after so many failures in a row, one that did after fewer; but see settles.
	newFailures, oldFailures = 3, 2

	// settles is for how long after a pod of the generation began to answer it is not told that the Service does not, and after a pod came
	// to a server that answered that it takes no connection: the network of a node learns of new pods, and of another port, a moment after
	// they are ready.
	settles = 5 * time.Second

	// starts is for how long after a pod came to a server that answers it is not told that it does not yet: many open their port before they
	// answer.
	starts = 30 * time.Second

	maxBackoff = 2 * time.Minute
)

// backoff returns the pause after n failures in a row: short ones first, since most servers need only moments to start.
func backoff(n int) time.Duration {
	first := []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second}
	if n <= len(first) {
		return first[max(n, 1)-1]
	}
	return min(time.Second<<min(n-len(first), 10), maxBackoff)
}

// streak is the history of one address.
type streak struct {
	answered bool       // it answered once
	failures int        // in a row since
	slow     bool       // the last answer, or failure, took long
	told     bool       // that it does not answer, which only an answer takes back
	excused  bool       // the last failure may be the network's, which is given time still; never once it is told
	early    bool       // it never answered, and came so short a time before the last failure that it may be about to
	err      *mcp.Error // the last failure
	next     time.Time  // when to ask again; of one that answers, when it did: the one longest ago has its turn
}

// failed says that the address does not answer, and has not for long enough to say so.
func (s *streak) failed() bool { return s.told }

// known says that there is something to report.
func (s *streak) known() bool { return s.failed() || s.answered }

func (s *streak) succeed(now time.Time, a answer) {
	*s = streak{answered: true, slow: a.took >= slowFailure, next: now}
}

// fail notes a failure. It is not told before settled, and asked again then at the latest; the zero time gives it no time.
func (s *streak) fail(now, settled time.Time, a answer) {
	s.failures++
	s.slow = a.took >= slowFailure
	s.err, s.next = a.err, now.Add(backoff(s.failures))
	s.excused = !s.told && now.Before(settled)
	if s.excused {
		s.next = earlier(s.next, settled)
		return
	}
	s.told = s.told || s.failures >= newFailures || s.answered && s.failures >= oldFailures
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
