package mcptool

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// scope is the state of one pass.
type scope struct {
	*Reconciler

	// before is the object as it was read, tool the same with the status of this pass.
	before, tool *mcpv1alpha1.MCPTool

	// paused says that acting phases are left out.
	paused bool

	// misread says that the annotation that pauses could not be read; empty if it could.
	misread string

	// lone is the tool of the types http and postgres; set by validate.
	lone mcpv1alpha1.ToolStatus

	// definitions are the tools of the type openapi; nil while the document is not there: then what is stored holds. Set by validate.
	definitions *definitions

	// again asks for definitions again that were forgotten; set by validate.
	again func()

	// heldUp is which refused MCPAgent does not serve the tool until it is mended, and why; empty if none is known. Set by verify.
	heldUp string

	// toolless is that a gateway was told of no tools, cutBy the MCPAgent whose status may have no room for all of them while none lists them
	// all; empty if there is none. Set by verify.
	toolless, cutBy string
}

func newScope(r *Reconciler, tool *mcpv1alpha1.MCPTool) *scope {
	s := &scope{Reconciler: r, before: tool, tool: tool.DeepCopy()}
	s.paused, s.misread = reconcile.IsPaused(tool, mcpv1alpha1.AnnotationPaused)
	return s
}

func (s *scope) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.tool.Namespace, Name: s.tool.Name}
}

func (s *scope) isOpenAPI() bool { return s.tool.Spec.Type == mcpv1alpha1.ToolOpenAPI }

// stored returns a condition as it was read; a zero one if there was none.
func (s *scope) stored(conditionType string) metav1.Condition {
	return reconcile.ConditionOf(s.before.Status.Conditions, conditionType)
}

// holds says whether a condition that was read is True and of the current generation.
func (s *scope) holds(conditionType string) bool {
	c := s.stored(conditionType)
	return c.Status == metav1.ConditionTrue && c.ObservedGeneration == s.tool.Generation
}

// current returns a condition of this pass. One of an older generation says nothing of this one.
func (s *scope) current(conditionType string) metav1.Condition {
	c := reconcile.ConditionOf(s.tool.Status.Conditions, conditionType)
	if c.ObservedGeneration != s.tool.Generation {
		return metav1.Condition{Type: conditionType, Status: metav1.ConditionUnknown}
	}
	return c
}
