package probe

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/fault"
)

func TestAPanicAtWhatAServerSentIsAFailedProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		panics := 0
		p := start(t, Options{Workers: 1, Transport: func(s Server, _ *Pod) *http.Transport {
			if s.Key.Name == "hostile" && panics < 4 {
				panics++
				panic("what it sent")
			}
			return nil
		}})
		hostile, honest := server("hostile", "pod-1"), server("honest", "pod-2")
		p.Observe(hostile)
		p.pass(2 * time.Second)
		if v := p.Verdict(hostile.UID); v.Serving || v.Failure == nil || v.Failure.Message != fault.Err.Error() || panics < 3 {
			t.Errorf("after %d: %+v", panics, v)
		}
		p.Observe(honest)
		p.pass(time.Minute)
		for _, s := range []Server{hostile, honest} {
			if v := p.Verdict(s.UID); !v.Serving || v.Failure != nil {
				t.Errorf("%s in the end: %+v", s.Key.Name, v)
			}
		}
	})
}
