package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

func TestTheVerdictOfTheProberBecomesVerified(t *testing.T) {
	t.Parallel()
	answer := &mcp.Result{ProtocolVersion: "2025-11-25"}
	notMCP := &mcp.Error{Reason: mcp.NotMCP, Message: "The answer is not MCP."}
	refused := &mcp.Error{Reason: mcp.ConnectionFailed, Message: "Nothing listens."}
	none := metav1.Condition{Type: mcpv1alpha1.ConditionVerified, Status: metav1.ConditionUnknown}
	good := condition(mcpv1alpha1.ConditionVerified, metav1.ConditionTrue, "Verified", "Answered MCP 2025-11-25")
	bad := condition(mcpv1alpha1.ConditionVerified, metav1.ConditionFalse, "NotMCP", "The answer is not MCP. (pod: demo-1)")
	unreachable := condition(mcpv1alpha1.ConditionVerified, metav1.ConditionFalse, "ServiceUnreachable", ServiceUnreachable)
	notByService := reconcile.Unsettled("ServiceUnreachable", ServiceUnreachable, 0)
	probing := reconcile.Wait(mcpv1alpha1.ReasonProbing, "The first MCP handshake is under way", 0)
	verified := func(generation int64, message string) reconcile.Outcome {
		out := reconcile.Done(mcpv1alpha1.ReasonVerified, message)
		out.Generation = generation
		return out
	}
	partly := func(c metav1.Condition, more string) metav1.Condition {
		c.Message += "; pod demo-2 does not: Nothing listens." + more
		return c
	}
	unknownFor := func(d time.Duration) probe.Verdict { return probe.Verdict{Since: now.Add(-d)} }

	tests := map[string]struct {
		verdict probe.Verdict
		stored  metav1.Condition
		want    reconcile.Outcome
	}{
		"nothing is known yet":                                {unknownFor(0), none, probing},
		"the prober has not heard of the server":              {probe.Verdict{}, good, probing},
		"after a restart a good verdict stands":               {unknownFor(0), good, reconcile.Keep(2 * time.Minute)},
		"it stands for what is left of two minutes":           {unknownFor(90 * time.Second), good, reconcile.Keep(30 * time.Second)},
		"it stands until the two minutes are over":            {unknownFor(2*time.Minute - 1), good, reconcile.Keep(1)},
		"it no longer stands after two minutes":               {unknownFor(2 * time.Minute), good, probing},
		"a good verdict of an older generation stands too":    {unknownFor(time.Second), older(good), reconcile.Keep(2*time.Minute - time.Second)},
		"after a restart a bad verdict stands":                {unknownFor(0), bad, reconcile.Keep(2 * time.Minute)},
		"a bad verdict no longer stands after two minutes":    {unknownFor(2 * time.Minute), bad, probing},
		"a bad verdict of an older generation does not stand": {unknownFor(0), older(bad), probing},
		"no pod answers": {
			probe.Verdict{Known: true, Failure: notMCP, FailedPod: "demo-1"},
			good,
			reconcile.Unsettled("NotMCP", "The answer is not MCP. (pod: demo-1)", 0),
		},
		"no pod answers any more, though one did for this generation": {
			probe.Verdict{Known: true, Generation: 2, Result: answer, Failure: refused, FailedPod: "demo-1"},
			good,
			reconcile.Unsettled("ConnectionFailed", "Nothing listens. (pod: demo-1)", 0),
		},
		"a pod answers, and the Service does not": {
			probe.Verdict{Known: true, Serving: true, Result: answer, ServiceFailure: refused},
			good,
			notByService,
		},
		"why the Service does not answer is not told": {
			probe.Verdict{Known: true, Serving: true, Result: answer, ServiceFailure: notMCP}, good, notByService,
		},
		"a Service that did not answer stays so until it answered for this generation": {
			probe.Verdict{Known: true, Serving: true, Generation: 1, Result: answer}, older(unreachable), reconcile.Keep(0),
		},
		"a Service that did not answer stays so after a restart during a rollout": {
			probe.Verdict{Known: true, Serving: true}, unreachable, reconcile.Keep(0),
		},
		"a Service that did not answer does for this generation": {
			probe.Verdict{Known: true, Serving: true, Generation: 2, Result: answer}, unreachable, verified(2, "Answered MCP 2025-11-25"),
		},
		"a pod answers for an older generation, which was verified": {
			probe.Verdict{Known: true, Serving: true, Generation: 1, Result: answer}, older(good), verified(1, "Answered MCP 2025-11-25"),
		},
		"a pod answers for an older generation, which was verified, and one does not": {
			probe.Verdict{Known: true, Serving: true, Generation: 1, Result: answer, Failure: refused, FailedPod: "demo-2", Failed: 1},
			older(good),
			verified(1, "Answered MCP 2025-11-25; pod demo-2 does not: Nothing listens."),
		},
		"a pod answers for an older generation, and the one that did not is gone": {
			probe.Verdict{Known: true, Serving: true, Generation: 1, Result: answer}, older(partly(good, "")), verified(1, "Answered MCP 2025-11-25"),
		},
		"what is not verified is said once": {
			probe.Verdict{Known: true, Serving: true, Generation: 1, Result: answer}, older(partly(good, unverified)), verified(1, "Answered MCP 2025-11-25"),
		},
		"after a restart what was told of a pod stands until that was asked": {
			probe.Verdict{Known: true, Serving: true, Generation: 2, Result: answer, Undecided: true},
			partly(good, unverified),
			verified(2, "Answered MCP 2025-11-25; pod demo-2 does not: Nothing listens."),
		},
		"after a restart nothing is told of a pod of which nothing was told": {
			probe.Verdict{Known: true, Serving: true, Generation: 2, Result: answer, Undecided: true}, good, verified(2, "Answered MCP 2025-11-25"),
		},
		"a pod answers for an older generation, which was not verified": {
			probe.Verdict{Known: true, Serving: true, Generation: 1, Result: answer}, older(bad), verified(1, "Answered MCP 2025-11-25"),
		},
		"a pod answers during the first rollout": {
			probe.Verdict{Known: true, Serving: true, Result: answer}, none, probing,
		},
		"an answer without a result counts for nothing": {
			probe.Verdict{Known: true, Serving: true, Generation: 2}, none, probing,
		},
		"after a restart a pod answers before the rollout is over": {
			probe.Verdict{Known: true, Serving: true}, older(good), verified(1, "Answered MCP 2025-11-25"),
		},
		"a pod answers for this generation": {
			probe.Verdict{Known: true, Serving: true, Generation: 2, Result: answer}, older(good), verified(2, "Answered MCP 2025-11-25"),
		},
		"one pod answers for this generation, another does not": {
			probe.Verdict{Known: true, Serving: true, Generation: 2, Result: answer, Failure: refused, FailedPod: "demo-2"},
			good,
			verified(2, "Answered MCP 2025-11-25; pod demo-2 does not: Nothing listens."),
		},
		"one pod answers for this generation, two others do not": {
			probe.Verdict{Known: true, Serving: true, Generation: 2, Result: answer, Failure: refused, FailedPod: "demo-2", Failed: 2},
			good,
			verified(2, "Answered MCP 2025-11-25; 2 of its pods, among them demo-2, do not: Nothing listens."),
		},
		"tools that no client can use are counted": {
			probe.Verdict{
				Known: true, Serving: true, Generation: 2, Result: &mcp.Result{ProtocolVersion: "2025-11-25", DroppedTools: 3},
				Failure: refused, FailedPod: "demo-2",
			},
			good,
			verified(2, "Answered MCP 2025-11-25; 3 of its tools have names or definitions that no client can use; pod demo-2 does not: Nothing listens."),
		},
		"a server that asks for a token is up": {
			probe.Verdict{Known: true, Serving: true, Generation: 2, Result: &mcp.Result{AuthRequired: true}},
			none,
			reconcile.Outcome{
				Reason: "AuthRequired", Message: "The server is up and asks callers for a Bearer token; its tools are not known", Generation: 2,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := judge(tt.verdict, tt.stored, 2, now)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(reconcile.Outcome{})); diff != "" {
				t.Errorf("outcome (-want +got)\n%s", diff)
			}
		})
	}
}

func TestPodsThatDoNotAnswerAreCountedAsVerifiedTells(t *testing.T) {
	t.Parallel()
	silence := func(failed int32) string {
		return silence(probe.Verdict{Failure: &mcp.Error{Message: "Nothing listens."}, FailedPod: "demo-2", Failed: failed}, verified)
	}
	tests := map[string]struct {
		status  metav1.ConditionStatus
		message string
		want    int32
	}{
		"all answer":       {metav1.ConditionTrue, "Answered MCP 2025-11-25", 0},
		"one does not":     {metav1.ConditionTrue, "Answered MCP 2025-11-25" + silence(1), 1},
		"a dozen do not":   {metav1.ConditionTrue, "Answered MCP 2025-11-25" + silence(12) + unverified, 12},
		"none does":        {metav1.ConditionFalse, "Nothing listens. (pod: demo-1)" + silence(1), 0},
		"nothing is known": {metav1.ConditionUnknown, "", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := silentPods(condition(mcpv1alpha1.ConditionVerified, tt.status, "Verified", tt.message)); got != tt.want {
				t.Errorf("%d pods, want %d", got, tt.want)
			}
		})
	}
}

func TestWhatAServerSaidBeforeItAskedForATokenStandsForThatGenerationOnly(t *testing.T) {
	t.Parallel()
	known := mcpv1alpha1.MCPServerStatus{
		ServerInfo: &mcpv1alpha1.MCPServerInfo{Name: "demo"}, Tools: []mcpv1alpha1.ToolStatus{{Name: "a"}}, Sessions: mcpv1alpha1.SessionsStateful,
		ToolCount: new(int32(1)), PromptCount: new(int32(2)), ResourceCount: new(int32(3)),
	}
	tests := map[string]struct {
		stored metav1.Condition
		told   int64 // the generation that told what is known; 0 after a restart
		want   mcpv1alpha1.MCPServerStatus
	}{
		"it was verified in this generation":                {verified, 0, known},
		"it asked in this generation before":                {asksToken, 0, known},
		"another program was verified":                      {older(verified), 0, mcpv1alpha1.MCPServerStatus{}},
		"another program that asked for a token, too":       {older(asksToken), 0, mcpv1alpha1.MCPServerStatus{}},
		"another program, and no pod was ready in between":  {noPod, 1, mcpv1alpha1.MCPServerStatus{}},
		"the same program, and no pod was ready in between": {noPod, 2, known},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := makeScope(makeDeployment(), []metav1.Condition{tt.stored}, nil)
			s.server.Status = *known.DeepCopy()
			s.offered.set(types.NamespacedName{Namespace: "team", Name: "demo"}, offer{generation: tt.told})
			s.learn(&mcp.Result{AuthRequired: true})
			if diff := cmp.Diff(tt.want, s.server.Status); diff != "" {
				t.Errorf("status (-want +got)\n%s", diff)
			}
			if s.capabilityChange != "" {
				t.Errorf("told as a change: %q", s.capabilityChange)
			}
		})
	}
}
