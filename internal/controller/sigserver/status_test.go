package sigserver

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sigv1alpha1 "github.com/mcp-operator/mcp-operator/api/sig/v1alpha1"
	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/engine"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

func TestReadyFollowsTheTableOfTheCompatibilityAPI(t *testing.T) {
	t.Parallel()
	scaled := func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }
	behind := func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 4 }
	tooFew := func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{says(appsv1.DeploymentAvailable, corev1.ConditionFalse, "few"), progressing}
	}
	forbidden := says(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, `pods "demo-x" is forbidden: exceeded quota`)
	stuck := says(appsv1.DeploymentProgressing, corev1.ConditionFalse, "it made no progress")
	type conditions = []metav1.Condition
	tests := map[string]struct {
		deployment *appsv1.Deployment
		found      conditions // beside valid and applied
		stored     metav1.Condition
		reason     string // of the diagnosis
		diagnosis  string
		unseen     bool
		want       string
	}{
		"the configuration is invalid": {
			deployment: makeDeployment(), found: conditions{invalid, misconfig}, stored: ready,
			want: "False ConfigurationInvalid: Configuration must be fixed: ConfigMap 'c' not found in namespace 'team'",
		},
		"a child could not be written": {
			deployment: makeDeployment(), found: conditions{unapplied, noService}, stored: ready,
			want: "False ServiceUnavailable: Failed to reconcile Service: resource team/demo is owned by A/b",
		},
		"no replicas are asked for": {
			deployment: makeDeployment(scaled, behind), found: conditions{found("Ready", metav1.ConditionFalse, "ScaledToZero", "x")},
			want: "True ScaledToZero: MCP server is scaled to 0 replicas",
		},
		"there is no Deployment yet":      {want: "Unknown Initializing: Waiting for Deployment to report status"},
		"the Deployment has said nothing": {deployment: makeDeployment(noneReady()), want: "Unknown Initializing: Waiting for Deployment to report status"},
		"the Deployment has not looked yet": {
			deployment: makeDeployment(behind), found: conditions{verified, ready},
			want: "False DeploymentUnavailable: Deployment is processing spec update",
		},
		"the Deployment has not looked yet, and what serves goes on": {
			deployment: makeDeployment(behind), found: conditions{verified, ready}, stored: ready,
			want: "True Available: MCP server is ready (1 of 1 instances healthy)",
		},
		"all is well": {
			deployment: makeDeployment(), found: conditions{verified, ready}, want: "True Available: MCP server is ready (1 of 1 instances healthy)",
		},
		"the first handshake is under way": {
			deployment: makeDeployment(), found: conditions{starting}, want: "Unknown Initializing: The first MCP handshake is under way",
		},
		"the server asks for credentials": {
			deployment: makeDeployment(), found: conditions{asks, ready},
			want: "True Available: MCP server is ready (1 of 1 instances healthy); it asks callers for credentials, so what it offers is not known",
		},
		"the server does not answer MCP": {
			deployment: makeDeployment(), found: conditions{notMCP, unanswered}, stored: ready,
			want: "False MCPEndpointUnavailable: MCP endpoint is not serving a valid MCP protocol: It is no MCP server.",
		},
		"only the Service does not answer": {
			deployment: makeDeployment(),
			found:      conditions{unreached, found("Ready", metav1.ConditionFalse, "MCPEndpointUnavailable", engine.ServiceUnreachable)},
			want:       "False MCPEndpointUnavailable: MCP endpoint is not serving a valid MCP protocol: " + engine.ServiceUnreachable,
		},
		"the first of several pods is ready": {
			deployment: makeDeployment(tooFew), found: conditions{verified, ready},
			want: "False DeploymentUnavailable: Waiting for instances to become healthy",
		},
		"several pods served, and one still does": {
			deployment: makeDeployment(tooFew), found: conditions{verified, ready}, stored: ready,
			want: "True Available: MCP server is ready (1 of 1 instances healthy)",
		},
		"pods start": {
			deployment: makeDeployment(noneReady(progressing)), want: "False DeploymentUnavailable: Waiting for instances to become healthy",
		},
		"pods served, and none does any more": {
			deployment: makeDeployment(noneReady(progressing)), stored: ready,
			want: "False DeploymentUnavailable: Waiting for instances to become healthy",
		},
		"a quota keeps pods away": {
			deployment: makeDeployment(noneReady(forbidden)),
			want:       "False DeploymentUnavailable: No healthy instances (pod details unavailable): pods \"demo-x\" is forbidden: exceeded quota",
		},
		"a rollout is stuck and nobody knows why": {
			deployment: makeDeployment(noneReady(stuck)),
			want:       "False DeploymentUnavailable: No healthy instances (pod details unavailable): it made no progress",
		},
		"neither progressing nor available nor a word": {
			deployment: makeDeployment(noneReady(says("Other", corev1.ConditionTrue, ""))),
			want:       "False DeploymentUnavailable: No healthy instances (pod details unavailable)",
		},
		"a pod tells why, in the words of this API": {
			deployment: makeDeployment(noneReady(progressing)), reason: "OOMKilled",
			diagnosis: "Container OOMKilled: exit code 137, restarts: 2; raise spec.resources.limits.memory (pod: p)",
			want:      "False DeploymentUnavailable: Container OOMKilled: exit code 137, restarts: 2 (pod: p)",
		},
		"a container is not ready after restarts": {
			deployment: makeDeployment(noneReady(progressing)), reason: "NotReady", diagnosis: "Container not passing health checks: restarts: 2 (pod: p)",
			want: "False DeploymentUnavailable: Container not passing health checks: restarts: 2 (pod: p)",
		},
		"a container is not ready, which that API never told": {
			deployment: makeDeployment(noneReady(progressing)), reason: "NotReady",
			diagnosis: "Container not passing health checks: it runs and its startup probe has not succeeded (pod: p)",
			want: "False DeploymentUnavailable: Waiting for instances to become healthy: " +
				"Container not passing health checks: it runs and its startup probe has not succeeded (pod: p)",
		},
		"a readiness gate, which that API never told": {
			deployment: makeDeployment(noneReady(progressing)), reason: "NotReady", diagnosis: "Pod is not ready, though its containers are: gate (pod: p)",
			want: "False DeploymentUnavailable: Waiting for instances to become healthy: Pod is not ready, though its containers are: gate (pod: p)",
		},
		"an image cannot be pulled, and a rollout ends": {
			deployment: makeDeployment(noneReady(stuck)), reason: "ImagePullFailed", diagnosis: `Image pull failed for "x": no (pod: p)`,
			want: `False DeploymentUnavailable: Image pull failed for "x": no (pod: p)`,
		},
		"what that API never told follows what it told": {
			deployment: makeDeployment(noneReady(progressing)), reason: "Unschedulable", diagnosis: "Pod cannot be scheduled: no node (pod: p)",
			want: "False DeploymentUnavailable: Waiting for instances to become healthy: Pod cannot be scheduled: no node (pod: p)",
		},
		"pods could not be read: what was said stands": {unseen: true, stored: unanswered, want: "False MCPEndpointUnavailable: " + unanswered.Message},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := tt.found
			for _, c := range []metav1.Condition{valid, applied, available} {
				if reconcile.ConditionOf(all, c.Type).Reason == "" {
					all = append(all, c)
				}
			}
			pass := makePass(tt.deployment, all...)
			pass.Seen, pass.DiagnosisReason, pass.Diagnosis = !tt.unseen, tt.reason, tt.diagnosis
			got := readyOf(pass, tt.stored)
			if told := string(got.Status) + " " + got.Reason + ": " + got.Message; told != tt.want {
				t.Errorf("Ready is\n%s, want\n%s", told, tt.want)
			}
		})
	}
}

// written returns the status that a pass leaves of a stored one.
func written(stored sigv1alpha1.MCPServerStatus, pass engine.Pass) sigv1alpha1.MCPServerStatus {
	server := makeServer(func(s *sigv1alpha1.MCPServer) { s.Status = stored })
	Dialect{}.Write(server, pass)
	return server.Status
}

const address = "http://demo.team.svc.cluster.local:8080/mcp"

func TestAStatusKeepsWhatServesBesideWhatIsWrong(t *testing.T) {
	t.Parallel()
	pass := func(change func(*engine.Pass), conditions ...metav1.Condition) engine.Pass {
		p := makePass(makeDeployment(), append(conditions, available)...)
		p.Server.Status.Endpoint = address
		p.Server.Status.ServerInfo = &mcpv1alpha1.MCPServerInfo{Name: "everything"}
		if change != nil {
			change(&p)
		}
		return p
	}
	serving := written(sigv1alpha1.MCPServerStatus{}, pass(nil, valid, applied, verified, ready))
	if serving.Address == nil || serving.DeploymentName != "demo" || serving.ServerInfo == nil ||
		serving.ReadyReplicas != 1 || serving.Replicas != 1 || serving.ServiceName != "demo" {
		t.Fatalf("a server that is ready has the status %+v", serving)
	}
	wrong := func(p *engine.Pass) { p.Cause = errors.New("wrong") }
	for name, p := range map[string]engine.Pass{
		"a refused specification": pass(wrong, invalid, applied, verified, misconfig),
		"a child of somebody":     pass(wrong, valid, unapplied, verified, noService),
	} {
		got := written(serving, p)
		got.Conditions = serving.Conditions
		if diff := cmp.Diff(serving, got); diff != "" {
			t.Errorf("%s changed what is told of what serves (-before +after)\n%s", name, diff)
		}
	}
	failing := written(serving, pass(func(p *engine.Pass) { p.Attempts = 4 }, valid, applied, notMCP, unanswered))
	if failing.Address != nil || failing.HandshakeRetryCount != 4 {
		t.Errorf("a server that does not answer has the address %v and %d attempts", failing.Address, failing.HandshakeRetryCount)
	}
	if again := written(failing, pass(nil, valid, applied, verified, ready)); again.HandshakeRetryCount != 0 || again.Address == nil {
		t.Errorf("once it answers, it has the address %v and %d attempts", again.Address, again.HandshakeRetryCount)
	}
}

func TestAServerThatAsksForCredentialsHasEmptyInformation(t *testing.T) {
	t.Parallel()
	got := written(sigv1alpha1.MCPServerStatus{}, makePass(makeDeployment(), valid, applied, available, asks, ready))
	if diff := cmp.Diff(&sigv1alpha1.ServerInfo{}, got.ServerInfo); diff != "" {
		t.Errorf("serverInfo (-want +got)\n%s", diff)
	}
}

func TestTheStatusHasTheTwoConditionsAndNoOther(t *testing.T) {
	t.Parallel()
	foreign := found("Foreign", metav1.ConditionTrue, "X", "y")
	stored := sigv1alpha1.MCPServerStatus{Conditions: []metav1.Condition{foreign}}
	got := written(stored, makePass(makeDeployment(), valid, applied, available, verified, ready))
	var types []string
	for _, c := range got.Conditions {
		types = append(types, c.Type)
	}
	if strings.Join(types, " ") != "Accepted Ready" {
		t.Errorf("conditions: %v", types)
	}
}

func TestAPauseThatIsNotUnderstoodIsToldBesideWhatIsAccepted(t *testing.T) {
	t.Parallel()
	const says = `The annotation mcp.operator/paused is "yes", and pauses nothing`
	misread := found("Paused", metav1.ConditionFalse, "Invalid", says)
	for name, tt := range map[string]struct {
		accepted, paused metav1.Condition
		want             string // the message of Accepted
		told             bool   // that it is not understood
	}{
		"it is not understood":      {valid, misread, "Configuration is valid; " + says, true},
		"nothing is paused":         {valid, metav1.Condition{Type: "Paused"}, "Configuration is valid", false},
		"what is wrong goes before": {invalid, misread, invalid.Message, false},
	} {
		first := written(sigv1alpha1.MCPServerStatus{}, makePass(makeDeployment(), tt.accepted, tt.paused, applied, available, verified, ready))
		again := written(first, makePass(makeDeployment(), unjudged, tt.paused, applied, available, verified, ready))
		for _, status := range []sigv1alpha1.MCPServerStatus{first, again} {
			if got := reconcile.ConditionOf(status.Conditions, "Accepted").Message; got != tt.want {
				t.Errorf("%s: Accepted says %q, want %q", name, got, tt.want)
			}
			server := Dialect{}.Read(makeServer(func(s *sigv1alpha1.MCPServer) { s.Status = status }))
			got := reconcile.ConditionOf(server.Status.Conditions, "Paused")
			if (got.Message == says) != tt.told || (got.Status == metav1.ConditionFalse) != tt.told {
				t.Errorf("%s: it is read as %+v", name, got)
			}
		}
	}
}

func TestTheConditionsOfAnObjectAreItsOwnAndNotWhatTheyStandFor(t *testing.T) {
	t.Parallel()
	server := makeServer(func(s *sigv1alpha1.MCPServer) { s.Status.Conditions = []metav1.Condition{valid, ready} })
	if n := len(Dialect{}.Read(server).Status.Conditions); n <= 2 {
		t.Fatalf("the status stands for %d conditions: the test shows nothing", n)
	}
	if diff := cmp.Diff([]metav1.Condition{valid, ready}, Dialect{}.Conditions(server)); diff != "" {
		t.Errorf("conditions (-want +got)\n%s", diff)
	}
}

// A restart of the operator begins with what the status says: it must mean the same again.
func TestWhatAStatusStandsForIsReadAgain(t *testing.T) {
	t.Parallel()
	read := func(change func(*sigv1alpha1.MCPServerStatus), conditions ...metav1.Condition) *mcpv1alpha1.MCPServer {
		return Dialect{}.Read(makeServer(func(s *sigv1alpha1.MCPServer) {
			s.Status.ObservedGeneration, s.Status.Conditions = 2, conditions
			if change != nil {
				change(&s.Status)
			}
		}))
	}
	withAddress := func(s *sigv1alpha1.MCPServerStatus) { s.Address = &sigv1alpha1.Address{URL: address} }
	before := valid
	before.ObservedGeneration = 1
	credentials := ready
	credentials.Message += offerUnknown
	unreachable := unanswered
	unreachable.Message = engine.NotServingMCP + engine.ServiceUnreachable
	for name, tt := range map[string]struct {
		server             *mcpv1alpha1.MCPServer
		verified, applied  string // status, reason
		verifiedGeneration int64
	}{
		"nothing":                              {read(nil), "Unknown ", "Unknown ", 0},
		"ready":                                {read(withAddress, valid, ready), "True Verified", "True Applied", 2},
		"ready, for who has credentials":       {read(withAddress, valid, credentials), "True AuthRequired", "True Applied", 2},
		"no answer":                            {read(nil, valid, unanswered), "False ProtocolError", "True Applied", 2},
		"no answer through the Service":        {read(nil, valid, unreachable), "False ServiceUnreachable", "True Applied", 2},
		"refused, and the old one serves":      {read(withAddress, invalid, misconfig), "True Verified", "True Applied", 1},
		"refused, and nothing serves":          {read(nil, invalid, misconfig), "Unknown ", "True Applied", 0},
		"a child is missing, the others serve": {read(withAddress, valid, noService), "True Verified", "False ApplyFailed", 1},
		"pods start":                           {read(nil, valid, starting), "Unknown ", "True Applied", 0},
		"paused before the last edit":          {read(withAddress, before, ready), "True Verified", "True Applied", 2},
	} {
		for conditionType, want := range map[string]string{"Verified": tt.verified, "Applied": tt.applied} {
			c := reconcile.ConditionOf(tt.server.Status.Conditions, conditionType)
			if got := string(c.Status) + " " + c.Reason; got != want {
				t.Errorf("%s: %s is %q, want %q", name, conditionType, got, want)
			}
			older := strings.HasPrefix(name, "refused") || strings.HasPrefix(name, "paused")
			if conditionType == "Applied" && c.Reason != "" && (c.ObservedGeneration == 2) == older {
				t.Errorf("%s: applied is the generation %d", name, c.ObservedGeneration)
			}
			if conditionType == "Verified" && c.ObservedGeneration != tt.verifiedGeneration {
				t.Errorf("%s: verified is the generation %d, want %d", name, c.ObservedGeneration, tt.verifiedGeneration)
			}
		}
	}
}
