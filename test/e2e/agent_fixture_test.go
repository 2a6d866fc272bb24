package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

const (
	// agentSoon is what is promised from the create of an agent, whose backends are there, to Ready: pods of two workloads start.
	agentSoon = 10 * time.Second
	// secretSoon is how soon a kubelet brings a Secret that changed into pods.
	secretSoon = 20 * time.Second
	// withdrawnSoon is how soon a grant that is withdrawn is gone.
	withdrawnSoon = time.Second
)

type (
	tool  = mcpv1alpha1.MCPTool
	agent = mcpv1alpha1.MCPAgent
)

func named(name string) mcpv1alpha1.ObjectName { return mcpv1alpha1.ObjectName{Name: name} }

// tool creates an MCPTool.
func (f *fixture) tool(name string, spec mcpv1alpha1.MCPToolSpec) *followed[*tool] {
	f.t.Helper()
	object := &tool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	return follow(f, object, &mcpv1alpha1.MCPToolList{}, func() *tool { return &tool{} })
}

// runningAgent is an MCPAgent, whose workload is the image echo: tests call tools in it.
type runningAgent struct {
	*followed[*agent]

	// inside is the pod that caller found.
	inside client.ObjectKey
}

// agent creates an agent that is granted these MCPTools, and what grants adds.
func (f *fixture) agent(name string, grant func(*mcpv1alpha1.MCPAgentSpec), tools ...string) *runningAgent {
	f.t.Helper()
	object := &agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: mcpv1alpha1.MCPAgentSpec{
		Auth:    mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens},
		Runtime: &mcpv1alpha1.AgentRuntime{Image: imageOf("echo"), Args: []string{"sleep"}},
	}}
	for _, name := range tools {
		object.Spec.Tools = append(object.Spec.Tools, named(name))
	}
	if grant != nil {
		grant(&object.Spec)
	}
	return &runningAgent{followed: follow(f, object, &mcpv1alpha1.MCPAgentList{}, func() *agent { return &agent{} })}
}

// granted grants MCPServers with all their tools.
func granted(names ...string) func(*mcpv1alpha1.MCPAgentSpec) {
	return func(spec *mcpv1alpha1.MCPAgentSpec) {
		for _, name := range names {
			spec.Servers = append(spec.Servers, mcpv1alpha1.AgentServer{ObjectName: named(name), Prefix: mcpv1alpha1.NamePrefix(name + "_")})
		}
	}
}

// awaitReady waits until the agent is Ready and serves these tools, and its workload runs.
func (a *runningAgent) awaitReady(tools ...string) *agent {
	a.t.Helper()
	ready := a.awaitSince(a.created, "create -> Ready", agentSoon, says[*agent]("Ready", metav1.ConditionTrue, ""), serves(tools...))
	if ready.Spec.Runtime != nil {
		a.caller()
	}
	return ready
}

// serves asks for tools, by the names that the agent sees.
func serves(tools ...string) func(*agent) string {
	return func(object *agent) string {
		for _, name := range tools {
			if instead := judged(name, mcpv1alpha1.VerdictServed)(object); instead != "" {
				return instead
			}
		}
		return ""
	}
}

// judged asks what became of a tool; reason contains all of the words. An empty name is what a source as a whole is told of.
func judged(name string, verdict mcpv1alpha1.ToolVerdict, words ...string) func(*agent) string {
	return func(object *agent) string {
		for _, tool := range object.Status.EffectiveTools {
			if tool.Name == name && tool.Verdict == verdict && missing(tool.Reason, words) == nil {
				return ""
			}
		}
		return fmt.Sprintf("%q is not %s with %q: %+v", name, verdict, words, object.Status.EffectiveTools)
	}
}

// podsOf returns the pods of a component that are not ending.
func (a *runningAgent) podsOf(component string) []corev1.Pod {
	a.t.Helper()
	list := &corev1.PodList{}
	labels := client.MatchingLabels{"mcp.operator/agent": a.name, "mcp.operator/component": component}
	if err := cluster.client.List(a.t.Context(), list, client.InNamespace(a.namespace), labels); err != nil {
		a.t.Fatalf("list the pods of %s: %v", a.name, err)
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp.IsZero() {
			pods = append(pods, pod)
		}
	}
	return pods
}

// caller waits, once, for a pod of the agent's workload, and returns it.
func (a *runningAgent) caller() client.ObjectKey {
	a.t.Helper()
	if a.inside.Name != "" {
		return a.inside
	}
	await(a.t, "the workload of "+a.name+" runs", podStart, func() string {
		for _, pod := range a.podsOf("runtime") {
			if isReady(&pod) {
				a.inside = client.ObjectKeyFromObject(&pod)
				return ""
			}
		}
		return "no pod of it is ready"
	})
	return a.inside
}

// gatewayPod returns a ready pod of the agent's gateway.
func (a *runningAgent) gatewayPod() client.ObjectKey {
	a.t.Helper()
	for _, pod := range a.podsOf("gateway") {
		if isReady(&pod) {
			return client.ObjectKeyFromObject(&pod)
		}
	}
	a.t.Fatalf("no pod of the gateway of %s is ready", a.name)
	return client.ObjectKey{}
}

// call calls a tool in the agent's workload, with the token there, and returns what it says.
func (a *runningAgent) call(tool, arguments string) (string, error) {
	a.t.Helper()
	return execute(a.t.Context(), a.caller(), "/echo", "call", tool, arguments)
}

// answers calls a tool until its answer has all of the words: what is told in status reaches callers through every replica.
// It returns how many calls that took.
func (a *runningAgent) answers(tool, arguments string, words ...string) int {
	a.t.Helper()
	calls := 0
	await(a.t, tool+" answers", agentSoon, func() string {
		calls++
		out, err := a.call(tool, arguments)
		if err == nil {
			err = missing(out, words)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
	return calls
}

// fails calls a tool and wants an error with all of the words.
func (a *runningAgent) fails(tool, arguments string, words ...string) {
	a.t.Helper()
	await(a.t, tool+" fails as meant", agentSoon, func() string {
		out, err := a.call(tool, arguments)
		if err == nil {
			return "it answers " + out
		}
		if err := missing(err.Error(), words); err != nil {
			return err.Error()
		}
		return ""
	})
}

// token makes a token of an account.
func (f *fixture) token(account string, audiences ...string) string {
	f.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: f.namespace}}
	if err := cluster.client.SubResource("token").Create(f.t.Context(), sa, request); err != nil {
		f.t.Fatalf("make a token of account %s: %v", account, err)
	}
	return request.Status.Token
}

// calls are many of one tool, which go on until they are counted.
type calls struct {
	*fixture

	pod  client.ObjectKey
	done chan string
}

const (
	// stopFile ends calls; begunFile is there since the first of them.
	stopFile, begunFile = "/tmp/stop", "/tmp/stop.begun"

	// leastCalls is how many have to end before stopFile is there, so that there were calls meanwhile. A busy machine makes few.
	leastCalls = 3
)

// letIn waits until each pod of the gateway answered a pod. Each node's network plugin learns of a new pod by itself, later
// than the kubelet says that it is ready, and rejects until then whom it does not know: calls that must not fail begin after.
func (a *runningAgent) letIn(from client.ObjectKey, tool, arguments string, flags ...string) {
	a.t.Helper()
	command := append([]string{"/echo", "call"}, flags...)
	await(a.t, "every pod of the gateway answers "+from.Name, podStart, func() string {
		for _, pod := range a.podsOf("gateway") {
			address := "http://" + net.JoinHostPort(pod.Status.PodIP, "8080") + "/mcp"
			if out, err := execute(a.t.Context(), from, append(command, "-timeout", "2s", "-url", address, tool, arguments)...); err != nil {
				return fmt.Sprintf("%s: %s %v", pod.Name, out, err)
			}
		}
		out, err := execute(a.t.Context(), from, append(command, tool, arguments)...) // by its name
		if err != nil {
			return out + err.Error()
		}
		return ""
	})
}

// keepCalling calls a tool in a pod that is let in again and again, with more flags of `echo call`. It returns when the first call was made:
// what is done next is done while there are calls. They may take long, up to the flag -timeout, but must succeed.
func (a *runningAgent) keepCalling(pod client.ObjectKey, tool, arguments string, flags ...string) *calls {
	a.t.Helper()
	a.letIn(pod, tool, arguments, flags...)
	c := &calls{fixture: a.fixture, pod: pod, done: make(chan string, 1)}
	command := append([]string{"/echo", "call", "-until", stopFile, "-timeout", "30s"}, flags...)
	go func() {
		out, err := execute(context.WithoutCancel(a.t.Context()), pod, append(command, tool, arguments)...)
		if err != nil {
			out += "\n" + err.Error()
		}
		c.done <- out
	}()
	await(a.t, "pod "+pod.Name+" calls "+tool, podStart, func() string {
		select {
		case out := <-c.done:
			a.t.Fatalf("the caller ended by itself: %s", out)
		default:
		}
		if _, err := execute(a.t.Context(), pod, "/echo", "cat", begunFile); err != nil {
			return err.Error()
		}
		return ""
	})
	return c
}

// noneFailed ends the calls and wants that there were some until now, and that none failed.
func (c *calls) noneFailed() {
	c.t.Helper()
	if out, err := execute(c.t.Context(), c.pod, "/echo", "touch", stopFile); err != nil {
		c.t.Fatalf("%v %s", err, out)
	}
	var out string
	select {
	case out = <-c.done:
	case <-time.After(3 * time.Minute):
		c.t.Fatal("the caller does not end")
	}
	var told struct {
		Meanwhile int `json:"meanwhile"`
		Failed    int `json:"failed"`
	}
	first, _, _ := strings.Cut(out, "\n")
	if err := json.Unmarshal([]byte(first), &told); err != nil {
		c.t.Fatalf("the caller says %q: %v", out, err)
	}
	if told.Failed > 0 || told.Meanwhile < leastCalls {
		c.t.Errorf("wanted are %d calls meanwhile and no failure: %s", leastCalls, out)
	}
	c.t.Logf("calls: %s", first)
}
