package desired

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// agentCase is an agent, and what its children depend on beside it.
type agentCase struct {
	agent *mcpv1alpha1.MCPAgent
	env   AgentEnvironment
}

func agentEnvironment() AgentEnvironment {
	return AgentEnvironment{
		OperatorNamespace: "mcp-operator-system",
		ClusterDomain:     "cluster.local",
		GatewayImage:      "registry.example.com/mcp-gateway:1.0.0",
		Table:             []byte(`{"version":1}`),
		SessionKey:        []byte("a key of at least thirty-two bytes"),
		StatusToken:       []byte("a token"),
		Reach:             Reach{Servers: []string{"demo-server"}},
		ServiceIP:         "10.96.0.77",
		APIServer:         []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:443"), netip.MustParseAddrPort("192.0.2.1:6443")},
		DNS: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "kube-system"}},
			PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "kube-dns"}},
		}},
	}
}

// agentCases returns the cases of testdata/agents by their names: an MCPAgent and, as a second document, what of the environment is
// another than agentEnvironment.
func agentCases(t *testing.T) map[string]agentCase {
	t.Helper()
	files, err := filepath.Glob("testdata/agents/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no case in testdata/agents: %v", err)
	}
	cases := map[string]agentCase{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		agent, env, _ := bytes.Cut(raw, []byte("\n---\n"))
		c := agentCase{&mcpv1alpha1.MCPAgent{}, agentEnvironment()}
		if err := yaml.UnmarshalStrict(agent, c.agent); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := yaml.UnmarshalStrict(env, &c.env); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		cases[strings.TrimSuffix(filepath.Base(file), ".in.yaml")] = c
	}
	return cases
}

// agentDocuments is what is applied, and as a last document what is not wanted.
func agentDocuments(t *testing.T, children Agent) string {
	t.Helper()
	var list []client.Object
	for _, obj := range children.Objects() {
		list = append(list, obj)
	}
	var unwanted strings.Builder
	name := func(when string, objects []Object) {
		for _, obj := range objects {
			unwanted.WriteString("# " + when + ": " + strings.TrimPrefix(reflect.TypeOf(obj).String(), "*") + " " + obj.GetName() + "\n")
		}
	}
	name("unwanted", children.Unwanted)
	name("unwanted, and spare", children.Spare)
	name("unwanted once its pods are gone", children.Outlived)
	return documents(t, list...) + unwanted.String()
}

func TestChildrenOfAgentsAreWhatTheGoldenFilesShow(t *testing.T) {
	t.Parallel()
	for name, c := range agentCases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := agentDocuments(t, ForAgent(c.agent, c.env))
			checkGolden(t, filepath.Join("testdata", "agents", name+".out.yaml"), got)
			stored := &mcpv1alpha1.MCPAgent{}
			if err := store(t, agentAdmission, c.agent, stored); err != nil {
				t.Fatalf("the API would refuse it: %v", err)
			}
			if diff := cmp.Diff(got, agentDocuments(t, ForAgent(stored, c.env))); diff != "" {
				t.Errorf("code and schema disagree about a default (-code +schema):\n%s", diff)
			}
		})
	}
}

func TestNoGoldenFileOfAnAgentIsLeftOver(t *testing.T) {
	t.Parallel()
	cases := agentCases(t)
	outputs, err := filepath.Glob("testdata/agents/*.out.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, output := range outputs {
		if cases[strings.TrimSuffix(filepath.Base(output), ".out.yaml")].agent == nil {
			t.Errorf("%s belongs to no .in.yaml", output)
		}
	}
}

func TestChildrenOfAgentsAreDeterministicAndShareNoMemory(t *testing.T) {
	t.Parallel()
	for name, c := range agentCases(t) {
		c.env.Mounts = append(c.env.Mounts, Mount{MountSecret, "more", []string{"key"}})
		c.env.Definitions = append(c.env.Definitions, "more")
		c.env.Reach.Closed = append(c.env.Reach.Closed, "more")
		agentBefore, envBefore, first := c.agent.DeepCopy(), copyOfEnvironment(c.env), ForAgent(c.agent, c.env)
		for range 20 { // the order of a map's keys is another one in most of them
			if again := ForAgent(c.agent, c.env); !reflect.DeepEqual(first, again) {
				t.Fatalf("%s: two runs differ:\n%s", name, cmp.Diff(first, again))
			}
		}
		scribble(reflect.ValueOf(&first))
		if diff := cmp.Diff(agentBefore, c.agent); diff != "" {
			t.Errorf("%s: a change of the children changed the agent:\n%s", name, diff)
		}
		if diff := cmp.Diff(envBefore, c.env, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
			t.Errorf("%s: a change of the children changed the environment:\n%s", name, diff)
		}
	}
}

func copyOfEnvironment(env AgentEnvironment) AgentEnvironment {
	env.Table, env.SessionKey, env.StatusToken = bytes.Clone(env.Table), bytes.Clone(env.SessionKey), bytes.Clone(env.StatusToken)
	var mounts []Mount
	for _, m := range env.Mounts {
		mounts = append(mounts, Mount{m.Kind, m.Name, append([]string{}, m.Keys...)})
	}
	var peers []networkingv1.NetworkPolicyPeer
	for _, peer := range env.DNS {
		peers = append(peers, *peer.DeepCopy())
	}
	if len(peers) == 0 {
		peers = env.DNS
	}
	env.Mounts, env.DNS = mounts, peers
	env.Definitions = append([]string{}, env.Definitions...)
	env.APIServer = append([]netip.AddrPort{}, env.APIServer...)
	env.Reach.Servers, env.Reach.Closed = append([]string{}, env.Reach.Servers...), append([]string{}, env.Reach.Closed...)
	return env
}

// Every pod meets the Pod Security standard "restricted", unless the agent says aloud that its own workload may run as root.
func TestPodsOfAgentsMeetThePodSecurityStandard(t *testing.T) {
	t.Parallel()
	runtimes, relaxed := 0, 0
	for name, c := range agentCases(t) {
		children := ForAgent(c.agent, c.env)
		if problem := violations(t, podsecurity.LevelRestricted, children.Deployment.Spec.Template); problem != "" {
			t.Errorf("%s: the gateway violates restricted: %s", name, problem)
		}
		if children.RuntimeDeployment == nil {
			continue
		}
		runtimes++
		pod, asked := children.RuntimeDeployment.Spec.Template, c.agent.Spec.Runtime.PodSecurity
		if problem := violations(t, podsecurity.LevelBaseline, pod); problem != "" {
			t.Errorf("%s: the runtime violates baseline: %s", name, problem)
		}
		mayBeRoot := asked != nil && asked.RunAsNonRoot != nil && !*asked.RunAsNonRoot
		if mayBeRoot {
			relaxed++
		}
		if problem := violations(t, podsecurity.LevelRestricted, pod); (problem != "") != mayBeRoot {
			t.Errorf("%s: may run as root: %t, violations of restricted: %q", name, mayBeRoot, problem)
		}
	}
	if runtimes < 5 || relaxed == 0 {
		t.Errorf("%d cases have a runtime, of %d it may run as root", runtimes, relaxed)
	}
}
