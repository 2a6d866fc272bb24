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

// TestNothingIsKeptOfAToolThatIsForgottenAtAnyMoment: what was made of its document a moment later would stay.
func TestNothingIsKeptOfAToolThatIsForgottenAtAnyMoment(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	forgotten := 0
	for looks := range 50 {
		inner, cancel := context.WithCancel(t.Context())
		ctx := &ending{inner, looks, func() {
			cancel()
			w.shelf.forget(demo)
			forgotten++
		}}
		found, err := w.useDocument(ctx, reach.Document{Subject: reach.Subject{Key: demo}, Purpose: "{}"}, []byte(document))
		if isGone := inner.Err() != nil; (w.shelf.parcels.Bytes() == 0) != isGone {
			t.Errorf("forgotten after %d looks: %t; %v, %v, %d bytes are kept", looks, isGone, found, err, w.shelf.parcels.Bytes())
		}
		w.shelf.forget(demo)
		cancel()
	}
	if forgotten == 0 || forgotten == 50 {
		t.Errorf("%d of 50 were forgotten meanwhile: want some", forgotten)
	}
}
