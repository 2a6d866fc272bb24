package translate

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// event is what a follower comes across.
type event int

const (
	// nothing is the end of the bytes at hand.
	nothing event = iota
	// topMember is the colon of a member of the message; its name is in top.
	topMember
	// innerMember is the colon of a member of a member that is an object; its name is in inner.
	innerMember
	// innerText is the end of a string that is the value of such a member; it is in value.
	innerText
	// innerNested is the beginning of an object or array within an object or array within such a member.
	innerNested
	// innerEnd is the brace that closes an object that is a member of the message, not consumed yet.
	innerEnd
)

// follower follows a JSON-RPC message as its bytes pass, in pieces of any size, without holding them. The text may be anything: in
// invalid JSON it finds something or nothing, and bytes pass all the same.
type follower struct {
	top, inner string
	value      json.RawMessage // of innerText, with quotes

	depth          int  // of containers
	inText, escape bool // inside a string; after a backslash in it
	object         bool // the container at depth 2 is an object
	wantsKey       bool // the next string at depth 1 or 2 is a key
	atEnd          bool // innerEnd was told of the brace at hand
	members        int  // of the object at depth 2
	text           []byte
}

// maxText is enough for every name and value that is looked for, escapes included. Longer ones are none of them.
const maxText = 128

// next consumes bytes up to the next event and returns how many.
func (f *follower) next(p []byte) (int, event) {
	for i := 0; i < len(p); i++ {
		if f.inText {
			n, ended := f.inside(p[i:])
			if i += n - 1; ended && f.depth == 2 && f.object && !f.wantsKey {
				f.value = f.quoted()
				return i + 1, innerText
			}
			continue
		}
		switch p[i] {
		case '"':
			f.inText, f.text = true, f.text[:0]
		case ':', ',':
			if e := f.separator(p[i]); e != nothing {
				return i + 1, e
			}
		case '{', '[':
			if f.open(p[i]) {
				return i + 1, innerNested
			}
		case '}', ']':
			if f.depth == 2 && f.object && p[i] == '}' && !f.atEnd {
				f.atEnd = true
				return i, innerEnd
			}
			f.depth--
			f.atEnd, f.wantsKey = false, false
		}
	}
	return len(p), nothing
}

// inside consumes bytes of a string, at most its closing quote. It looks for the next quote once, and for backslashes as far as that,
// so that each byte is looked at twice at most.
func (f *follower) inside(p []byte) (n int, ended bool) {
	for quote := -1; n < len(p) && !ended; {
		if f.escape {
			f.escape = false
			n++
			continue
		}
		if quote < n {
			if quote = bytes.IndexByte(p[n:], '"'); quote < 0 {
				quote = len(p)
			} else {
				quote += n
			}
		}
		if slash := bytes.IndexByte(p[n:quote], '\\'); slash >= 0 {
			f.escape = true
			n += slash + 1
			continue
		}
		ended = quote < len(p)
		n = min(quote+1, len(p))
	}
	f.inText = !ended
	if f.depth <= 2 && len(f.text) <= maxText {
		part := p[:n]
		if ended {
			part = p[:n-1]
		}
		f.text = append(f.text, part[:min(len(part), maxText+1-len(f.text))]...)
	}
	return n, ended
}

func (f *follower) open(bracket byte) (nested bool) {
	f.depth++
	if f.depth <= 2 {
		f.object = bracket == '{'
		f.wantsKey = f.object
		f.members = 0
	}
	return f.depth == 4
}

// separator takes the colon after a key, or the comma after a value.
func (f *follower) separator(b byte) event {
	if f.depth < 1 || f.depth > 2 {
		return nothing
	}
	if b == ',' {
		f.wantsKey = true
		return nothing
	}
	if !f.wantsKey {
		return nothing
	}
	f.wantsKey = false
	if f.depth == 1 {
		f.top = f.name()
		return topMember
	}
	f.inner = f.name()
	f.members++
	return innerMember
}

// quoted returns the last string, nil if it is a long one.
func (f *follower) quoted() json.RawMessage {
	if len(f.text) > maxText {
		return nil
	}
	return append(append([]byte{'"'}, f.text...), '"')
}

// name returns what the last string stands for, "" if it is a long one.
func (f *follower) name() string {
	name, _ := wire.String(f.quoted())
	return name
}
