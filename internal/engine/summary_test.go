package engine

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// The conditions that Ready and the phase are derived from.
var (
	accepted  = condition(mcpv1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid", "Configuration is valid")
	invalid   = condition(mcpv1alpha1.ConditionAccepted, metav1.ConditionFalse, "Invalid", "Secret 'api' not found")
	allThere  = condition(mcpv1alpha1.ConditionApplied, metav1.ConditionTrue, "Applied", "All child objects are up to date")
	conflict  = condition(mcpv1alpha1.ConditionApplied, metav1.ConditionFalse, "OwnershipConflict", "it is somebody else's")
	ending    = condition(mcpv1alpha1.ConditionApplied, metav1.ConditionUnknown, "ApplyFailed", "Deployment team/demo is being deleted")
	available = condition(mcpv1alpha1.ConditionAvailable, metav1.ConditionTrue, "Available", "1 of 1 replicas are ready")
	starting  = condition(mcpv1alpha1.ConditionAvailable, metav1.ConditionUnknown, "Initializing", "Waiting for pods to become ready")
	crashing  = condition(mcpv1alpha1.ConditionAvailable, metav1.ConditionFalse, "CrashLooping", "Container crashing: exit code 1")
	stopped   = condition(mcpv1alpha1.ConditionAvailable, metav1.ConditionFalse, "ScaledToZero", "The server is scaled to 0 replicas")
	verified  = condition(mcpv1alpha1.ConditionVerified, metav1.ConditionTrue, "Verified", "Answered MCP 2025-11-25")
	unjudged  = condition(mcpv1alpha1.ConditionAccepted, metav1.ConditionUnknown, "Unknown", "read Secret team/api: forbidden")
	partly    = condition(mcpv1alpha1.ConditionVerified, metav1.ConditionTrue, "Verified", "Answered MCP 2025-11-25; pod demo-2 does not: Nothing listens.")
	asksToken = condition(mcpv1alpha1.ConditionVerified, metav1.ConditionTrue, "AuthRequired", "It asks for a token")
	probing   = condition(mcpv1alpha1.ConditionVerified, metav1.ConditionUnknown, "Probing", "The first MCP handshake is under way")
	noPod     = condition(mcpv1alpha1.ConditionVerified, metav1.ConditionUnknown, "NoReadyPod", "No pod is ready to be asked")
	notMCP    = condition(mcpv1alpha1.ConditionVerified, metav1.ConditionFalse, "NotMCP", "It is no MCP server.")
	unreached = condition(mcpv1alpha1.ConditionVerified, metav1.ConditionFalse, "ServiceUnreachable", ServiceUnreachable)
	stuck     = condition(mcpv1alpha1.ConditionProgressing, metav1.ConditionFalse, "ProgressDeadlineExceeded", "The rollout is stuck")
	rolling   = condition(mcpv1alpha1.ConditionProgressing, metav1.ConditionTrue, "RollingOut", "Pods are being added or replaced")
)

func TestReadyAndThePhaseAreDerivedFromTheOtherConditions(t *testing.T) {
	t.Parallel()
	type conditions = []metav1.Condition
	ready := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		c := condition(mcpv1alpha1.ConditionReady, status, reason, message)
		c.ObservedGeneration = 0 // the current one
		return c
	}
	const healthy = "MCP server is ready (1 of 1 instances healthy)"
	isReady := condition(mcpv1alpha1.ConditionReady, metav1.ConditionTrue, "Available", healthy)
	broken := ready(metav1.ConditionFalse, "ConfigurationInvalid", "Configuration must be fixed: Secret 'api' not found")
	crashed := ready(metav1.ConditionFalse, "DeploymentUnavailable", "Container crashing: exit code 1")

	tests := map[string]struct {
		conditions conditions
		failed     string // the acting phase that was not done
		stored     string // the reason of Ready before
		failing    diagnose.Finding

		noDeployment bool
		replicas     int32 // default: 1
		noPods       bool
		want         metav1.Condition
		phase        mcpv1alpha1.Phase
	}{
		"nothing is known": {
			want: ready(metav1.ConditionUnknown, "Initializing", ""), phase: "Pending",
		},
		"pods start": {
			conditions: conditions{accepted, allThere, starting, noPod}, noPods: true,
			want: ready(metav1.ConditionUnknown, "Initializing", "Waiting for pods to become ready"), phase: "Pending",
		},
		"the first handshake is under way": {
			conditions: conditions{accepted, allThere, available, probing},
			want:       ready(metav1.ConditionUnknown, "Initializing", "The first MCP handshake is under way"), phase: "Pending",
		},
		"a ready pod and no word of a handshake": {
			conditions: conditions{accepted, allThere, available},
			want:       ready(metav1.ConditionUnknown, "Initializing", "Waiting for the first MCP handshake"), phase: "Pending",
		},
		"all is well": {conditions: conditions{accepted, allThere, available, verified}, want: isReady, phase: "Ready"},
		"a server that asks for a token is ready for who has one": {
			conditions: conditions{accepted, allThere, available, asksToken}, want: isReady, phase: "Ready",
		},
		"a rollout in which old pods serve: ready, of the generation that was verified": {
			conditions: conditions{accepted, allThere, available, older(verified), rolling}, want: older(isReady), phase: "Ready",
		},
		"a rollout that is stuck while old pods serve": {
			conditions: conditions{accepted, allThere, available, older(verified), stuck}, want: older(isReady), phase: "Degraded",
		},
		"one of the pods does not answer": {
			conditions: conditions{accepted, allThere, available, partly}, replicas: 2,
			want: condition(mcpv1alpha1.ConditionReady, metav1.ConditionTrue, "Available", "MCP server is ready (1 of 2 instances healthy)"), phase: "Degraded",
		},
		"one of the pods crashes": {
			conditions: conditions{accepted, allThere, available, verified}, failing: diagnose.Finding{Reason: "CrashLooping", Message: "exit code 1"},
			want: isReady, phase: "Degraded",
		},
		"one of the pods may be stuck later": {
			conditions: conditions{accepted, allThere, available, verified}, failing: diagnose.Finding{After: time.Minute}, want: isReady, phase: "Ready",
		},
		"all pods crash, which more is said of": {
			conditions: conditions{accepted, allThere, crashing, noPod}, failing: diagnose.Finding{Reason: "CrashLooping", Message: "exit code 1"},
			noPods: true, want: crashed, phase: "Failed",
		},
		"the specification could not be judged before there was a Deployment": {
			conditions: conditions{unjudged, starting, noPod}, failed: PhaseValidation, noDeployment: true,
			want: ready(metav1.ConditionUnknown, "Initializing", "read Secret team/api: forbidden"), phase: "Pending",
		},
		"a child could not be written before there was a Deployment": {
			conditions: conditions{accepted, ending, starting, noPod}, failed: PhaseDeployment, noDeployment: true,
			want: ready(metav1.ConditionUnknown, "Initializing", "Deployment team/demo is being deleted"), phase: "Pending",
		},
		"the specification cannot be judged while pods start": {
			conditions: conditions{unjudged, older(allThere), starting, noPod}, failed: PhaseValidation, noPods: true,
			want: ready(metav1.ConditionUnknown, "Initializing", "Waiting for pods to become ready"), phase: "Pending",
		},
		"a child that is about to be made anew takes nothing from what serves": {
			conditions: conditions{accepted, ending, available, verified}, failed: PhaseService, want: isReady, phase: "Ready",
		},
		"a broken edit while old pods serve": {
			conditions: conditions{invalid, older(allThere), available, older(verified)}, failed: PhaseValidation, want: broken, phase: "Degraded",
		},
		"a broken edit while old pods do not answer": {
			conditions: conditions{invalid, older(allThere), available, notMCP}, failed: PhaseValidation, want: broken, phase: "Failed",
		},
		"a broken edit, and no pod is ready": {
			conditions: conditions{invalid, older(allThere), crashing, noPod}, failed: PhaseValidation, noPods: true, want: broken, phase: "Failed",
		},
		"a broken edit, and conditions that tell of pods that are gone": {
			conditions: conditions{invalid, older(allThere), available, verified}, failed: PhaseValidation, noPods: true, want: broken, phase: "Failed",
		},
		"a specification that was never good": {
			conditions: conditions{invalid, starting, noPod}, failed: PhaseValidation, noPods: true, want: broken, phase: "Failed",
		},
		"the NetworkPolicy is somebody else's": {
			conditions: conditions{accepted, conflict, starting, noPod}, failed: PhaseNetworkPolicy, noPods: true,
			want: ready(metav1.ConditionFalse, "NetworkPolicyUnavailable", "it is somebody else's"), phase: "Failed",
		},
		"the Deployment is somebody else's": {
			conditions: conditions{accepted, conflict, starting, noPod}, failed: PhaseDeployment, noPods: true,
			want: ready(metav1.ConditionFalse, "DeploymentUnavailable", "it is somebody else's"), phase: "Failed",
		},
		"the Service is somebody else's while pods serve": {
			conditions: conditions{accepted, conflict, available, verified}, failed: PhaseService,
			want: ready(metav1.ConditionFalse, "ServiceUnavailable", "it is somebody else's"), phase: "Degraded",
		},
		"paused after a child could not be applied: the reason stands": {
			conditions: conditions{accepted, conflict, starting, noPod}, stored: "ServiceUnavailable", noPods: true,
			want: ready(metav1.ConditionFalse, "ServiceUnavailable", "it is somebody else's"), phase: "Failed",
		},
		"paused after a child could not be applied to a server that worked: a False Ready is never Available": {
			conditions: conditions{accepted, conflict, available, verified}, stored: "Available",
			want: ready(metav1.ConditionFalse, "DeploymentUnavailable", "it is somebody else's"), phase: "Degraded",
		},
		"scaled to zero": {
			conditions: conditions{accepted, allThere, stopped, noPod}, noPods: true,
			want: ready(metav1.ConditionFalse, "ScaledToZero", "The server is scaled to 0 replicas"), phase: "ScaledToZero",
		},
		"scaled to zero after a broken edit: the edit is what needs somebody": {
			conditions: conditions{invalid, older(allThere), stopped, noPod}, failed: PhaseValidation, noPods: true, want: broken, phase: "Failed",
		},
		"all pods crash": {
			conditions: conditions{accepted, allThere, crashing, noPod}, noPods: true, want: crashed, phase: "Failed",
		},
		"all pods died that were verified: no memory makes it ready": {
			conditions: conditions{accepted, allThere, crashing, verified}, noPods: true, want: crashed, phase: "Failed",
		},
		"pods answer, but not through the Service: no word of the protocol": {
			conditions: conditions{accepted, allThere, available, unreached},
			want:       ready(metav1.ConditionFalse, "MCPEndpointUnavailable", ServiceUnreachable), phase: "Failed",
		},
		"what answers is no MCP server": {
			conditions: conditions{accepted, allThere, available, notMCP},
			want: ready(metav1.ConditionFalse, "MCPEndpointUnavailable",
				"MCP endpoint is not serving a valid MCP protocol: It is no MCP server."),
			phase: "Failed",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stored conditions
			if tt.stored != "" {
				stored = conditions{ready(metav1.ConditionFalse, tt.stored, "before")}
			}
			s := makeScope(makeDeployment(func(d *appsv1.Deployment) {
				if tt.replicas > 0 {
					d.Spec.Replicas, d.Status.ReadyReplicas = &tt.replicas, tt.replicas
				}
				if tt.noPods {
					d.Status.ReadyReplicas = 0
				}
			}), stored, tt.conditions)
			if tt.noDeployment {
				s.deployment, s.server.Status.ReadyReplicas = nil, 0
			}
			got := s.ready(tt.failed)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Ready (-want +got)\n%s", diff)
			}
			if got := phaseOf(append(tt.conditions, got), s.server.Status.ReadyReplicas, tt.failing); got != tt.phase {
				t.Errorf("phase: %q, want %q", got, tt.phase)
			}
		})
	}
}

func TestOtherAPIsAreToldADiagnosisInTheWordsThatTheirUsersKnow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ known, want string }{{"restarts: 1", "restarts: 1"}, {"", "restarts: 1; look at its log"}} {
		s := makeScope(makeDeployment(), nil, nil)
		s.diagnosis = diagnose.Finding{Reason: "NotReady", Message: "restarts: 1; look at its log", Known: tt.known}
		if got := s.summarize(reconcile.Result{}).Diagnosis; got != tt.want {
			t.Errorf("told %q, want %q", got, tt.want)
		}
	}
}

func TestReadyOutlivesAPassThatCouldNotReadThePods(t *testing.T) {
	t.Parallel()
	stored := []metav1.Condition{accepted, allThere, available, verified, rolling}
	s := makeScope(nil, stored, stored)
	s.seen = false
	s.server.Status.ReadyReplicas = 1
	if out := s.verify(t.Context()); !cmp.Equal(out, reconcile.Keep(0), cmp.AllowUnexported(reconcile.Outcome{})) {
		t.Errorf("Verified became %+v", out)
	}
	want := condition(mcpv1alpha1.ConditionReady, metav1.ConditionTrue, "Available", "MCP server is ready (1 of 1 instances healthy)")
	if diff := cmp.Diff(want, s.ready("")); diff != "" {
		t.Errorf("Ready (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(rolling, s.progressing()); diff != "" {
		t.Errorf("Progressing (-want +got)\n%s", diff)
	}
}

func TestTheEndpointIsThereOnceVerifiedAndWhileAPodIsReady(t *testing.T) {
	t.Parallel()
	const address, before = "http://demo-svc.team.svc.cluster.local:8080/mcp", "http://demo-svc.team.svc.cluster.local:3000/old"
	const moved = "http://demo-svc.team.svc.cluster.local:8080/old"
	tests := map[string]struct {
		conditions []metav1.Condition
		before     string
		want       string
	}{
		"not before it was verified":                            {conditions: []metav1.Condition{available, probing}},
		"once it was verified":                                  {conditions: []metav1.Condition{available, verified}, want: address},
		"the new one once the new generation was verified":      {conditions: []metav1.Condition{available, verified}, before: before, want: address},
		"the old one as long as only old pods were verified":    {conditions: []metav1.Condition{available, older(verified)}, before: before, want: before},
		"one at once when pods come back after there were none": {conditions: []metav1.Condition{available, older(verified)}, want: address},
		"it stays when the server no longer answers":            {conditions: []metav1.Condition{available, notMCP}, before: before, want: before},
		"it goes with the last ready pod":                       {conditions: []metav1.Condition{crashing, verified}, before: before},
		"it goes when the server is stopped":                    {conditions: []metav1.Condition{stopped, noPod}, before: before},
		"nothing is published of what is not known":             {},
		"the port follows the Service, the path what was verified": {
			conditions: []metav1.Condition{allThere, available, older(verified)}, before: before, want: moved,
		},
		"the port follows the Service when the server no longer answers": {
			conditions: []metav1.Condition{allThere, available, notMCP}, before: before, want: moved,
		},
		"the port waits for the Service": {
			conditions: []metav1.Condition{older(allThere), available, older(verified)}, before: before, want: before,
		},
		"the port does not follow a Service that could not be applied": {
			conditions: []metav1.Condition{conflict, available, older(verified)}, before: before, want: before,
		},
		"a Service alone publishes nothing": {conditions: []metav1.Condition{allThere, available, probing}},
		"a broken edit takes nothing from clients of old pods": {
			conditions: []metav1.Condition{invalid, available, older(verified)}, before: before, want: before,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := makeScope(makeDeployment(), nil, tt.conditions)
			s.before.Status.Endpoint = tt.before
			if got := s.endpoint(); got != tt.want {
				t.Errorf("endpoint: %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAProbeCountsOnlyWhenNoPodOfAnOlderGenerationIsLeft(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change    func(*appsv1.Deployment)
		unapplied bool
		want      bool
	}{
		"rolled out":                                   {want: true},
		"rolled out, one of two pods is ready":         {change: func(d *appsv1.Deployment) { d.Status.Replicas, d.Status.UpdatedReplicas = 2, 2 }, want: true},
		"one old and one new pod are ready":            {change: func(d *appsv1.Deployment) { d.Status.Replicas, d.Status.ReadyReplicas = 2, 2 }},
		"only the old pod is ready, one each is there": {change: func(d *appsv1.Deployment) { d.Status.Replicas = 2 }},
		"no pod is ready":                              {change: func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 }},
		"the Deployment is paused and did not begin":   {change: func(d *appsv1.Deployment) { d.Spec.Paused, d.Status.UpdatedReplicas = true, 0 }},
		"the edit was not observed":                    {change: func(d *appsv1.Deployment) { d.Generation++ }},
		"the edit was not applied":                     {unapplied: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := makeScope(makeDeployment(func(d *appsv1.Deployment) {
				if tt.change != nil {
					tt.change(d)
				}
			}), nil, nil)
			s.applied = !tt.unapplied
			if got := s.isSettled(); got != tt.want {
				t.Errorf("settled: %t, want %t", got, tt.want)
			}
		})
	}
	if makeScope(nil, nil, nil).isSettled() {
		t.Error("settled without a Deployment")
	}
}

func TestAProbeCountsOnlyWhenPodsAndDeploymentAreEquallyFresh(t *testing.T) {
	t.Parallel()
	dialer := func(context.Context, string, *http.Transport) (*mcpv1alpha1.MCPServerInfo, error) {
		return &mcpv1alpha1.MCPServerInfo{}, nil
	}
	tests := map[string]struct {
		pods   int
		copies int // pods with the labels that somebody else made
		change func(*scope)
		want   bool
	}{
		"as many pods as the Deployment tells of":                        {pods: 1, want: true},
		"a pod that the Deployment does not tell of, such as an old one": {pods: 2},
		"a debugging copy of a pod counts for nothing":                   {pods: 1, copies: 1, want: true},
		"a copy does not stand for a pod":                                {copies: 1},
		"a pod that was not seen yet":                                    {pods: 0},
		"without a prober the Deployment's word is enough":               {change: func(s *scope) { s.prober = nil }, want: true},
		"a replaced dialer asks the Service, not pods":                   {change: func(s *scope) { s.MCPDialer = dialer }, want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := makeScope(makeDeployment(), nil, nil)
			s.prober = probe.New(probe.Options{})
			for range tt.pods {
				s.pods = append(s.pods, *makePod())
			}
			for range tt.copies {
				s.pods = append(s.pods, *makePod(func(pod *corev1.Pod) { pod.OwnerReferences = nil }))
			}
			if tt.change != nil {
				tt.change(s)
			}
			if got := s.isSettled(); got != tt.want {
				t.Errorf("settled: %t, want %t", got, tt.want)
			}
		})
	}
}
