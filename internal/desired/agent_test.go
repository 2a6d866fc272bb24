package desired

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func agentNamed(name string, changes ...func(*mcpv1alpha1.MCPAgent)) *mcpv1alpha1.MCPAgent {
	agent := &mcpv1alpha1.MCPAgent{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "mcp-system"},
		Spec: mcpv1alpha1.MCPAgentSpec{
			ServerRef: &mcpv1alpha1.ObjectName{Name: "demo-server"}, Auth: mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens},
		},
	}
	for _, change := range changes {
		change(agent)
	}
	return agent
}

func withRuntime(agent *mcpv1alpha1.MCPAgent) {
	agent.Spec.Runtime = &mcpv1alpha1.AgentRuntime{Image: "registry.example.com/team/agent:1"}
}

func scaled(agent *mcpv1alpha1.MCPAgent) { agent.Spec.Scaling = &mcpv1alpha1.Scaling{MaxReplicas: 5} }

// The names of the children of an agent differ from those of every other agent and of every server; the names of objects themselves,
// which a workload has, are the only ones that an agent and a server of one name share, and the API server decides between them.
func TestChildrenOfAgentsAndServersNeverHaveTheSameName(t *testing.T) {
	t.Parallel()
	owner := map[string]string{}
	for _, name := range admittedNames(t) {
		children := map[string][]string{
			"server " + name: {ServiceName(name), ConfigMapName(name), PodsServiceName(name)},
			"agent " + name:  {GatewayName(name), SessionSecretName(name)},
		}
		for who, list := range children {
			for _, child := range list {
				if other, taken := owner[child]; taken && other != who {
					t.Errorf("%q is a child of %s and of %s", child, other, who)
				}
				owner[child] = who
				if _, err := admit(t, serverNamed(child)); err == nil {
					t.Errorf("a server may be called %q, which is a child of %s", child, who)
				}
				if err := store(t, agentAdmission, agentNamed(child), &mcpv1alpha1.MCPAgent{}); err == nil {
					t.Errorf("an agent may be called %q, which is a child of %s", child, who)
				}
			}
		}
	}
}

func TestNamesAndLabelsOfAgentsChildrenAreValid(t *testing.T) {
	t.Parallel()
	for _, name := range admittedNames(t) {
		for _, child := range []string{GatewayName(name), SessionSecretName(name), RuntimeName(name), PodsServiceName(name)} {
			// The strictest rule of all kinds: that of Services.
			if problems := validation.IsDNS1035Label(child); len(problems) > 0 {
				t.Errorf("agent %q: child %q: %v", name, child, problems)
			}
		}
		if problems := validation.IsDNS1123Subdomain(ServersPolicyName(name)); len(problems) > 0 {
			t.Errorf("agent %q: %v", name, problems)
		}
		env := agentEnvironment()
		env.Reach.Closed = []string{"closed"}
		for _, obj := range ForAgent(agentNamed(name, withRuntime, scaled), env).Objects() {
			if problems := metav1validation.ValidateLabels(obj.GetLabels(), field.NewPath(obj.GetName())); len(problems) > 0 {
				t.Errorf("agent %q: %v", name, problems.ToAggregate())
			}
		}
	}
}

func TestSelectorsSelectThePodsOfOneWorkloadOfTheirAgentAlone(t *testing.T) {
	t.Parallel()
	for name, c := range agentCases(t) {
		children := ForAgent(c.agent, c.env)
		agent := c.agent.Name
		gateway := map[string]string{LabelAgent: agent, LabelComponent: ComponentGateway}
		pods := children.Deployment.Spec.Template.Labels
		selectors := map[string]map[string]string{
			"Deployment":    children.Deployment.Spec.Selector.MatchLabels,
			"Service":       children.Service.Spec.Selector,
			"NetworkPolicy": children.NetworkPolicy.Spec.PodSelector.MatchLabels,
		}
		if children.DisruptionBudget != nil {
			selectors["PodDisruptionBudget"] = children.DisruptionBudget.Spec.Selector.MatchLabels
		}
		for what, selector := range selectors {
			if diff := cmp.Diff(gateway, selector); diff != "" || pods[LabelAgent] != agent || pods[LabelComponent] != ComponentGateway {
				t.Errorf("%s: the %s selects otherwise (-want +got)\n%s", name, what, diff)
			}
		}
		if pods[LabelMCPServer] != "agent."+agent || pods[LabelApp] != "mcp-gateway" || pods[LabelServer] != "" {
			t.Errorf("%s: the gateway's pods carry %v", name, pods)
		}
		if runtime := children.RuntimeDeployment; runtime != nil {
			pods, want := runtime.Spec.Template.Labels, map[string]string{LabelAgent: agent, LabelComponent: ComponentRuntime}
			diff := cmp.Diff(want, runtime.Spec.Selector.MatchLabels)
			if diff != "" || pods[LabelAgent] != agent || pods[LabelComponent] != ComponentRuntime || pods[LabelApp] != "mcp-agent" {
				t.Errorf("%s: the runtime's pods carry %v and are selected by (-want +got)\n%s", name, pods, diff)
			}
			if diff := cmp.Diff(want, children.RuntimePolicy.Spec.PodSelector.MatchLabels); diff != "" {
				t.Errorf("%s: the runtime's policy selects (-want +got)\n%s", name, diff)
			}
		}
	}
}

func TestBackendsHaveLegalNamesAndNoTwoTheSame(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 253)
	names := []string{"a", "a-b", "a.b", "server-a", "tool-a", long[:54], long[:56], long[:57], long[:252], long[:252] + "b", long}
	owner := map[string]string{}
	for _, name := range names {
		for what, backend := range map[string]string{"server " + name: ServerBackend(name), "tool " + name: ToolBackend(name)} {
			if problems := validation.IsDNS1123Label(backend); len(problems) > 0 {
				t.Errorf("%s: %q: %v", what, backend, problems)
			}
			if other, taken := owner[backend]; taken {
				t.Errorf("%s and %s are both %q", what, other, backend)
			}
			owner[backend] = what
		}
	}
	if got := ServerBackend("demo-server"); got != "server-demo-server" {
		t.Errorf("the backend of a server is %q", got)
	}
	if got := ToolBackend("weather"); got != "tool-weather" {
		t.Errorf("the backend of a tool is %q", got)
	}
}

func TestTheGatewaysAddressFollowsTLS(t *testing.T) {
	t.Parallel()
	const want = "://demo-gateway.mcp-system.svc.cluster.local:8080/mcp"
	if got := GatewayEndpoint(agentNamed("demo"), "cluster.local"); got != "http"+want {
		t.Errorf("endpoint %q", got)
	}
	secure := agentNamed("demo", func(a *mcpv1alpha1.MCPAgent) {
		a.Spec.Gateway = &mcpv1alpha1.AgentGateway{TLS: &mcpv1alpha1.GatewayTLS{SecretName: "certificate"}}
	})
	if got := GatewayEndpoint(secure, "cluster.local"); got != "https"+want {
		t.Errorf("endpoint with TLS %q", got)
	}
}

// What a pod is asked to be decides whether it is replaced.
func TestPodsOfAnAgentAreReplacedForTheseReasonsAlone(t *testing.T) {
	t.Parallel()
	type change struct {
		agent            func(*mcpv1alpha1.MCPAgent)
		env              func(*AgentEnvironment)
		gateway, runtime bool // is replaced
		revision         bool // changes
	}
	gateway := func(edit func(*mcpv1alpha1.AgentGateway)) func(*mcpv1alpha1.MCPAgent) {
		return func(a *mcpv1alpha1.MCPAgent) {
			a.Spec.Gateway = &mcpv1alpha1.AgentGateway{}
			edit(a.Spec.Gateway)
		}
	}
	for name, tt := range map[string]change{
		"the table":               {env: func(e *AgentEnvironment) { e.Table = []byte("{}") }},
		"definitions":             {env: func(e *AgentEnvironment) { e.Definitions = []string{"a"} }},
		"where it reaches":        {env: func(e *AgentEnvironment) { e.Reach = Reach{Servers: []string{"a"}, PublicPorts: []int32{443}} }},
		"the API server's home":   {env: func(e *AgentEnvironment) { e.APIServer = nil }},
		"a grant":                 {agent: func(a *mcpv1alpha1.MCPAgent) { a.Spec.Tools = []mcpv1alpha1.ObjectName{{Name: "more"}} }},
		"who may connect":         {agent: func(a *mcpv1alpha1.MCPAgent) { a.Spec.Network = &mcpv1alpha1.AgentNetwork{Ingress: "Listed"} }},
		"replicas of the gateway": {agent: gateway(func(g *mcpv1alpha1.AgentGateway) { g.Replicas = 5 })},
		"the public address":      {agent: gateway(func(g *mcpv1alpha1.AgentGateway) { g.PublicURL = "https://example.com" })},
		"the keys of sessions":    {env: func(e *AgentEnvironment) { e.SessionKey = []byte("another") }},
		"the gateway's image":     {env: func(e *AgentEnvironment) { e.GatewayImage = "gateway:2" }, gateway: true},
		"a Secret of a tool": {
			env:     func(e *AgentEnvironment) { e.Mounts = []Mount{{MountSecret, "a", []string{"token"}}} },
			gateway: true, revision: true,
		},
		"resources of the gateway": {
			agent:   gateway(func(g *mcpv1alpha1.AgentGateway) { g.Resources = &mcpv1alpha1.Resources{} }),
			gateway: true, revision: true,
		},
		"a request for another image": {
			agent: func(a *mcpv1alpha1.MCPAgent) {
				a.Annotations = map[string]string{mcpv1alpha1.AnnotationUpgradeGateway: "1"}
			},
			revision: true,
		},
		"the image of the runtime":    {agent: func(a *mcpv1alpha1.MCPAgent) { a.Spec.Runtime.Image = "agent:2" }, runtime: true},
		"what the runtime reads":      {env: func(e *AgentEnvironment) { e.ConfigHash = "another" }, runtime: true},
		"the address of the Service":  {env: func(e *AgentEnvironment) { e.ServiceIP = "10.96.0.78" }, runtime: true},
		"everybody is let in instead": {agent: func(a *mcpv1alpha1.MCPAgent) { a.Spec.Auth.Type = mcpv1alpha1.AgentAuthNone }, runtime: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, env := agentNamed("demo", withRuntime), agentEnvironment()
			was, revision := ForAgent(before, env), AgentGatewayRevision(before, env)
			after := before.DeepCopy()
			if tt.agent != nil {
				tt.agent(after)
			}
			if tt.env != nil {
				tt.env(&env)
			}
			is := ForAgent(after, env)
			if diff := cmp.Diff(was.Deployment.Spec.Template, is.Deployment.Spec.Template); (diff != "") != tt.gateway {
				t.Errorf("the gateway's pods are replaced: %t, want %t:\n%s", diff != "", tt.gateway, diff)
			}
			if diff := cmp.Diff(was.RuntimeDeployment.Spec.Template, is.RuntimeDeployment.Spec.Template); (diff != "") != tt.runtime {
				t.Errorf("the runtime's pods are replaced: %t, want %t:\n%s", diff != "", tt.runtime, diff)
			}
			if changed := AgentGatewayRevision(after, env) != revision; changed != tt.revision {
				t.Errorf("the revision changes: %t, want %t", changed, tt.revision)
			}
		})
	}
}

// The digest is stored: it must not change with the operator or its libraries while the pods stay the same.
func TestTheRevisionOfAnAgentsGatewayIsTheSameInEveryBuild(t *testing.T) {
	t.Parallel()
	got := AgentGatewayRevision(agentNamed("demo"), AgentEnvironment{})
	if want := "87cd82c5a2fd457eaffc8dda9919d1de"; got != want {
		t.Errorf("the revision of a known agent is %s, was %s: every gateway gets the image of the operator that brings this change", got, want)
	}
}

// Nothing is both asked for and unwanted, and together they are the same children whatever an agent asks for: so what one generation
// leaves behind the next one removes.
func TestEveryChildIsAskedForOrUnwanted(t *testing.T) {
	t.Parallel()
	id := func(obj Object) string { return reflect.TypeOf(obj).String() + " " + obj.GetName() }
	all := func(children Agent) []string {
		var list []string
		for _, objects := range [][]Object{children.Objects(), children.Unwanted, children.Spare, children.Outlived} {
			for _, obj := range objects {
				list = append(list, id(obj))
			}
		}
		slices.Sort(list)
		return list
	}
	env := agentEnvironment()
	everything := env
	everything.Reach.Closed = []string{"closed"}
	want := all(ForAgent(agentNamed("demo"), env))
	if len(slices.Compact(slices.Clone(want))) != len(want) {
		t.Errorf("some child is there twice: %v", want)
	}
	for name, children := range map[string]Agent{
		"all of it":           ForAgent(agentNamed("demo", withRuntime, scaled), everything),
		"a scaled gateway":    ForAgent(agentNamed("demo", scaled), env),
		"a runtime":           ForAgent(agentNamed("demo", withRuntime), env),
		"closed servers":      ForAgent(agentNamed("demo"), everything),
		"one replica":         ForAgent(agentNamed("demo", func(a *mcpv1alpha1.MCPAgent) { a.Spec.Gateway = &mcpv1alpha1.AgentGateway{Replicas: 1} }), env),
		"a runtime and scale": ForAgent(agentNamed("demo", withRuntime, scaled), env),
	} {
		if diff := cmp.Diff(want, all(children)); diff != "" {
			t.Errorf("%s: children (-want +got)\n%s", name, diff)
		}
	}

	waiting := env
	waiting.ServiceIP = ""
	children := ForAgent(agentNamed("demo", withRuntime), waiting)
	for _, obj := range append(children.Unwanted, children.Outlived...) {
		if id(obj) != "*v2.HorizontalPodAutoscaler demo" && obj.GetName() == "demo" {
			t.Errorf("%s is removed while the address of the Service is not known", id(obj))
		}
	}
	if children.RuntimeDeployment != nil || children.RuntimePolicy == nil {
		t.Error("while the address of the Service is not known there is a workload, or none of what protects it")
	}
}

func TestGatewaysAreLetInAtClosedServersAlone(t *testing.T) {
	t.Parallel()
	env := agentEnvironment()
	env.Reach = Reach{Servers: []string{"closed", "open"}, Closed: []string{"closed"}}
	policy := ForAgent(agentNamed("demo"), env).ServersPolicy
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		server string
		want   bool
	}{{"closed", true}, {"open", false}, {"other", false}} {
		pod := ForServer(serverNamed(c.server), Environment{}, "").Deployment.Spec.Template
		if got := selector.Matches(k8slabels.Set(pod.Labels)); got != c.want {
			t.Errorf("the policy is about the pods of %q: %t, want %t", c.server, got, c.want)
		}
	}
}

func TestTheGatewayReachesEachAddressOfTheAPIServerAtItsPort(t *testing.T) {
	t.Parallel()
	addresses := []netip.AddrPort{
		netip.MustParseAddrPort("192.0.2.2:6443"), netip.MustParseAddrPort("10.96.0.1:443"), netip.MustParseAddrPort("[::ffff:192.0.2.1]:6443"),
		netip.MustParseAddrPort("[2001:db8::1]:443"), netip.MustParseAddrPort("192.0.2.2:6443"),
	}
	got := map[string][]string{}
	for _, rule := range apiServerRules(addresses) {
		for _, peer := range rule.To {
			port := rule.Ports[0].Port.String()
			got[port] = append(got[port], peer.IPBlock.CIDR)
		}
	}
	want := map[string][]string{"443": {"10.96.0.1/32", "2001:db8::1/128"}, "6443": {"192.0.2.1/32", "192.0.2.2/32"}}
	for _, list := range got {
		slices.Sort(list)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses by port (-want +got)\n%s", diff)
	}
	if addresses[0].Port() != 6443 {
		t.Error("the caller's list was sorted")
	}
}

// What the guard of the gateway's dialler refuses as an address of this host, its links and private networks, the policy does too.
func TestTheInternetHasNoPrivateAddresses(t *testing.T) {
	t.Parallel()
	for address, public := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true, "64:ff9b::808:808": true,
		"0.0.0.0": false, "10.1.2.3": false, "100.64.0.1": false, "100.100.100.200": false, "127.0.0.1": false, "169.254.169.254": false,
		"172.31.0.1": false, "192.168.1.1": false, "192.0.0.192": false, "168.63.129.16": false, "224.0.0.1": false, "255.255.255.255": false,
		"::1": false, "::": false, "::10.0.0.1": false, "fc00::1": false, "fd00:ec2::254": false, "fe80::1": false, "fec0::1": false, "ff02::1": false,
		"64:ff9b::10.0.0.1": false, "64:ff9b::169.254.169.254": false, "64:ff9b::127.0.0.1": false, "64:ff9b::192.168.0.1": false,
		"64:ff9b::172.16.0.1": false, "64:ff9b::100.64.0.1": false, "64:ff9b::168.63.129.16": false, "64:ff9b:1::1": false, "2002:a00:1::": false,
	} {
		allowed, addr := false, netip.MustParseAddr(address)
		for _, peer := range internet() {
			inside := netip.MustParsePrefix(peer.IPBlock.CIDR).Contains(addr)
			for _, except := range peer.IPBlock.Except {
				inside = inside && !netip.MustParsePrefix(except).Contains(addr)
			}
			allowed = allowed || inside
		}
		if allowed != public {
			t.Errorf("%s is reached as an address of the Internet: %t, want %t", address, allowed, public)
		}
	}
}

var _ client.Object = Object(nil)

func TestWhatAGatewayMountsAndWhereItIsLetInIsReadBack(t *testing.T) {
	t.Parallel()
	env := AgentEnvironment{
		Mounts: []Mount{
			{MountConfigMap, "ca", []string{"ca.crt"}}, {MountSecret, "same", []string{"password", "token"}}, {MountConfigMap, "same", []string{"k"}},
		},
		Reach: Reach{Servers: []string{"web", "files"}, Closed: []string{"files", "web"}},
	}
	children := ForAgent(agentNamed("a", func(agent *mcpv1alpha1.MCPAgent) {
		agent.Spec.Gateway = &mcpv1alpha1.AgentGateway{TLS: &mcpv1alpha1.GatewayTLS{SecretName: "certificate"}}
	}), env)
	if diff := cmp.Diff(env.Mounts, MountsOf(children.Deployment)); diff != "" {
		t.Errorf("mounts (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(env.Reach.Closed, LetIn(children.ServersPolicy)); diff != "" {
		t.Errorf("servers (-want +got)\n%s", diff)
	}
}
