package catalog

import (
	"regexp"
	"slices"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// View is what clients of an endpoint see, and where it comes from. It is not changed once it was made.
type View struct {
	routes    [kinds]map[string]Route // the zero Route for a name in conflict
	templates []template
	pages     [kinds]pages
	backends  []table.BackendStatus
	conflicts []Conflict
}

// Route is where a request for a tool, prompt or resource goes.
type Route struct {
	// Backend is its name in the table.
	Backend string
	// Original is what the backend calls it. For a resource it is the URI that was asked for.
	Original string
	// ParamHeaders are the arguments of a tool that are sent as headers too (2026-07-28).
	ParamHeaders []wire.ParamHeader
}

// template is a resource template and the URIs it stands for.
type template struct {
	pattern *regexp.Regexp
	route   Route
}

// Tool returns where a call of the tool goes. It is false for every tool that is not listed, whatever the reason.
func (v *View) Tool(name string) (Route, bool) { return v.exactly(Tools, name) }

// Prompt returns where a request for the prompt goes.
func (v *View) Prompt(name string) (Route, bool) { return v.exactly(Prompts, name) }

// Template returns where a request about a resource template goes, such as completion/complete.
func (v *View) Template(uriTemplate string) (Route, bool) { return v.exactly(Templates, uriTemplate) }

func (v *View) exactly(k Kind, name string) (Route, bool) {
	route := v.routes[k][name]
	return route, route.Backend != ""
}

// Resource returns where a request for the resource goes: to the backend that lists it, or else to the one whose templates match
// the URI. If those of several backends do, it goes to none, since any choice could be the wrong server.
func (v *View) Resource(uri string) (Route, bool) {
	if route, listed := v.routes[Resources][uri]; listed {
		return route, route.Backend != ""
	}
	if len(uri) > uriBytes {
		return Route{}, false
	}
	var found Route
	for _, t := range v.templates {
		if t.route.Backend == found.Backend || !t.pattern.MatchString(uri) {
			continue
		}
		if found.Backend != "" {
			return Route{}, false
		}
		found = Route{Backend: t.route.Backend, Original: uri}
	}
	return found, found.Backend != ""
}

// Backends returns what is known of each backend, in the order of the table, as far as a catalog tells: the rest of the fields is
// for whoever talks to the backend.
func (v *View) Backends() []table.BackendStatus { return slices.Clone(v.backends) }

// Size is how many bytes of definitions the lists have.
func (v *View) Size() int {
	size := 0
	for _, pages := range v.pages {
		for _, page := range pages.all {
			size += page.bytes
		}
	}
	return size
}

// Conflicts returns the names that nobody serves because several backends offer them.
func (v *View) Conflicts() []Conflict { return v.conflicts }

// Changes says which lists are others than before.
type Changes struct{ Tools, Prompts, Resources bool }

// And is what of two changed.
func (c Changes) And(other Changes) Changes {
	return Changes{Tools: c.Tools || other.Tools, Prompts: c.Prompts || other.Prompts, Resources: c.Resources || other.Resources}
}

// Diff returns what clients who saw one view must be told of another. The same entries in another order are no news. A view that
// is nil was seen by nobody, so nothing is due.
func Diff(before, after *View) Changes {
	if before == nil || after == nil {
		return Changes{}
	}
	return after.Mark().Since(before.Mark())
}

// Mark is a digest of each list of a view, whatever the order of its entries: short enough to be sealed into the id of a session.
type Mark [kinds][markBytes]byte

// markBytes is enough to tell two views apart that a client may have seen.
const markBytes = 6

// Mark returns the view's.
func (v *View) Mark() (m Mark) {
	for k := range m {
		m[k] = [markBytes]byte(v.pages[k].content[:markBytes])
	}
	return m
}

// Since returns what clients who saw the view of one mark must be told of the view of another.
func (m Mark) Since(before Mark) Changes {
	differ := func(k Kind) bool { return before[k] != m[k] }
	return Changes{Tools: differ(Tools), Prompts: differ(Prompts), Resources: differ(Resources) || differ(Templates)}
}

// Bytes are what ReadMark reads.
func (m Mark) Bytes() []byte {
	out := make([]byte, 0, kinds*markBytes)
	for _, digest := range m {
		out = append(out, digest[:]...)
	}
	return out
}

// ReadMark reads a mark; false if it is none.
func ReadMark(raw []byte) (m Mark, ok bool) {
	if len(raw) != kinds*markBytes {
		return m, false
	}
	for k := range m {
		m[k] = [markBytes]byte(raw[k*markBytes:])
	}
	return m, true
}
