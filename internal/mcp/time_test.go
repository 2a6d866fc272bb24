package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
)

func piped(s *mcptest.Server) mcp.Target {
	return mcp.Target{URL: s.URL, Transport: s.Transport()}
}

// openStream begins an answer of the given type and never ends it.
func openStream(contentType string) func(http.ResponseWriter, mcptest.Call) {
	return func(w http.ResponseWriter, call mcptest.Call) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(http.StatusOK)
		if http.NewResponseController(w).Flush() == nil {
			<-call.Request.Context().Done()
		}
	}
}

func silent(w http.ResponseWriter, call mcptest.Call) { mcptest.Silent().ServeHTTP(w, call.Request) }

// slowPages answers each page after three seconds, and always has another.
func slowPages() http.Handler {
	return mcptest.Modern(mcptest.Script{"tools/list": func(w http.ResponseWriter, call mcptest.Call) {
		timer := time.NewTimer(3 * time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
			mcptest.Result(w, call, `{"tools":[],"nextCursor":"`+call.Cursor+`x"}`)
		case <-call.Request.Context().Done():
		}
	}})
}

func TestASlowServerCostsNoMoreThanTheLimits(t *testing.T) {
	t.Parallel()
	const notWithin5s = "The server accepted the connection, but did not finish answering %s within 5s."
	cases := map[string]struct {
		handler http.Handler
		took    time.Duration
		message string
	}{
		"silent": {mcptest.Silent(), 5 * time.Second, fmt.Sprintf(notWithin5s, "server/discover")},
		// An older server may begin a stream for what it does not know.
		"a byte a second": {mcptest.Drip(time.Second), 10 * time.Second, fmt.Sprintf(notWithin5s, "initialize")},
		"event stream without an end": {
			mcptest.Legacy(mcptest.Script{"initialize": openStream(eventType)}),
			5 * time.Second, fmt.Sprintf(notWithin5s, "initialize"),
		},
		"silent on tools/list": {mcptest.Modern(mcptest.Script{"tools/list": silent}), 5 * time.Second, fmt.Sprintf(notWithin5s, "tools/list")},
		"slow pages":           {slowPages(), 15 * time.Second, "The server could not be verified within 15s; the last step was tools/list."},
		"silent on DELETE too": {
			mcptest.Legacy(mcptest.Script{"tools/list": silent, "DELETE": silent}),
			6 * time.Second, fmt.Sprintf(notWithin5s, "tools/list"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, err := client.Probe(t.Context(), piped(mcptest.Pipe(t, tc.handler)))
				if got := mcp.ReasonOf(err); got != mcp.Timeout {
					t.Errorf("reason %q", got)
				}
				if diff := cmp.Diff(tc.message, fmt.Sprint(err)); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
				if took := time.Since(start); took < tc.took || took > tc.took+200*time.Millisecond {
					t.Errorf("took %v, want %v", took, tc.took)
				}
			})
		})
	}
}

func TestASlowSideListIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := mcptest.Pipe(t, mcptest.Modern(mcptest.Script{
			"server/discover": func(w http.ResponseWriter, call mcptest.Call) {
				mcptest.Result(w, call, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}}}`)
			},
			"prompts/list": silent, "resources/list": silent, "resources/templates/list": silent,
		}))
		start := time.Now()
		got, err := client.Probe(t.Context(), piped(server))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"prompts/list", "resources/list", "resources/templates/list"}, got.Unread); diff != "" {
			t.Errorf("unread (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took > 15*time.Second+200*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestASideListThatIsTooLongIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := mcptest.Pipe(t, mcptest.Legacy(mcptest.Script{
			"initialize": func(w http.ResponseWriter, call mcptest.Call) {
				w.Header().Set("Mcp-Session-Id", mcptest.Session)
				mcptest.Result(w, call, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}}}`)
			},
			"prompts/list": func(w http.ResponseWriter, call mcptest.Call) {
				mcptest.Endless(jsonType, `["`, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").ServeHTTP(w, call.Request)
			},
		}))
		c := &mcp.Client{Limits: mcp.Limits{TotalBytes: 1 << 20}}
		got, err := c.Probe(t.Context(), piped(server))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"prompts/list", "resources/list", "resources/templates/list"}, got.Unread); diff != "" {
			t.Errorf("unread (-want +got):\n%s", diff)
		}
		calls := server.Calls()
		if diff := cmp.Diff([]string{"prompts/list", "DELETE"}, calls[len(calls)-2:]); diff != "" {
			t.Errorf("last requests (-want +got):\n%s", diff)
		}
	})
}

func TestAnUnansweredConnectTakesTwoSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := client.Probe(t.Context(), mcp.Target{URL: "http://x/", Transport: dialing(func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})})
		if got := mcp.ReasonOf(err); got != mcp.ConnectTimeout {
			t.Errorf("reason %q: %v", got, err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestADialDoesNotOutliveItsProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		c := &mcp.Client{Limits: mcp.Limits{Request: time.Second, Connect: time.Hour}}
		_, err := c.Probe(t.Context(), mcp.Target{URL: "http://x/", Transport: dialing(func(ctx context.Context) (net.Conn, error) {
			defer close(ended)
			<-ctx.Done()
			return nil, ctx.Err()
		})})
		if got := mcp.ReasonOf(err); got != mcp.Timeout {
			t.Errorf("reason %q: %v", got, err)
		}
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("the dial goes on")
		}
	})
}

func TestALateConnectionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		late := make(chan struct{})
		c := &mcp.Client{Limits: mcp.Limits{Request: time.Second, Connect: time.Hour}}
		_, err := c.Probe(t.Context(), mcp.Target{URL: "http://x/", Transport: dialing(func(context.Context) (net.Conn, error) {
			<-late
			return ours, nil
		})})
		if got := mcp.ReasonOf(err); got != mcp.Timeout {
			t.Errorf("reason %q: %v", got, err)
		}
		close(late)
		if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("reading from the other end: %v", err)
		}
	})
}

func TestOneConnectionCarriesAProbe(t *testing.T) {
	t.Parallel()
	// The end of the stream comes a moment after the response.
	stream := func(w http.ResponseWriter, call mcptest.Call, result string) {
		mcptest.Raw(w, http.StatusOK, eventType, "data: {\"jsonrpc\":\"2.0\",\"id\":"+call.ID+",\"result\":"+result+"}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-time.After(10 * time.Millisecond)
	}
	synctest.Test(t, func(t *testing.T) {
		server := mcptest.Pipe(t, mcptest.Legacy(mcptest.Script{
			"initialize": func(w http.ResponseWriter, call mcptest.Call) {
				w.Header().Set("Mcp-Session-Id", mcptest.Session)
				stream(w, call, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}`)
			},
			"tools/list": func(w http.ResponseWriter, call mcptest.Call) { stream(w, call, `{"tools":[]}`) },
		}))
		transport := server.Transport()
		dial, dials := transport.DialContext, 0
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			return dial(ctx, network, address)
		}
		if _, err := client.Probe(t.Context(), mcp.Target{URL: server.URL, Transport: transport}); err != nil {
			t.Fatal(err)
		}
		if dials != 1 {
			t.Errorf("%d connections: behind a Service each may lead to another replica", dials)
		}
	})
}

func TestASilentTLSPortTakesTwoSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ours, theirs := net.Pipe()
		defer func() { _ = theirs.Close() }()
		_, err := client.Probe(t.Context(), mcp.Target{URL: "https://x/", Transport: dialing(func(context.Context) (net.Conn, error) {
			return ours, nil
		})})
		if got, want := fmt.Sprint(err), "No TLS connection to the server on port 443: the TLS handshake did not end within 2s."; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestASessionIsEndedAlsoAfterAFailure(t *testing.T) {
	t.Parallel()
	cases := map[string]mcptest.Script{
		"initialize refused with a session": {"initialize": func(w http.ResponseWriter, call mcptest.Call) {
			w.Header().Set("Mcp-Session-Id", mcptest.Session)
			mcptest.Fail(w, call, http.StatusOK, -32603, "no")
		}},
		"notification refused": {"notifications/initialized": func(w http.ResponseWriter, _ mcptest.Call) {
			w.WriteHeader(http.StatusTeapot)
		}},
		"tools/list refused": {"tools/list": func(w http.ResponseWriter, call mcptest.Call) {
			mcptest.Fail(w, call, http.StatusOK, -32603, "no")
		}},
		"tools/list without an end": {"tools/list": silent},
		"tools/list too long": {"tools/list": func(w http.ResponseWriter, call mcptest.Call) {
			mcptest.Endless(jsonType, `["`, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").ServeHTTP(w, call.Request)
		}},
		"DELETE not allowed": {"DELETE": func(w http.ResponseWriter, _ mcptest.Call) {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}},
		"discover hands one out": {
			"server/discover": func(w http.ResponseWriter, _ mcptest.Call) {
				w.Header().Set("Mcp-Session-Id", mcptest.Session)
				w.WriteHeader(http.StatusBadRequest)
			},
			"initialize": func(w http.ResponseWriter, call mcptest.Call) { mcptest.Fail(w, call, http.StatusOK, -32603, "no") },
		},
	}
	for name, script := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := mcptest.Pipe(t, mcptest.Legacy(script))
				c := &mcp.Client{Limits: mcp.Limits{TotalBytes: 1 << 20}}
				// The verdict is another test's matter.
				_, _ = c.Probe(t.Context(), piped(server))
				requests := server.Requests()
				last := requests[len(requests)-1]
				if last.HTTPMethod != http.MethodDelete || last.Header.Get("Mcp-Session-Id") != mcptest.Session {
					t.Errorf("the last of %v does not end the session", server.Calls())
				}
			})
		})
	}
}
