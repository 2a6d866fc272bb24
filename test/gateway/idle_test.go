package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// maxIdle is what a gateway with one backend and no clients may have resident, in bytes: what is its own (RssAnon) and the pages of
// its binary (RssFile). Most are the latter, of which little is needed at rest, but the system maps them in large pieces.
const maxIdle = 12_000_000

// atRest is how long after its start a gateway is.
const atRest = 15 * time.Second

func TestAnIdleGatewayIsSmall(t *testing.T) {
	handler := both(newServer("one"))
	listened := make(chan struct{})
	var once sync.Once
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(body, []byte("subscriptions/listen")) {
			once.Do(func() { close(listened) })
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
	}))
	g := launch.Serve(t, binary, []table.Backend{{Name: "one", URL: url}})
	select {
	case <-listened: // which is the last that it does of itself
	case <-time.After(time.Minute):
		t.Fatal("it does not listen to its backend")
	}
	// What its start took it gives back 5 s later, and maps again what it needs at rest. The system gives garbage back in the background,
	// later on a busy machine: so the least of several looks counts.
	least, listens := math.MaxInt, time.Now()
	launch.Await(t, func() error {
		if time.Since(listens) < atRest {
			return errors.New("it only just began to be at rest")
		}
		if least = min(least, resident(t, g)); least > maxIdle {
			return fmt.Errorf("%d bytes are resident, at most %d are agreed on", least, maxIdle)
		}
		return nil
	})
	t.Logf("%d bytes are resident", least)
}

// resident is what a gateway has resident, in bytes.
func resident(t *testing.T, g *launch.Gateway) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.Process.Process.Pid))
	if os.IsNotExist(err) {
		t.Skip("the system does not tell of memory in /proc")
	}
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kib int
	if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
