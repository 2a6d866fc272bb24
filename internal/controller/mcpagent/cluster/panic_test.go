package cluster

import (
	"context"
	"net/netip"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/fault"
)

func TestAPanicIsALookThatFailed(t *testing.T) {
	t.Parallel()
	w := &world{}
	s := w.source()
	s.opts.ReadPath = func(context.Context, string) ([]byte, error) { panic("what was read") }
	s.opts.Addresses = func(context.Context) ([]netip.AddrPort, error) { panic("what was read") }
	if s.look(t.Context()) {
		t.Error("it succeeded")
	}
	if got := s.Facts(); !got.Asked || got.IssuerError != fault.Err.Error() || got.APIServerError != fault.Err.Error() {
		t.Errorf("facts: %+v", got)
	}
}
