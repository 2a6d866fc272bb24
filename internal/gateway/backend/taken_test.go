package backend

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnErrorOfARequestThatWasTakenNeverSaysThatItWasNot(t *testing.T) {
	t.Parallel()
	other := errors.New("the reader has left")
	type told struct {
		Class  string
		Sent   bool
		IsLost bool
	}
	for name, tc := range map[string]struct {
		err  error
		want told
	}{
		"its session is lost":                    {ErrSession, told{"ServerError", true, false}},
		"so it is, and the failure says unsent":  {&Error{Class: "NotFound", Err: ErrSession}, told{"ServerError", true, false}},
		"so it is, and others wrap that":         {fmt.Errorf("answer: %w", &Error{Class: "NotFound", Err: ErrSession}), told{"ServerError", true, false}},
		"a message beside it could not be sent":  {fmt.Errorf("answer: %w", &Error{Class: "Connect", Err: other}), told{"Connect", true, false}},
		"a failure that says sent is as it was":  {&Error{Class: "Timeout", Sent: true, Err: other}, told{"Timeout", true, false}},
		"what is no failure of the backend's is": {other, told{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Taken("docs", "ServerError", tc.err)
			got := told{IsLost: errors.Is(err, ErrSession)}
			if failure, ok := errors.AsType[*Error](err); ok {
				got.Class, got.Sent = failure.Class, failure.Sent
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%v: -want +got:\n%s", err, diff)
			}
		})
	}
	unsent := &Error{Class: "Connect", Err: other}
	if _ = Taken("docs", "ServerError", unsent); unsent.Sent {
		t.Error("the error that others hold was changed")
	}
	if err := Taken("docs", "ServerError", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}
