package front

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// without is a response without an end, and counts what was taken of it.
type without struct{ taken int }

func (w *without) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	w.taken += len(p)
	return len(p), nil
}

func TestOfAResponseThatItsClientDoesNotReadLittleIsHeld(t *testing.T) {
	t.Parallel()
	const most = 256 << 10
	for name, accepted := range map[string]acceptance{"an object": {json: true}, "a stream": {stream: true, streamFirst: true}} {
		for _, read := range []int{0, 1 << 20} {
			endless, given := &without{}, 0
			w := meanwhile{httptest.NewRecorder(), func() error {
				if given = endless.taken; given > read {
					return io.ErrClosedPipe // as of a connection that has taken nothing for the time to write
				}
				return nil
			}}
			r := &reply{acceptance: accepted, w: w, rc: *http.NewResponseController(w), limits: &Limits{KeepAlive: time.Hour}}
			if err := r.response(endless); err == nil {
				t.Errorf("%s: it ends well", name)
			}
			if held := endless.taken - read; held > most {
				t.Errorf("%s: %d bytes are held after %d were read", name, held, read)
			}
		}
	}
}
