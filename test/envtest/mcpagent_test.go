package envtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent"
	"github.com/mcp-operator/mcp-operator/internal/probe"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// gateways play every gateway's pod: they tell of the table in the ConfigMap as if each backend had one tool.
type gateways struct {
	*fixture

	agent string

	mu   sync.Mutex
	down map[string]bool // backends that do not answer
}

func (g *gateways) transport(probe.Pod) *http.Transport {
	server := httptest.NewUnstartedServer(http.HandlerFunc(g.status))
	return &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { _ = server.Config.Serve(&lone{conn: theirs}) }()
		return ours, nil
	}}
}

// lone is a listener of one connection.
type lone struct {
	conn net.Conn
	once sync.Once
}

func (l *lone) Accept() (net.Conn, error) {
	var conn net.Conn
	l.once.Do(func() { conn = l.conn })
	if conn == nil {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (*lone) Close() error   { return nil }
func (*lone) Addr() net.Addr { return &net.TCPAddr{} }

func (g *gateways) status(w http.ResponseWriter, r *http.Request) {
	secret, configMap := &corev1.Secret{}, &corev1.ConfigMap{}
	if err := errors.Join(g.get(secret, g.agent+"-session"), g.get(configMap, g.agent+"-gateway")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+string(secret.Data["status-token"]) {
		http.Error(w, "who is it?", http.StatusUnauthorized)
		return
	}
	served, err := table.Parse([]byte(configMap.Data["table.json"]))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	status := table.Status{Revision: served.Revision, Formats: []int{table.Version}}
	for _, b := range served.Backends {
		one := table.BackendStatus{Name: b.Name, State: table.BackendReady}
		if g.down[b.Name] {
			one.State, one.ErrorClass = table.BackendFailed, "Connect"
		}
		one.Tools = []table.ToolStatus{{Name: b.Prefix + "ask", Original: "ask", Verdict: table.ToolServed}}
		status.Backends = append(status.Backends, one)
	}
	if err := json.NewEncoder(w).Encode(status); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// runAgents starts an operator that reconciles MCPAgents alone.
func (f *fixture) runAgents(g *gateways) {
	f.t.Helper()
	f.counter = &counter{}
	config := rest.CopyConfig(apiConfig)
	config.Wrap(f.counter.wrap)
	cacheOptions, err := controller.CacheOptions()
	if err != nil {
		f.t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: cacheOptions,
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfig(apiConfig)
	if err != nil {
		f.t.Fatal(err)
	}
	r := mcpagent.New(mcpagent.Options{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("mcp-operator"), OperatorNamespace: operatorNamespace,
		GatewayImage: f.gatewayImage, MasterKey: []byte("a key for tests of 32 bytes....."), Transport: g.transport,
		ReadPath: func(ctx context.Context, path string) ([]byte, error) {
			return clientset.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
		},
		Addresses: func(context.Context) ([]netip.AddrPort, error) {
			return []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:443")}, nil
		},
	})
	if err := r.SetupWithManager(mgr); err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		f.t.Fatal("caches were not filled")
	}
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Errorf("manager: %v", err)
		}
	})
	f.t.Cleanup(f.stop)
}

// startAgents starts an operator in a namespace with two MCPServers, web and mail.
func startAgents(t *testing.T, agent string) (*fixture, *gateways) {
	t.Helper()
	c, err := client.New(apiConfig, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, ctx: t.Context(), client: c, gatewayImage: "registry.example.com/mcp-gateway:1"}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "agents-"}}
	f.create(ns)
	f.namespace = ns.Name
	f.leaveNoServers(f.namespace)
	t.Cleanup(func() {
		if err := c.DeleteAllOf(context.WithoutCancel(f.ctx), &mcpv1alpha1.MCPAgent{}, client.InNamespace(f.namespace)); err != nil {
			t.Errorf("delete the MCPAgents of %s: %v", f.namespace, err)
		}
	})
	for _, name := range []string{"web", "mail"} {
		f.create(f.server(name))
	}
	g := &gateways{fixture: f, agent: agent, down: map[string]bool{}}
	f.runAgents(g)
	return f, g
}

// agent returns an MCPAgent that is granted web and mail.
func (f *fixture) agent(name string) *mcpv1alpha1.MCPAgent {
	of := func(server string) mcpv1alpha1.AgentServer {
		return mcpv1alpha1.AgentServer{ObjectName: mcpv1alpha1.ObjectName{Name: server}, Prefix: mcpv1alpha1.NamePrefix(server + "_")}
	}
	return &mcpv1alpha1.MCPAgent{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec: mcpv1alpha1.MCPAgentSpec{
			Servers: []mcpv1alpha1.AgentServer{of("web"), of("mail")},
			Auth:    mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens, ServiceAccounts: []mcpv1alpha1.ObjectName{{Name: "caller"}}},
		},
	}
}

// agentCondition waits for a condition of an agent.
func (f *fixture) agentCondition(name, conditionType string, status metav1.ConditionStatus, reason string) *mcpv1alpha1.MCPAgent {
	f.t.Helper()
	agent := &mcpv1alpha1.MCPAgent{}
	f.eventually(fmt.Sprintf("%s: %s=%s/%s", name, conditionType, status, reason), func() error {
		if err := f.get(agent, name); err != nil {
			return err
		}
		for _, c := range agent.Status.Conditions {
			if c.Type == conditionType && c.Status == status && c.Reason == reason && c.ObservedGeneration == agent.Generation {
				return nil
			}
		}
		return fmt.Errorf("conditions %+v", agent.Status.Conditions)
	})
	return agent
}

// gatewayRuns plays the Deployment controller and the kubelet: the gateway has two ready pods.
func (f *fixture) gatewayRuns(agent string) {
	f.t.Helper()
	name := agent + "-gateway"
	f.rolledOut(name, 2)
	for i := range 2 {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-abc-%d", name, i), Namespace: f.namespace,
				Labels: map[string]string{
					"mcp-server": "agent." + agent, "mcp.operator/agent": agent, "mcp.operator/component": "gateway", "pod-template-hash": "abc",
				},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-abc", UID: "uid-rs", Controller: new(true),
				}},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "mcp-gateway", Image: f.gatewayImage}}},
		}
		f.create(pod)
		pod.Status = corev1.PodStatus{
			PodIP: fmt.Sprintf("192.0.2.%d", i+1), PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("192.0.2.%d", i+1)}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}
		if err := f.client.Status().Update(f.ctx, pod); err != nil {
			f.t.Fatal(err)
		}
	}
}

func verdicts(agent *mcpv1alpha1.MCPAgent) map[string]mcpv1alpha1.ToolVerdict {
	all := map[string]mcpv1alpha1.ToolVerdict{}
	for _, tool := range agent.Status.EffectiveTools {
		all[tool.Source+" "+tool.Name] = tool.Verdict
	}
	return all
}

func TestTheStoryOfAnAgent(t *testing.T) {
	f, g := startAgents(t, "helper")
	agent := f.agent("helper")
	f.create(agent)
	f.agentCondition("helper", "Applied", metav1.ConditionTrue, "Applied")
	f.wantWrites("a create", map[string]int{
		"configmaps": 1, "serviceaccounts": 1, "roles": 1, "rolebindings": 1, "secrets": 1, "networkpolicies": 1, "services": 1,
		"deployments": 1, "poddisruptionbudgets": 1,
	}, 2)
	f.gatewayRuns("helper")
	f.agentCondition("helper", "Ready", metav1.ConditionTrue, "Available")
	agent = f.agentCondition("helper", "Routed", metav1.ConditionTrue, "Routed")
	want := map[string]mcpv1alpha1.ToolVerdict{"server/web web_ask": "Served", "server/mail mail_ask": "Served"}
	if diff := cmp.Diff(want, verdicts(agent)); diff != "" {
		t.Errorf("verdicts (-want +got)\n%s", diff)
	}
	endpoint := "http://helper-gateway." + f.namespace + ".svc.cluster.local:8080/mcp"
	if agent.Status.Endpoint != endpoint || agent.Status.Phase != mcpv1alpha1.PhaseReady || *agent.Status.ToolCount != 2 {
		t.Errorf("endpoint %q, phase %s, %d tools", agent.Status.Endpoint, agent.Status.Phase, *agent.Status.ToolCount)
	}
	f.quiet()

	f.edit(agent, "helper", func() { agent.Labels = map[string]string{"team": "a"} })
	f.edit(&mcpv1alpha1.MCPServer{}, "web", func() {})
	f.wantWrites("a label, and nothing", map[string]int{}, 0)

	f.edit(agent, "helper", func() { agent.Spec.Servers = agent.Spec.Servers[:1] })
	f.eventually("a withdrawn grant is gone from the table", func() error {
		configMap := &corev1.ConfigMap{}
		if err := f.get(configMap, "helper-gateway"); err != nil {
			return err
		}
		if strings.Contains(configMap.Data["table.json"], "mail") {
			return errors.New("it is there")
		}
		return nil
	})
	// The policy names the servers that the gateway may connect to.
	f.wantWrites("a withdrawn grant", map[string]int{"configmaps": 1, "networkpolicies": 1}, 4)
	agent = f.agentCondition("helper", "Ready", metav1.ConditionTrue, "Available")
	if diff := cmp.Diff(map[string]mcpv1alpha1.ToolVerdict{"server/web web_ask": "Served"}, verdicts(agent)); diff != "" {
		t.Errorf("verdicts (-want +got)\n%s", diff)
	}

	f.edit(agent, "helper", func() {
		agent.Spec.Servers[0].Tools = &mcpv1alpha1.ToolPolicy{Deny: []string{"delete_*"}}
	})
	f.agentCondition("helper", "Routed", metav1.ConditionTrue, "Routed")
	f.wantWrites("another rule", map[string]int{"configmaps": 1}, 4)

	g.mu.Lock()
	g.down["server-web"] = true
	g.mu.Unlock()
	agent = f.agentCondition("helper", "Routed", metav1.ConditionFalse, "ToolsUnavailable")
	if agent.Status.Phase != mcpv1alpha1.PhaseDegraded || verdicts(agent)["server/web web_ask"] != "Unavailable" {
		t.Errorf("phase %s, verdicts %v", agent.Status.Phase, verdicts(agent))
	}
	f.wantWrites("a backend that fails, as each of the two gateways finds out", map[string]int{}, 2)
}

func TestAnAgentAtRestCostsNothingAfterARestart(t *testing.T) {
	f, g := startAgents(t, "resting")
	agent := f.agent("resting")
	agent.Spec.Runtime = &mcpv1alpha1.AgentRuntime{Image: "registry.example.com/agent:1"}
	agent.Spec.Scaling = &mcpv1alpha1.Scaling{MaxReplicas: 4}
	f.create(agent)
	f.agentCondition("resting", "Applied", metav1.ConditionTrue, "Applied")
	f.gatewayRuns("resting")
	f.agentCondition("resting", "Routed", metav1.ConditionTrue, "Routed")
	runtime := &appsv1.Deployment{}
	if err := f.get(runtime, "resting"); err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{}
	if err := f.get(service, "resting-gateway"); err != nil {
		t.Fatal(err)
	}
	if got := runtime.Spec.Template.Spec.HostAliases[0].IP; got != service.Spec.ClusterIP {
		t.Errorf("the own workload finds its endpoint at %s, it is at %s", got, service.Spec.ClusterIP)
	}
	f.quiet()
	f.stop()
	before := reconciled(t)
	f.runAgents(g)
	f.eventually("it is reconciled after a restart", func() error {
		if reconciled(t) == before {
			return errors.New("not yet")
		}
		return nil
	})
	f.wantWrites("a restart of the operator", map[string]int{}, 0)
	for _, line := range f.counter.exposed {
		t.Errorf("the content of Secrets or ConfigMaps was listed: %s", line)
	}

	f.edit(agent, "resting", func() { agent.Spec.Runtime, agent.Spec.Scaling = nil, nil })
	f.eventually("the own workload is gone", func() error {
		for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.ServiceAccount{}, &networkingv1.NetworkPolicy{}} {
			if err := f.get(obj, "resting"); err == nil {
				return fmt.Errorf("%T is there", obj)
			}
		}
		return nil
	})
}

func TestAnAgentLeavesForeignObjectsAlone(t *testing.T) {
	f, _ := startAgents(t, "late")
	foreign := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "late-gateway", Namespace: f.namespace}}
	f.create(foreign)
	f.create(f.agent("late"))
	agent := f.agentCondition("late", "Applied", metav1.ConditionFalse, "OwnershipConflict")
	if agent.Status.Phase != mcpv1alpha1.PhaseFailed {
		t.Errorf("phase %s", agent.Status.Phase)
	}
	if err := f.get(foreign, "late-gateway"); err != nil || len(foreign.OwnerReferences)+len(foreign.Rules) > 0 {
		t.Errorf("the foreign Role was touched: %+v, %v", foreign, err)
	}
	if err := f.client.Delete(f.ctx, foreign); err != nil {
		t.Fatal(err)
	}
	f.agentCondition("late", "Applied", metav1.ConditionTrue, "Applied")
}
