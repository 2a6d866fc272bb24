package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// bearing adds a token to requests.
type bearing string

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// session opens a session of protocol version 2025-11-25 at a pod of the gateway; changed is told when its list of tools changes.
func (a *runningAgent) session(token string, changed chan<- time.Time) *mcp.ClientSession {
	a.t.Helper()
	address := a.forward(a.gatewayPod(), 8080)
	sdk := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			select {
			case changed <- time.Now():
			default:
			}
		},
	})
	transport := &mcp.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", HTTPClient: &http.Client{Transport: bearing(token)}}
	s, err := sdk.Connect(a.t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		a.t.Fatalf("open a session: %v", err)
	}
	a.t.Cleanup(func() { _ = s.Close() })
	return s
}

func toolsOf(ctx context.Context, s *mcp.ClientSession) ([]string, error) {
	var names []string
	for tool, err := range s.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, tool.Name)
	}
	return names, nil
}

func TestGrantThatIsWithdrawnIsGoneForOpenSessionsAndCallsInFlight(t *testing.T) {
	t.Parallel()
	f := start(t)
	api := f.petstore("api")
	slow := echoTool(api)
	slow.TimeoutSeconds = 300 // far beyond what is waited for here: nothing but the withdrawal ends the call
	f.tool("slow", slow)
	f.tool("find-pet", findPet(api, nil))
	a := f.agent("team", nil, "slow", "find-pet")
	ready := a.awaitReady("slow", "find-pet")
	changed := make(chan time.Time, 100) // the table may change a few times before
	s := a.session(f.token("team", ready.Status.Endpoint), changed)
	await(t, "the session has the tool", agentSoon, func() string { // each replica learns of its table by itself
		if names, err := toolsOf(t.Context(), s); err != nil || !slices.Contains(names, "slow") {
			return fmt.Sprintf("its tools are %q, %v", names, err)
		}
		return ""
	})
	pods := namesOf(a.podsOf("gateway"))
	a.letIn(a.caller(), "find-pet", `{"petId": 1}`)
	ended := make(chan time.Time, 1)
	go func() {
		_, _ = execute(t.Context(), a.caller(), "/echo", "call", "-timeout", "300s", "slow", `{"delay": "300s"}`)
		ended <- time.Now()
	}()
	await(t, "the slow call is under way", podStart, func() string {
		if len(api.requests("/echo")) == 0 {
			return "the API was not asked yet"
		}
		return ""
	})

	withdrawn := time.Now() // nothing that was told before is of it
	a.change(func(object *agent) { object.Spec.Tools = []mcpv1alpha1.ObjectName{named("find-pet")} })
	deadline := time.After(patience(withdrawnSoon))
	await(t, "the tool is gone for the open session", withdrawnSoon, func() string {
		names, err := toolsOf(t.Context(), s)
		if err != nil || slices.Contains(names, "slow") || !slices.Contains(names, "find-pet") {
			return strings.Join(names, ", ")
		}
		return ""
	})
	for what, happened := range map[string]<-chan time.Time{"the session was told": changed, "the call in flight ended": ended} {
		var at time.Time
		for !at.After(withdrawn) {
			select {
			case at = <-happened:
			case <-deadline:
				t.Fatalf("not %s after the grant was withdrawn: %s", patience(withdrawnSoon), what)
			}
		}
		t.Logf("%s %.1fs after the grant was withdrawn, promised within %s", what, at.Sub(withdrawn).Seconds(), withdrawnSoon)
	}
	await(t, "the API sees that nobody waits", withdrawnSoon, func() string {
		if !api.requests("/echo")[0].Cancelled {
			return "its request goes on"
		}
		return ""
	})
	a.fails("slow", `{"delay": "0s"}`, "error -32602")
	a.answers("find-pet", `{"petId": 1}`, "Rex")
	for name := range namesOf(a.podsOf("gateway")) {
		if !pods[name] {
			t.Errorf("a withdrawn grant replaced pods of the gateway: %s is new", name)
		}
	}
}

func TestConflictAMissingToolAndADeadBackendCostTheirOwnToolsAlone(t *testing.T) {
	t.Parallel()
	f := start(t)
	api := f.petstore("api")
	f.tool("find-pet", findPet(api, nil))
	dying := f.petstore("dying")
	f.tool("dying", findPet(dying, nil))
	for _, name := range []string{"one", "two"} {
		f.run(server(name).image("echo").with(func(spec *mcpv1alpha1.MCPServerSpec) { spec.Args = []string{"mcp", "-tools", "same,of-" + name} }))
	}
	a := f.agent("team", func(spec *mcpv1alpha1.MCPAgentSpec) {
		spec.Servers = []mcpv1alpha1.AgentServer{{ObjectName: named("one")}, {
			ObjectName: named("two"), Tools: &mcpv1alpha1.ToolPolicy{Allow: []string{"same", "of-two", "misspelt"}},
		}}
	}, "find-pet", "late", "dying")
	a.await("serves what it can, and says of the rest why not", agentSoon, serves("find-pet", "of-one", "of-two", "dying"),
		judged("same", mcpv1alpha1.VerdictConflict), judged("", mcpv1alpha1.VerdictMissing, "late"),
		judged("misspelt", mcpv1alpha1.VerdictMissing, "the server offers no tool of that name"),
		says[*agent]("Routed", metav1.ConditionFalse, "ToolsUnavailable"), says[*agent]("Ready", metav1.ConditionTrue, ""))
	a.fails("same", `{}`, "error -32602")
	a.answers("find-pet", `{"petId": 1}`, "Rex")

	f.tool("late", findPet(api, nil))
	a.await("serves a tool that came late", agentSoon, serves("late"))
	a.answers("late", `{"petId": 2}`, "Tom")
	a.change(func(object *agent) { object.Spec.Servers[1].Prefix, object.Spec.Servers[1].Tools = "two_", nil })
	a.await("serves both by names of their own", agentSoon, serves("same", "two_same", "find-pet"), says[*agent]("Routed", metav1.ConditionTrue, ""))

	f.remove(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "dying"}})
	a.fails("dying", `{"petId": 1}`)
	a.answers("find-pet", `{"petId": 1}`, "Rex")
	a.answers("late", `{"petId": 2}`, "Tom")
}
