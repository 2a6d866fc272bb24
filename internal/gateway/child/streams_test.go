package child

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func TestWhatAStreamThatEndsDidNotPassOnWaitsForTheNext(t *testing.T) {
	t.Parallel()
	b := bare(t)
	s := b.own()
	notify := func(method string) { s.take(s.own, wire.NewNotification(method, nil)) }
	waiting := func() (methods []string) {
		for _, m := range s.mailed {
			methods = append(methods, m.Method)
		}
		return methods
	}
	notify(translate.ToolsListChanged)
	notify(translate.PromptsListChanged)
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := s.Listen(gone, nil, newRecorder()); err != nil {
		t.Fatal(err)
	}
	want := []string{translate.ToolsListChanged, translate.PromptsListChanged}
	if diff := cmp.Diff(want, waiting()); diff != "" {
		t.Errorf("what it had, -want +got:\n%s", diff)
	}
	ended := newQueue()
	ended.stop()
	s.streams = append(s.streams, ended) // by who looked before
	notify(translate.ResourcesListChanged)
	notify(methodLog)
	if diff := cmp.Diff(append(want, translate.ResourcesListChanged), waiting()); diff != "" {
		t.Errorf("and what came then, -want +got:\n%s", diff)
	}
}
