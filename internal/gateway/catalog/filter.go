package catalog

import (
	"encoding/json"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// FilterTools applies a lone backend's names and policy to the result of a tools/list that was answered to the client's own
// session: what is held back is gone, names are those of clients, everything else is as it was. It also returns what became
// of each tool of that page. What is no list is returned as it is.
func FilterTools(result json.RawMessage, b table.Backend) (json.RawMessage, []table.ToolStatus) {
	return filter(Tools, result, b)
}

// FilterPrompts is [FilterTools] for the result of prompts/list, which has names but no policy.
func FilterPrompts(result json.RawMessage, b table.Backend) json.RawMessage {
	result, _ = filter(Prompts, result, b)
	return result
}

func filter(k Kind, result json.RawMessage, b table.Backend) (json.RawMessage, []table.ToolStatus) {
	array := wire.Field(result, lists[k].member)
	if !wire.IsArray(array) {
		return result, nil
	}
	add := newCollector(k)
	for entry := range wire.Elements(array) {
		add.add(entry)
	}
	c := &Catalog{}
	c.Entries[k], c.Invalid[k] = add.entries, add.invalid
	sources := []Source{{Backend: b, Catalog: c}}
	v := &View{backends: make([]table.BackendStatus, 1)}
	all := v.name(k, sources)
	v.settle(k, sources, all)
	same := len(add.invalid) == 0
	out := []byte{'['}
	for i := range all {
		n := &all[i]
		if n.verdict != table.ToolServed {
			same = false
			continue
		}
		same = same && n.name == n.entry.Name
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, n.entry.renamed(k, n.name)...)
	}
	if !same {
		result = wire.NewResult(nil, result).With(wire.SetResult(lists[k].member, append(out, ']'))).Result
	}
	return result, statuses(k, all, c)
}

func statuses(k Kind, all []named, c *Catalog) []table.ToolStatus {
	if k != Tools {
		return nil
	}
	out := make([]table.ToolStatus, 0, len(all))
	for i := range all {
		out = append(out, all[i].status())
	}
	return append(out, invalidTools(c.Invalid[Tools])...)
}

// OriginalTool returns what a lone backend calls the tool that a client calls name, for tools that a session has but the view
// does not. It is false if the name is none of the backend's, or policy holds the tool back. It knows no annotations, so that
// where policy asks for them only the view tells.
func OriginalTool(b *table.Backend, name string) (string, bool) {
	if b.Tools.ReadOnly || b.Tools.DenyDestructive {
		return "", false
	}
	original, ok := strings.CutPrefix(name, b.Prefix)
	for from, to := range b.Tools.Rename {
		if to == name {
			original, ok = from, true
			break
		}
		if from == original {
			ok = false // is called otherwise
		}
	}
	if !ok {
		return "", false
	}
	allowed, _ := b.Tools.Match(original)
	return original, allowed
}
