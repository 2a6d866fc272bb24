package mcpagent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/route"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

const (
	// unreadGrace is how long a list may be unread before that is told: a server that is just being replaced fails one question of several,
	// and gateways ask again every 15 s.
	unreadGrace = time.Minute

	// maxGaps is how many sentences of a kind are told, maxNamed how many names in one.
	maxGaps, maxNamed = 5, 3
)

// plurals are what the kinds of names, and the lists of them, are called.
var (
	plurals = map[string]string{"prompt": "prompts", "resource": "resources", "resourceTemplate": "resource templates"}
	listed  = map[string]string{"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resource templates"}
)

// gaps are sentences about what is no tool and is not served as it should be, and when to look again, 0 if a gateway tells.
func (s *scope) gaps(statuses []route.Heard) (sentences []string, after time.Duration) {
	sources := map[string]string{}
	for _, origin := range s.route.Origins {
		sources[origin.Backend] = origin.Source
	}
	sentences = conflictSentences(sources, statuses)
	unread, after := s.unreadSentences(sources, statuses)
	return append(sentences, unread...), after
}

// clash is a set of objects that offer names of one kind.
type clash struct{ kind, sources string }

// conflictSentences tell of names that several objects offer, so that none of them is served. Names that are in conflict between the same
// objects make one sentence.
func conflictSentences(sources map[string]string, statuses []route.Heard) []string {
	clashes, cut := map[clash]map[string]bool{}, map[string]int{}
	for i := range statuses {
		for j := range statuses[i].Backends {
			b := &statuses[i].Backends[j]
			source, isGranted := sources[b.Name]
			if !isGranted {
				continue
			}
			if b.ConflictCount > len(b.Conflicts) {
				cut[source] = max(cut[source], b.ConflictCount)
			}
			for _, c := range b.Conflicts {
				at := clash{c.Kind, strings.Join(sourcesOf(sources, c.Backends), ", ")}
				if clashes[at] == nil {
					clashes[at] = map[string]bool{}
				}
				clashes[at][c.Name] = true
			}
		}
	}
	var list []string
	for at, names := range clashes {
		list = append(list, at.sentence(slices.Sorted(maps.Keys(names))))
	}
	for source, count := range cut {
		list = append(list, fmt.Sprintf("%s has %d names of prompts and resources in conflict", source, count))
	}
	return few(list)
}

func (c clash) sentence(names []string) string {
	what, none := plurals[c.kind], "so none of these is served"
	if len(names) == 1 {
		what, none = strings.TrimSuffix(what, "s"), "so it is not served"
	}
	remedy := "grant one of them in another MCPAgent"
	if c.kind == "prompt" {
		remedy = "give one a prefix"
	}
	shown := make([]string, 0, maxNamed+1)
	for _, name := range names[:min(len(names), maxNamed)] {
		shown = append(shown, "'"+name+"'")
	}
	if more := len(names) - maxNamed; more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s %s: offered by %s, %s: %s", what, strings.Join(shown, ", "), c.sources, none, remedy)
}

// sourcesOf are the objects that backends are of, sorted.
func sourcesOf(sources map[string]string, backends []string) []string {
	var list []string
	for _, name := range backends {
		list = append(list, cmp.Or(sources[name], "another"))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// unreadSentences tell of lists that could not be read for a while, or were told of before.
func (s *scope) unreadSentences(sources map[string]string, statuses []route.Heard) (list []string, after time.Duration) {
	unread := map[string]bool{}
	for i := range statuses {
		for j := range statuses[i].Backends {
			b := &statuses[i].Backends[j]
			source, isGranted := sources[b.Name]
			if !isGranted || b.State != table.BackendReady { // of one that fails, that is told
				continue
			}
			for _, method := range b.Unread {
				unread[fmt.Sprintf("%s: its %s could not be read (%s fails): those that it listed before are served", source, listed[method], method)] = true
			}
		}
	}
	since := s.unreadSince(unread)
	before := s.stored(mcpv1alpha1.ConditionRouted).Message
	for sentence := range unread {
		if left := time.Until(since[sentence].Add(unreadGrace)); left > 0 && !strings.Contains(before, sentence) {
			after = sooner(after, left)
			continue
		}
		list = append(list, sentence)
	}
	return few(list), after
}

// unreadSince notes what is unread, and returns since when.
func (s *scope) unreadSince(unread map[string]bool) map[string]time.Time {
	now := map[string]time.Time{}
	s.remember(s.key(), func(m *memory) {
		for sentence := range unread {
			now[sentence] = time.Now()
			if since, noted := m.unread[sentence]; noted {
				now[sentence] = since
			}
		}
		m.unread = now
	})
	return now
}

// few sorts sentences, and counts those that there is no room for.
func few(list []string) []string {
	slices.Sort(list)
	if more := len(list) - maxGaps; more > 0 {
		list = append(list[:maxGaps], fmt.Sprintf("and %d more", more))
	}
	return list
}
