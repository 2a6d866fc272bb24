package mcpagent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/observer"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// The conditions that Ready and the phase are derived from.
var (
	accepted  = condition("Accepted", "True", "Valid", "Configuration is valid")
	applied   = condition("Applied", "True", "Applied", "All child objects are up to date")
	available = condition("Available", "True", "Available", "1 of 1 pods of the gateway are ready")
	routed    = condition("Routed", "True", "Routed", "1 tools are served")
	isReady   = condition("Ready", "True", "Available", "The endpoint is served (1 of 1 pods of the gateway are ready)")
)

func older(c metav1.Condition) metav1.Condition {
	c.ObservedGeneration = 1
	return c
}

// summaryCase is a pass, and what is derived of it.
type summaryCase struct {
	current         []metav1.Condition // beside those of a pass in which all is well
	stored          []metav1.Condition
	result          reconcile.Result
	deployment      func(*appsv1.Deployment)
	noPods          bool
	serving, newest int
	answers         []observer.Answer
	started         time.Duration // ago
	runtime         diagnose.Finding
	want            metav1.Condition // Ready
	phase           mcpv1alpha1.Phase
	endpoint        bool
}

func TestReadyIsDerived(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	unknown := func(message string) metav1.Condition { return condition("Ready", "Unknown", "Initializing", message) }
	old := func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }
	checkSummaries(t, map[string]summaryCase{
		"all is well": {serving: 1, newest: 1, want: isReady, phase: "Ready", endpoint: true},
		"not all that is granted is served": {
			current: []metav1.Condition{condition("Routed", "False", "ToolsUnavailable", "x")}, serving: 1, newest: 1,
			want: isReady, phase: "Degraded", endpoint: true,
		},
		"the own workload crashes": {
			runtime: diagnose.Finding{Reason: "CrashLooping", Message: "x"}, serving: 1, newest: 1, want: isReady, phase: "Degraded", endpoint: true,
		},
		"the configuration is no good": {
			current: []metav1.Condition{condition("Accepted", "False", "Invalid", "no key")}, stored: []metav1.Condition{older(isReady)}, serving: 1,
			want: condition("Ready", "False", "ConfigurationInvalid", "Configuration must be fixed: no key"), phase: "Degraded", endpoint: true,
		},
		"a Service that is somebody else's": {
			current: []metav1.Condition{condition("Applied", "False", "OwnershipConflict", "it is owned by others")}, noPods: true,
			result: reconcile.Result{Failed: PhaseService},
			want:   condition("Ready", "False", "ServiceUnavailable", "it is owned by others"), phase: "Failed",
		},
		"a table that could not be written": {
			current: []metav1.Condition{condition("Applied", "False", "Rejected", "too large")}, noPods: true, result: reconcile.Result{Failed: PhaseTable},
			want: condition("Ready", "False", "DeploymentUnavailable", "too large"), phase: "Failed",
		},
		"the gateway crashes": {
			current: []metav1.Condition{condition("Available", "False", "CrashLooping", "exit code 1")},
			want:    condition("Ready", "False", "DeploymentUnavailable", "exit code 1"), phase: "Failed",
		},
		"it starts": {
			current: []metav1.Condition{condition("Available", "Unknown", "Initializing", "Waiting for pods")},
			want:    unknown("Waiting for pods"), phase: "Pending",
		},
		"a rollout runs, and an old pod serves": {
			deployment: old, stored: []metav1.Condition{older(isReady)}, serving: 1, newest: 1, want: older(isReady), phase: "Ready", endpoint: true,
		},
		"the first rollout of an edited agent runs": {
			deployment: old, serving: 1, newest: 1, want: unknown("Waiting for the rollout"), phase: "Pending",
		},
		"the table before is served, and the newest not yet": {
			stored: []metav1.Condition{older(isReady)}, serving: 1, want: older(isReady), phase: "Ready", endpoint: true,
		},
		"the operator has just started": {
			answers: []observer.Answer{{}}, stored: []metav1.Condition{isReady}, want: isReady, phase: "Ready", endpoint: true,
		},
		"the operator cannot ask for long": {
			answers: []observer.Answer{{}}, stored: []metav1.Condition{isReady}, started: hour,
			want: unknown("Waiting for a gateway to serve the routing table"), phase: "Pending", endpoint: true,
		},
		"the gateway does not answer": {
			answers: []observer.Answer{{Known: true, Err: errors.New("it does not answer")}}, stored: []metav1.Condition{isReady},
			want:  condition("Ready", "False", "MCPEndpointUnavailable", "The gateway could not be asked what it serves: it does not answer"),
			phase: "Failed", endpoint: true,
		},
		"the gateway refuses its first table": {
			answers: []observer.Answer{{Known: true, Status: refusal("too new")}},
			want:    condition("Ready", "False", "MCPEndpointUnavailable", "The gateway refuses the routing table: too new"), phase: "Failed",
		},
		"a rollout is stuck": {
			deployment: func(d *appsv1.Deployment) {
				d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse}}
			},
			serving: 1, newest: 1, want: isReady, phase: "Degraded", endpoint: true,
		},
	})
}

func checkSummaries(t *testing.T, tests map[string]summaryCase) {
	t.Helper()
	const endpoint = "http://helper-gateway.team.svc.cluster.local:8080/mcp"
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := makeAgent(withRuntime(), func(agent *mcpv1alpha1.MCPAgent) {
				agent.Status.Conditions, agent.Status.Endpoint = tt.stored, endpoint
				if len(tt.stored) == 0 {
					agent.Status.Endpoint = ""
				}
			})
			r := New(Options{})
			r.started = time.Now().Add(-tt.started)
			s := newScope(r, agent, known)
			s.agent.Status.Conditions = []metav1.Condition{accepted, applied, available, routed}
			for _, c := range tt.current {
				s.set(c)
			}
			s.applied, s.seen, s.serving, s.newest, s.answers = true, true, tt.serving, tt.newest, tt.answers
			s.gateway = workload{deployment: makeGateway(), pods: []corev1.Pod{*makePod("one")}}
			if tt.deployment != nil {
				tt.deployment(s.gateway.deployment)
			}
			if tt.noPods {
				s.gateway = workload{}
			}
			s.runtime.finding = tt.runtime
			s.summarize(&tt.result)
			if diff := cmp.Diff(tt.want, withoutTime(s.current("Ready"))); diff != "" {
				t.Errorf("Ready (-want +got)\n%s", diff)
			}
			if got := s.agent.Status; got.Phase != tt.phase || (got.Endpoint == endpoint) != tt.endpoint || got.ObservedGeneration != 2 {
				t.Errorf("phase %s, want %s; endpoint %q; observed generation %d", got.Phase, tt.phase, got.Endpoint, got.ObservedGeneration)
			}
		})
	}
}

func withoutTime(c metav1.Condition) metav1.Condition {
	c.LastTransitionTime = metav1.Time{}
	return c
}

func TestProgressingTellsOfBothWorkloads(t *testing.T) {
	t.Parallel()
	rolling := func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }
	stuck := func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: "too slow"}}
	}
	crash := diagnose.Finding{Reason: "CrashLooping", Message: "Container crashing"}
	tests := map[string]struct {
		gateway, runtime workload
		hasRuntime       bool
		refused          bool // Applied is False
		paused           bool
		want             metav1.Condition
	}{
		"all pods are new": {
			gateway: workload{deployment: makeGateway()}, runtime: workload{deployment: makeGateway()},
			want: condition("Progressing", "False", "Settled", "All pods are of the current specification"),
		},
		"there is no own workload": {
			gateway: workload{deployment: makeGateway()}, want: condition("Progressing", "False", "Settled", "All pods are of the current specification"),
		},
		"the gateway is rolled out": {
			gateway: workload{deployment: makeGateway(rolling)}, want: condition("Progressing", "True", "RollingOut", "Pods are being added or replaced"),
		},
		"the own workload is rolled out, and crashes": {
			gateway: workload{deployment: makeGateway()}, runtime: workload{deployment: makeGateway(rolling), finding: crash},
			want: condition("Progressing", "True", "RollingOut", "Pods are being added or replaced; Container crashing"),
		},
		"the own workload is stuck": {
			gateway: workload{deployment: makeGateway(rolling)}, runtime: workload{deployment: makeGateway(stuck)},
			want: condition("Progressing", "False", "ProgressDeadlineExceeded", "The rollout is stuck: too slow"),
		},
		"somebody paused the gateway's Deployment": {
			gateway: workload{deployment: makeGateway(rolling, func(d *appsv1.Deployment) { d.Spec.Paused = true })},
			want: condition("Progressing", "Unknown", "Paused",
				"No pods are replaced, the Deployment is paused: kubectl rollout resume deployment/helper-gateway"),
		},
		"the own workload is not there yet": {
			gateway: workload{deployment: makeGateway()}, hasRuntime: true,
			want: condition("Progressing", "True", "RollingOut", "Pods are being added or replaced"),
		},
		"the own workload could not be written": {
			gateway: workload{deployment: makeGateway()}, hasRuntime: true, refused: true,
			want: condition("Progressing", "False", "Settled", "Nothing is rolled out"),
		},
		"the own workload could not be written, and the gateway is rolled out": {
			gateway: workload{deployment: makeGateway(rolling)}, hasRuntime: true, refused: true,
			want: condition("Progressing", "True", "RollingOut", "Pods are being added or replaced"),
		},
		"nothing is there": {want: condition("Progressing", "True", "RollingOut", "Pods are being added or replaced")},
		"paused before the edit was applied": {
			paused: true, gateway: workload{deployment: makeGateway()},
			want: condition("Progressing", "Unknown", "Paused", "Reconciling is paused before the current generation was applied"),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScope(New(Options{}), makeAgent(), known)
			if tt.hasRuntime {
				withRuntime()(s.agent)
			}
			if tt.refused {
				s.set(condition("Applied", "False", "OwnershipConflict", "it is owned by others"))
			}
			s.gateway, s.runtime, s.paused, s.seen = tt.gateway, tt.runtime, tt.paused, true
			s.set(s.progressing())
			if diff := cmp.Diff(tt.want, withoutTime(s.current("Progressing"))); diff != "" {
				t.Errorf("Progressing (-want +got)\n%s", diff)
			}
		})
	}
}

func TestTheEndpointOfAnOlderGenerationStandsUntilTheCurrentOneIsServed(t *testing.T) {
	t.Parallel()
	const plain, secure = "http://helper-gateway.team.svc.cluster.local:8080/mcp", "https://helper-gateway.team.svc.cluster.local:8080/mcp"
	for want, ready := range map[string]metav1.Condition{plain: older(isReady), secure: isReady} {
		agent := makeAgent(func(agent *mcpv1alpha1.MCPAgent) {
			agent.Spec.Gateway = &mcpv1alpha1.AgentGateway{TLS: &mcpv1alpha1.GatewayTLS{SecretName: "certificate"}}
			agent.Status.Endpoint, agent.Status.Conditions = plain, []metav1.Condition{ready, available}
		})
		if got := newScope(New(Options{}), agent, known).endpoint(); got != want {
			t.Errorf("Ready of generation %d: endpoint %s, want %s", ready.ObservedGeneration, got, want)
		}
	}
}

func TestForeignConditionsGoAndPausedComesAndGoes(t *testing.T) {
	t.Parallel()
	foreign := condition("Sunny", "True", "Weather", "")
	agent := makeAgent(func(agent *mcpv1alpha1.MCPAgent) {
		agent.Annotations = map[string]string{mcpv1alpha1.AnnotationPaused: "true"}
		agent.Status.Conditions = []metav1.Condition{foreign}
	})
	s := newScope(New(Options{}), agent, known)
	s.summarize(&reconcile.Result{})
	if reconcile.ConditionOf(s.agent.Status.Conditions, "Sunny").Reason != "" || s.current("Paused").Status != metav1.ConditionTrue {
		t.Errorf("conditions %+v", s.agent.Status.Conditions)
	}
	agent.Annotations, agent.Status = map[string]string{mcpv1alpha1.AnnotationPaused: "yes"}, s.agent.Status
	s = newScope(New(Options{}), agent, known)
	s.summarize(&reconcile.Result{})
	if c := s.current("Paused"); s.paused || c.Status != metav1.ConditionFalse || c.Reason != "Invalid" || !strings.Contains(c.Message, `is "yes"`) {
		t.Errorf("paused: %t; what could not be read is told as %+v", s.paused, c)
	}
	agent.Annotations, agent.Status = nil, s.agent.Status
	s = newScope(New(Options{}), agent, known)
	if s.summarize(&reconcile.Result{}); s.current("Paused").Reason != "" {
		t.Errorf("it is still told that it is paused: %+v", s.agent.Status.Conditions)
	}
}

func TestEventsTellOfChangesOnly(t *testing.T) {
	t.Parallel()
	of := func(conditions ...metav1.Condition) *mcpv1alpha1.MCPAgent {
		return makeAgent(func(agent *mcpv1alpha1.MCPAgent) { agent.Status.Conditions = conditions })
	}
	unrouted := condition("Routed", "False", "ToolsUnavailable", "server/web is Missing")
	crashed := condition("Ready", "False", "DeploymentUnavailable", "Container crashing")
	misread := condition("Paused", "False", "Invalid", `it is "yes"`)
	tests := map[string]struct {
		before, after *mcpv1alpha1.MCPAgent
		want          []event
	}{
		"nothing": {before: of(accepted, isReady, routed), after: of(accepted, isReady, routed)},
		"accepted": {
			before: of(), after: of(accepted),
			want: []event{{"Normal", "Valid", "ConfigurationAccepted", "MCPAgent team/helper configuration is valid; Accepted=True"}},
		},
		"refused": {
			before: of(accepted, isReady),
			after: of(condition("Accepted", "False", "Invalid", "no key"),
				condition("Ready", "False", "ConfigurationInvalid", "Configuration must be fixed: no key")),
			want: []event{{"Warning", "Invalid", "ConfigurationValidation", "no key"}},
		},
		"ready": {
			before: of(accepted), after: of(accepted, isReady),
			want: []event{{"Normal", "Available", "AgentReady", "MCPAgent team/helper is ready; Ready=True"}},
		},
		"a tool is gone": {
			before: of(accepted, isReady, routed), after: of(accepted, isReady, unrouted),
			want: []event{{"Warning", "ToolsUnavailable", "ToolsRouting", "server/web is Missing"}},
		},
		"it is back": {
			before: of(accepted, isReady, unrouted), after: of(accepted, isReady, routed),
			want: []event{{"Normal", "Routed", "ToolsRouting", "All that is granted is served"}},
		},
		"a pause is not understood": {
			before: of(accepted, isReady), after: of(accepted, isReady, misread),
			want: []event{{"Warning", "Invalid", "PauseNotUnderstood", `it is "yes"`}},
		},
		"it still is not": {before: of(accepted, isReady, misread), after: of(accepted, isReady, misread)},
		"the gateway crashes": {
			before: of(accepted, isReady), after: of(accepted, crashed, condition("Available", "False", "CrashLooping", "Container crashing")),
			want: []event{{"Warning", "DeploymentUnavailable", "CrashLooping", "Container crashing"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, changes(tt.before, tt.after), cmp.AllowUnexported(event{})); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
		})
	}
}
