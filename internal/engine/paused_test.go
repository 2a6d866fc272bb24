package engine

import (
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

func TestAPauseIsReadFromTheAnnotation(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		value  string
		paused bool
		want   metav1.ConditionStatus // of Paused; Unknown: there is none
	}{
		"true":  {"true", true, metav1.ConditionTrue},
		"True":  {"True", true, metav1.ConditionTrue},
		"false": {"false", false, metav1.ConditionUnknown},
		"yes":   {"yes", false, metav1.ConditionFalse},
		"empty": {"", false, metav1.ConditionFalse},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScope(&Reconciler{}, makeServer(func(server *mcpv1alpha1.MCPServer) {
				server.Annotations = map[string]string{mcpv1alpha1.AnnotationPaused: tt.value}
			}))
			s.summarize(reconcile.Result{})
			c := s.current(mcpv1alpha1.ConditionPaused)
			if s.paused != tt.paused || c.Status != tt.want || c.Status == metav1.ConditionFalse && (c.Reason != "Invalid" || c.Message == "") {
				t.Errorf("paused: %t, condition: %+v; want %t, %s", s.paused, c, tt.paused, tt.want)
			}
		})
	}
}

func TestPausedIsShownWhileItIsSo(t *testing.T) {
	t.Parallel()
	s := makeScope(makeDeployment(), nil, []metav1.Condition{accepted, allThere, available, verified})
	for _, paused := range []bool{true, false} {
		s.paused = paused
		s.summarize(reconcile.Result{})
		c := apimeta.FindStatusCondition(s.server.Status.Conditions, mcpv1alpha1.ConditionPaused)
		if (c != nil) != paused || c != nil && c.Status != metav1.ConditionTrue {
			t.Errorf("paused: %t, condition: %+v", paused, c)
		}
		if got := reconcile.ConditionOf(s.server.Status.Conditions, mcpv1alpha1.ConditionReady); got.Status != metav1.ConditionTrue {
			t.Errorf("paused: %t, Ready: %+v; a pause takes nothing from what serves", paused, got)
		}
	}
	if s.server.Status.ObservedGeneration != 2 || s.server.Status.Phase != mcpv1alpha1.PhaseReady {
		t.Errorf("observed generation %d, phase %q", s.server.Status.ObservedGeneration, s.server.Status.Phase)
	}
}
