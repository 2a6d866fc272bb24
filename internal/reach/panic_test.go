package reach

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcp-operator/mcp-operator/internal/fault"
)

// during runs workers while something is done.
func during(t *testing.T, start func(context.Context) error, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- start(ctx) }()
	do()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func breaks(context.Context, string, string) (net.Conn, error) { panic("what a resolver said") }

func TestAPanicIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		woken := 0
		notify := func(context.Context, types.NamespacedName) { woken++ }
		checker := NewChecker(CheckerOptions{Dial: breaks, Notify: notify})
		during(t, checker.Start, func() {
			endpoint := makeEndpoint("a")
			checker.Observe(endpoint)
			<-time.After(time.Minute)
			if v := checker.Observe(endpoint); !v.Known || v.Reason != "ConnectFailed" || v.Message != fault.Err.Error() || v.failures < 5 {
				t.Errorf("endpoint: %+v", v)
			}
		})
		attempts := 0
		maker := NewMaker(MakerOptions[string]{Notify: notify, Make: func(context.Context, Job) (Made[string], bool) {
			if attempts++; attempts < 3 {
				panic("what a document says")
			}
			return Made[string]{Known: true, Value: "made"}, true
		}})
		during(t, maker.Start, func() {
			job := Job{Subject: demo}
			maker.Observe(job)
			synctest.Wait()
			if made := maker.Observe(job); !made.Known || made.Problem != fault.Err.Error() {
				t.Errorf("job: %+v", made)
			}
			<-time.After(time.Minute)
			if made := maker.Observe(job); made.Value != "made" || made.Problem != "" {
				t.Errorf("job, the third time: %+v", made)
			}
		})
		if woken != 3 {
			t.Errorf("somebody was woken %d times, want 3", woken)
		}
	})
}

func TestAPanicAtADocumentLeavesWhatWasFound(t *testing.T) {
	t.Parallel()
	f := NewFetcher(FetcherOptions[string]{Use: func(context.Context, Document, []byte) (string, error) { panic("what a document says") }})
	f.recent.put(copied{document: Document{Subject: demo}, content: []byte("{}"), at: time.Now()})
	known, ok := f.try(t.Context(), attempt[Document, Fetched[string]]{task: Document{Subject: demo}, last: Fetched[string]{Found: true, Value: "old"}})
	if ok || !known.Known || known.Problem != fault.Err.Error() || !known.Found || known.Value != "old" {
		t.Errorf("went well: %t, %+v", ok, known)
	}
}

// TestAPanicInAGoroutineOfNetHTTPIsAFailedAttempt, where dialling and handshakes run.
func TestAPanicInAGoroutineOfNetHTTPIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	f := NewFetcher(FetcherOptions[string]{Dial: breaks, MaxBytes: 10})
	known, ok := f.attempt(t.Context(), Document{Subject: demo, URL: "http://docs.example.com/"}, Fetched[string]{})
	if ok || known.Problem != fault.Err.Error() {
		t.Errorf("while it dials: went well: %t, %+v", ok, known)
	}
	config, shown := tlsConfig("docs.example.com", Trust{AnyHost: true}, nil)
	err := config.VerifyConnection(tls.ConnectionState{}) // without the certificate that there always is
	if !errors.Is(err, fault.Err) || shown() {
		t.Errorf("while it handshakes: %v, accepted: %t", err, shown())
	}
	if why := f.why(&url.URL{Scheme: "https", Host: "docs.example.com"}, NoBundle, err); !errors.Is(why, fault.Err) {
		t.Errorf("while it handshakes, it is told that %v", why)
	}
}
