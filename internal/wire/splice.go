package wire

// editExtra is more than what one edit writes beside its key and value: quotes, colon, comma, null, and the `,"params":{}`
// and `"_meta":{}` around it.
const editExtra = 48

// With returns a copy of m with edits made in their order, by splice: every other byte is as it was. An edit for a
// part that messages of this kind do not have changes nothing.
func (m *Message) With(edits ...Edit) *Message {
	size := len(m.Raw)
	for i := range edits {
		size += 6*len(edits[i].key) + len(edits[i].value) + editExtra
	}
	s := splicer{out: make([]byte, 0, size), edits: edits}
	out := &Message{Kind: m.Kind, Method: m.Method}
	from := 0
	if edit := s.last(0, inIDValue, ""); edit != unchanged && m.Kind == Response && m.at[inID].end == 0 {
		s.write(`{"id":`)
		out.at[inID] = s.value(nil, edit)
		s.write(",")
		from = 1
	}
	order, n := m.inOrder()
	for _, name := range order[:n] {
		at := m.at[name]
		s.copy(m.Raw[from:at.start])
		from = int(at.end)
		out.at[name] = s.part(m.Raw[at.start:at.end], name)
		if name == inMethod && m.at[inParams].end == 0 && s.sets(0, inParamsObject) {
			s.write(`,"params":`)
			out.at[inParams] = s.object(nil, 0, inParamsObject)
		}
	}
	s.copy(m.Raw[from:])
	out.take(s.out)
	if out.in = m.in; s.touches(0, inParamsObject) {
		out.in = [paramsLen]span{}
		out.find()
	}
	return out
}

// inOrder returns the members of the envelope that m has, in the order of its text.
func (m *Message) inOrder() (order [envelopeLen]int, n int) {
	for name, at := range m.at {
		if at.end == 0 {
			continue
		}
		i := n
		for ; i > 0 && m.at[order[i-1]].start > at.start; i-- {
			order[i] = order[i-1]
		}
		order[i] = name
		n++
	}
	return order, n
}

// splicer writes a message with edits made into memory that it never outgrows.
type splicer struct {
	out   []byte
	edits []Edit
}

// unchanged is no edit.
const unchanged = -1

func (s *splicer) write(text string) { s.out = append(s.out, text...) }

func (s *splicer) copy(text []byte) { s.out = append(s.out, text...) }

// since returns where that is what was written from start on.
func (s *splicer) since(start int) span {
	return span{uint32(start), uint32(len(s.out))} //nolint:gosec // messages are far smaller than 4 GiB
}

// part writes a member of the envelope.
func (s *splicer) part(old []byte, name int) span {
	switch name {
	case inID:
		return s.value(old, s.last(0, inIDValue, ""))
	case inParams:
		return s.object(old, 0, inParamsObject)
	case inResult:
		return s.object(old, 0, inResultObject)
	}
	return s.value(old, unchanged)
}

// value writes the value an edit sets, or the old one.
func (s *splicer) value(old []byte, edit int) span {
	start := len(s.out)
	if edit != unchanged {
		old = orNull(s.edits[edit].value)
	}
	s.copy(old)
	return s.since(start)
}

// object writes an object with the edits of a place made that are not before from. In place of what is no object an empty one
// is edited, if anything is set.
func (s *splicer) object(old []byte, from int, in place) span {
	start := len(s.out)
	if !s.touches(from, in) || !IsObject(old) && !s.sets(from, in) {
		s.copy(old)
		return s.since(start)
	}
	if !IsObject(old) {
		old = []byte("{}")
	}
	l := s.members(old, from, in)
	s.additions(old, from, in, l)
	s.copy(old[l.end:])
	return s.since(start)
}

// leftover is what members tells additions.
type leftover struct {
	end  int    // the offset after the last member of the old object
	some bool   // a member was written
	meta bool   // the old object has a _meta
	made uint64 // the edits, of the first 64, whose key the old object has
}

// has reports whether the old object has the key of an edit.
func (l *leftover) has(old []byte, edit int, key string) bool {
	if edit < 64 {
		return l.made>>edit&1 != 0
	}
	return Field(old, key) != nil
}

// members writes the members an object has, as far as they are left.
func (s *splicer) members(old []byte, from int, in place) (l leftover) {
	done := 0 // what is before was written or dropped
	l.end = 1
	for i := firstMember(old); i >= 0; {
		var m member
		if m, i = nextMember(old, i); m.end == 0 {
			break
		}
		inside := old[m.key+1 : m.keyEnd-1]
		edit := s.lastOf(from, in, inside)
		next := max(from, edit+1)
		deep := false
		if in.meta() != nowhere && insideIs(inside, metaKey) {
			l.meta, deep = true, s.touches(next, in.meta())
		}
		if edit != unchanged && edit < 64 {
			l.made |= 1 << edit
		}
		if edit != unchanged && s.edits[edit].remove {
			s.copy(old[done:l.end])
			done, l.end = m.end, m.end
			continue
		}
		if !l.some && done > 0 {
			done = m.key // the comma belonged to a member that is gone
		}
		l.some = true
		if edit != unchanged || deep {
			s.copy(old[done:m.start])
			s.member(old[m.start:m.end], edit, next, in, deep)
			done = m.end
		}
		l.end = m.end
	}
	s.copy(old[done:l.end])
	return l
}

// member writes the value of a member, as it was or as edit makes it. Deep says that it is the _meta of its object, and that there
// are edits of that, not before next.
func (s *splicer) member(old []byte, edit, next int, in place, deep bool) {
	if edit != unchanged {
		old = orNull(s.edits[edit].value)
	}
	if deep {
		s.object(old, next, in.meta())
		return
	}
	s.copy(old)
}

// additions writes the members that edits set and the object did not have.
func (s *splicer) additions(old []byte, from int, in place, l leftover) {
	add := func(key string) {
		if l.some {
			s.write(",")
		}
		l.some = true
		s.out = append(appendText(s.out, key), ':')
	}
	for i := from; i < len(s.edits); i++ {
		e := &s.edits[i]
		if e.place != in || e.remove || s.last(i+1, in, e.key) != unchanged || l.has(old, i, e.key) {
			continue
		}
		add(e.key)
		s.member(nil, i, i+1, in, e.key == metaKey && s.touches(i+1, in.meta()))
	}
	if in.meta() == nowhere || l.meta {
		return
	}
	if s.last(from, in, metaKey) == unchanged && s.sets(from, in.meta()) { // else it was written above
		add(metaKey)
		s.object(nil, from, in.meta())
	}
}

// last returns the last edit of a place and key that is not before from, or unchanged.
func (s *splicer) last(from int, in place, key string) int {
	for i := len(s.edits) - 1; i >= from; i-- {
		if s.edits[i].place == in && s.edits[i].key == key {
			return i
		}
	}
	return unchanged
}

// lastOf is last for the inside of a key as written.
func (s *splicer) lastOf(from int, in place, inside []byte) int {
	for i := len(s.edits) - 1; i >= from; i-- {
		if s.edits[i].place == in && insideIs(inside, s.edits[i].key) {
			return i
		}
	}
	return unchanged
}

// sets reports whether an edit that is not before from sets something in a place or its _meta.
func (s *splicer) sets(from int, in place) bool {
	for i := from; i < len(s.edits); i++ {
		if e := &s.edits[i]; e.isIn(in) && !e.remove {
			return true
		}
	}
	return false
}

// touches reports whether an edit that is not before from is about a place or its _meta.
func (s *splicer) touches(from int, in place) bool {
	for i := from; i < len(s.edits); i++ {
		if s.edits[i].isIn(in) {
			return true
		}
	}
	return false
}
