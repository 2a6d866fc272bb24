package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// StreamToModern passes the response of a legacy backend to a request of the method on as one for a modern client, without
// holding it: what is missing is added where the result object closes. A result that is no object, and everything the backend
// said itself, stays.
func StreamToModern(r io.Reader, method string) io.Reader {
	return &modernStream{source: r, method: method}
}

type modernStream struct {
	source  io.Reader
	method  string
	follow  follower
	has     [len(addedMembers)]bool
	done    bool   // nothing is left to change
	pending []byte // goes out before more is read
	err     error  // of source, goes out after pending
}

// Read implements [io.Reader].
func (s *modernStream) Read(p []byte) (int, error) {
	if len(s.pending) == 0 && s.err == nil {
		var n int
		n, s.err = s.source.Read(p)
		if n = s.pass(p[:n]); n > 0 {
			return n, nil
		}
	}
	if n := copy(p, s.pending); n > 0 || s.err == nil {
		s.pending = s.pending[n:]
		return n, nil
	}
	return 0, s.err
}

// pass returns how many bytes go out as they are. The rest, changed, is in pending.
func (s *modernStream) pass(p []byte) int {
	for at := 0; !s.done; {
		n, e := s.follow.next(p[at:])
		at += n
		switch {
		case e == nothing:
			return len(p)
		case e == innerMember && s.follow.top == "result":
			s.note(s.follow.inner)
		case e == innerEnd && s.follow.top == "result":
			s.done = true
			s.pending = append(s.missing(), p[at:]...)
			return at
		case e == innerMember && s.follow.top == "error" && s.follow.inner == "code" && s.method == resourcesRead:
			s.done = true
			s.pending = s.withNewCode(p[at:])
			return at
		}
	}
	return len(p)
}

func (s *modernStream) note(key string) {
	for i, member := range addedMembers {
		if member.key == key {
			s.has[i] = true
		}
	}
}

// missing returns the members to add, ready to stand before the closing brace.
func (s *modernStream) missing() []byte {
	var out []byte
	for i, member := range addedMembers[:added(s.method)] {
		if s.has[i] {
			continue
		}
		if s.follow.members > 0 || len(out) > 0 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), member.key...), `":`...), member.value...)
	}
	return out
}

// withNewCode takes what follows the colon after an error's code, and replaces the one that means "no such resource" by the new
// one, reading on as far as that takes.
func (s *modernStream) withNewCode(p []byte) []byte {
	const enough = 16
	old := []byte(strconv.Itoa(wire.CodeResourceNotFoundLegacy))
	out := bytes.Clone(p)
	if len(out) < enough && s.err == nil {
		more := make([]byte, enough-len(out))
		n, err := io.ReadFull(s.source, more)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		out, s.err = append(out, more[:n]...), err
	}
	number := bytes.TrimLeft(out, " \t\r\n")
	code, rest := number[:min(len(old), len(number))], number[min(len(old), len(number)):]
	if bytes.Equal(code, old) && (len(rest) == 0 || strings.IndexByte(",} \t\r\n", rest[0]) >= 0) {
		copy(code, strconv.Itoa(wire.CodeInvalidParams)) // as long as the old one
	}
	return out
}

// StreamToLegacy passes the response of a modern backend on as one for a legacy client, without holding it: at most its first
// 64 KiB are, until it is clear that the result is a complete one. One that asks the client to go on in a way its version does
// not have becomes [CannotCarry]. The id is that of the request.
func StreamToLegacy(r io.Reader, id json.RawMessage) io.Reader {
	return &legacyStream{source: r, id: id}
}

// maxHead bounds what is held of a response. A result that asks for input has nothing large before it says so.
const maxHead = 64 << 10

type legacyStream struct {
	source  io.Reader
	id      json.RawMessage
	decided bool
	pending []byte // goes out before more is read
	err     error  // of source, goes out after pending
}

// Read implements [io.Reader].
func (s *legacyStream) Read(p []byte) (int, error) {
	if !s.decided {
		s.decide()
	}
	if n := copy(p, s.pending); n > 0 {
		s.pending = s.pending[n:]
		return n, nil
	}
	if s.err != nil {
		return 0, s.err
	}
	return s.source.Read(p)
}

// decide reads the head of the response and finds out whether it may pass.
func (s *legacyStream) decide() {
	s.decided = true
	var f follower
	head := make([]byte, 0, 2<<10)
	for v := undecided; v == undecided && s.err == nil && len(head) < maxHead; {
		if len(head) == cap(head) {
			head = append(head, make([]byte, len(head))...)[:len(head)]
		}
		var n int
		n, s.err = s.source.Read(head[len(head):cap(head)])
		if v = judge(&f, head[len(head):len(head)+n]); v == asksForInput {
			s.refuse()
			return
		}
		head = head[:len(head)+n]
	}
	s.pending = head
}

// refuse puts an error in the response's place, whose rest is read and dropped.
func (s *legacyStream) refuse() {
	s.pending = CannotCarry(s.id).Raw
	if s.err == nil {
		_, s.err = io.Copy(io.Discard, s.source)
	}
	if s.err == nil {
		s.err = io.EOF
	}
}

// verdict is what is known of a result.
type verdict int

const (
	undecided verdict = iota
	passes
	asksForInput
)

// judge goes through the next piece of a response. Content never comes with a request for input, so what has some is complete
// without a look at the rest.
func judge(f *follower, p []byte) verdict {
	for {
		n, e := f.next(p)
		p = p[n:]
		result := f.top == "result"
		switch {
		case e == nothing:
			return undecided
		case e == topMember && f.top == "error",
			e == innerEnd && result,
			e == innerNested && result && (f.inner == "content" || f.inner == "contents" || f.inner == "messages"),
			e == innerText && result && f.inner == "resultType" && wire.TextIs(f.value, "complete"):
			return passes
		case e == innerText && result && f.inner == "resultType":
			return asksForInput
		}
	}
}
