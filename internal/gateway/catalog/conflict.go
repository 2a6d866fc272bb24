package catalog

import (
	"cmp"
	"slices"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// Conflict is a name that is served by nobody, since several backends offer it. That templates of several backends match one URI is none:
// nobody knows before the URI is asked for, and then nobody serves it either.
type Conflict struct {
	Kind Kind
	Name string
	// Backends are their names in the table, in its order.
	Backends []string
}

func conflict(k Kind, sources []Source, all []named, sharers []int) Conflict {
	c := Conflict{Kind: k, Name: all[sharers[0]].name}
	for _, i := range sharers {
		if name := sources[all[i].source].Backend.Name; !slices.Contains(c.Backends, name) {
			c.Backends = append(c.Backends, name)
		}
	}
	return c
}

// conflictKinds are the names of kinds in table.NameConflict. A tool has its verdict beside its name.
var conflictKinds = [kinds]string{Prompts: "prompt", Resources: "resource", Templates: "resourceTemplate"}

// tellConflicts puts the conflicts of what is no tool into the status of each backend that has a part in it.
func (v *View) tellConflicts() {
	sorted := slices.DeleteFunc(slices.Clone(v.conflicts), func(c Conflict) bool { return c.Kind == Tools })
	// Backends list in any order: which ones there is room for must not depend on it.
	slices.SortFunc(sorted, func(a, b Conflict) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	at := make(map[string]*table.BackendStatus, len(v.backends))
	for i := range v.backends {
		at[v.backends[i].Name] = &v.backends[i]
	}
	for _, c := range sorted {
		told := table.NameConflict{
			Kind: conflictKinds[c.Kind], Name: backend.Line(c.Name, table.MaxConflictName),
			Backends: c.Backends[:min(len(c.Backends), table.MaxConflictBackends)],
		}
		for _, name := range c.Backends {
			status := at[name]
			if status.ConflictCount++; len(status.Conflicts) < table.MaxConflicts {
				status.Conflicts = append(status.Conflicts, told)
			}
		}
	}
}
