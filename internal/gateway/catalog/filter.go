package catalog

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// ErrAmbiguous is returned for a list that two readers could understand differently: what was judged of it need not be what a client
// would see.
var ErrAmbiguous = errors.New("the result of a list has a member twice, or one that is no list")

// FilterTools applies a lone backend's names and policy to the result of a tools/list that was answered to the client's own
// session: what is held back is gone, names are those of clients, everything else is as it was. It also returns what became
// of each tool of that page. isRouted, unless it is nil, has tools left out that could not be called. The result is valid JSON; the error
// is ErrAmbiguous.
func FilterTools(result json.RawMessage, b table.Backend, isRouted func(name, original string) bool) (json.RawMessage, []table.ToolStatus, error) {
	return filter(Tools, result, b, isRouted)
}

// IsByAnnotations says whether it is by the annotations of its tools what of a backend is served. Then only the view tells what can be
// called: the call itself carries no annotations.
func IsByAnnotations(b *table.Backend) bool { return b.Tools.ReadOnly || b.Tools.DenyDestructive }

// FilterPrompts is [FilterTools] for the result of prompts/list, which has names but no policy.
func FilterPrompts(result json.RawMessage, b table.Backend) (json.RawMessage, error) {
	result, _, err := filter(Prompts, result, b, nil)
	return result, err
}

func filter(k Kind, result json.RawMessage, b table.Backend, isRouted func(name, original string) bool) (json.RawMessage, []table.ToolStatus, error) {
	array, err := listOf(k, result)
	if array == nil || err != nil {
		return result, nil, err
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
		if n.verdict != table.ToolServed || isRouted != nil && !isRouted(n.name, n.entry.Name) {
			same = false
			continue
		}
		same = same && n.name == n.entry.Name
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = n.entry.appendAs(out, n.name)
	}
	if !same {
		result = wire.NewResult(nil, result).With(wire.SetResult(lists[k].member, append(out, ']'))).Result
	}
	return result, statuses(k, all, &b, c), nil
}

// listOf returns the one list of a result; nil if there is none that any reader could find.
func listOf(k Kind, result json.RawMessage) (json.RawMessage, error) {
	found, err := wire.Pick(result, lists[k].member)
	if err != nil || wire.Misspelt(result, lists[k].member) || found[0] != nil && !wire.IsArray(found[0]) {
		return nil, ErrAmbiguous
	}
	return found[0], nil
}

func statuses(k Kind, all []named, b *table.Backend, c *Catalog) []table.ToolStatus {
	if k != Tools {
		return nil
	}
	out := make([]table.ToolStatus, 0, len(all))
	for i := range all {
		out = append(out, all[i].status())
	}
	return append(out, invalidTools(b, c)...)
}

// OriginalTool returns what a lone backend calls the tool that a client calls name, for tools that a session has but the view
// does not. It is false if the name is none of the backend's, or policy holds the tool back. It knows no annotations, so that
// where policy asks for them only the view tells.
func OriginalTool(b *table.Backend, name string) (string, bool) {
	if IsByAnnotations(b) {
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
