package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// Source is one backend and what is known of it.
type Source struct {
	Backend table.Backend
	// Catalog is the last one that could be fetched, or nil if none ever could.
	Catalog *Catalog
	// State is how the backend does now. It changes nothing about what is served: while a backend is away its tools stay
	// listed, and calls of them fail.
	State table.BackendState
}

// DefaultPageSize is how many entries a page has at most.
const DefaultPageSize = 1000

// Compile makes one view of all backends. It is a function of its input: names are those of each backend's own policy, whoever
// else there is, and lists are in the order of the sources and then of the servers. A name that two backends come to is served
// by neither. A pageSize of 0 is [DefaultPageSize].
func Compile(sources []Source, pageSize int) *View {
	if pageSize <= 0 {
		pageSize = DefaultPageSize
	}
	v := &View{}
	for _, s := range sources {
		status := table.BackendStatus{Name: s.Backend.Name, State: s.State}
		if s.Catalog != nil {
			status.CatalogDigest = s.Catalog.Digest
		}
		v.backends = append(v.backends, status)
	}
	for k := range Kind(kinds) {
		named := v.name(k, sources)
		v.settle(k, sources, named)
		v.publish(k, sources, named, pageSize)
	}
	v.tellConflicts()
	return v
}

// named is an entry of a source under the name that clients would see.
type named struct {
	source  int
	entry   *Entry
	name    string
	verdict table.ToolVerdict // empty until it is settled
	reason  string
}

func (n *named) status() table.ToolStatus {
	return table.ToolStatus{Name: n.name, Original: n.entry.Name, Digest: n.entry.Digest, Verdict: n.verdict, Reason: n.reason}
}

// name gives the entries of all sources their names, and applies policy to tools.
func (v *View) name(k Kind, sources []Source) []named {
	var all []named
	for i, s := range sources {
		if s.Catalog == nil {
			continue
		}
		for j := range s.Catalog.Entries[k] {
			e := &s.Catalog.Entries[k][j]
			n := named{source: i, entry: e, name: clientName(k, &s.Backend, e.Name)}
			if k == Tools {
				n.verdict, n.reason = toolPolicy(&s.Backend, e, n.name)
			}
			all = append(all, n)
		}
	}
	return all
}

// clientName is what clients call a backend's entry. Resources are named by URI, which is left alone: it stands in results too.
func clientName(k Kind, b *table.Backend, original string) string {
	switch k {
	case Tools:
		if renamed, ok := b.Tools.Rename[original]; ok {
			return renamed
		}
		return b.Prefix + original
	case Prompts:
		return b.Prefix + original
	default:
		return original
	}
}

// toolPolicy is the verdict of a backend's own policy, empty if the tool may be served.
func toolPolicy(b *table.Backend, e *Entry, name string) (verdict table.ToolVerdict, reason string) {
	// Annotations are the server's own word: they count if the server is trusted, and otherwise say nothing.
	readOnly, notDestructive := b.Trusted && e.readOnly, b.Trusted && e.notDestructive
	allowed, rule := b.Tools.Match(e.Name)
	switch {
	case !allowed:
		return table.ToolDenied, denial(rule)
	case b.Tools.ReadOnly && !readOnly:
		return table.ToolDenied, "readOnly: it does not say readOnlyHint true"
	case b.Tools.DenyDestructive && !readOnly && !notDestructive:
		return table.ToolDenied, "denyDestructive: it says neither destructiveHint false nor readOnlyHint true"
	case name == e.Name && !mcp.ValidToolName(name):
		return table.ToolInvalid, errName.Error()
	case !mcp.ValidToolName(name):
		return table.ToolInvalid, "the name with its prefix is not 1 to 128 of A-Z a-z 0-9 . _ -"
	}
	return "", ""
}

// settle finds conflicts among what is not held back, and the verdict of everything. What policy holds back conflicts with
// nothing, so that a conflict can be resolved by policy.
func (v *View) settle(k Kind, sources []Source, all []named) {
	first := make(map[string]int, len(all))
	shared := map[string][]int{}
	for i := range all {
		n := &all[i]
		if n.verdict != "" {
			continue
		}
		n.verdict = table.ToolServed
		before, taken := first[n.name]
		switch {
		case !taken:
			first[n.name] = i
		case shared[n.name] == nil:
			shared[n.name] = []int{before, i}
		default:
			shared[n.name] = append(shared[n.name], i)
		}
	}
	for i := range all {
		n := &all[i]
		sharers := shared[n.name]
		if n.verdict != table.ToolServed || sharers == nil {
			continue
		}
		n.verdict, n.reason = table.ToolConflict, conflictReason(sources, all, sharers, i)
		if sharers[0] == i {
			v.conflicts = append(v.conflicts, conflict(k, sources, all, sharers))
		}
	}
}

func conflictReason(sources []Source, all []named, sharers []int, own int) string {
	const most = 5
	var others []string
	for _, i := range sharers {
		if i != own {
			others = append(others, fmt.Sprintf("%s (as %q)", sources[all[i].source].Backend.Name, all[i].entry.Name))
		}
	}
	if len(others) > most {
		others = append(others[:most], fmt.Sprintf("%d more", len(others)-most))
	}
	return "also offered by " + strings.Join(others, ", ")
}

// publish puts what is served into the view, and what is not into the status.
func (v *View) publish(k Kind, sources []Source, all []named, pageSize int) {
	v.routes[k] = make(map[string]Route, len(all))
	p := newPager(pageSize)
	for i := range all {
		n := &all[i]
		status := &v.backends[n.source]
		if k == Tools {
			status.Tools = append(status.Tools, n.status())
		}
		switch n.verdict {
		case table.ToolServed:
			route := Route{Backend: status.Name, Original: n.entry.Name, ParamHeaders: n.entry.ParamHeaders}
			v.routes[k][n.name] = route
			p.add(n)
			if k == Templates {
				v.templates = append(v.templates, template{n.entry.pattern, route})
			}
			status.PromptCount += oneIf(k == Prompts)
			status.ResourceCount += oneIf(k == Resources)
		case table.ToolConflict:
			v.routes[k][n.name] = Route{} // known, so that no template takes its place
		case table.ToolDenied, table.ToolInvalid, table.ToolMissing:
		}
	}
	v.pages[k] = p.finish()
	if k != Tools {
		return
	}
	for i, s := range sources {
		if s.Catalog != nil {
			v.backends[i].Tools = append(v.backends[i].Tools, invalidTools(&s.Backend, s.Catalog)...)
			v.backends[i].Tools = append(v.backends[i].Tools, missingTools(&s)...)
		}
	}
}

// invalidTools are those that were dropped. What the policy holds back is denied, as if it were fit: nobody granted it. One that is listed
// twice is judged by its first definition.
func invalidTools(b *table.Backend, c *Catalog) []table.ToolStatus {
	if len(c.Invalid[Tools]) == 0 {
		return nil
	}
	listed := map[string]bool{}
	for i := range c.Entries[Tools] {
		listed[c.Entries[Tools][i].Name] = true
	}
	var statuses []table.ToolStatus
	for _, tool := range c.Invalid[Tools] {
		if listed[tool.Name] {
			continue
		}
		status := table.ToolStatus{Name: tool.Name, Original: tool.Name, Verdict: table.ToolInvalid, Reason: tool.Reason}
		if tool.Name != "" {
			status.Name = clientName(Tools, b, tool.Name)
		}
		if isGranted, rule := b.Tools.Match(tool.Name); !isGranted {
			status.Verdict, status.Reason = table.ToolDenied, denial(rule)
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// denial says which rule of a policy holds a tool back.
func denial(rule string) string {
	if rule == "allow" {
		return "no pattern of allow matches"
	}
	return rule
}

// missingTools are those that the policy of a backend grants or renames by their whole name, and that the backend does not list. A pattern
// with '*' names nothing, and of a list that was cut nobody knows what it lacks.
func missingTools(s *Source) []table.ToolStatus {
	policy, known := &s.Backend.Tools, s.Catalog
	if slices.Contains(known.Truncated, Tools.Method()) {
		return nil
	}
	rules := map[string]string{}
	for original := range policy.Rename {
		rules[original] = "rename"
	}
	for _, pattern := range policy.Allow {
		if !strings.Contains(pattern, "*") {
			rules[pattern] = "allow"
		}
	}
	maps.DeleteFunc(rules, func(original, _ string) bool {
		granted, _ := policy.Match(original)
		return !granted
	})
	for i := range known.Entries[Tools] {
		delete(rules, known.Entries[Tools][i].Name)
	}
	for i := range known.Invalid[Tools] {
		delete(rules, known.Invalid[Tools][i].Name)
	}
	statuses := make([]table.ToolStatus, 0, len(rules))
	for _, original := range slices.Sorted(maps.Keys(rules)) {
		statuses = append(statuses, table.ToolStatus{
			Name: clientName(Tools, &s.Backend, original), Original: original, Verdict: table.ToolMissing,
			Reason: fmt.Sprintf("%s names %q, and the server offers no tool of that name", rules[original], original),
		})
	}
	return statuses
}

func oneIf(condition bool) int {
	if condition {
		return 1
	}
	return 0
}
