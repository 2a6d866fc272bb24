package front

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// audited is what of an audit line the tests look at.
type audited struct {
	Method  string `json:"method"`
	Tool    string `json:"tool"`
	Backend string `json:"backend"`
	Outcome string `json:"outcome"`
	Code    int    `json:"code"`
}

func TestACallThatIsRefusedHasAnAuditLine(t *testing.T) {
	t.Parallel()
	const meta = `"_meta":{"` + wire.MetaProtocolVersion + `":"2026-07-28","` + wire.MetaClientCapabilities + `":{}}`
	const routed = `{"name":"routed","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`
	request := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + meta + `}}`
	}
	headers := func(method, name string) map[string]string {
		return map[string]string{headerVersion: wire.Version20260728, "Mcp-Method": method, "Mcp-Name": name}
	}
	full := func(q func(*young) *quota, caller string) func(*young) {
		return func(y *young) { q(y).take(caller, 2) }
	}
	calls := func(y *young) *quota { return y.Front.calls }
	call := request("tools/call", `"name":"routed","arguments":{"a":"x"},`)
	for name, tc := range map[string]struct {
		before  func(*young)
		body    string
		headers map[string]string
		status  int
		want    []audited
	}{
		"a header says something else": {
			body: call, headers: headers("tools/call", "other"), status: 400,
			want: []audited{{"tools/call", "routed", "", "rejected", wire.CodeHeaderMismatch}},
		},
		"a header of a parameter is missing": {
			body: call, headers: headers("tools/call", "routed"), status: 400,
			want: []audited{{"tools/call", "routed", "a", "rejected", wire.CodeHeaderMismatch}},
		},
		"the caller has too many": {
			before: full(calls, "192.0.2.1"), body: call, headers: headers("tools/call", "routed"), status: 429,
			want: []audited{{"tools/call", "routed", "", "rejected", wire.CodeInternal}},
		},
		"there are too many": {
			before: func(y *young) { y.Front.calls.take("x", 2); y.Front.calls.take("y", 2) },
			body:   call, headers: headers("tools/call", "routed"), status: 503,
			want: []audited{{"tools/call", "routed", "", "rejected", wire.CodeInternal}},
		},
		"a prompt that is not served": {
			body: request("prompts/get", `"name":"p",`), headers: headers("prompts/get", "p"), status: 400,
			want: []audited{{"prompts/get", "", "", "denied", wire.CodeInvalidParams}},
		},
		"a resource that is not served": {
			body: request("resources/read", `"uri":"a:b",`), headers: headers("resources/read", "a:b"), status: 400,
			want: []audited{{"resources/read", "", "", "denied", wire.CodeInvalidParams}},
		},
		"its session is unknown": {
			body:    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"routed"}}`,
			headers: map[string]string{headerVersion: "2025-11-25", headerSession: "none"}, status: 404,
			want: []audited{{"tools/call", "routed", "", "rejected", wire.CodeInvalidRequest}},
		},
		"it is no call": {
			body: request("server/discover", ""), headers: headers("tools/call", ""), status: 400,
		},
		"it is a notification": {
			body:    `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"routed"}}`,
			headers: map[string]string{headerVersion: "2025-11-25", headerSession: "none"}, status: 404,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y := newYoung(t, Limits{Calls: 2, TotalCalls: 4})
				y.use(t.Context(),
					NewBackend(table.Backend{Name: "a"}, &shelf{capabilities: tellingTools, tools: []string{routed}}),
					NewBackend(table.Backend{Name: "b"}, &shelf{capabilities: tellingTools}))
				synctest.Wait()
				if tc.before != nil {
					tc.before(y)
				}
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, table.DefaultPath, strings.NewReader(tc.body))
				r.Header.Set("Content-Type", "application/json")
				for name, value := range tc.headers {
					r.Header.Set(name, value)
				}
				w := httptest.NewRecorder()
				y.ServeHTTP(w, r)
				if w.Code != tc.status {
					t.Errorf("status %d: %s", w.Code, w.Body)
				}
				var got []audited
				for decoder := json.NewDecoder(&y.audit); decoder.More(); {
					var line audited
					if err := decoder.Decode(&line); err != nil {
						t.Fatal(err)
					}
					got = append(got, line)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("audited (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A caller who has all of its share at a backend under way, and calls on and on, does not write the log full.
func TestCallsBeyondACallersShareHaveNoMoreLinesThanAFloodHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		const calls, told = 30, 20
		y := newYoung(t, Limits{})
		b := NewBackend(table.Backend{Name: "a"}, &shelf{capabilities: tellingTools, tools: []string{plain("t")}})
		y.use(ctx, b)
		synctest.Wait()
		b.gate.held["192.0.2.1"] = y.limits.Calls
		for range calls {
			if status, answer, _ := y.asks(ctx, "tools/call", "t"); status != http.StatusTooManyRequests {
				t.Fatalf("%d: %s", status, answer)
			}
		}
		if lines := strings.Count(y.audit.String(), "\n"); lines != told {
			t.Errorf("%d lines of %d calls:\n%s", lines, calls, y.audit.String())
		}
	})
}
