package probe

import "time"

// settles is for how long after a pod of the generation began to answer it is not told that the Service does not, and after a pod came to a
// server that answered that it takes no connection: the network of a node learns of new pods, and of another port, a moment after they are
// ready.
const settles = 5 * time.Second

// serviceState is the history of the Service in a generation.
type serviceState struct {
	streak

	told bool // that it does not answer: it has failed often enough, and its pods have been there for long enough
}

// fail notes a failure. The pods have answered since then; the zero time if they do not, and no wonder that the Service does not either.
func (s *serviceState) fail(now, since time.Time, a answer) {
	s.streak.fail(now, a)
	settled := since.Add(settles)
	switch {
	case since.IsZero() || !s.failed():
	case now.Before(settled):
		s.next = earlier(s.next, settled) // then it is told at once
	default:
		s.told = true
	}
}

// lane returns that of the Service: somebody waits for the verdict until it is told.
func (s *serviceState) lane() lane {
	if !s.told && !s.slow {
		return fresh
	}
	return laneOf(&s.streak)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// noteCurrent notes whether pods answer for the server's generation. Call it when that may have changed.
func (e *entry) noteCurrent(now time.Time) {
	switch {
	case e.generation() < e.server.Generation:
		e.current = time.Time{}
	case e.current.IsZero():
		e.current = now
	}
}
