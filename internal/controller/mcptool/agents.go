package mcptool

import (
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

// noteRemoteTools takes the names of a remote MCP server's tools from what gateways were told by it. While none tells, what was known stays.
func (s *scope) noteRemoteTools(agents []mcpv1alpha1.MCPAgent) {
	if s.tool.Spec.Type != mcpv1alpha1.ToolMCP {
		return
	}
	names := map[string]struct{}{}
	for _, agent := range agents {
		for _, effective := range s.effective(agent) {
			if n := len(effective.Name); n > 0 && n <= maxToolName && effective.Verdict != mcpv1alpha1.VerdictMissing {
				names[effective.Name] = struct{}{}
			}
		}
	}
	if len(names) == 0 && len(agents) > 0 {
		return
	}
	var tools []mcpv1alpha1.ToolStatus
	for _, name := range slices.Sorted(maps.Keys(names)) {
		tools = append(tools, mcpv1alpha1.ToolStatus{Name: name})
	}
	s.setTools(tools)
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
