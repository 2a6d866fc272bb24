package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// world is what the API server says, and how often somebody was woken.
type world struct {
	paths     map[string]string
	addresses []netip.AddrPort
	woken     int
}

func (w *world) source() *Source {
	return New(Options{
		ReadPath: func(_ context.Context, path string) ([]byte, error) {
			if text, ok := w.paths[path]; ok {
				return []byte(text), nil
			}
			return nil, errors.New("forbidden")
		},
		Addresses: func(context.Context) ([]netip.AddrPort, error) {
			if w.addresses == nil {
				return nil, errors.New("not reachable")
			}
			return w.addresses, nil
		},
		Changed: func(context.Context) { w.woken++ },
	})
}

func TestWhatWasLearnedStaysWhileTheAPIServerIsAway(t *testing.T) {
	t.Parallel()
	w := &world{
		paths: map[string]string{
			discoveryPath: `{"issuer":"https://kubernetes.default.svc","jwks_uri":"https://elsewhere.example.com"}`,
			keysPath:      `{"keys":[{"kty":"RSA","kid":"b"},{"kid":"a","kty":"RSA"}]}`,
		},
		addresses: []netip.AddrPort{
			netip.MustParseAddrPort("192.0.2.9:6443"), netip.MustParseAddrPort("10.0.0.1:443"), netip.MustParseAddrPort("192.0.2.9:6443"),
		},
	}
	s := w.source()
	if !s.look(t.Context()) {
		t.Error("the first look failed")
	}
	want := Facts{
		Asked:  true,
		Issuer: "https://kubernetes.default.svc", Keys: json.RawMessage(`{"keys":[{"kid":"a","kty":"RSA"},{"kid":"b","kty":"RSA"}]}`),
		APIServer: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:443"), netip.MustParseAddrPort("192.0.2.9:6443")},
	}
	compare := cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })
	if diff := cmp.Diff(want, s.Facts(), compare); diff != "" {
		t.Errorf("facts (-want +got)\n%s", diff)
	}

	w.paths[keysPath] = `{"keys":[{"kty":"RSA","kid":"a"},{"kid":"b","kty":"RSA"}]}`
	if s.look(t.Context()); w.woken != 1 {
		t.Errorf("woken %d times, want once: the same keys in another order are no news", w.woken)
	}

	w.paths, w.addresses = nil, nil
	if s.look(t.Context()) {
		t.Error("a look at nothing succeeded")
	}
	got := s.Facts()
	if got.IssuerError == "" || got.APIServerError == "" {
		t.Errorf("the failure is not told: %+v", got)
	}
	got.IssuerError, got.APIServerError = "", ""
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("facts after a failure (-want +got)\n%s", diff)
	}
	if s.look(t.Context()); w.woken != 2 {
		t.Errorf("woken %d times, want twice: the same failure is told once", w.woken)
	}
}

func TestAnAnswerThatNoTokenCouldBeVerifiedByIsRefused(t *testing.T) {
	t.Parallel()
	const issuer = `{"issuer":"https://kubernetes.default.svc"}`
	tests := map[string]struct{ discovery, keys, want string }{
		"no issuer":       {discovery: `{}`, keys: `{"keys":[{}]}`, want: "names no issuer"},
		"no URL":          {discovery: `{"issuer":"kubernetes/serviceaccount"}`, keys: `{"keys":[{}]}`, want: "names no issuer"},
		"no JSON":         {discovery: `<html>`, keys: `{"keys":[{}]}`, want: "read " + discoveryPath},
		"no key":          {discovery: issuer, keys: `{"keys":[]}`, want: "holds no key"},
		"keys of no JSON": {discovery: issuer, keys: `<html>`, want: "read " + keysPath},
		"too many keys":   {discovery: issuer, keys: strings.Repeat(" ", maxKeys+1), want: "more than"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{
				paths:     map[string]string{discoveryPath: tt.discovery, keysPath: tt.keys},
				addresses: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:443")},
			}
			s := w.source()
			if s.look(t.Context()) {
				t.Error("it succeeded")
			}
			if got := s.Facts(); !strings.Contains(got.IssuerError, tt.want) || got.Issuer != "" || got.Keys != nil || got.APIServer == nil {
				t.Errorf("facts %+v, want an error that says %q, and the addresses all the same", got, tt.want)
			}
		})
	}
}
