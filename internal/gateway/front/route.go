package front

import (
	"slices"

	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// route finds who serves a tool. A lone backend under its own names is also asked for tools that its catalog does not have
// (yet): what a session of its may call is its own affair, as far as the policy lets it.
func (f *Front) route(s *State, name string) (catalog.Route, bool) {
	view := f.view.Load()
	if route, ok := view.Tool(name); ok && s.byName[route.Backend] != nil {
		return route, true
	}
	b := f.lone(s)
	if b == nil || name == "" {
		return catalog.Route{}, false
	}
	for _, status := range view.Backends() {
		if slices.ContainsFunc(status.Tools, func(t table.ToolStatus) bool { return t.Name == name }) {
			return catalog.Route{}, false // it is known, and not served
		}
	}
	original, ok := catalog.OriginalTool(&b.Config, name)
	return catalog.Route{Backend: b.Config.Name, Original: original}, ok
}

func (x *exchange) promptRoute(name string) (b *Backend, original string, ok bool) {
	route, found := x.view.Load().Prompt(name)
	if !found && x.lookAgain() {
		route, found = x.view.Load().Prompt(name)
	}
	if found && x.state.byName[route.Backend] != nil {
		return x.state.byName[route.Backend], route.Original, true
	}
	if b = x.lone(x.state); b != nil && b.Config.Prefix == "" && name != "" {
		return b, name, true
	}
	return nil, "", false
}

// owner finds who serves a resource.
func (x *exchange) owner(uri string) (*Backend, bool) {
	b, ok := x.ownerOf(x.state, uri)
	if !ok && x.lookAgain() {
		return x.ownerOf(x.state, uri)
	}
	return b, ok
}

// lookAgain says whether what is not found may be found now: in the first moments of a gateway or of a table not every backend
// has said yet what it has.
func (x *exchange) lookAgain() bool {
	asked := func(b *Backend) bool {
		select {
		case <-b.asked:
			return true
		default:
			return false
		}
	}
	if x.lone(x.state) != nil || !slices.ContainsFunc(x.state.Backends, func(b *Backend) bool { return !asked(b) }) {
		return false
	}
	x.awaitCatalogs()
	return true
}

// ownerOf finds who serves a resource.
func (f *Front) ownerOf(s *State, uri string) (*Backend, bool) {
	if b := f.lone(s); b != nil {
		return b, true
	}
	route, ok := f.view.Load().Resource(uri)
	b := s.byName[route.Backend]
	return b, ok && b != nil
}
