package front

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// renewable fails until what it needs has come.
type renewable struct {
	silent

	described chan time.Time
	arrival   chan struct{}
	defect    error
}

func (r *renewable) Describe(ctx context.Context) (*backend.Description, error) {
	r.described <- time.Now()
	return r.silent.Describe(ctx)
}

func (r *renewable) Renewed() <-chan struct{} {
	select {
	case <-r.arrival:
		return nil
	default:
		return r.arrival
	}
}

func (r *renewable) Check() error { return r.defect }

// calm answers, and tells of no changes.
type calm struct {
	silent

	described chan time.Time
}

func (c *calm) Describe(context.Context) (*backend.Description, error) {
	c.described <- time.Now()
	return &backend.Description{Modern: true, Discover: json.RawMessage(`{"capabilities":{}}`)}, nil
}

func (c *calm) Modern(context.Context) (backend.Channel, error) { return modernChannel{c}, nil }

type modernChannel struct{ *calm }

func (modernChannel) Era() backend.Era { return backend.Modern }

func (modernChannel) Listen(context.Context, *backend.Call, backend.Sink) error {
	return backend.ErrNoStream
}

func TestABackendWithoutAStreamIsAskedAgainAndAgainWithoutAnyCaller(t *testing.T) {
	t.Parallel()
	f, _, _ := endpoint(t, &silent{})
	synctest.Test(t, func(t *testing.T) {
		server := &calm{described: make(chan time.Time, 100)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go f.Watch(ctx, NewBackend(table.Backend{Name: "a"}, server))
		last := <-server.described
		for range 5 {
			next := <-server.described
			if pause := next.Sub(last); pause != pollInterval {
				t.Errorf("it was asked after %s", pause)
			}
			last = next
		}
	})
}

func TestABackendIsLookedAtAsSoonAsWhatItNeedsHasCome(t *testing.T) {
	t.Parallel()
	f, _, _ := endpoint(t, &silent{})
	synctest.Test(t, func(t *testing.T) {
		server := &renewable{arrival: make(chan struct{})}
		server.described = make(chan time.Time, 100)
		server.describe = &backend.Error{Class: "Definition", Detail: "the ConfigMap a does not exist", Err: errors.New("x")}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b := NewBackend(table.Backend{Name: "a"}, server)
		go f.Watch(ctx, b)
		last := time.Now()
		for range 12 {
			next := <-server.described
			if pause := next.Sub(last); pause > lastRetry {
				t.Errorf("it was looked at again after %s", pause)
			}
			last = next
		}
		synctest.Wait()
		if s := b.Status(); s.State != table.BackendFailed || s.ErrorClass != "Definition" || s.ErrorDetail != "the ConfigMap a does not exist" {
			t.Errorf("the status is %+v", s)
		}
		begun := time.Now()
		close(server.arrival)
		if late := (<-server.described).Sub(begun); late != 0 {
			t.Errorf("it was looked at %s after that", late)
		}
	})
}

func TestTheStatusSaysMoreOfSomeErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 200)
	for name, tc := range map[string]struct {
		err    backend.Error
		defect error
		want   string
	}{
		"what clients are told":                    {err: backend.Error{Class: "Denied", Detail: "its address"}, want: "its address"},
		"what whoever runs it is told in addition": {err: backend.Error{Class: "Statement", Detail: "a", Told: "b"}, want: "b"},
		"a class that says it all":                 {err: backend.Error{Class: "ChildExited", Detail: "exit status 1"}},
		"text that is not fit to be shown": {
			err: backend.Error{Class: "Statement", Told: "a\x1b[31m\nb\u202ec \xff d\u200be"}, want: "a [31m b c d e",
		},
		"text without end": {err: backend.Error{Class: "Definition", Detail: long}, want: long[:252] + "…"},
		"a part that is not offered": {
			defect: &backend.Error{Class: "Definition", Detail: "not offered: b", Err: errors.New("x")}, want: "not offered: b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _, _ := endpoint(t, &silent{})
			b := NewBackend(table.Backend{Name: "a"}, &renewable{defect: tc.defect})
			var err error
			if tc.err.Class != "" {
				tc.err.Err = errors.New("for the log")
				err = &tc.err
			}
			f.learn(b, nil, nil, err, false)
			got := b.Status()
			if diff := cmp.Diff(tc.want, got.ErrorDetail); diff != "" || len(got.ErrorDetail) > maxDetail || got.ErrorClass != tc.err.Class {
				t.Errorf("class %q, -want +got:\n%s", got.ErrorClass, diff)
			}
		})
	}
}
