package front

import (
	"errors"
	"io"
	"net/http"
)

const (
	// free is how large a body is that takes nothing of the budget: a cancellation, or an answer to a backend, gets through when
	// nothing else does.
	free = 4 << 10
	// announced is the largest body that memory is taken for before it is there.
	announced = 64 << 10
)

var errBodyTooLarge = errors.New("the body is larger than allowed")

// body reads a request's body. What it takes of the budget for bodies it takes before it reads, and as the body grows: what is only
// announced costs nobody anything. It is given back with the visit's end.
func (v *visit) body() (body []byte, status int, err error) {
	length, most := v.r.ContentLength, int64(v.limits.Body)
	if length > most {
		return nil, http.StatusRequestEntityTooLarge, errBodyTooLarge
	}
	size := length
	if length < 0 {
		size = free
	}
	size = min(size, announced)
	if status, err = v.afford(size); err != nil {
		return nil, status, err
	}
	body = make([]byte, 0, size)
	for int64(len(body)) != length {
		if len(body) == cap(body) {
			next := min(int64(2*cap(body)), most+1) // one more than allowed shows that there is more
			if length >= 0 {
				next = min(next, length)
			}
			if status, err = v.afford(next); err != nil {
				return nil, status, err
			}
			body = append(make([]byte, 0, next), body...)
		}
		n, err := v.r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if int64(len(body)) > most {
			v.options.Telemetry.Rejected("body")
			v.w.Header().Set("Connection", "close")
			return nil, http.StatusRequestEntityTooLarge, errBodyTooLarge
		}
		if errors.Is(err, io.EOF) && (length < 0 || int64(len(body)) == length) {
			return body, 0, nil
		}
		if err != nil {
			v.w.Header().Set("Connection", "close")
			return nil, http.StatusBadRequest, errors.New("the body ended early")
		}
	}
	_ = v.r.Body.Close() // so that the server does not look for more of it
	return body, 0, nil
}

// afford raises what the visit holds of the budget to size, in bytes.
func (v *visit) afford(size int64) (status int, err error) {
	more := int(size) - v.held
	if size <= free || more <= 0 {
		return 0, nil
	}
	if status, why := v.take(v.bodies, more); status != 0 {
		v.w.Header().Set("Retry-After", "1")
		v.w.Header().Set("Connection", "close")
		return status, errors.New(why)
	}
	v.held += more
	return 0, nil
}

// release gives back what the visit holds of the budget for bodies.
func (v *visit) release() {
	if v.held > 0 {
		v.bodies.give(v.caller, v.held)
		v.held = 0
	}
}
