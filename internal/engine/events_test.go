package engine

import (
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

func TestEventsTellOfChangesOnly(t *testing.T) {
	t.Parallel()
	type conditions = []metav1.Condition
	ready := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(mcpv1alpha1.ConditionReady, status, reason, message)
	}
	misread := condition(mcpv1alpha1.ConditionPaused, metav1.ConditionFalse, "Invalid", "it is neither true nor false")
	initializing := ready(metav1.ConditionUnknown, "Initializing", "Waiting")
	isReady := ready(metav1.ConditionTrue, "Available", "MCP server is ready (1 of 1 instances healthy)")
	broken := ready(metav1.ConditionFalse, "ConfigurationInvalid", "Configuration must be fixed: Secret 'api' not found")
	otherwiseInvalid := condition(mcpv1alpha1.ConditionAccepted, metav1.ConditionFalse, "Invalid", "ConfigMap 'c' not found")

	valid := Event{"Normal", "Valid", "ConfigurationAccepted", "MCPServer team/demo configuration is valid; Accepted=True"}
	serves := Event{"Normal", "Available", "ServerReady", "MCPServer team/demo is ready; Ready=True"}
	refused := Event{"Warning", "Invalid", "ConfigurationValidation", "Secret 'api' not found"}

	failed := func(reason, message string) conditions {
		return conditions{accepted, ready(metav1.ConditionFalse, reason, message)}
	}
	warning := func(reason, action, note string) []Event { return []Event{{"Warning", reason, action, note}} }
	serving, crashing := conditions{accepted, isReady}, failed("DeploymentUnavailable", "restarts: 1")
	// lost is what Available says why no pod is ready.
	lost := func(reason, message string) conditions {
		return append(failed("DeploymentUnavailable", message), condition(mcpv1alpha1.ConditionAvailable, metav1.ConditionFalse, reason, message))
	}
	otherPods := conditions{accepted, ready(metav1.ConditionTrue, "Available", "MCP server is ready (2 of 2 instances healthy)")}

	tests := map[string]struct {
		before, after    conditions
		capabilityChange string
		want             []Event
	}{
		"a pause is not understood": {
			serving, conditions{accepted, isReady, misread}, "", warning("Invalid", "PauseNotUnderstood", "it is neither true nor false"),
		},
		"it still is not":                        {conditions{accepted, isReady, misread}, conditions{accepted, isReady, misread}, "", nil},
		"a first good pass":                      {nil, conditions{accepted, initializing}, "", []Event{valid}},
		"it becomes ready":                       {conditions{accepted, initializing}, serving, "", []Event{serves}},
		"it stays ready":                         {serving, serving, "", nil},
		"another number of pods is no news":      {serving, otherPods, "", nil},
		"a generation that was verified is none": {conditions{accepted, older(isReady)}, serving, "", nil},
		"a first pass that is refused":           {nil, conditions{invalid, broken}, "", []Event{refused}},
		"it stays refused":                       {conditions{invalid, broken}, conditions{invalid, broken}, "", nil},
		"it is refused for another cause": {
			conditions{invalid, broken}, conditions{otherwiseInvalid, broken}, "", warning("Invalid", "ConfigurationValidation", "ConfigMap 'c' not found"),
		},
		"it is mended": {conditions{invalid, broken}, serving, "", []Event{valid, serves}},
		"pods crash":   {serving, crashing, "", warning("DeploymentUnavailable", "DeploymentReconcileFailed", "restarts: 1")},
		"pods crash again": {
			crashing, failed("DeploymentUnavailable", "restarts: 2"), "", warning("DeploymentUnavailable", "DeploymentReconcileFailed", "restarts: 2"),
		},
		"the action tells why no pod is ready": {serving, lost("CrashLooping", "x"), "", warning("DeploymentUnavailable", "CrashLooping", "x")},
		"another cause is another series": {
			lost("CrashLooping", "x"), lost("OOMKilled", "y"), "", warning("DeploymentUnavailable", "OOMKilled", "y"),
		},
		"the Deployment is refused while pods serve: the action is ours": {
			serving, append(crashing, available), "", warning("DeploymentUnavailable", "DeploymentReconcileFailed", "restarts: 1"),
		},
		"the Service is refused while no pod is ready: the action is ours": {
			serving, append(failed("ServiceUnavailable", "quota"), starting), "", warning("ServiceUnavailable", "ServiceReconcileFailed", "quota"),
		},
		"nothing new of pods that crash": {crashing, crashing, "", nil},
		"the Service is refused": {
			serving, failed("ServiceUnavailable", "quota"), "", warning("ServiceUnavailable", "ServiceReconcileFailed", "quota"),
		},
		"the NetworkPolicy is refused": {
			serving, failed("NetworkPolicyUnavailable", "quota"), "", warning("NetworkPolicyUnavailable", "NetworkPolicyReconcileFailed", "quota"),
		},
		"the server no longer speaks MCP": {
			serving, failed("MCPEndpointUnavailable", "no"), "", warning("MCPEndpointUnavailable", "MCPHandshakeFailed", "no"),
		},
		"who scales to zero knows it": {serving, failed("ScaledToZero", "The server is scaled to 0 replicas"), "", nil},
		"starting anew is no problem": {failed("ScaledToZero", ""), conditions{accepted, initializing}, "", nil},
		"a server that offers something else": {
			serving, serving, "tools added: b", warning("CapabilityChanged", "CapabilityChangeDetected", "MCP server capabilities changed: tools added: b"),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := func(list conditions) *mcpv1alpha1.MCPServer {
				return makeServer(func(server *mcpv1alpha1.MCPServer) { server.Status.Conditions = list })
			}
			got := changes(with(tt.before), with(tt.after), news{capabilityChange: tt.capabilityChange})
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(Event{})); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
		})
	}
}

func TestThatAServerIsDegradedIsToldWhenItBegins(t *testing.T) {
	t.Parallel()
	isReady := condition(mcpv1alpha1.ConditionReady, metav1.ConditionTrue, "Available", "MCP server is ready (1 of 1 instances healthy)")
	broken := condition(mcpv1alpha1.ConditionReady, metav1.ConditionFalse, "ConfigurationInvalid", "Configuration must be fixed")
	crash := diagnose.Finding{Reason: "CrashLooping", Message: "exit code 1, restarts: 57"}
	silentPod := Event{"Warning", "Degraded", "PodNotAnswering", "Answered MCP 2025-11-25; pod demo-2 does not: Nothing listens."}
	crashes := Event{"Warning", "Degraded", "CrashLooping", "exit code 1, restarts: 57"}
	stands := Event{"Warning", "Degraded", "ProgressDeadlineExceeded", "The rollout is stuck"}
	type state struct {
		phase      mcpv1alpha1.Phase
		conditions []metav1.Condition
	}
	of := func(phase mcpv1alpha1.Phase, conditions ...metav1.Condition) state {
		return state{phase, append(conditions, accepted, available)}
	}
	tests := map[string]struct {
		before, after state
		failing       diagnose.Finding
		want          []Event
	}{
		"all is well":                {of("Ready", isReady, verified), of("Ready", isReady, verified), diagnose.Finding{}, nil},
		"a rollout":                  {of("Ready", isReady, verified), of("Ready", isReady, older(verified), rolling), diagnose.Finding{}, nil},
		"a pod ceases to answer":     {of("Ready", isReady, verified), of("Degraded", isReady, partly), diagnose.Finding{}, []Event{silentPod}},
		"it still does not":          {of("Degraded", isReady, partly), of("Degraded", isReady, partly), diagnose.Finding{}, nil},
		"a pod crashes":              {of("Ready", isReady, verified), of("Degraded", isReady, verified), crash, []Event{crashes}},
		"it crashes again":           {of("Degraded", isReady, verified), of("Degraded", isReady, verified), crash, nil},
		"a rollout is stuck":         {of("Ready", isReady, rolling), of("Degraded", isReady, stuck), diagnose.Finding{}, []Event{stands}},
		"one whose pods crash is":    {of("Degraded", isReady, rolling), of("Degraded", isReady, stuck), crash, []Event{stands}},
		"it stays stuck":             {of("Degraded", isReady, stuck), of("Degraded", isReady, stuck), crash, nil},
		"a pod crashes after one":    {of("Degraded", isReady, partly), of("Degraded", isReady, verified), crash, []Event{crashes}},
		"it is over":                 {of("Degraded", isReady, partly), of("Ready", isReady, verified), diagnose.Finding{}, nil},
		"an edit is mended, pods do": {of("Degraded", broken, verified), of("Degraded", isReady, verified), crash, []Event{crashes}},
		"another API has no phases":  {of("", isReady, verified), of("", isReady, verified), crash, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := func(is state) *mcpv1alpha1.MCPServer {
				return makeServer(func(server *mcpv1alpha1.MCPServer) {
					server.Status.Phase, server.Status.Conditions = is.phase, is.conditions
				})
			}
			var got []Event
			for _, e := range changes(with(tt.before), with(tt.after), news{failing: tt.failing}) {
				if e.Reason == EventDegraded {
					got = append(got, e)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
		})
	}
}

func TestTheLogLineOfAnEventIsConstantAndItsNoteAValue(t *testing.T) {
	t.Parallel()
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	s := makeScope(makeDeployment(), nil, []metav1.Condition{accepted})
	s.report(log.IntoContext(t.Context(), logger), reconcile.Result{}, Pass{})
	want := []string{`"level"=0 "msg"="event" "reason"="Valid" "action"="ConfigurationAccepted" ` +
		`"note"="MCPServer team/demo configuration is valid; Accepted=True"`}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("log (-want +got)\n%s", diff)
	}
}
