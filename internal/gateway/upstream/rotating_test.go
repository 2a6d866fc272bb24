package upstream

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestNewRequestsLeaveOldConnectionsAndWhatRunsThereGoesOn(t *testing.T) {
	var opened, closed atomic.Int64
	began, goOn := make(chan struct{}), make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(began)
			<-goOn
		}
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			opened.Add(1)
		case http.StateClosed:
			closed.Add(1)
		default: // of no interest
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	transport := &rotating{make: func() *http.Transport { return &http.Transport{} }, age: time.Hour}
	t.Cleanup(transport.CloseIdleConnections)
	get := func(path string) {
		request, err := http.NewRequestWithContext(testContext(t), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Error(err)
			return
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Error(err)
			return
		}
		if text, err := io.ReadAll(response.Body); err != nil || string(text) != path {
			t.Errorf("%s: %q, %v", path, text, err)
		}
		_ = response.Body.Close()
	}
	get("/one")
	get("/two")
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections for two requests one after the other", n)
	}
	slow := make(chan struct{})
	go func() {
		defer close(slow)
		get("/slow")
	}()
	select {
	case <-began:
	case <-slow:
		t.Fatal("the slow request did not arrive")
	}
	transport.now.Store(&generation{Transport: transport.now.Load().Transport, since: time.Now().Add(-2 * time.Hour)})
	get("/three")
	if n, gone := opened.Load(), closed.Load(); n != 2 || gone != 0 {
		t.Errorf("%d connections and %d of them closed after a request that came later", n, gone)
	}
	close(goOn)
	<-slow
	eventually(t, "the old connection is closed after its request", func() bool { return closed.Load() == 1 })
}
