package mcptool

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
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

// noteRemoteTools takes the tools of a remote MCP server from what gateways were told by it: those that it offers and that the policy of
// this MCPTool lets through. While no gateway tells, what was known stays.
func (s *scope) noteRemoteTools(agents []mcpv1alpha1.MCPAgent) {
	if s.tool.Spec.Type != mcpv1alpha1.ToolMCP {
		return
	}
	isKnown := len(agents) == 0
	digests := map[string]string{}
	for _, agent := range agents {
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
	}
	if !isKnown {
		return
	}
	if len(agents) == 0 {
		s.setTools(nil)
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
