package front

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/seal"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestWhatCannotBeSealedIsLeftOutTheLongestFirst(t *testing.T) {
	t.Parallel()
	of := func(bytes int) backend.Handle {
		return backend.Handle{Session: strings.Repeat("s", bytes), Version: "2025-11-25"}
	}
	for name, tc := range map[string]struct {
		handles map[string]backend.Handle
		left    []string
	}{
		"all fit":              {map[string]backend.Handle{"a": of(100), "b": of(200)}, []string{}},
		"one is too long":      {map[string]backend.Handle{"a": of(100), "b": of(1000), "c": of(200)}, []string{"b"}},
		"by the bytes written": {map[string]backend.Handle{"a": of(400), "b": {Session: strings.Repeat("<", 200), Version: "v"}}, []string{"b"}},
		"all are":              {map[string]backend.Handle{"a": of(1000), "b": of(1000)}, []string{"a", "b"}},
	} {
		p := passport{Version: "2025-11-25", Backends: tc.handles}
		raw, left, err := p.pack(1000)
		if err != nil || len(raw) > 1000 {
			t.Errorf("%s: %d bytes, %v", name, len(raw), err)
		}
		if diff := cmp.Diff(tc.left, namesIn(left)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, handle := range left {
			if handle.Version == "" {
				t.Errorf("%s: the session that was left out is lost", name)
			}
		}
	}
	p := passport{Info: json.RawMessage(`"` + strings.Repeat("i", 2000) + `"`)}
	if _, _, err := p.pack(1000); err == nil {
		t.Error("what cannot be sealed is")
	}
}

// wordy is a server of 2025-11-25 with long session ids.
type wordy struct {
	silent

	mu             sync.Mutex
	opened, closed int
}

func (w *wordy) Open(context.Context, backend.Client) (backend.Channel, backend.Handle, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened++
	return w, backend.Handle{Session: strings.Repeat("s", 4000), Version: "2025-11-25"}, nil
}

func (w *wordy) Resume(backend.Handle) (backend.Channel, error) { return w, nil }

func (w *wordy) Close(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed++
	return nil
}

func TestASessionAtManyBackendsWithLongIdsIsOpenedAndEndsAsOthers(t *testing.T) {
	t.Parallel()
	f, state, url := endpoint(t, &silent{})
	several, servers := state(table.Backend{Name: "none"}), make([]*wordy, maxOpened)
	several.Backends, several.Table.Backends = nil, nil
	for i := range servers {
		servers[i] = &wordy{}
		b := NewBackend(table.Backend{Name: fmt.Sprintf("b%d", i)}, servers[i])
		b.describe(&backend.Description{Legacy: true, Initialize: json.RawMessage(`{"capabilities":{"tools":{}}}`)})
		b.onceAsked.Do(func() { close(b.asked) })
		several.Backends = append(several.Backends, b)
		several.Table.Backends = append(several.Table.Backends, b.Config)
	}
	f.Use(several)
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{}}}`
	id, answer := ask(t, http.MethodPost, url, nil, initialize)
	if id == "" || len(id) > seal.MaxLength || !strings.Contains(answer, `"result"`) {
		t.Fatalf("an id of %d bytes: %s", len(id), answer)
	}
	headers := map[string]string{headerSession: id, headerVersion: "2025-11-25"}
	if _, answer := ask(t, http.MethodPost, url, headers, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); !strings.Contains(answer, `"result":{}`) {
		t.Error(answer)
	}
	ask(t, http.MethodDelete, url, headers, "")
	for _, server := range servers {
		await(t, func() bool {
			server.mu.Lock()
			defer server.mu.Unlock()
			return server.opened == 1 && server.closed == 1
		})
	}
}
