package observer

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// kinds are those of names that conflict, listings the methods whose lists may be unread. A gateway tells of no others.
var (
	kinds    = []string{"prompt", "resource", "resourceTemplate"}
	listings = []string{"prompts/list", "resources/list", "resources/templates/list"}
)

// maxBackendName is the length of the longest name of a backend that is kept, in bytes: of a table there are no longer ones.
const maxBackendName = 128

// conflictsOf are the conflicts that a gateway tells of a backend, as far as they are ones: bounded, sorted, each once, and fit to be shown.
func conflictsOf(told []table.NameConflict) []table.NameConflict {
	var list []table.NameConflict
	for _, c := range told[:min(len(told), table.MaxConflicts)] {
		if !slices.Contains(kinds, c.Kind) {
			continue
		}
		var backends []string
		for _, name := range c.Backends[:min(len(c.Backends), table.MaxConflictBackends)] {
			backends = append(backends, shown(name, maxBackendName))
		}
		slices.Sort(backends)
		list = append(list, table.NameConflict{Kind: c.Kind, Name: shown(c.Name, table.MaxConflictName), Backends: slices.Compact(backends)})
	}
	slices.SortFunc(list, func(a, b table.NameConflict) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name), slices.Compare(a.Backends, b.Backends))
	})
	return slices.CompactFunc(list, func(a, b table.NameConflict) bool {
		return a.Kind == b.Kind && a.Name == b.Name && slices.Equal(a.Backends, b.Backends)
	})
}

// unreadOf are the lists that a gateway could not read, sorted, each once.
func unreadOf(told []string) []string {
	var list []string
	for _, method := range listings {
		if slices.Contains(told, method) {
			list = append(list, method)
		}
	}
	return list
}

// shown is a text of at most limit bytes on one line: what hides, moves or breaks text becomes a space.
func shown(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return ' '
		}
		return r
	}, text)), " ")
	if len(text) <= limit {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}
