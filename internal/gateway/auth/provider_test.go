package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// TestAnIssuerIsDialledWhereTheTableLetsItBe: the operator says so for all issuers, and none of them can for itself.
func TestAnIssuerIsDialledWhereTheTableLetsItBe(t *testing.T) {
	const private, metadata, own = "10.255.255.1:9", "169.254.169.254:80", "127.0.0.1:9"
	for name, tc := range map[string]struct {
		allowPrivate, loopback bool
		denied, dialled        []string
	}{
		"public alone":             {false, false, []string{private, metadata, own, "[fd00::1]:9", "100.64.0.1:9"}, nil},
		"private too":              {true, false, []string{metadata, own}, []string{private}},
		"this host, to try it out": {false, true, []string{private, metadata}, []string{own}},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := New(t.Context(), table.Auth{
				Type: table.AuthTokens, Audiences: []string{"a"}, OIDC: []table.OIDC{{Issuer: "https://login.example.com", AllowPrivate: tc.allowPrivate}},
			}, Options{LoopbackIssuers: tc.loopback}, nil)
			if err != nil {
				t.Fatal(err)
			}
			transport, ok := v.issuers["https://login.example.com"].keys.provider.client().Transport.(*http.Transport)
			if !ok {
				t.Fatal("the client has another transport")
			}
			dial := func(address string, patience time.Duration) error {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				conn, err := transport.DialContext(ctx, "tcp", address)
				if err == nil {
					err = conn.Close()
				}
				return err
			}
			for _, address := range tc.denied {
				if err := dial(address, time.Minute); !errors.Is(err, mcp.ErrAddressDenied) {
					t.Errorf("%s is dialled: %v", address, err)
				}
			}
			for _, address := range tc.dialled {
				if err := dial(address, 50*time.Millisecond); errors.Is(err, mcp.ErrAddressDenied) {
					t.Errorf("%s is not dialled: %v", address, err)
				}
			}
		})
	}
}

func TestAnIssuerWhoseAnswerIsTooMuchForTheGatewayCostsItselfAlone(t *testing.T) {
	counted := 0
	logger := slog.New(slog.DiscardHandler)
	s := &keySource{
		logger: logger, panics: panics.New(logger, func(string) { counted++ }),
		fetch: func() (*keySet, error) { panic("a key of a kind that nobody thought of") },
	}
	<-s.refresh()
	if counted != 1 || s.failures != 1 || s.current() != nil {
		t.Errorf("%d faults were counted, and %d failures", counted, s.failures)
	}
}
