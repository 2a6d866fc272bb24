package engine

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

func TestWhatAServerToldBeforeItAskedForATokenIsLearnt(t *testing.T) {
	t.Parallel()
	result := &mcp.Result{
		AuthRequired: true, ProtocolVersion: "2025-11-25", ProtocolVersions: []string{"2025-11-25"},
		Server: mcp.ServerInfo{Name: "demo", Version: "2"}, Capabilities: mcp.Capabilities{Tools: true}, Stateful: true,
	}
	info := func(version string, prompts bool) *mcpv1alpha1.MCPServerInfo {
		return &mcpv1alpha1.MCPServerInfo{
			Name: "demo", Version: version, ProtocolVersion: "2025-11-25", ProtocolVersions: []string{"2025-11-25"},
			Capabilities: &mcpv1alpha1.MCPServerCapabilities{Tools: true, Prompts: prompts},
		}
	}
	tools := []mcpv1alpha1.ToolStatus{{Name: "a", Digest: "sha256:1"}}
	for name, tt := range map[string]struct {
		stored metav1.Condition
		before mcpv1alpha1.MCPServerStatus
		want   mcpv1alpha1.MCPServerStatus
		change string
	}{
		"nothing was known": {
			metav1.Condition{},
			mcpv1alpha1.MCPServerStatus{},
			mcpv1alpha1.MCPServerStatus{ServerInfo: info("2", false), Sessions: "Stateful"},
			"",
		},
		"its tools were known": {
			verified,
			mcpv1alpha1.MCPServerStatus{ServerInfo: info("1", true), Tools: tools, ToolCount: new(int32(1)), PromptCount: new(int32(1))},
			mcpv1alpha1.MCPServerStatus{
				ServerInfo: info("2", false), Sessions: "Stateful", Tools: tools, ToolCount: new(int32(1)), PromptCount: new(int32(1)),
			},
			"prompts: true->false, version: 1->2",
		},
		"those of another program were": {
			older(verified),
			mcpv1alpha1.MCPServerStatus{ServerInfo: info("1", true), Tools: tools, ToolCount: new(int32(1))},
			mcpv1alpha1.MCPServerStatus{ServerInfo: info("2", false), Sessions: "Stateful"},
			"prompts: true->false",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := makeScope(makeDeployment(), nil, nil)
			s.before.Status = *tt.before.DeepCopy()
			s.before.Status.Conditions = []metav1.Condition{tt.stored}
			s.server.Status = *tt.before.DeepCopy()
			s.learn(result)
			if diff := cmp.Diff(tt.want, s.server.Status); diff != "" {
				t.Errorf("status (-want +got)\n%s", diff)
			}
			if s.capabilityChange != tt.change {
				t.Errorf("told as a change: %q, want %q", s.capabilityChange, tt.change)
			}
		})
	}
}

func TestThatAServerKeepsSessionsWhichItsAuthorDeniesIsToldOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		asked, seen mcpv1alpha1.SessionMode
		out         reconcile.Outcome
		want        bool
	}{
		"it does":          {mcpv1alpha1.SessionsStateless, mcpv1alpha1.SessionsStateful, reconcile.Done("Verified", "ok"), true},
		"it does not":      {mcpv1alpha1.SessionsStateless, mcpv1alpha1.SessionsStateless, reconcile.Done("Verified", "ok"), false},
		"its author knows": {mcpv1alpha1.SessionsStateful, mcpv1alpha1.SessionsStateful, reconcile.Done("Verified", "ok"), false},
		"nobody said":      {mcpv1alpha1.SessionsAuto, mcpv1alpha1.SessionsStateful, reconcile.Done("Verified", "ok"), false},
		"that was of an older generation": {
			mcpv1alpha1.SessionsStateless, mcpv1alpha1.SessionsStateful, reconcile.Outcome{Message: "ok", Generation: 1}, false,
		},
		"it does not answer": {mcpv1alpha1.SessionsStateless, mcpv1alpha1.SessionsStateful, reconcile.Unsettled("NotMCP", "ok", 0), false},
	} {
		s := makeScope(makeDeployment(), nil, nil)
		s.server.Spec.Sessions, s.server.Status.Sessions = tt.asked, tt.seen
		want := "ok"
		if tt.want {
			want += keepsSessions
		}
		if out := s.warned(tt.out); out.Message != want {
			t.Errorf("%s: %q", name, out.Message)
		}
	}
	told := verified
	told.Message += unverified + keepsSessions
	if answer, silence := parted(told.Message); answer != verified.Message || silence != "" {
		t.Errorf("what it answered is %q, %q", answer, silence)
	}
	rollout := makeScope(makeDeployment(), []metav1.Condition{told}, nil)
	rollout.server.Spec.Sessions, rollout.server.Status.Sessions = mcpv1alpha1.SessionsStateless, mcpv1alpha1.SessionsStateful
	if out := rollout.warned(reconcile.Outcome{Message: "ok", Generation: 1}); out.Message != "ok"+keepsSessions {
		t.Errorf("in a rollout it says %q", out.Message)
	}
	with := func(c metav1.Condition) *mcpv1alpha1.MCPServer {
		return makeServer(func(server *mcpv1alpha1.MCPServer) { server.Status.Conditions = []metav1.Condition{c} })
	}
	want := []Event{{"Warning", EventSessionsNotKept, "ServerVerified", "MCPServer team/demo answers" + keepsSessions}}
	if diff := cmp.Diff(want, changes(with(verified), with(told), news{})); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
	if again := changes(with(told), with(told), news{}); again != nil {
		t.Errorf("told again: %v", again)
	}
}

// Also by a prober, which bounds nobody: its own client bounds itself.
func TestAReplacedDialerIsGivenAsMuchTimeAsAnyHandshake(t *testing.T) {
	t.Parallel()
	var left time.Duration
	d := dialed{func(ctx context.Context, _ string, _ *http.Transport) (*mcpv1alpha1.MCPServerInfo, error) {
		deadline, _ := ctx.Deadline()
		left = time.Until(deadline)
		return &mcpv1alpha1.MCPServerInfo{}, nil
	}}
	for what, ask := range map[string]func() error{
		"a probe": func() error { _, err := d.Probe(t.Context(), mcp.Target{}); return err },
		"a check": func() error { return d.Check(t.Context(), mcp.Target{}, &mcp.Result{}) },
	} {
		left = 0
		if err := ask(); err != nil || left <= 0 || left > inlineTimeout {
			t.Errorf("%s has %s: %v", what, left, err)
		}
	}
}
