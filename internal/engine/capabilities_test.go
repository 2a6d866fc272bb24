package engine

import (
	"testing"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

func TestWhatAServerOffersNowAndDidNotBeforeIsToldInOneLine(t *testing.T) {
	t.Parallel()
	// offers is a status after a handshake, with tools as name, digest, name, digest…
	offers := func(capabilities *mcpv1alpha1.MCPServerCapabilities, tools ...string) *mcpv1alpha1.MCPServerStatus {
		status := &mcpv1alpha1.MCPServerStatus{ServerInfo: &mcpv1alpha1.MCPServerInfo{Capabilities: capabilities}}
		for i := 0; i < len(tools); i += 2 {
			status.Tools = append(status.Tools, mcpv1alpha1.ToolStatus{Name: tools[i], Digest: tools[i+1]})
		}
		return status
	}
	counted := func(prompts, resources *int32) *mcpv1alpha1.MCPServerStatus {
		status := offers(nil)
		status.PromptCount, status.ResourceCount = prompts, resources
		return status
	}
	noCompletions := &mcpv1alpha1.MCPServerCapabilities{Tools: true, Resources: true, Prompts: true, Logging: true}
	all := &mcpv1alpha1.MCPServerCapabilities{Tools: true, Resources: true, Prompts: true, Logging: true, Completions: true}
	tests := map[string]struct {
		before, after *mcpv1alpha1.MCPServerStatus
		want          string
	}{
		"nothing was known before":       {&mcpv1alpha1.MCPServerStatus{}, offers(all, "a", "1"), ""},
		"nothing is known now":           {offers(all, "a", "1"), &mcpv1alpha1.MCPServerStatus{}, ""},
		"nothing changed":                {offers(all, "a", "1"), offers(all, "a", "1"), ""},
		"the order of tools is no news":  {offers(all, "a", "1", "b", "2"), offers(all, "b", "2", "a", "1"), ""},
		"no capabilities is none of any": {offers(nil), offers(&mcpv1alpha1.MCPServerCapabilities{}), ""},
		"capabilities came": {
			offers(nil), offers(all), "tools: false->true, resources: false->true, prompts: false->true, logging: false->true, completions: false->true",
		},
		"a capability went": {offers(all), offers(noCompletions), "completions: true->false"},
		"tools were added, changed and removed": {
			offers(all, "a", "1", "b", "1", "c", "1"), offers(all, "a", "1", "b", "2", "d", "1"), "tools added: d, tools changed: b, tools removed: c",
		},
		"many tools are counted": {
			offers(all), offers(all, "a", "", "b", "", "c", "", "d", "", "e", "", "f", "", "g", ""), "tools added: a b c d e and 2 more",
		},
		"five tools are named": {
			offers(all), offers(all, "a", "", "b", "", "c", "", "d", "", "e", ""), "tools added: a b c d e",
		},
		"the numbers of prompts and resources changed": {
			counted(new(int32(1)), new(int32(2))), counted(new(int32(3)), new(int32(0))), "number of prompts: 1->3, number of resources: 2->0",
		},
		"the numbers are the same":         {counted(new(int32(1)), new(int32(2))), counted(new(int32(1)), new(int32(2))), ""},
		"a number that was not known":      {counted(nil, nil), counted(new(int32(1)), new(int32(1))), ""},
		"a number that is no longer known": {counted(new(int32(1)), new(int32(1))), counted(nil, nil), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := capabilityDiff(tt.before, tt.after); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
