package front

import (
	"context"

	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
)

// unseen returns which lists are others than those that the client was told of last. What it knew at initialize is in its id, so that
// another replica can tell.
func (s *session) unseen(now catalog.Mark) catalog.Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := catalog.ReadMark(s.Seen)
	if s.seen != nil {
		before, known = *s.seen, true
	}
	if !known {
		return catalog.Changes{}
	}
	return now.Since(before)
}

// told notes that the client was told of lists, on the stream whose context is ctx. One that has ended meanwhile, because the client came
// back by another, may have told nobody: then the other tells.
func (s *session) told(ctx context.Context, lists catalog.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil {
		s.seen = &lists
	}
}

// seen is the mark of the lists that a session begins with; nil if that is not known: of a lone backend it has the list itself, before
// there may be a catalog.
func (v *visit) seen() []byte {
	if b := v.lone(v.state); b != nil && b.source().Catalog == nil {
		return nil
	}
	return v.view.Load().Mark().Bytes()
}
