package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// picky is a server that takes requests in one stateless version only.
func picky(t *testing.T, version string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil || call.Method != "server/discover" {
			http.Error(w, "no", http.StatusNotFound)
			return
		}
		answer := `{"jsonrpc":"2.0","id":ID,"result":{"supportedVersions":["VERSION","x y"],"capabilities":{}}}`
		if r.Header.Get(wire.HeaderVersion) != version {
			w.WriteHeader(http.StatusBadRequest)
			answer = `{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"no","data":{"supported":["VERSION"]}}}`
		}
		_, _ = w.Write([]byte(strings.NewReplacer("ID", string(call.ID), "VERSION", version).Replace(answer)))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAVersionTheServerListsIsOfferedAgain(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		server, want string
		reason       Reason
	}{
		"the newest":     {"2031-01-01", "2031-01-01", ""},
		"an older one":   {"2026-07-28", "2026-07-28", ""},
		"an unknown one": {"2030-01-01", "", ProtocolError},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := (&Client{}).run(t.Context(), Target{URL: picky(t, tc.server)}, func(ctx context.Context, p *prober) error {
				p.known = append([]string{"2031-01-01"}, knownVersions()...)
				return p.handshake(ctx)
			})
			if reason := ReasonOf(err); reason != tc.reason {
				t.Fatalf("reason %q, want %q: %v", reason, tc.reason, err)
			}
			if err == nil && (got.ProtocolVersion != tc.want || len(got.ProtocolVersions) != 1) {
				t.Errorf("version %q of %q, want %q", got.ProtocolVersion, got.ProtocolVersions, tc.want)
			}
		})
	}
}

func TestVersionsAreTidied(t *testing.T) {
	t.Parallel()
	in := []string{"2024-11-05", "2026-07-28", "DRAFT-2027.v1", "2026-07-28", "", "a b", "2025\x1b[0m", strings.Repeat("9", 33)}
	if diff := cmp.Diff([]string{"DRAFT-2027.v1", "2026-07-28", "2024-11-05"}, tidyVersions(in)); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	many := json.RawMessage(`["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17","18"]`)
	if got := len(tidyVersions(textList(many))); got != maxVersions {
		t.Errorf("%d versions kept", got)
	}
}

func TestEveryLimitHasADefault(t *testing.T) {
	t.Parallel()
	filled := Limits{}.withDefaults()
	if diff := cmp.Diff(DefaultLimits(), filled); diff != "" {
		t.Errorf("zero limits (-want +got):\n%s", diff)
	}
	v := reflect.ValueOf(filled)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s has no default", v.Type().Field(i).Name)
		}
	}
	if got := (Limits{Pages: 3}).withDefaults(); got.Pages != 3 || got.Entries != DefaultLimits().Entries {
		t.Errorf("a limit that is set: %+v", got)
	}
}

func TestOurNameFitsAHeader(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "x", "a b\r\n": "ab", "ä": "x", "v1.2.3+4-5": "v1.2.3+4-5", "/()": "x"} {
		if got := nameOr(in, "x"); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
