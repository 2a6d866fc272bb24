package route

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

const webHost, webPods = "web-svc.team.svc.cluster.local", "web-pods.team.svc.cluster.local"

// edited makes the MCPServer web one of generation 2, with conditions of it, that serves as it did before.
func edited(in *Input, conditions ...metav1.Condition) *mcpv1alpha1.MCPServer {
	web := in.Servers["web"]
	web.Generation = 2
	web.Spec = mcpv1alpha1.MCPServerSpec{
		Port: 9090, Path: "/v2", Transport: mcpv1alpha1.TransportSSE, Sessions: mcpv1alpha1.SessionsStateless,
		TLS: &mcpv1alpha1.ServerTLS{InsecureSkipVerify: true},
	}
	web.Status.Endpoint = "http://" + webHost + ":8080/mcp"
	for _, c := range conditions {
		if c.ObservedGeneration == 0 {
			c.ObservedGeneration = 2
		}
		web.Status.Conditions = append(web.Status.Conditions, c)
	}
	return web
}

// TestAnEditOfAServerReachesAgentsWhenItServes: until then its pods, or its Service, are as before.
func TestAnEditOfAServerReachesAgentsWhenItServes(t *testing.T) {
	t.Parallel()
	is := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status}
	}
	refused := []metav1.Condition{
		is(mcpv1alpha1.ConditionAccepted, metav1.ConditionFalse), is(mcpv1alpha1.ConditionAvailable, metav1.ConditionTrue),
		is(mcpv1alpha1.ConditionReady, metav1.ConditionFalse),
	}
	rolling := []metav1.Condition{
		is(mcpv1alpha1.ConditionAccepted, metav1.ConditionTrue),
		{Type: mcpv1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1},
	}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		change     func(*Input)
		want       table.Backend
	}{
		"refused": {conditions: refused, want: table.Backend{
			Transport: table.TransportHTTP, URL: "http://" + webHost + ":8080/mcp", HostHeader: "web.example.com", PodsHost: webPods,
		}},
		"rolling, with the Service of the new one": {
			conditions: rolling, change: func(in *Input) { in.Servers["web"].Status.Endpoint = "http://" + webHost + ":9090/mcp" },
			want: table.Backend{
				Transport: table.TransportHTTP, URL: "http://" + webHost + ":9090/mcp", HostHeader: "web.example.com",
			},
		},
		"rolling, to another path": {
			conditions: rolling, change: func(in *Input) {
				in.Servers["web"].Spec = mcpv1alpha1.MCPServerSpec{Port: 8080, Path: "/v2"}
			},
			want: table.Backend{
				Transport: table.TransportHTTP, URL: "http://" + webHost + ":8080/mcp", HostHeader: "web.example.com", PodsHost: webPods,
			},
		},
		"rolling, to a server without sessions, whose headless Service is gone": {
			conditions: rolling, change: func(in *Input) {
				in.Servers["web"].Spec = mcpv1alpha1.MCPServerSpec{Port: 8080, Sessions: mcpv1alpha1.SessionsStateless}
			},
			want: table.Backend{Transport: table.TransportHTTP, URL: "http://" + webHost + ":8080/mcp", HostHeader: "web.example.com"},
		},
		"rolling, to another port, and what was written is not known": {
			conditions: rolling, change: func(in *Input) {
				in.Written, in.Servers["web"].Spec = nil, mcpv1alpha1.MCPServerSpec{Port: 9090}
				in.Servers["web"].Status.Endpoint = "http://" + webHost + ":9090/mcp"
			},
			want: table.Backend{Transport: table.TransportHTTP, URL: "http://" + webHost + ":9090/mcp"},
		},
		"refused, and what was written is not known": {
			conditions: refused, change: func(in *Input) { in.Written = nil },
			want: table.Backend{Transport: table.TransportHTTP, URL: "http://" + webHost + ":8080/mcp"},
		},
		"it serves": {
			conditions: []metav1.Condition{is(mcpv1alpha1.ConditionReady, metav1.ConditionTrue)}, change: func(in *Input) { in.Servers["web"].Spec.TLS = nil },
			want: table.Backend{Transport: table.TransportSSE, URL: "http://" + webHost + ":9090/v2"},
		},
		"a status that leads elsewhere": {
			conditions: refused, change: func(in *Input) {
				in.Servers["web"].Spec.TLS, in.Servers["web"].Status.Endpoint = nil, "http://elsewhere.example.com/mcp"
			},
			want: table.Backend{Transport: table.TransportSSE, URL: "http://" + webHost + ":9090/v2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := servedInput(t)
			edited(&in, tc.conditions...)
			if tc.change != nil {
				tc.change(&in)
			}
			out, err := Compile(in)
			if err != nil || len(out.Table.Backends) == 0 || out.Table.Backends[0].Name != "server-web" {
				t.Fatalf("verdicts %v, error %v", out.Verdicts, err)
			}
			got := out.Table.Backends[0]
			got = table.Backend{Transport: got.Transport, URL: got.URL, HostHeader: got.HostHeader, PodsHost: got.PodsHost, CAFile: got.CAFile}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestNoPodIsDialledByItselfWhileAPortIsEdited: pods of before listen at another port than those of after.
func TestNoPodIsDialledByItselfWhileAPortIsEdited(t *testing.T) {
	t.Parallel()
	in := servedInput(t)
	web := in.Servers["web"]
	pass := func(what, wantURL, wantPods string) {
		t.Helper()
		out, err := Compile(in)
		if err != nil || len(out.Table.Backends) == 0 {
			t.Fatalf("%s: verdicts %v, error %v", what, out.Verdicts, err)
		}
		got := out.Table.Backends[0]
		if got.URL != wantURL || got.PodsHost != wantPods {
			t.Errorf("%s: at %q by the pods of %q, want %q and %q", what, got.URL, got.PodsHost, wantURL, wantPods)
		}
		in.Written = Read(out.JSON, out.Table.Revision)
	}
	const before, after = "http://" + webHost + ":8080/mcp", "http://" + webHost + ":9090/mcp"
	ready := metav1.Condition{Type: mcpv1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1}
	web.Status = mcpv1alpha1.MCPServerStatus{Endpoint: before, Conditions: []metav1.Condition{ready}}
	pass("it serves", before, webPods)
	web.Generation, web.Spec.Port = 2, 9090
	pass("its Service is not changed yet", before, webPods)
	web.Status.Endpoint = after
	pass("its pods are being replaced", after, "")
	pass("the rollout is stuck", after, "")
	web.Generation = 3
	pass("it is mended", after, "")
	web.Status.Conditions[0].ObservedGeneration = 3
	pass("all pods are new", after, webPods)
	web.Status.Conditions[0].Status = metav1.ConditionFalse
	pass("it fails", after, webPods)
	web.Status.Endpoint = ""
	pass("no pod is there", after, webPods)
	web.Generation, web.Spec.Port = 4, 8080
	pass("it is edited while it never served", before, "")
	pass("it is edited, and that is stuck", before, "")
}

func TestTheAuthoritiesOfAServerStayMountedWhileItServesAsBefore(t *testing.T) {
	t.Parallel()
	in := servedInput(t)
	in.Servers["web"].Spec.TLS = &mcpv1alpha1.ServerTLS{CASecretRef: &mcpv1alpha1.SecretKey{ObjectName: mcpv1alpha1.ObjectName{Name: "authority"}}}
	before, err := Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Written, in.Mounted = before.Table, before.Mounts
	edited(&in).Status.Endpoint = "https://" + webHost + ":8080/mcp"
	if !NeedsWritten(in) {
		t.Error("what was written is not asked for")
	}
	after, err := Compile(in)
	if err != nil || after.Table.Backends[0].CAFile != before.Table.Backends[0].CAFile {
		t.Errorf("the authorities are at %q, error %v", after.Table.Backends[0].CAFile, err)
	}
	if diff := cmp.Diff(before.Mounts, after.Mounts); diff != "" {
		t.Errorf("mounts (-before +after)\n%s", diff)
	}
}

func TestAServerLetsInWhomItLetInUntilAnEditIsInForce(t *testing.T) {
	t.Parallel()
	refused := metav1.Condition{Type: mcpv1alpha1.ConditionAccepted, Status: metav1.ConditionFalse}
	available := metav1.Condition{Type: mcpv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue}
	applied := metav1.Condition{Type: mcpv1alpha1.ConditionApplied, Status: metav1.ConditionTrue}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		ingress    mcpv1alpha1.IngressMode
		letIn      []string
		want       bool
	}{
		"it closes":                             {nil, mcpv1alpha1.IngressGateways, nil, true},
		"it opens":                              {nil, mcpv1alpha1.IngressNamespace, []string{"web"}, false},
		"it would open":                         {[]metav1.Condition{refused, available}, mcpv1alpha1.IngressNamespace, []string{"web"}, true},
		"it would close":                        {[]metav1.Condition{refused, available}, mcpv1alpha1.IngressGateways, nil, false},
		"it is closed, and its Secret was lost": {[]metav1.Condition{refused, available, applied}, mcpv1alpha1.IngressGateways, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := servedInput(t)
			edited(&in, tc.conditions...).Spec.Network = &mcpv1alpha1.Network{Ingress: tc.ingress}
			in.LetIn = tc.letIn
			out, err := Compile(in)
			if err != nil || slices.Contains(out.Reach.Closed, "web") != tc.want {
				t.Errorf("closed are %v, want web among them: %t; error %v", out.Reach.Closed, tc.want, err)
			}
		})
	}
}
