package child

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
)

func TestWhatAFailureTellsOfSendingIsTrue(t *testing.T) {
	t.Parallel()
	b := &Backend{environment: &environment{options: &Options{Name: "b"}}}
	for name, tc := range map[string]struct {
		err   error
		sent  bool
		class string
		told  bool // that it was sent
	}{
		"the answer to a request of the child's found no session": {backend.ErrSession, true, "ChildExited", true},
		"so did it, and says that it was not sent itself":         {&backend.Error{Class: "NotFound", Err: backend.ErrSession}, true, "ChildExited", true},
		"a message that was passed on failed unsent":              {&backend.Error{Class: "Connect", Err: errStart}, true, "Connect", true},
		"the caller left while the child was started":             {fmt.Errorf("wait: %w", context.Canceled), false, "Timeout", false},
		"the child was not started in time":                       {context.DeadlineExceeded, false, "Timeout", false},
		"a failure that was sent stays sent":                      {&backend.Error{Class: "Connect", Sent: true, Err: errStart}, false, "Connect", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := b.failed(tc.err, tc.sent)
			failure, ok := errors.AsType[*backend.Error](err)
			if !ok || failure.Class != tc.class || failure.Sent != tc.told || errors.Is(err, backend.ErrSession) {
				t.Errorf("%v (%+v)", err, failure)
			}
		})
	}
	if err := b.failed(backend.ErrSession, false); !errors.Is(err, backend.ErrSession) {
		t.Errorf("a session that was lost before is %v", err)
	}
}
