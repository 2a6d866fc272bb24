package observer

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcp-operator/mcp-operator/internal/fault"
	"github.com/mcp-operator/mcp-operator/internal/probe"
)

func TestAPanicAtWhatAGatewaySentIsAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		woken := 0
		o := New(Options{
			Workers:   1,
			Transport: func(probe.Pod) *http.Transport { panic("what it sent") },
			Changed:   func(context.Context, types.NamespacedName) { woken++ },
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- o.Start(ctx) }()
		o.Observe(Agent{UID: "a", Key: types.NamespacedName{Namespace: "team", Name: "demo"}, Pods: []probe.Pod{{UID: "pod", Address: "pod:1"}}})
		<-time.After(time.Minute)
		if got := o.Answers("a"); len(got) != 1 || !got[0].Known || !errors.Is(got[0].Err, fault.Err) || woken != 1 {
			t.Errorf("woken %d times, answers %+v", woken, got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
