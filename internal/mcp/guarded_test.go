package mcp_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

// guard answers one method by a status, with a Bearer challenge where it is asked for.
func guard(method string, status int, challenge string) http.Handler {
	return mcptest.Legacy(mcptest.Script{method: func(w http.ResponseWriter, _ mcptest.Call) {
		if challenge != "" {
			w.Header().Set("WWW-Authenticate", challenge)
		}
		w.WriteHeader(status)
	}})
}

func TestWhatAServerToldBeforeItWantedCredentialsIsKept(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method    string
		status    int
		challenge string
		client    *mcp.Client
		want      mcp.Reason
		asks      bool
	}{
		"tools/list, by a challenge":      {"tools/list", 401, "Bearer", client, "", true},
		"tools/list, without a challenge": {"tools/list", 401, "", client, mcp.Unauthorized, false},
		"tools/list, 403":                 {"tools/list", 403, "", lenient, mcp.Forbidden, false},
		"the notification, by challenge":  {"notifications/initialized", 401, "Bearer", client, "", true},
		"the notification, 401":           {"notifications/initialized", 401, "", client, mcp.Unauthorized, false},
		"the notification, 403":           {"notifications/initialized", 403, "", client, mcp.Forbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mcptest.Serve(t, guard(tc.method, tc.status, tc.challenge))
			result, err := tc.client.Probe(t.Context(), target(server))
			if mcp.ReasonOf(err) != tc.want {
				t.Fatalf("%v", err)
			}
			want := &mcp.Result{
				Server: mcp.ServerInfo{Name: "script", Version: "1"}, ProtocolVersion: "2025-11-25", ProtocolVersions: []string{"2025-11-25"},
				Capabilities: mcp.Capabilities{Tools: true}, Stateful: true, AuthRequired: tc.asks,
			}
			if diff := cmp.Diff(want, result); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			result.AuthRequired = true
			if err := tc.client.Check(t.Context(), target(server), result); err != nil {
				t.Errorf("a check: %v", err)
			}
		})
	}
}

func TestAListThatIsForbiddenIsAFailureOfTheListToWhomItMatters(t *testing.T) {
	t.Parallel()
	server := mcptest.Serve(t, guard("tools/list", http.StatusForbidden, ""))
	result, err := client.Probe(t.Context(), target(server))
	if mcp.ReasonOf(err) != mcp.ToolsListFailed || result != nil {
		t.Errorf("%+v, %v", result, err)
	}
}

// A guard that knows the methods of MCP has never heard of server/discover.
func TestAServerThatWantsCredentialsForDiscoverAloneIsInitialized(t *testing.T) {
	t.Parallel()
	for _, challenge := range []string{"Bearer", ""} {
		server := mcptest.Serve(t, guard("server/discover", http.StatusUnauthorized, challenge))
		result, err := client.Probe(t.Context(), target(server))
		if err != nil || result.AuthRequired || result.Server.Name != "script" || len(result.Tools) != 1 {
			t.Errorf("challenge %q: %+v, %v", challenge, result, err)
		}
	}
	// What it says of initialize after that is no news of whether it wants credentials.
	for name, initialize := range map[string]http.Handler{
		"401": mcptest.Unauthorized("Bearer"), "404": mcptest.Status(404), "500": mcptest.Status(500), "a page": mcptest.Page(200),
	} {
		server := mcptest.Serve(t, mcptest.Legacy(mcptest.Script{
			"server/discover": func(w http.ResponseWriter, call mcptest.Call) {
				mcptest.Unauthorized("Bearer").ServeHTTP(w, call.Request)
			},
			"initialize": func(w http.ResponseWriter, call mcptest.Call) { initialize.ServeHTTP(w, call.Request) },
		}))
		result, err := client.Probe(t.Context(), target(server))
		if err != nil || !result.AuthRequired || result.ProtocolVersion != "" {
			t.Errorf("initialize answers %s: %+v, %v", name, result, err)
		}
	}
}

func TestTheNotificationMayBeAnsweredByAnySuccess(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]mcp.Reason{
		200: "", 201: "", 202: "", 204: "", 206: "", 302: mcp.Redirected, 404: mcp.ProtocolError, 418: mcp.NotMCP, 500: mcp.ServerError,
	} {
		server := mcptest.Serve(t, guard("notifications/initialized", status, ""))
		if _, err := client.Probe(t.Context(), target(server)); mcp.ReasonOf(err) != want {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// A front that serves names has nothing behind localhost, and says so in one of many ways.
func TestAFrontThatDoesNotServeLocalhostDoesNotAcceptIt(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]mcp.Reason{
		200: mcp.HostRefused, 401: mcp.HostRefused,
		302: mcp.Forbidden, 400: mcp.Forbidden, 404: mcp.Forbidden, 421: mcp.Forbidden, 429: mcp.Forbidden, 503: mcp.Forbidden,
	} {
		for _, sse := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, SSE: %t", status, sse), func(t *testing.T) {
				t.Parallel()
				server := mcptest.Pipe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Host == serviceHost {
						w.WriteHeader(http.StatusForbidden)
						return
					}
					w.WriteHeader(status)
				}))
				_, err := client.Probe(t.Context(), mcp.Target{URL: server.URL, Host: serviceHost, SSE: sse, Transport: server.Transport()})
				if mcp.ReasonOf(err) != want {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

func TestAServerThatOpensUpIsStale(t *testing.T) {
	t.Parallel()
	server := mcptest.Serve(t, mcptest.Legacy(nil))
	if err := client.Check(t.Context(), target(server), &mcp.Result{AuthRequired: true}); !errors.Is(err, mcp.ErrStale) {
		t.Errorf("%v", err)
	}
}
