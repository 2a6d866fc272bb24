package front

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestABackendOfSeveralIsHeardAsSoonAsItsSessionIsOpened(t *testing.T) {
	t.Parallel()
	f, state, _ := endpoint(t, &silent{})
	synctest.Test(t, func(t *testing.T) {
		b := &silent{listening: make(chan struct{}, 1)}
		several := state(table.Backend{Name: "other"})
		several.Backends = append(several.Backends, NewBackend(table.Backend{Name: "b"}, b))
		s := f.sessions.enter(keyOf("1"), "a", passport{})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		f.Use(several)
		st := newStream(&visit{Front: f, state: several, r: request}, nil, s)
		st.news = f.hub.join(nil, nil)
		defer st.news.leave()
		st.attend(t.Context())
		select {
		case <-b.listening:
			t.Fatal("a session was opened that nobody called")
		case <-time.After(lastRelayPause / 2):
		}
		opened := time.Now()
		s.linkTo("b").use(several.Backends[1], b, backend.Handle{Version: "2025-11-25"}, true)
		<-b.listening
		if late := time.Since(opened); late > firstRelayPause {
			t.Errorf("it was heard %s late", late)
		}
	})
}
