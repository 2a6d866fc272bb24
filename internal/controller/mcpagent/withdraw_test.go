package mcpagent

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/cluster"
	"github.com/mcp-operator/mcp-operator/internal/desired"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// TestAGrantIsWithdrawnThoughSomethingIsMissing: that holds up the own workload alone; neither a withdrawal nor a policy waits for it.
func TestAGrantIsWithdrawnThoughSomethingIsMissing(t *testing.T) {
	t.Parallel()
	r, _ := makeReconciler(t, makeServer())
	agent := makeAgent(withRuntime(fromSettings("level", false)), func(agent *mcpv1alpha1.MCPAgent) {
		agent.Status.TableRevision = "before"
		agent.Status.Conditions = []metav1.Condition{older(applied)}
	})
	s := makeScope(t, r, agent)
	result := reconcile.Run(t.Context(), s, s.agent, phases, reconcile.Options{})
	if result.Failed != PhaseReferences || s.agent.Status.TableRevision == "before" || !s.gatewayApplied || s.applied {
		t.Errorf("phase %q was not done, the table is %q, the gateway was applied: %t", result.Failed, s.agent.Status.TableRevision, s.gatewayApplied)
	}
	if got := s.current("Accepted"); got.Status != metav1.ConditionFalse {
		t.Errorf("Accepted %+v", got)
	}
	if diff := cmp.Diff(older(applied), withoutTime(s.current("Applied"))); diff != "" {
		t.Errorf("Applied, of which the own workload is not (-want +got)\n%s", diff)
	}
}

// pass is one pass over an agent: the condition Accepted after it, and the table that its ConfigMap was asked to hold.
func pass(t *testing.T, r *Reconciler, agent *mcpv1alpha1.MCPAgent, facts cluster.Facts) (metav1.Condition, *table.Table) {
	t.Helper()
	s := newScope(r, agent, facts)
	if err := s.gather(t.Context()); err != nil {
		t.Fatal(err)
	}
	reconcile.Run(t.Context(), s, s.agent, phases, reconcile.Options{})
	agent.Status = s.agent.Status
	if s.route.Table == nil || s.route.Table.Revision != agent.Status.TableRevision {
		t.Fatalf("the table %v was not written: that is %q", s.route.Table, agent.Status.TableRevision)
	}
	return s.current("Accepted"), s.route.Table
}

func TestWhatIsDeletedIsWithdrawnThoughTheAgentIsRefused(t *testing.T) {
	t.Parallel()
	refuse := func(agent *mcpv1alpha1.MCPAgent) {
		agent.Spec.Auth.Audiences = []string{"https://kubernetes.default.svc"}
	}
	for name, tt := range map[string]struct {
		change   func(*mcpv1alpha1.MCPAgent)
		facts    cluster.Facts
		accepted metav1.ConditionStatus
	}{
		"nothing is wrong":   {change: func(*mcpv1alpha1.MCPAgent) {}, facts: known, accepted: "True"},
		"an edit is refused": {change: refuse, facts: known, accepted: "False"},
		"the operator was restarted and knows no keys": {
			change: func(*mcpv1alpha1.MCPAgent) {}, facts: cluster.Facts{Asked: true, APIServer: known.APIServer}, accepted: "True",
		},
		"both": {change: refuse, facts: cluster.Facts{Asked: true, APIServer: known.APIServer}, accepted: "False"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			second := makeServer()
			second.Name, second.UID = "files", "uid-files"
			r, _ := makeReconciler(t, makeServer(), second)
			agent := makeAgent(func(agent *mcpv1alpha1.MCPAgent) {
				agent.Spec.Servers = append(agent.Spec.Servers, mcpv1alpha1.AgentServer{ObjectName: mcpv1alpha1.ObjectName{Name: "files"}})
				agent.Spec.Auth = mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens, ServiceAccounts: []mcpv1alpha1.ObjectName{{Name: "caller"}}}
			})
			_, before := pass(t, r, agent, known)
			if len(before.Backends) != 2 {
				t.Fatalf("%d backends", len(before.Backends))
			}
			tt.change(agent)
			if accepted, same := pass(t, r, agent, tt.facts); same.Revision != before.Revision || accepted.Status != tt.accepted {
				t.Errorf("nothing is withdrawn: table %s, want %s; Accepted %+v", same.Revision, before.Revision, accepted)
			}
			if err := r.Client.Delete(t.Context(), makeServer()); err != nil {
				t.Fatal(err)
			}
			_, after := pass(t, r, agent, tt.facts)
			if len(after.Backends) != 1 || after.Backends[0].Name != "server-files" {
				t.Errorf("backends %v", after.Backends)
			}
			if diff := cmp.Diff(before.Auth, after.Auth); diff != "" {
				t.Errorf("who may call (-before +after)\n%s", diff)
			}
		})
	}
}

func TestARefusedAgentSaysWhatIsGoneOfWhatItIsGranted(t *testing.T) {
	t.Parallel()
	r, g := makeReconciler(t, makeServer(), makeGateway(), makePod("one"))
	agent := makeAgent()
	pass(t, r, agent, known)
	agent.Spec.Auth = mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens, Audiences: []string{known.Issuer}}
	if err := r.Client.Delete(t.Context(), makeServer()); err != nil {
		t.Fatal(err)
	}
	accepted, written := pass(t, r, agent, known)
	if accepted.Status != metav1.ConditionFalse || len(written.Backends) != 0 {
		t.Fatalf("Accepted %+v, %d backends", accepted, len(written.Backends))
	}
	content, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	stored := &corev1.ConfigMap{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "helper-gateway"}, stored); err != nil {
		t.Fatal(err)
	}
	stored.Data = map[string]string{desired.TableKey: string(content)} // what is applied to an object that exists is not kept here
	if err := r.Client.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	g.answers["one"] = serving(written.Revision, func(status *table.Status) { status.Backends = nil })
	pass(t, r, agent, known)
	want := []mcpv1alpha1.EffectiveTool{{
		Source: "server/web", Verdict: mcpv1alpha1.VerdictMissing, Reason: "there is no MCPServer 'web' in the namespace team",
	}}
	if diff := cmp.Diff(want, agent.Status.EffectiveTools); diff != "" {
		t.Errorf("effective tools (-want +got)\n%s", diff)
	}
	if routed := reconcile.ConditionOf(agent.Status.Conditions, "Routed"); routed.Reason != mcpv1alpha1.ReasonToolsUnavailable {
		t.Errorf("Routed %+v", routed)
	}
}

func TestATableWhoseRevisionDidNotReachTheStatusIsKnownAgain(t *testing.T) {
	t.Parallel()
	r, _ := makeReconciler(t, makeServer())
	agent := makeAgent()
	_, table := pass(t, r, agent, known)
	agent.Status.TableRevision = "the one before"
	for name, want := range map[string]bool{table.Revision: true, "another": false} {
		s := makeScope(t, r, agent)
		r.remember(s.key(), func(m *memory) { m.revision = name })
		if got, _, err := s.written(t.Context()); err != nil || (got != nil) != want {
			t.Errorf("table %v, want one: %t; error %v", got, want, err)
		}
	}
}

// TestTheTableOfARefusedAgentIsPutBack: it cannot be made of the specification, so what it was is remembered.
func TestTheTableOfARefusedAgentIsPutBack(t *testing.T) {
	t.Parallel()
	refuse := func(agent *mcpv1alpha1.MCPAgent) {
		agent.Spec.Auth = mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens, Audiences: []string{known.Issuer}}
	}
	for name, edit := range map[string]func(t *testing.T, c client.Client, stored *corev1.ConfigMap){
		"changed": func(t *testing.T, c client.Client, stored *corev1.ConfigMap) {
			t.Helper()
			stored.Data = map[string]string{desired.TableKey: `{"auth":{"type":"None"}}`}
			if err := c.Update(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
		},
		"taken away": func(t *testing.T, c client.Client, stored *corev1.ConfigMap) {
			t.Helper()
			if err := c.Delete(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := makeReconciler(t, makeServer())
			agent := makeAgent()
			pass(t, r, agent, known)
			refuse(agent)
			stored := &corev1.ConfigMap{}
			if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "helper-gateway"}, stored); err != nil {
				t.Fatal(err)
			}
			s := makeScope(t, r, agent)
			reconcile.Run(t.Context(), s, s.agent, phases, reconcile.Options{})
			agent.Status = s.agent.Status
			content := string(s.route.JSON)
			stored.Data = map[string]string{desired.TableKey: content} // what is applied to an object that exists is not kept here
			if err := r.Client.Update(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			if s = makeScope(t, r, agent); s.tampered {
				t.Error("what nobody touched counts as changed")
			}
			edit(t, r.Client, stored)
			s = makeScope(t, r, agent)
			if !s.tampered || s.route.Table == nil || string(s.route.JSON) != content {
				t.Fatalf("somebody else's change: seen %t, and the table to write is %s", s.tampered, s.route.JSON)
			}
			writes := 0
			r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake client is one
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					writes++
					return c.Create(ctx, obj, opts...)
				},
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					writes++
					return nil
				},
			})
			r.prepare()
			if s.withdraw(t.Context()); writes != 1 {
				t.Errorf("%d writes, want one", writes)
			}
		})
	}
}

func TestNoTableIsKeptOfAnAgentThatIsMendedOrGone(t *testing.T) {
	t.Parallel()
	r, _ := makeReconciler(t, makeServer())
	agent := makeAgent()
	pass(t, r, agent, known)
	mended := agent.Spec.Auth
	agent.Spec.Auth = mcpv1alpha1.AgentAuth{Type: mcpv1alpha1.AgentAuthTokens, Audiences: []string{known.Issuer}}
	s := makeScope(t, r, agent)
	if r.keptTable(s.key()) == "" {
		t.Error("none is kept of an agent that is refused")
	}
	r.forget(s.key())
	if r.keptTable(s.key()) != "" {
		t.Error("one is kept of an agent that is gone")
	}
	makeScope(t, r, agent)
	agent.Spec.Auth = mended
	if makeScope(t, r, agent); r.keptTable(s.key()) != "" {
		t.Error("one is kept of an agent that is mended")
	}
}
