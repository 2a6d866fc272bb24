package mcpagent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/controller/mcpagent/observer"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// TestWhatCannotBeRemovedTakesNothingFromAnAgentThatServes, unless it gives access to what is not granted any more.
func TestWhatCannotBeRemovedTakesNothingFromAnAgentThatServes(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "objects"}
	forbidden := apierrors.NewForbidden(resource, "x", errors.New("no right to delete"))
	const left = "All child objects are up to date; what is not needed any more could not be removed: delete "
	for name, tt := range map[string]struct {
		refused string // kind and name of what cannot be removed
		err     error
		applied metav1.ConditionStatus
		message string
		ready   metav1.ConditionStatus
		stays   []string
	}{
		"all can be": {applied: "True", message: "All child objects are up to date", ready: "True"},
		"what protected an own workload": {
			refused: "NetworkPolicy helper", err: forbidden, applied: "True", message: left + "NetworkPolicy team/helper: " + forbidden.Error(),
			ready: "True", stays: []string{"NetworkPolicy helper"},
		},
		"a disruption budget": {
			refused: "PodDisruptionBudget helper-gateway", err: forbidden, applied: "True",
			message: left + "PodDisruptionBudget team/helper-gateway: " + forbidden.Error(),
			ready:   "True", stays: []string{"PodDisruptionBudget helper-gateway"},
		},
		"what passes by itself is not told": {
			refused: "NetworkPolicy helper", err: apierrors.NewConflict(resource, "x", errors.New("changed")), applied: "True",
			message: "All child objects are up to date", ready: "True", stays: []string{"NetworkPolicy helper"},
		},
		"a way in at servers": {
			refused: "NetworkPolicy helper-gateway-servers", err: forbidden, applied: "False",
			message: "Failed to reconcile what is asked for no more: delete NetworkPolicy team/helper-gateway-servers: " + forbidden.Error(),
			ready:   "False",
			stays:   []string{"NetworkPolicy helper-gateway-servers", "PodDisruptionBudget helper-gateway", "NetworkPolicy helper"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meta := func(name string) metav1.ObjectMeta {
				return metav1.ObjectMeta{Name: name, Namespace: "team", OwnerReferences: makeGateway().OwnerReferences}
			}
			children := map[string]client.Object{
				"NetworkPolicy helper-gateway-servers": &networkingv1.NetworkPolicy{ObjectMeta: meta("helper-gateway-servers")},
				"PodDisruptionBudget helper-gateway":   &policyv1.PodDisruptionBudget{ObjectMeta: meta("helper-gateway")},
				"NetworkPolicy helper":                 &networkingv1.NetworkPolicy{ObjectMeta: meta("helper")},
			}
			objects := []client.Object{makeServer(), makeGateway(), makePod("one")}
			for _, child := range children {
				objects = append(objects, child)
			}
			r, g := makeReconciler(t, objects...)
			r.started = time.Now()
			watched, _ := r.Client.(client.WithWatch)
			r.Client = interceptor.NewClient(watched, interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					if gvk, _ := c.GroupVersionKindFor(obj); gvk.Kind+" "+obj.GetName() == tt.refused {
						return tt.err
					}
					return c.Delete(ctx, obj, opts...)
				},
			})
			r.prepare()
			s := makeScope(t, r, makeAgent(func(agent *mcpv1alpha1.MCPAgent) {
				agent.Spec.Gateway = &mcpv1alpha1.AgentGateway{Replicas: 1}
			}))
			g.answers = map[types.UID]observer.Answer{"one": serving(s.route.Table.Revision)}
			result := reconcile.Run(t.Context(), s, s.agent, phases, reconcile.Options{})
			s.summarize(&result)
			if !errors.Is(result.Err, tt.err) {
				t.Errorf("it is not tried again: the error is %v", result.Err)
			}
			if got := s.current("Applied"); got.Status != tt.applied || got.Message != tt.message {
				t.Errorf("Applied %s: %s\nwant %s: %s", got.Status, got.Message, tt.applied, tt.message)
			}
			if got := s.current("Ready"); got.Status != tt.ready {
				t.Errorf("Ready %+v", got)
			}
			stay := map[string]bool{}
			for id, child := range children {
				if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(child), child); err == nil {
					stay[id] = true
				}
			}
			want := map[string]bool{}
			for _, id := range tt.stays {
				want[id] = true
			}
			if diff := cmp.Diff(want, stay); diff != "" {
				t.Errorf("what stays (-want +got)\n%s", diff)
			}
		})
	}
}

// TestAFaultOfTheGatewayThatIsMendedIsNotToldWhileTheOwnWorkloadIsHeldUp: what is missing for that may be so for long.
func TestAFaultOfTheGatewayThatIsMendedIsNotToldWhileTheOwnWorkloadIsHeldUp(t *testing.T) {
	t.Parallel()
	conflict := condition("Applied", "False", "OwnershipConflict", "Failed to reconcile Service: it is somebody else's")
	waits := condition("Applied", "Unknown", "ApplyFailed", "The gateway is up to date; the agent's own workload waits for what it reads, see Accepted")
	missing := fromSettings("level", false)
	for name, tt := range map[string]struct {
		stored []metav1.Condition
		env    corev1.EnvVar
		paused bool
		want   metav1.Condition
	}{
		"its Service was somebody else's":               {stored: []metav1.Condition{conflict}, env: missing, want: waits},
		"it told so already":                            {stored: []metav1.Condition{waits}, env: missing, want: waits},
		"nothing was written before":                    {env: missing, want: waits},
		"nothing was wrong":                             {stored: []metav1.Condition{older(applied)}, env: missing, want: older(applied)},
		"nothing is known, since reconciling is paused": {stored: []metav1.Condition{conflict}, env: missing, paused: true, want: conflict},
		"nothing is missing": {
			stored: []metav1.Condition{conflict}, env: fromSettings("level", true),
			want: condition("Applied", "Unknown", "ApplyFailed", "Waiting for the address of the endpoint, which the agent's own workload is told"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := makeReconciler(t, makeServer(), makeGateway(), makePod("one"))
			s := makeScope(t, r, makeAgent(withRuntime(tt.env), func(agent *mcpv1alpha1.MCPAgent) { agent.Status.Conditions = tt.stored }))
			result := reconcile.Run(t.Context(), s, s.agent, phases, reconcile.Options{Paused: tt.paused})
			s.summarize(&result)
			if diff := cmp.Diff(tt.want, withoutTime(s.current("Applied"))); diff != "" {
				t.Errorf("Applied (-want +got)\n%s", diff)
			}
			if got := s.current("Progressing"); got.Status == metav1.ConditionTrue && result.Failed == PhaseReferences {
				t.Errorf("what is held up is said to be rolled out: %+v", got)
			}
		})
	}
}
