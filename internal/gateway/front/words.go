package front

import (
	"io"
	"time"
)

// workingOn is for how long a backend that said something of a call, a piece of the response or how far it came, is taken to work on it.
const workingOn = 5 * time.Second

// lastWord notes when a backend said something of a call last.
type lastWord struct {
	io.Reader

	at time.Time // zero if it said nothing
}

func (w *lastWord) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.at = time.Now()
	}
	return n, err
}

// isSlow says of a call whose time is over that the backend is slow, and does not hang. What it said in the first half of the time the call
// had says nothing of its end.
func (w *lastWord) isSlow(patience time.Duration, now time.Time) bool {
	return !w.at.IsZero() && now.Sub(w.at) < min(workingOn, patience/2)
}
