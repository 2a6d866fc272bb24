package mcptool

import (
	"context"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/reach"
)

// ending is a context that ends right after it was looked at so often.
type ending struct {
	context.Context //nolint:containedctx // it is one

	looks int
	end   func()
}

func (e *ending) Err() error {
	if e.looks--; e.looks == 0 {
		defer e.end()
	}
	return e.Context.Err()
}

// TestAnAttemptThatEndsAtAnyMomentLeavesTheShelfToWhoComesAfterIt: what it puts a moment later would stay when its tool is forgotten, and
// what it takes back may be that of the next attempt, which made the same of the same document.
func TestAnAttemptThatEndsAtAnyMomentLeavesTheShelfToWhoComesAfterIt(t *testing.T) {
	t.Parallel()
	errand := reach.Document{Subject: reach.Subject{Key: demo}, Purpose: "{}"}
	for name, tt := range map[string]struct {
		after func(w *world, made *definitions, stored []byte) error // once its context ended
		stays bool
	}{
		"the tool is forgotten": {after: func(w *world, _ *definitions, _ []byte) error {
			w.shelf.forget(demo)
			return nil
		}},
		"another attempt made the same": {stays: true, after: func(w *world, made *definitions, stored []byte) error {
			return w.shelf.put(context.Background(), demo, made.sha256, stored)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t)
			made, err := w.useDocument(t.Context(), errand, []byte(document))
			if err != nil {
				t.Fatal(err)
			}
			stored := w.shelf.get(demo, made.sha256)
			ended := 0
			for looks := range 50 {
				w.shelf.forget(demo)
				inner, cancel := context.WithCancel(t.Context())
				var comes error
				waits := false // for the shelf, which the attempt holds
				ctx := &ending{inner, looks, func() {
					cancel()
					ended++
					if waits = !w.shelf.mu.TryLock(); !waits {
						w.shelf.mu.Unlock()
						comes = tt.after(w, made, stored)
					}
				}}
				found, err := w.useDocument(ctx, errand, []byte(document))
				if waits {
					comes = tt.after(w, made, stored)
				}
				wantKept := inner.Err() == nil || tt.stays
				if isKept := w.shelf.get(demo, made.sha256) != nil; isKept != wantKept || comes != nil {
					t.Errorf("after %d looks at its context: kept: %t, want %t; %v, %v, %v", looks, isKept, wantKept, found, err, comes)
				}
				cancel()
			}
			if ended == 0 || ended == 50 {
				t.Errorf("%d of 50 ended meanwhile: want some", ended)
			}
		})
	}
}
