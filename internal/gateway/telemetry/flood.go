package telemetry

import (
	"sync"
	"time"
)

// floodLines is how many calls that are refused over a quota have an audit line and a span, each second. Callers who send far too much
// are refused at little cost, and must not write the log full instead.
const floodLines = 20

// flood counts those of the second, and those that were left out.
type flood struct {
	mu      sync.Mutex
	begun   time.Time
	told    int
	omitted int64
}

// admits says whether one more is told of, and how many before it were not.
func (f *flood) admits(now time.Time) (omitted int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.begun) >= time.Second {
		f.begun, f.told = now, 0
	}
	if f.told >= floodLines {
		f.omitted++
		return 0, false
	}
	f.told++
	omitted, f.omitted = f.omitted, 0
	return omitted, true
}
