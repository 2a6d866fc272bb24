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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/observer"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/diagnose"
	"github.com/mcp-operator/mcp-operator/internal/route"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestAvailableTellsOfTheGateway(t *testing.T) {
	t.Parallel()
	crashing := diagnose.Finding{Reason: "CrashLooping", Message: "Container crashing", After: time.Minute}
	unready := func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 }
	tests := map[string]struct {
		deployment       *appsv1.Deployment
		finding, runtime diagnose.Finding
		stored           []metav1.Condition
		want             metav1.Condition
	}{
		"ready": {
			deployment: makeGateway(), want: condition("Any", "True", "Available", "1 of 1 pods of the gateway are ready"),
		},
		"ready, with one that crashes": {
			deployment: makeGateway(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(2)) }), finding: crashing,
			want: condition("Any", "True", "Available", "1 of 2 pods of the gateway are ready; Container crashing"),
		},
		"ready, with an own workload that crashes": {
			deployment: makeGateway(), runtime: crashing,
			want: condition("Any", "True", "Available", "1 of 1 pods of the gateway are ready; the agent's own workload: Container crashing"),
		},
		"scaled to zero": {
			deployment: makeGateway(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }),
			want:       condition("Any", "False", "ScaledToZero", "The gateway is scaled to 0 replicas"),
		},
		"crashing": {
			deployment: makeGateway(unready), finding: crashing, want: condition("Any", "False", "CrashLooping", "Container crashing"),
		},
		"starting": {
			deployment: makeGateway(unready), want: condition("Any", "Unknown", "Initializing", "Waiting for pods of the gateway to become ready"),
		},
		"gone": {
			deployment: makeGateway(unready), stored: []metav1.Condition{condition("Available", "True", "Available", "")},
			want: condition("Any", "False", "NotReady", "No pod of the gateway is ready"),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScope(&Reconciler{}, makeAgent(withRuntime(), func(agent *mcpv1alpha1.MCPAgent) { agent.Status.Conditions = tt.stored }), known)
			s.gateway, s.runtime = workload{deployment: tt.deployment, finding: tt.finding}, workload{finding: tt.runtime}
			if diff := cmp.Diff(tt.want, conditionFrom(t, s.availability())); diff != "" {
				t.Errorf("condition (-want +got)\n%s", diff)
			}
		})
	}
}

// TestOnlyPodsOfTheGatewayAreAsked: neither copies of them, nor those that are not ready or go.
func TestOnlyPodsOfTheGatewayAreAsked(t *testing.T) {
	t.Parallel()
	objects := []client.Object{
		makeGateway(), makePod("one"),
		makePod("debug", func(pod *corev1.Pod) { pod.OwnerReferences = nil }),
		makePod("starting", func(pod *corev1.Pod) { pod.Status.Conditions = nil }),
		makePod("addressless", func(pod *corev1.Pod) { pod.Status.PodIP = "" }),
		makePod("evicted", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }),
		makePod("workload", func(pod *corev1.Pod) { pod.Labels["mcp.operator/component"] = "runtime" }),
		makePod("elsewhere", func(pod *corev1.Pod) { pod.Labels["mcp.operator/agent"] = "other" }),
	}
	r, g := makeReconciler(t, append(objects, makeServer())...)
	agent := makeAgent(func(agent *mcpv1alpha1.MCPAgent) { agent.Status.TableRevision = "rev" })
	s := makeScope(t, r, agent)
	if out := s.observePods(t.Context()); !out.IsDone() {
		t.Fatalf("outcome %+v", out)
	}
	s.observeRoutes(t.Context())
	var asked []string
	for _, pod := range g.asked.Pods {
		asked = append(asked, pod.Name+" "+pod.Address)
	}
	token, _ := statusToken(r.MasterKey, agent.UID)
	if diff := cmp.Diff([]string{"one 192.0.2.1:8081"}, asked); diff != "" || g.asked.Revision != "rev" || g.asked.Token != token {
		t.Errorf("asked for table %q (-want +got)\n%s", g.asked.Revision, diff)
	}
	env, err := s.environment()
	if err != nil {
		t.Fatal(err)
	}
	if secret := desired.ForAgent(agent, env).Secret; string(secret.Data["status-token"]) != token {
		t.Error("the gateway asks for another token than the operator has")
	}
}

// routesCase is what gateways say of an agent's table, and what becomes of it.
type routesCase struct {
	answers  []observer.Answer // of the pods one, two ...
	stored   metav1.Condition  // of Routed
	previous string            // the table before
	older    string            // the table before that, which was replaced twice as long ago as the last one was written
	written  time.Duration     // ago
	unknown  bool              // which table was the one before, and when the last one was written: the operator was restarted
	started  time.Duration     // ago
	stale    bool              // the specification's table could not be written
	want     metav1.Condition  // zero: the stored one stays
	serving  int
	verdict  mcpv1alpha1.ToolVerdict // of the one tool
}

const revisionOfTable = "%revision%"

func TestRoutedTellsWhatGatewaysServe(t *testing.T) {
	t.Parallel()
	routed := condition("Routed", "True", "Routed", "1 tools are served")
	failed := func(s *table.Status) { s.Backends[0].State, s.Backends[0].ErrorClass = table.BackendFailed, "Connect" }
	unasked := func(s *table.Status) {
		s.Backends[0] = table.BackendStatus{Name: "server-web", State: table.BackendUnknown}
	}
	cut := func(s *table.Status) { s.Backends[0].Truncated = []string{"prompts/list", "tools/list"} }
	unread := func(s *table.Status) { s.Backends[0].Unread = []string{"prompts/list"} }
	twice := func(s *table.Status) {
		s.Backends[0].Conflicts = []table.NameConflict{{Kind: "prompt", Name: "greet", Backends: []string{"server-web", "server-files"}}}
	}
	refusing := func(s *table.Status) { s.TableError = "too\nnew" }
	silent := observer.Answer{Known: true, Err: errors.New("gateway pod one does not answer")}
	const hour = time.Hour
	tests := map[string]routesCase{
		"all is served": {
			answers: []observer.Answer{serving(revisionOfTable)}, want: routed, serving: 1, verdict: "Served",
		},
		"a prompt has a name that another has": {
			answers: []observer.Answer{serving(revisionOfTable, twice)}, serving: 1, verdict: "Served",
			want: condition("Routed", "False", "ToolsUnavailable", "prompt 'greet': offered by another, server/web, so it is not served: give one a prefix"),
		},
		"a list could not be read once": {
			answers: []observer.Answer{serving(revisionOfTable, unread)}, want: routed, serving: 1, verdict: "Served",
		},
		"more is served than is listed": {
			answers: []observer.Answer{unlisted(serving(revisionOfTable), 3000)}, serving: 1, verdict: "Served",
			want: condition("Routed", "True", "Routed", "3001 tools are served"),
		},
		"a server offers more than is taken": {
			answers: []observer.Answer{serving(revisionOfTable, cut)}, serving: 1, verdict: "Served",
			want: condition("Routed", "True", "Routed",
				"1 tools are served; more than a gateway takes of one server are offered by server/web: the rest is not served"),
		},
		"a backend fails": {
			answers: []observer.Answer{serving(revisionOfTable, failed)}, serving: 1, verdict: "Unavailable",
			want: condition("Routed", "False", "ToolsUnavailable", "server/web (ask) is Unavailable: nobody accepts connections there"),
		},
		"a backend was not asked yet": {
			answers: []observer.Answer{serving(revisionOfTable, unasked)}, serving: 1, verdict: "Pending",
			want: condition("Routed", "Unknown", "Pending", "Not all that is granted is served yet; status.effectiveTools says what is pending, and why"),
		},
		"no pod is ready": {
			verdict: "Pending", want: condition("Routed", "Unknown", "Pending", "No pod of the gateway is ready to be asked"),
		},
		"one of two serves the newest table": {
			answers: []observer.Answer{serving("before"), serving(revisionOfTable)}, previous: "before", want: routed, serving: 2, verdict: "Served",
		},
		"the table before stays for a moment": {
			answers: []observer.Answer{serving("before")}, previous: "before", stored: routed, written: time.Second, serving: 1,
		},
		"the table before stays for long": {
			answers: []observer.Answer{serving("before")}, previous: "before", stored: routed, written: hour, serving: 1,
			want: condition("Routed", "Unknown", "Pending", "No gateway serves the newest routing table yet"),
		},
		"tables that follow each other faster than gateways do": {
			answers: []observer.Answer{serving("ancient")}, older: "ancient", previous: "before", stored: routed, written: time.Second, serving: 1,
		},
		"a table that was replaced twice, the first time long ago": {
			answers: []observer.Answer{serving("ancient")}, older: "ancient", previous: "before", stored: routed, written: 6 * time.Second,
		},
		"a table that is none of the last two does not count": {
			answers: []observer.Answer{serving("ancient")}, previous: "before", stored: routed, written: hour,
			want: condition("Routed", "Unknown", "Pending", "No gateway serves the newest routing table yet"),
		},
		"the newest table is refused": {
			answers: []observer.Answer{serving("before", refusing)}, previous: "before", stored: routed, written: time.Second, serving: 1,
			want: condition("Routed", "False", "TableRefused", "A gateway refuses the newest routing table and serves the one before: too new"),
		},
		"a restart does not change that the newest table is refused": {
			answers: []observer.Answer{serving("before", refusing)}, unknown: true, started: hour, serving: 1,
			want: condition("Routed", "False", "TableRefused", "A gateway refuses the newest routing table and serves the one before: too new"),
		},
		"a restart while gateways take a table over is not told": {
			answers: []observer.Answer{serving("before")}, unknown: true, stored: routed, serving: 1,
		},
		"a restart long ago, and a gateway that serves an old table": {
			answers: []observer.Answer{serving("before")}, unknown: true, stored: routed, started: hour,
			want: condition("Routed", "Unknown", "Pending", "No gateway serves the newest routing table yet"),
		},
		"the operator has just started": {answers: []observer.Answer{{}}, stored: routed},
		"the operator has just started, and the agent is new": {
			answers: []observer.Answer{{}}, verdict: "Pending",
			want: condition("Routed", "Unknown", "Pending", "No gateway serves the newest routing table yet"),
		},
		"gateways have not answered for long": {
			answers: []observer.Answer{silent}, stored: routed, started: hour, written: hour,
			want: condition("Routed", "Unknown", "Pending", "No gateway serves the newest routing table yet"),
		},
		"an edit that is no good": {answers: []observer.Answer{serving("rev")}, stored: routed, stale: true, serving: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkRoutes(t, tt)
		})
	}
}

func checkRoutes(t *testing.T, tt routesCase) {
	t.Helper()
	objects := []client.Object{makeServer(), makeGateway()}
	g := &gateways{answers: map[types.UID]observer.Answer{}}
	for i, answer := range tt.answers {
		pod := makePod([]string{"one", "two"}[i])
		objects = append(objects, pod)
		g.answers[pod.UID] = answer
	}
	r, _ := makeReconciler(t, objects...)
	r.observer, r.started = g, time.Now().Add(-tt.started)
	agent := makeAgent(func(agent *mcpv1alpha1.MCPAgent) {
		if tt.stored.Type != "" {
			agent.Status.Conditions = []metav1.Condition{tt.stored}
		}
	})
	s := makeScope(t, r, agent)
	revision := s.route.Table.Revision
	for uid, answer := range g.answers {
		if answer.Status != nil && answer.Status.Revision == revisionOfTable {
			status := *answer.Status
			status.Revision = revision
			answer.Status = &status
			g.answers[uid] = answer
		}
	}
	s.agent.Status.TableRevision = revision
	if tt.stale {
		s.agent.Status.TableRevision = "rev"
	}
	if !tt.unknown {
		r.remember(s.key(), func(m *memory) {
			if tt.older != "" {
				m.replace(tt.older, tt.previous, time.Now().Add(-2*tt.written))
			}
			m.replace(tt.previous, "", time.Now().Add(-tt.written))
		})
	}
	s.observePods(t.Context())
	got, recorded := s.observeRoutes(t.Context()).Condition("Routed", 2)
	if !recorded {
		got = metav1.Condition{}
	}
	if diff := cmp.Diff(tt.want, got); diff != "" {
		t.Errorf("condition (-want +got)\n%s", diff)
	}
	if s.serving != tt.serving {
		t.Errorf("%d pods serve, want %d", s.serving, tt.serving)
	}
	var verdict mcpv1alpha1.ToolVerdict
	for _, tool := range s.agent.Status.EffectiveTools {
		verdict = tool.Verdict
	}
	if verdict != tt.verdict {
		t.Errorf("verdict %q, want %q", verdict, tt.verdict)
	}
}

func TestWhatAGatewaySaysIsCleaned(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a sentence": "a sentence", "two\nlines\t\x1b[31m": "two lines [31m", "\xff": "", strings.Repeat("x", 600): strings.Repeat("x", 512) + "…",
	} {
		if got := clean(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// unlisted is an answer with so many tools that are served and not listed.
func unlisted(answer observer.Answer, count int32) observer.Answer {
	answer.Status.Unlisted = map[string]int32{"server-web": count}
	return answer
}

// refusal is the status of a gateway that serves no table, and says why.
func refusal(why string) *route.Heard { return &route.Heard{Status: table.Status{TableError: why}} }
