package mcptool

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/reconcile"
)

// agents lists the MCPAgents that are granted the tool, by name.
func (s *scope) agents(ctx context.Context) ([]mcpv1alpha1.MCPAgent, error) {
	agents := &mcpv1alpha1.MCPAgentList{}
	err := s.List(ctx, agents, client.InNamespace(s.tool.Namespace), client.MatchingFields{indexGrants: s.tool.Name})
	if err != nil {
		return nil, fmt.Errorf("list the MCPAgents that are granted MCPTool %s: %w", s.key(), err)
	}
	granted := slices.DeleteFunc(agents.Items, func(a mcpv1alpha1.MCPAgent) bool { return a.DeletionTimestamp != nil })
	slices.SortFunc(granted, func(a, b mcpv1alpha1.MCPAgent) int { return strings.Compare(a.Name, b.Name) })
	return granted, nil
}

// effective is what an agent tells of this tool as it is now: what its gateway serves may still be made of an older generation.
func (s *scope) effective(agent mcpv1alpha1.MCPAgent) []mcpv1alpha1.EffectiveTool {
	source := "tool/" + s.tool.Name
	var own []mcpv1alpha1.EffectiveTool
	for _, effective := range agent.Status.EffectiveTools {
		if effective.Source == source && effective.SourceGeneration == s.tool.Generation {
			own = append(own, effective)
		}
	}
	return own
}

// isJudged says whether an agent tells what became of all that it is granted now, so that it was told of no tools by what it says nothing of.
func isJudged(agent *mcpv1alpha1.MCPAgent) bool {
	routed := reconcile.ConditionOf(agent.Status.Conditions, mcpv1alpha1.ConditionRouted)
	return routed.ObservedGeneration == agent.Generation &&
		(routed.Status == metav1.ConditionTrue || routed.Status == metav1.ConditionFalse && routed.Reason == mcpv1alpha1.ReasonToolsUnavailable)
}

// isToolless says whether an agent's gateways were told of no tools by this one.
func (s *scope) isToolless(agent mcpv1alpha1.MCPAgent) bool {
	source := "tool/" + s.tool.Name
	return s.tool.Spec.Type == mcpv1alpha1.ToolMCP && isJudged(&agent) &&
		!slices.ContainsFunc(agent.Status.EffectiveTools, func(e mcpv1alpha1.EffectiveTool) bool { return e.Source == source })
}

// isCut says whether an agent may be granted more tools than its status has room for: that drops what is held back before what is served,
// and that before what is wrong, and keeps one entry of everything that is granted.
func isCut(agent mcpv1alpha1.MCPAgent) bool {
	served, entries, list := 0, map[string]int{}, agent.Status.EffectiveTools
	for _, effective := range list {
		entries[effective.Source]++
		if effective.Verdict == mcpv1alpha1.VerdictServed {
			served++
		}
	}
	hasRoom := len(list) < maxTools || slices.ContainsFunc(list, func(e mcpv1alpha1.EffectiveTool) bool {
		return e.Verdict == mcpv1alpha1.VerdictDenied && entries[e.Source] > 1
	})
	count := agent.Status.ToolCount
	return count != nil && int(*count) > served || !hasRoom && served < len(list)
}

// noteRemoteTools takes the tools of a remote MCP server from what gateways were told by it: those that it offers and that the policy of
// this MCPTool lets through. While no gateway tells, what was known stays; so it does, if all were known, while no agent lists them all.
func (s *scope) noteRemoteTools(agents []mcpv1alpha1.MCPAgent) {
	if s.tool.Spec.Type != mcpv1alpha1.ToolMCP {
		return
	}
	if len(agents) == 0 {
		s.setTools(nil)
		return
	}
	isKnown, isWhole, cut := false, false, ""
	digests := map[string]string{}
	for _, agent := range agents {
		tells := s.noteTools(agent, digests) || s.isToolless(agent)
		isKnown = isKnown || tells
		switch {
		case tells && isCut(agent):
			cut = cmp.Or(cut, agent.Name)
		case tells:
			isWhole = true
		}
	}
	if !isWhole {
		s.cutBy = cut
	}
	if !isKnown || !isWhole && s.tool.Status.ToolCount != nil {
		return
	}
	tools := []mcpv1alpha1.ToolStatus{}
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		tool := mcpv1alpha1.ToolStatus{Name: name, Digest: digests[name]}
		if tool.Digest == unsettled {
			tool.Digest = ""
		}
		tools = append(tools, tool)
	}
	s.setTools(tools)
	if !isWhole {
		s.tool.Status.ToolCount = nil
	}
}

// noteTools notes the tools that an agent tells of, and their digests. It says whether the agent tells what the server offers.
func (s *scope) noteTools(agent mcpv1alpha1.MCPAgent, digests map[string]string) (isKnown bool) {
	for _, effective := range s.effective(agent) {
		if n := len(effective.Name); n == 0 || n > maxToolName {
			continue
		}
		isTool, tells := offers(effective.Verdict)
		isKnown = isKnown || tells
		if !isTool {
			continue
		}
		if before, there := digests[effective.Name]; there && before != "" && effective.Digest != "" && before != effective.Digest {
			effective.Digest = unsettled
		}
		digests[effective.Name] = cmp.Or(effective.Digest, digests[effective.Name])
	}
	return isKnown
}

// unsettled stands for the digest of a tool of which gateways have different ones.
const unsettled = "?"

// offers says whether a verdict about a name is one about a tool that this MCPTool becomes, and whether it tells what the server offers.
func offers(verdict mcpv1alpha1.ToolVerdict) (isTool, tells bool) {
	switch verdict {
	case mcpv1alpha1.VerdictServed, mcpv1alpha1.VerdictConflict, mcpv1alpha1.VerdictUnavailable:
		return true, true
	case mcpv1alpha1.VerdictDenied, mcpv1alpha1.VerdictMissing, mcpv1alpha1.VerdictInvalid:
		return false, true
	case mcpv1alpha1.VerdictPending:
	}
	return false, false
}

// maxTools is how many tools the status lists, maxToolName how long their names may be.
const maxTools, maxToolName = 512, 128

// setTools notes what the tool becomes; nil is that nothing is known.
func (s *scope) setTools(tools []mcpv1alpha1.ToolStatus) {
	status := &s.tool.Status
	status.Tools, status.ToolCount = nil, nil
	if tools == nil {
		return
	}
	status.ToolCount = new(int32(len(tools))) //nolint:gosec // G115: limits above this bound it
	status.Tools = tools[:min(len(tools), maxTools)]
}
