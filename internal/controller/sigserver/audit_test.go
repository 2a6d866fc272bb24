package sigserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/apply"
	"github.com/mcp-operator/mcp-operator/internal/engine"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/mcp/mcptest"
	"github.com/mcp-operator/mcp-operator/internal/probe"
)

// recorder returns a logger and the lines that were written to it, without what they all begin with.
func recorder(t *testing.T) (logger logr.Logger, lines *[]string) {
	t.Helper()
	lines = &[]string{}
	const common = `"level"=0 "msg"="audit" "mcpserver"="demo" "namespace"="team" "generation"=2 "resourceVersion"="7" "operation"=`
	return funcr.New(func(prefix, line string) {
		rest, ok := strings.CutPrefix(line, common)
		if !ok || prefix != "audit" {
			t.Errorf("%s: %s lacks what each line of the audit log has", prefix, line)
		}
		*lines = append(*lines, rest)
	}, funcr.Options{}).WithName("audit"), lines
}

func TestHandshakesAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	logger, lines := recorder(t)
	d := Dialect{Audit: logger}
	handshake := engine.Handshake{URL: "http://192.0.2.1:8080/mcp", Server: probe.Server{
		Key: types.NamespacedName{Namespace: "team", Name: "demo"}, Generation: 2, ResourceVersion: "7",
	}}
	speaks := &mcp.Result{ProtocolVersion: "2025-11-25", Server: mcp.ServerInfo{Name: "a", Version: "1"}}
	ends := []struct {
		result *mcp.Result
		err    error
		line   string
	}{
		{speaks, nil, `"HandshakeSuccess" "url"="http://192.0.2.1:8080/mcp" "durationMs"=30 ` +
			`"protocolVersion"="2025-11-25" "serverName"="a" "serverVersion"="1"`},
		{nil, errors.New("no answer"), `"HandshakeFailed" "url"="http://192.0.2.1:8080/mcp" "error"="no answer" "durationMs"=30`},
		{&mcp.Result{AuthRequired: true}, nil, `"HandshakeAuthSkip" "url"="http://192.0.2.1:8080/mcp" "error"="the server asks for credentials"`},
	}
	for _, last := range []*mcp.Result{nil, speaks} { // a full one, and one that asks whether that answer holds
		for _, end := range ends {
			*lines = nil
			handshake.Last = last
			d.Starting(handshake)
			d.Ended(handshake, 30*time.Millisecond, end.result, end.err)
			if diff := cmp.Diff([]string{`"HandshakeAttempt" "url"="http://192.0.2.1:8080/mcp"`, end.line}, *lines); diff != "" {
				t.Errorf("audit log, of a full one: %t (-want +got)\n%s", last == nil, diff)
			}
		}
	}
	*lines = nil
	d.Starting(handshake)
	d.Ended(handshake, time.Millisecond, nil, nil)
	if len(*lines) > 0 {
		t.Errorf("a server that still answers is worth no line: %q", *lines)
	}
}

func TestChangesOfAServerAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	with := func(retries int32, conditions ...metav1.Condition) *sigv1alpha1.MCPServer {
		return makeServer(func(s *sigv1alpha1.MCPServer) {
			s.Status.Conditions, s.Status.HandshakeRetryCount = conditions, retries
		})
	}
	conflict := fmt.Errorf("wrapped: %w", &apply.ConflictError{Resource: types.NamespacedName{Namespace: "team", Name: "demo"}, Kind: "Service", Owner: "A/b"})
	for name, tt := range map[string]struct {
		before, after *sigv1alpha1.MCPServer
		pass          engine.Pass
		want          []string
	}{
		"nothing": {with(0, valid, ready), with(0, valid, ready), engine.Pass{}, nil},
		"a refusal": {
			with(0, valid), with(0, invalid),
			engine.Pass{},
			[]string{`"ConfigurationRejected" "reason"="Invalid" "message"="` + invalid.Message + `"`},
		},
		"it stays": {with(0, invalid), with(0, invalid), engine.Pass{}, nil},
		"a conflict": {
			with(0, valid, ready), with(0, valid, noService),
			engine.Pass{Cause: conflict},
			[]string{`"OwnershipViolation" "resource"="team/demo" "resourceKind"="Service" "existingOwner"="A/b"`},
		},
		"it lasts": {with(0, valid, noService), with(0, valid, noService), engine.Pass{Cause: conflict}, nil},
		"a policy": {
			with(0), with(0),
			engine.Pass{Policy: apply.Created},
			[]string{`"NetworkPolicyCreated" "networkPolicy"="demo" "hasIngressRestriction"=false "hasEgressRestriction"=false`},
		},
		"it changes": {
			with(0), with(0),
			engine.Pass{Policy: apply.Updated},
			[]string{`"NetworkPolicyUpdated" "networkPolicy"="demo" "hasIngressRestriction"=false "hasEgressRestriction"=false`},
		},
		"other tools": {with(0), with(0), engine.Pass{CapabilityChange: "tools: true->false"}, []string{`"CapabilityChange" "diff"="tools: true->false"`}},
		"many tries":  {with(9), with(10), engine.Pass{}, []string{`"HandshakeRetriesExhausted" "retries"=10 "max"=10`}},
		"and more":    {with(10), with(11), engine.Pass{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logger, lines := recorder(t)
			Dialect{Audit: logger}.Report(t.Context(), tt.before, tt.after, tt.pass)
			if diff := cmp.Diff(tt.want, append([]string(nil), *lines...)); diff != "" {
				t.Errorf("audit log (-want +got)\n%s", diff)
			}
		})
	}
}

func TestAServerThatFailsForLongIsToldOnce(t *testing.T) {
	t.Parallel()
	at := func(retries int32) *sigv1alpha1.MCPServer {
		return makeServer(func(s *sigv1alpha1.MCPServer) { s.Status.HandshakeRetryCount = retries })
	}
	for name, tt := range map[string]struct {
		before, after int32
		want          bool
	}{"one less": {8, 9, false}, "crossing": {9, 10, true}, "a leap": {3, 12, true}, "beyond": {10, 11, false}, "an end": {12, 0, false}} {
		events := Dialect{}.Events(at(tt.before), at(tt.after))
		if (len(events) == 1) != tt.want {
			t.Errorf("%s: events %v", name, events)
		}
		if len(events) == 1 && (events[0].Action != "MCPHandshakeRetriesExhausted" || !strings.Contains(events[0].Note, fmt.Sprint(tt.after))) {
			t.Errorf("%s: %+v", name, events[0])
		}
	}
}

// answers is a client of which every answer is the same.
type answers struct {
	result *mcp.Result
	err    error
}

func (a answers) Probe(context.Context, mcp.Target) (*mcp.Result, error) { return a.result, a.err }
func (a answers) Check(context.Context, mcp.Target, *mcp.Result) error   { return a.err }

func TestARefusalForWantOfCredentialsIsAnAnswerAndOthersAreNot(t *testing.T) {
	t.Parallel()
	for reason, isAnswer := range map[mcp.Reason]bool{
		mcp.Unauthorized: true, mcp.Forbidden: true, mcp.HostRefused: false, mcp.NotMCP: false, mcp.ServerError: false,
	} {
		client := Dialect{}.Handshaker(answers{err: &mcp.Error{Reason: reason}})
		result, err := client.Probe(t.Context(), mcp.Target{})
		if (err == nil) != isAnswer || isAnswer && !result.AuthRequired {
			t.Errorf("%s: %+v, %v", reason, result, err)
		}
		known := client.Check(t.Context(), mcp.Target{}, &mcp.Result{AuthRequired: true})
		if (known == nil) != isAnswer {
			t.Errorf("%s of a server that asked before: %v", reason, known)
		}
		again := client.Check(t.Context(), mcp.Target{}, &mcp.Result{ProtocolVersion: "2025-11-25"})
		if errors.Is(again, mcp.ErrStale) != isAnswer {
			t.Errorf("%s of a server that did not ask before: %v", reason, again)
		}
	}
}

func TestWhatAServerToldBeforeItRefusedIsKept(t *testing.T) {
	t.Parallel()
	for reason, isAnswer := range map[mcp.Reason]bool{mcp.Unauthorized: true, mcp.Forbidden: true, mcp.ToolsListFailed: false} {
		told := &mcp.Result{ProtocolVersion: "2025-11-25", Server: mcp.ServerInfo{Name: "a"}, Stateful: true}
		result, err := Dialect{}.Handshaker(answers{told, &mcp.Error{Reason: reason}}).Probe(t.Context(), mcp.Target{})
		if (err == nil) != isAnswer {
			t.Errorf("%s: %v", reason, err)
		}
		want := &mcp.Result{ProtocolVersion: "2025-11-25", Server: mcp.ServerInfo{Name: "a"}, Stateful: true, AuthRequired: isAnswer}
		if diff := cmp.Diff(want, result); diff != "" {
			t.Errorf("%s: result (-want +got)\n%s", reason, diff)
		}
	}
}

// Each of these is Ready to the client of the operator that this API comes from, and is asked no full question again while nothing changes.
func TestServersThatTheClientOfThatAPITakesAreTaken(t *testing.T) {
	t.Parallel()
	by := func(method string, answer http.Handler) http.Handler {
		return mcptest.Legacy(mcptest.Script{method: func(w http.ResponseWriter, call mcptest.Call) { answer.ServeHTTP(w, call.Request) }})
	}
	moved := http.NewServeMux()
	moved.Handle("/mcp/", mcptest.Legacy(nil)) // and /mcp leads there, by 307
	for name, tt := range map[string]struct {
		server http.Handler
		asks   bool // for credentials
	}{
		"at a path with a slash":                 {moved, false},
		"201 to a notification":                  {by("notifications/initialized", mcptest.Status(http.StatusCreated)), false},
		"credentials for its tools, by Bearer":   {by("tools/list", mcptest.Unauthorized("Bearer")), true},
		"credentials for its tools, by no more":  {by("tools/list", mcptest.Unauthorized()), true},
		"its tools are forbidden":                {by("tools/list", mcptest.Status(http.StatusForbidden)), true},
		"credentials for what it does not know":  {by("server/discover", mcptest.Unauthorized("Bearer")), false},
		"credentials for that, and says no more": {by("server/discover", mcptest.Unauthorized()), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mcptest.Serve(t, tt.server)
			client, target := Dialect{}.Handshaker(&mcp.Client{}), mcp.Target{URL: server.URL, Transport: server.Transport()}
			result, err := client.Probe(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			if result.Server.Name != "script" || !result.Capabilities.Tools || result.AuthRequired != tt.asks {
				t.Errorf("result: %+v", result)
			}
			if err := client.Check(t.Context(), target, result); err != nil {
				t.Errorf("asked whether that holds: %v", err)
			}
		})
	}
}

func TestAHandshakeMayTakeAsLongAsThatAPIsUsersKnow(t *testing.T) {
	t.Parallel()
	client, ok := Dialect{}.Handshaker(&mcp.Client{Name: "mcp-operator"}).(lenient).Client.(*mcp.Client)
	if !ok || client.Limits.Request != 10*time.Second || client.Name != "mcp-operator" {
		t.Errorf("the client is %+v", client)
	}
}

func TestOnlyCapabilitiesAreCompared(t *testing.T) {
	t.Parallel()
	with := func(c *mcpv1alpha1.MCPServerCapabilities) *mcpv1alpha1.MCPServerStatus {
		return &mcpv1alpha1.MCPServerStatus{ServerInfo: &mcpv1alpha1.MCPServerInfo{Capabilities: c}}
	}
	tools := with(&mcpv1alpha1.MCPServerCapabilities{Tools: true})
	more := with(&mcpv1alpha1.MCPServerCapabilities{Prompts: true})
	more.Tools = []mcpv1alpha1.ToolStatus{{Name: "a"}}
	for name, tt := range map[string]struct {
		before, after *mcpv1alpha1.MCPServerStatus
		want          string
	}{
		"other ones":         {tools, more, "tools: true->false, prompts: false->true"},
		"from none":          {with(nil), tools, "tools: false->true"},
		"the same":           {tools, tools, ""},
		"nothing was known":  {&mcpv1alpha1.MCPServerStatus{}, tools, ""},
		"nothing is known":   {tools, &mcpv1alpha1.MCPServerStatus{}, ""},
		"tools have no name": {more, with(&mcpv1alpha1.MCPServerCapabilities{Prompts: true}), ""},
	} {
		if got := (Dialect{}).CapabilityChange(tt.before, tt.after); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
