package source

import (
	"slices"
	"time"
)

const (
	// grace is for how long a lost watch still keeps the file out: about as long as the kubelet takes to write it.
	grace = time.Minute
	// maxOlder is how many contents the file may lag behind.
	maxOlder = 64
)

// arbiter decides whether what the file or the API server says is news. Both say the same in the end, but the file later: a
// file that still shows what the API server has replaced must never win.
type arbiter struct {
	// current was delivered last.
	current contentID
	// file is what the file showed last.
	file contentID
	// older are what the file may still show on its way to current.
	older []contentID
	// spoken is true once the API server delivered; lostAt is since when it cannot, or zero.
	spoken bool
	lostAt time.Time
}

// fromFile tells whether what the file shows is to be delivered.
func (a *arbiter) fromFile(id contentID, now time.Time) bool {
	a.file = id
	leads := a.spoken && (a.lostAt.IsZero() || now.Sub(a.lostAt) <= grace)
	switch {
	case id == a.current: // It has caught up: what it shows from now on is newer.
		a.older = nil
		return false
	case leads || slices.Contains(a.older, id):
		return false
	}
	a.current, a.older = id, nil
	return true
}

// fromAPI tells whether what the API server says is to be delivered.
func (a *arbiter) fromAPI(id contentID) bool {
	a.spoken, a.lostAt = true, time.Time{}
	if id == a.current {
		return false
	}
	a.older = append(a.older, a.current, a.file)
	a.older = a.older[max(0, len(a.older)-maxOlder):]
	a.current = id
	return true
}

// apiLost notes that the API server cannot be heard.
func (a *arbiter) apiLost(now time.Time) {
	if a.lostAt.IsZero() {
		a.lostAt = now
	}
}

// apiBack notes that it can be heard again and has nothing new to say.
func (a *arbiter) apiBack() {
	a.lostAt = time.Time{}
}
