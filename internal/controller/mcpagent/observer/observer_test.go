package observer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// gateway is one that answers as its fields say.
type gateway struct {
	mu sync.Mutex

	status table.Status
	code   int  // default: 200
	down   bool // nobody listens
	mute   bool // somebody does, and says nothing
	text   string

	asked []time.Duration // since the begin of the test
	began time.Time
	token string
}

// world is gateways by address, an observer of them, and how often somebody was woken.
type world struct {
	gateways map[string]*gateway
	observer *Observer
	woken    atomic.Int32
}

func newWorld(t *testing.T, gateways map[string]*gateway) *world {
	t.Helper()
	w := &world{gateways: gateways}
	for _, g := range gateways {
		g.began = time.Now()
	}
	w.observer = New(Options{
		Transport: func(pod probe.Pod) *http.Transport {
			return &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
				return w.gateways[pod.Address].accept()
			}}
		},
		Changed: func(context.Context, types.NamespacedName) { w.woken.Add(1) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.observer.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

// set changes how it answers.
func (g *gateway) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

// times are when it was asked.
func (g *gateway) times() []time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.asked)
}

func (g *gateway) accept() (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, time.Since(g.began).Round(time.Millisecond))
	if g.down {
		return nil, errors.New("connection refused at port 49152")
	}
	ours, theirs := net.Pipe()
	if g.mute {
		return ours, nil
	}
	go func() {
		defer func() { _ = theirs.Close() }()
		request, err := http.ReadRequest(bufio.NewReader(theirs))
		if err != nil {
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.token = request.Header.Get("Authorization")
		body, err := json.Marshal(g.status)
		if err != nil {
			return
		}
		if g.text != "" {
			body = []byte(g.text)
		}
		code := g.code
		if code == 0 {
			code = http.StatusOK
		}
		_, _ = fmt.Fprintf(theirs, "HTTP/1.1 %d x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", code, len(body), body)
	}()
	return ours, nil
}

// told is an agent with a pod for each of the world's gateways, which should serve a table.
func (w *world) tell(revision string, addresses ...string) {
	agent := Agent{UID: "uid", Key: types.NamespacedName{Namespace: "team", Name: "helper"}, Token: "secret", Revision: revision}
	for _, address := range addresses {
		agent.Pods = append(agent.Pods, probe.Pod{UID: types.UID(address), Name: "pod-" + address, Address: address})
	}
	w.observer.Observe(agent)
}

// after lets time pass, and whatever is under way come to rest.
func after(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble of synctest, where time is not waited for
	synctest.Wait()
}

func serving(revision string, states ...table.BackendState) table.Status {
	status := table.Status{Revision: revision}
	for i, state := range states {
		status.Backends = append(status.Backends, table.BackendStatus{Name: fmt.Sprintf("server-%d", i), State: state, Since: time.Now()})
	}
	return status
}

func TestAGatewayIsAskedOftenUntilItServesTheNewestTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{status: serving("old", table.BackendReady)}
		w := newWorld(t, map[string]*gateway{"a": g})
		w.tell("new", "a")
		after(750 * time.Millisecond)
		want := []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond}
		if diff := cmp.Diff(want, g.times()); diff != "" || w.woken.Load() != 1 || g.token != "Bearer secret" {
			t.Errorf("woken %d times, asked with %q (-want +got)\n%s", w.woken.Load(), g.token, diff)
		}
		g.set(func() { g.status = serving("new", table.BackendUnknown) })
		after(time.Second)
		g.set(func() { g.status = serving("new", table.BackendReady) })
		after(5 * time.Second)
		settled := len(g.times())
		after(13 * time.Second)
		if w.woken.Load() != 3 || len(g.times()) > settled+1 {
			t.Errorf("woken %d times, want 3; asked %d times in 13 s of rest", w.woken.Load(), len(g.times())-settled)
		}
		after(time.Minute)
		if asked := len(g.times()) - settled; w.woken.Load() != 3 || asked < 4 || asked > 6 {
			t.Errorf("at rest woken %d times, asked %d times in 73 s", w.woken.Load()-3, asked)
		}
		w.tell("newer", "a")
		synctest.Wait()
		if last := g.times()[len(g.times())-1]; last != time.Since(g.began).Round(time.Millisecond) {
			t.Errorf("another table has it asked at once, it was last asked at %s", last)
		}
	})
}

func TestAGatewayThatSaysWhyItRefusesATableIsNotPressed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{status: table.Status{Revision: "old", TableError: "it is too new"}}
		w := newWorld(t, map[string]*gateway{"a": g})
		w.tell("new", "a")
		after(10 * time.Second)
		if len(g.times()) != 1+refusals || w.woken.Load() != 1 {
			t.Errorf("asked %d times, woken %d times", len(g.times()), w.woken.Load())
		}
		after(time.Minute)
		if asked := len(g.times()) - 1 - refusals; asked > 5 {
			t.Errorf("asked %d times in a minute of refusal", asked)
		}
		w.tell("newer", "a")
		after(50 * time.Millisecond) // what it says still is about the table before
		g.set(func() { g.status = serving("newer", table.BackendReady) })
		after(100 * time.Millisecond)
		if w.woken.Load() != 2 {
			t.Errorf("it serves the table after that one, and nobody knows: woken %d times", w.woken.Load())
		}
	})
}

// TestATableThatComesWhileAGatewayIsAskedForTheOneBeforeHasItAskedAtOnceAgain, though it had failed for long.
func TestATableThatComesWhileAGatewayIsAskedForTheOneBeforeHasItAskedAtOnceAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{mute: true}
		w := newWorld(t, map[string]*gateway{"a": g})
		w.tell("r", "a")
		after(10 * time.Minute)
		w.tell("newer", "a")
		after(time.Second) // it is being asked
		w.tell("newest", "a")
		g.set(func() { g.mute, g.status = false, serving("newest", table.BackendReady) })
		after(timeout)
		if answer := w.observer.Answers("uid")[0]; answer.Err != nil || answer.Status == nil || answer.Status.Revision != "newest" {
			t.Errorf("it is not asked for the newest table: %+v", answer)
		}
	})
}

func TestAFailureIsToldWhenItRepeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		good, silent := &gateway{status: serving("r", table.BackendReady)}, &gateway{down: true}
		w := newWorld(t, map[string]*gateway{"a": good, "b": silent})
		w.tell("r", "a", "b")
		after(1400 * time.Millisecond)
		answers := w.observer.Answers("uid")
		if !answers[0].Known || answers[0].Err != nil || answers[1].Known {
			t.Errorf("after two failures of a new pod: %+v", answers)
		}
		after(200 * time.Millisecond)
		const want = "gateway pod pod-b does not answer: does a NetworkPolicy keep the operator out?"
		if answers = w.observer.Answers("uid"); !answers[1].Known || answers[1].Err == nil || answers[1].Err.Error() != want {
			t.Errorf("after three failures of a new pod: %+v", answers[1])
		}
		woken := w.woken.Load()
		after(10 * time.Minute)
		if w.woken.Load() != woken || len(silent.times()) > 20 {
			t.Errorf("a pod that stays away wakes %d times, and is asked %d times in ten minutes", w.woken.Load()-woken, len(silent.times()))
		}
		good.set(func() { good.code = http.StatusBadGateway })
		after(17 * time.Second)
		answers = w.observer.Answers("uid")
		if answers[0].Err == nil || answers[0].Status == nil || answers[0].Status.Revision != "r" {
			t.Errorf("after two failures of a good pod: %+v", answers[0])
		}
		good.set(func() { good.code = 0 })
		after(time.Minute)
		if answers = w.observer.Answers("uid"); answers[0].Err != nil {
			t.Errorf("it is well again: %+v", answers[0])
		}
	})
}

func TestWhatIsNoStatusIsToldWithoutWhatWasSent(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		gateway *gateway
		want    string
	}{
		"no JSON":            {&gateway{text: "<html>secret</html>"}, "gateway pod pod-a answered what is no status"},
		"too much":           {&gateway{text: `{"revision":"` + strings.Repeat("x", maxStatus) + `"}`}, "gateway pod pod-a answered what is no status"},
		"another token":      {&gateway{code: http.StatusUnauthorized}, "gateway pod pod-a does not know the operator's token yet"},
		"a redirect is none": {&gateway{code: http.StatusFound}, "gateway pod pod-a answered its status with HTTP status 302"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, map[string]*gateway{"a": tt.gateway})
				w.tell("r", "a")
				after(3 * time.Second)
				answer := w.observer.Answers("uid")[0]
				if answer.Err == nil || answer.Err.Error() != tt.want {
					t.Errorf("got %v, want %q", answer.Err, tt.want)
				}
			})
		})
	}
}

func TestPodsAndAgentsThatGoAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := &gateway{status: serving("r")}, &gateway{status: serving("r")}
		w := newWorld(t, map[string]*gateway{"a": a, "b": b})
		w.tell("r", "a", "b")
		synctest.Wait()
		answers := w.observer.Answers("uid")
		if len(answers) != 2 || answers[0].Status != answers[1].Status {
			t.Errorf("equal answers are kept twice: %+v", answers)
		}
		w.tell("r", "b")
		asked := len(a.times())
		after(time.Minute)
		if len(a.times()) != asked || len(w.observer.Answers("uid")) != 1 {
			t.Errorf("a pod that is gone was asked %d times", len(a.times())-asked)
		}
		w.observer.Forget(types.NamespacedName{Namespace: "team", Name: "helper"})
		asked = len(b.times())
		after(time.Minute)
		if len(b.times()) != asked || w.observer.Answers("uid") != nil {
			t.Errorf("the pod of an agent that is gone was asked %d times", len(b.times())-asked)
		}
	})
}
