package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// of returns an endpoint of a namespace.
func of(namespace, name string) Endpoint {
	return Endpoint{
		Subject: Subject{UID: types.UID(namespace + "/" + name), Key: types.NamespacedName{Namespace: namespace, Name: name}},
		Host:    name + "." + namespace, Port: "80", Security: Plain,
	}
}

func TestEndpointsOfOneNamespaceHoldNobodyElseUp(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err    error // of the hostile ones, after a long time
		edited bool  // every second
		before time.Duration
	}{
		"new ones that hang, and are edited again and again": {err: errBroken, edited: true},
		"new ones that hang":                   {err: errBroken},
		"ones that are reached slowly":         {before: 3 * time.Minute},
		"ones that are not reached, slowly":    {err: errBroken, before: 3 * time.Minute},
		"new ones that are reached but slowly": {edited: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				run(t, CheckerOptions{Dial: s.dial, Workers: 2, Interval: 10 * time.Second}, func(c *Checker, _ func() []string) {
					honest := of("honest", "a")
					s.set(honest.address(), tt.err) // of the same lane in the end
					c.Observe(honest)
					if tt.before == 0 {
						c.Forget(honest.Key)
					}
					var hostile []Endpoint
					for i := range 50 {
						e := of("hostile", fmt.Sprintf("h%d", i))
						s.slowly(e.address(), 9*time.Second)
						s.set(e.address(), tt.err)
						hostile = append(hostile, e)
						c.Observe(e)
					}
					<-time.After(tt.before + time.Minute)
					s.take(honest.address())
					c.Observe(honest)
					for second := range 135 {
						<-time.After(time.Second)
						for i := range hostile {
							if tt.edited {
								hostile[i].ClientCertificate = second%2 == 0
							}
							c.Observe(hostile[i])
						}
					}
					if got := s.take(honest.address()); len(got) == 0 {
						t.Error("it was not tried in more than two minutes")
					}
				})
			})
		})
	}
}

func TestAnEditEndsAnAttemptThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		told := 0
		run(t, CheckerOptions{Dial: s.dial, Ended: func(string) { told++ }}, func(c *Checker, _ func() []string) {
			e := of("team", "a")
			s.slowly(e.address(), 9*time.Second)
			c.Observe(e)
			<-time.After(time.Second)
			e.Port = "81"
			c.Observe(e)
			synctest.Wait()
			if v := c.Observe(e); v.Reason != "Reachable" || told != 1 {
				t.Errorf("verdict: %+v, %d attempts are counted", v, told)
			}
		})
	})
}

func TestAnEditEndsAnAttemptAtADatabaseThatSaysNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dialled := 0
		silent := func(context.Context, string, string) (net.Conn, error) {
			dialled++
			client, server := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, server) }()
			return client, nil
		}
		run(t, CheckerOptions{Dial: silent, Workers: 1}, func(c *Checker, _ func() []string) {
			e := of("team", "a")
			e.Security = PostgresTLS
			c.Observe(e)
			<-time.After(time.Second)
			e.Port = "5433"
			c.Observe(e)
			synctest.Wait()
			if dialled != 2 {
				t.Errorf("it was dialled %d times", dialled)
			}
			<-time.After(attemptTimeout)
			synctest.Wait()
			want := "a.team:5433 does not answer the TLS handshake in time"
			if v := c.Observe(e); v.Reason != "TLSFailed" || v.Message != want {
				t.Errorf("when its time is over: %+v", v)
			}
		})
	})
}

// TestFourDocumentsThatHangDoNotKeepAnotherFromBeingFetched, however often they are edited.
func TestFourDocumentsThatHangDoNotKeepAnotherFromBeingFetched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var honest time.Time
		f := makeFetcher(func(_ context.Context, _, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "honest") {
				mu.Lock()
				defer mu.Unlock()
				honest = time.Now()
				return nil, errBroken
			}
			client, _ := net.Pipe() // where nobody reads
			return client, nil
		})
		f.notify = func(context.Context, types.NamespacedName) {}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Start(ctx) }()
		observe := func(namespace, name, purpose string) {
			f.Observe(Document{Subject: of(namespace, name).Subject, URL: "http://" + namespace + ".example.com/", Purpose: purpose})
		}
		for i := range 4 {
			observe("hostile", fmt.Sprint(i), "")
		}
		<-time.After(time.Second)
		asked := time.Now()
		observe("honest", "a", "")
		for edit := range 40 {
			<-time.After(5 * time.Second)
			for i := range 4 {
				observe("hostile", fmt.Sprint(i), fmt.Sprint(edit))
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if honest.IsZero() || honest.Before(asked) {
			t.Error("it was not tried in 200 s")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestADocumentThatIsOfNoUseIsNotLookedAtTwice(t *testing.T) {
	t.Parallel()
	content, used := "bad", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) }))
	t.Cleanup(server.Close)
	f := makeFetcher(leadTo(server))
	use, why := f.opts.Use, error(nil)
	f.opts.Use = func(ctx context.Context, d Document, content []byte) (string, error) {
		used++
		if why != nil {
			return "", why
		}
		return use(ctx, d, content)
	}
	known := Fetched[string]{}
	for _, step := range []struct {
		content, problem string
		why              error
		used             int
	}{
		{"bad", "it is bad", nil, 1},
		{"bad", "it is bad", nil, 1},
		{"new", "", nil, 2},
		{"bad", "it is bad", nil, 3},
		{"bad", "it is bad", nil, 3},
		{"new", "", nil, 3},
		{"slow", "it takes long", Passing(errors.New("it takes long")), 4},
		{"slow", "", nil, 5},
	} {
		content, why = step.content, step.why
		known, _ = f.attempt(t.Context(), Document{URL: "http://docs.example.com/"}, known)
		if known.Problem != step.problem || used != step.used {
			t.Errorf("%s: problem %q after %d looks, want %q after %d", content, known.Problem, used, step.problem, step.used)
		}
	}
}

func TestNoErrorPassesAsNone(t *testing.T) {
	t.Parallel()
	if err := Passing(nil); err != nil {
		t.Errorf("it became %#v", err)
	}
}

func TestOneNamespaceKeepsAtMostHalfOfTheWorkersBusy(t *testing.T) {
	t.Parallel()
	for workers, want := range map[int]int{1: 1, 2: 1, 5: 2, 8: 4} {
		synctest.Test(t, func(t *testing.T) {
			s := newScript()
			run(t, CheckerOptions{Dial: s.dial, Workers: workers}, func(c *Checker, _ func() []string) {
				for i := range 20 {
					e := of("team", fmt.Sprint("e", i))
					s.slowly(e.address(), 3*time.Second)
					c.Observe(e)
				}
				synctest.Wait()
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.calls) != want {
					t.Errorf("of %d workers %d are busy, want %d", workers, len(s.calls), want)
				}
			})
		})
	}
}
