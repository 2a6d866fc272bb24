package engine

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
)

// maxNamed is how many tools a change names; of the others it tells the number.
const maxNamed = 5

// offer is what a status does not hold of what a server offers. The zero value knows nothing.
type offer struct {
	// generation is the one that told it.
	generation int64
	// digest is that over all tools, if there are more of them than a status lists.
	digest string
}

// offers are those of servers. They are not stored: what changes beyond the list while the operator does not run is not noticed. The zero
// value is empty.
type offers struct {
	mu sync.Mutex
	of map[types.NamespacedName]offer
}

func (o *offers) get(server types.NamespacedName) offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of[server]
}

// set keeps an offer; the zero value forgets.
func (o *offers) set(server types.NamespacedName, told offer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if told == (offer{}) {
		delete(o.of, server)
		return
	}
	if o.of == nil {
		o.of = map[types.NamespacedName]offer{}
	}
	o.of[server] = told
}

// learnedAt is the generation that told what the status says of the server. After a restart Verified has to tell it, which it does not of a
// rollout in which no pod was ready for a while.
func (s *scope) learnedAt() int64 {
	return cmp.Or(s.offered.get(client.ObjectKeyFromObject(s.server)).generation, s.stored(mcpv1alpha1.ConditionVerified).ObservedGeneration)
}

// changeOf says what the server offers now and did not before, in the words of its API. That another generation has another name, version or
// protocol is what its author asked for, and no news.
func (s *scope) changeOf(result *mcp.Result) string {
	before, after := s.before.Status.DeepCopy(), &s.server.Status
	if was := before.ServerInfo; was != nil && s.learnedAt() != s.server.Generation {
		was.Name, was.Version, was.ProtocolVersion = after.ServerInfo.Name, after.ServerInfo.Version, after.ServerInfo.ProtocolVersion
	}
	change := s.kind().CapabilityChange(before, after)
	s.learned = offer{generation: s.server.Generation}
	if s.dialect != nil || !result.ToolsTruncated {
		return change // other APIs tell of no tools
	}
	known, is := s.offered.get(client.ObjectKeyFromObject(s.server)).digest, result.ToolsDigest
	s.learned.digest = is
	if known != "" && is != "" && known != is && len(toolDiff(before, after)) == 0 {
		change = joined(change, fmt.Sprintf("tools changed: some of those after the first %d by name", len(after.Tools)))
	}
	return change
}

func joined(list, more string) string {
	if list == "" {
		return more
	}
	return list + ", " + more
}

// capabilityDiff says what a server offers now and did not before, in one line; empty if nothing changed or nothing was
// known before.
func capabilityDiff(before, after *mcpv1alpha1.MCPServerStatus) string {
	if before.ServerInfo == nil || after.ServerInfo == nil {
		return ""
	}
	var parts []string
	parts = append(parts, flagDiff(before.ServerInfo.Capabilities, after.ServerInfo.Capabilities)...)
	parts = append(parts, infoDiff(before.ServerInfo, after.ServerInfo)...)
	parts = append(parts, toolDiff(before, after)...)
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

// infoDiff tells what a server says of itself. Its instructions are too long to be quoted.
func infoDiff(before, after *mcpv1alpha1.MCPServerInfo) []string {
	var parts []string
	for _, field := range []struct{ name, before, after string }{
		{"name", before.Name, after.Name},
		{"version", before.Version, after.Version},
		{"protocol version", before.ProtocolVersion, after.ProtocolVersion},
	} {
		if field.before != field.after {
			parts = append(parts, fmt.Sprintf("%s: %s->%s", field.name, cmp.Or(field.before, "none"), cmp.Or(field.after, "none")))
		}
	}
	if before.Instructions != after.Instructions {
		parts = append(parts, "instructions changed")
	}
	return parts
}

// toolDiff tells of tools by name as far as both lists reach: a status lists the first by name, and what crosses the end of a list neither
// came nor went. Of those beyond it tells the number.
func toolDiff(before, after *mcpv1alpha1.MCPServerStatus) []string {
	wasCut, isCut := endOf(before), endOf(after)
	was := map[string]string{}
	for _, tool := range before.Tools {
		was[tool.Name] = tool.Digest
	}
	var added, changed, removed []string
	for _, tool := range after.Tools {
		digest, existed := was[tool.Name]
		switch {
		case !existed && (wasCut == "" || tool.Name < wasCut):
			added = append(added, tool.Name)
		case existed && digest != tool.Digest:
			changed = append(changed, tool.Name)
		}
		delete(was, tool.Name)
	}
	for _, tool := range before.Tools {
		if _, gone := was[tool.Name]; gone && (isCut == "" || tool.Name < isCut) {
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
	if (wasCut != "" || isCut != "") && before.ToolCount != nil && after.ToolCount != nil && *before.ToolCount != *after.ToolCount {
		parts = append(parts, fmt.Sprintf("number of tools: %d->%d", *before.ToolCount, *after.ToolCount))
	}
	return parts
}

// endOf is the last name of a list that lacks tools; empty if it has them all.
func endOf(status *mcpv1alpha1.MCPServerStatus) string {
	last := ""
	if status.ToolCount != nil && int(*status.ToolCount) > len(status.Tools) {
		for _, tool := range status.Tools {
			last = max(last, tool.Name)
		}
	}
	return last
}

func some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], " "), len(names)-maxNamed)
}
