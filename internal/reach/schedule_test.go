package reach

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// script is a dialer that fails or not as told, and notes when it was asked.
type script struct {
	mu    sync.Mutex
	err   map[string]error // by address
	calls map[string][]time.Duration
	slow  map[string]time.Duration
	begin time.Time
}

func newScript() *script {
	return &script{err: map[string]error{}, calls: map[string][]time.Duration{}, slow: map[string]time.Duration{}, begin: time.Now()}
}

func (s *script) dial(ctx context.Context, _, address string) (net.Conn, error) {
	s.mu.Lock()
	s.calls[address] = append(s.calls[address], time.Since(s.begin))
	err, slow := s.err[address], s.slow[address]
	s.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	_ = server.Close()
	return client, nil
}

func (s *script) set(address string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err[address] = err
}

// slowly makes an address take its time.
func (s *script) slowly(address string, takes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow[address] = takes
}

// take returns when an address was asked since the last call, in seconds.
func (s *script) take(address string) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var seconds []int
	for _, at := range s.calls[address] {
		seconds = append(seconds, int(at.Seconds()))
	}
	delete(s.calls, address)
	return seconds
}

// run runs a checker in a bubble until the test function returns.
func run(t *testing.T, opts CheckerOptions, test func(c *Checker, woken func() []string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var woken []string
	opts.Notify = func(_ context.Context, key types.NamespacedName) {
		mu.Lock()
		defer mu.Unlock()
		woken = append(woken, key.Name)
	}
	c := NewChecker(opts)
	done := make(chan error)
	go func() { done <- c.Start(ctx) }()
	test(c, func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		taken := woken
		woken = nil
		return taken
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func makeEndpoint(name string) Endpoint {
	return Endpoint{
		Subject: Subject{UID: types.UID("uid-" + name), Key: types.NamespacedName{Namespace: "team", Name: name}},
		Host:    name + ".example.com", Port: "80", Security: Plain,
	}
}

func TestWhatIsReachedIsTriedEveryMinuteAndWakesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		run(t, CheckerOptions{Dial: s.dial}, func(c *Checker, woken func() []string) {
			if v := c.Observe(makeEndpoint("a")); v.Known {
				t.Errorf("known before it was tried: %+v", v)
			}
			if got := woken(); !slices.Equal(got, []string{"a"}) {
				t.Errorf("woken: %v", got)
			}
			if v := c.Observe(makeEndpoint("a")); v.Reason != "Reachable" {
				t.Errorf("verdict: %+v", v)
			}
			<-time.After(5 * time.Minute)
			if n := len(s.take("a.example.com:80")); n < 5 || n > 6 {
				t.Errorf("tried %d times in five minutes", n)
			}
			if got := woken(); got != nil {
				t.Errorf("woken though nothing changed: %v", got)
			}
		})
	})
}

func TestWhatIsNotReachedIsTriedLessAndLess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("a.example.com:80", errBroken)
		run(t, CheckerOptions{Dial: s.dial}, func(c *Checker, woken func() []string) {
			c.Observe(makeEndpoint("a"))
			<-time.After(8 * time.Minute)
			if got, want := s.take("a.example.com:80"), []int{0, 1, 3, 7, 15, 31, 63, 127, 247, 367}; !slices.Equal(got, want) {
				t.Errorf("tried at %v s, want %v", got, want)
			}
			s.set("a.example.com:80", nil)
			<-time.After(2 * time.Minute)
			if got := woken(); !slices.Equal(got, []string{"a", "a"}) {
				t.Errorf("woken: %v, want once by the failure and once by the success", got)
			}
			if v := c.Observe(makeEndpoint("a")); v.Reason != "Reachable" {
				t.Errorf("verdict: %+v", v)
			}
		})
	})
}

func TestAnotherEndpointOfTheSameObjectIsTriedAtOnceAndAnOldAnswerIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.slowly("a.example.com:80", 3*time.Second)
		s.set("a.example.com:80", errBroken)
		run(t, CheckerOptions{Dial: s.dial}, func(c *Checker, woken func() []string) {
			e := makeEndpoint("a")
			c.Observe(e)
			<-time.After(time.Second)
			e.Port = "81"
			if v := c.Observe(e); v.Known {
				t.Errorf("known before it was tried: %+v", v)
			}
			<-time.After(3 * time.Second)
			if got := woken(); !slices.Equal(got, []string{"a"}) {
				t.Errorf("woken: %v", got)
			}
			if v := c.Observe(e); v.Message != "a.example.com:81 accepts connections" {
				t.Errorf("verdict: %+v", v)
			}
		})
	})
}

func TestDeadEndpointsDelayNoNewOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		run(t, CheckerOptions{Dial: s.dial, Workers: 2}, func(c *Checker, _ func() []string) {
			for i := range 50 {
				e := makeEndpoint("dead" + string(rune('a'+i)))
				s.slowly(e.address(), 5*time.Second)
				s.set(e.address(), errBroken)
				c.Observe(e)
			}
			<-time.After(7 * time.Second) // most of them wait for their first attempt
			asked := time.Since(s.begin)
			c.Observe(makeEndpoint("new"))
			<-time.After(5 * time.Second)
			if got := s.take("new.example.com:80"); len(got) != 1 || got[0] > int(asked.Seconds())+4 {
				t.Errorf("asked for at %v, tried at %v s", asked, got)
			}
			<-time.After(5 * time.Minute) // all have failed, and go on failing
			asked = time.Since(s.begin)
			c.Observe(makeEndpoint("newer"))
			synctest.Wait()
			if got := s.take("newer.example.com:80"); !slices.Equal(got, []int{int(asked.Seconds())}) {
				t.Errorf("asked for at %v, tried at %v s", asked, got)
			}
		})
	})
}

func TestWhatIsForgottenIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		run(t, CheckerOptions{Dial: s.dial}, func(c *Checker, woken func() []string) {
			e := makeEndpoint("a")
			c.Observe(e)
			woken()
			again := e
			again.UID = "uid-again"
			c.Observe(again) // deleted and created again
			woken()
			s.take(e.address())
			c.Forget(e.Key)
			<-time.After(10 * time.Minute)
			if got := s.take(e.address()); got != nil {
				t.Errorf("tried at %v s", got)
			}
			if len(c.entries)+len(c.uids) != 0 {
				t.Errorf("kept: %v, %v", c.entries, c.uids)
			}
		})
	})
}
