package engine

import (
	"fmt"
	"strings"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// maxNamed is how many tools a change names; of the others it tells the number.
const maxNamed = 5

// capabilityDiff says what a server offers now and did not before, in one line; empty if nothing changed or nothing was
// known before.
func capabilityDiff(before, after *mcpv1alpha1.MCPServerStatus) string {
	if before.ServerInfo == nil || after.ServerInfo == nil {
		return ""
	}
	var parts []string
	parts = append(parts, flagDiff(before.ServerInfo.Capabilities, after.ServerInfo.Capabilities)...)
	parts = append(parts, toolDiff(before.Tools, after.Tools)...)
	for _, count := range []struct {
		name          string
		before, after *int32
	}{{"prompts", before.PromptCount, after.PromptCount}, {"resources", before.ResourceCount, after.ResourceCount}} {
		if count.before != nil && count.after != nil && *count.before != *count.after {
			parts = append(parts, fmt.Sprintf("number of %s: %d->%d", count.name, *count.before, *count.after))
		}
	}
	return strings.Join(parts, ", ")
}

// FlagChange says which capabilities a server has now and had not before, or the reverse; nil is none of them.
func FlagChange(before, after *mcpv1alpha1.MCPServerCapabilities) string {
	return strings.Join(flagDiff(before, after), ", ")
}

func flagDiff(before, after *mcpv1alpha1.MCPServerCapabilities) []string {
	if before == nil {
		before = &mcpv1alpha1.MCPServerCapabilities{}
	}
	if after == nil {
		after = &mcpv1alpha1.MCPServerCapabilities{}
	}
	var parts []string
	for _, flag := range []struct {
		name          string
		before, after bool
	}{
		{"tools", before.Tools, after.Tools},
		{"resources", before.Resources, after.Resources},
		{"prompts", before.Prompts, after.Prompts},
		{"logging", before.Logging, after.Logging},
		{"completions", before.Completions, after.Completions},
	} {
		if flag.before != flag.after {
			parts = append(parts, fmt.Sprintf("%s: %t->%t", flag.name, flag.before, flag.after))
		}
	}
	return parts
}

func toolDiff(before, after []mcpv1alpha1.ToolStatus) []string {
	was := map[string]string{}
	for _, tool := range before {
		was[tool.Name] = tool.Digest
	}
	var added, changed, removed []string
	for _, tool := range after {
		digest, existed := was[tool.Name]
		switch {
		case !existed:
			added = append(added, tool.Name)
		case digest != tool.Digest:
			changed = append(changed, tool.Name)
		}
		delete(was, tool.Name)
	}
	for _, tool := range before {
		if _, gone := was[tool.Name]; gone {
			removed = append(removed, tool.Name)
		}
	}
	var parts []string
	for _, group := range []struct {
		what  string
		names []string
	}{{"added", added}, {"changed", changed}, {"removed", removed}} {
		if len(group.names) > 0 {
			parts = append(parts, fmt.Sprintf("tools %s: %s", group.what, some(group.names)))
		}
	}
	return parts
}

func some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], " "), len(names)-maxNamed)
}
