package front

import (
	"reflect"
	"slices"

	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// route finds who serves a tool. A lone backend under its own names is also asked for tools that its catalog does not have
// (yet): what a session of its may call is its own affair, as far as the policy lets it. Known says that the route is the catalog's.
func (f *Front) route(s *State, name string) (route catalog.Route, known, ok bool) {
	view := f.view.Load()
	if route, known = view.Tool(name); known && s.byName[route.Backend] != nil {
		return route, true, true
	}
	b := f.lone(s)
	if b == nil || !mcp.ValidToolName(name) { // no list shows a name that is not valid
		return catalog.Route{}, false, false
	}
	// What the gateway's own list lacks the client's session may have, whether the table names it or not.
	isHeldBack := func(t table.ToolStatus) bool { return t.Name == name && t.Verdict != table.ToolMissing }
	for _, status := range view.Backends() {
		if slices.ContainsFunc(status.Tools, isHeldBack) {
			return catalog.Route{}, false, false // it is listed, and not served
		}
	}
	original, ok := catalog.OriginalTool(&b.Config, name)
	return catalog.Route{Backend: b.Config.Name, Original: original}, false, ok
}

// stillServes says whether the tool that was called is served under its name now. A server that is at another place than before, and did
// not say yet what it has there, is judged by names and policy: nothing is withdrawn by a move.
func (f *Front) stillServes(s *State, b *Backend, x *exchange) bool {
	if before := x.backend; b.Server != before.Server && b.isUnread(catalog.Tools) {
		a, z := &before.Config, &b.Config
		if a.Prefix == z.Prefix && a.Trusted == z.Trusted && reflect.DeepEqual(a.Tools, z.Tools) {
			return true
		}
		original, ok := catalog.OriginalTool(z, x.tool)
		return ok && original == x.original
	}
	route, _, ok := f.route(s, x.tool)
	return ok && route.Backend == b.Config.Name && route.Original == x.original
}

// promptRoute finds who serves a prompt.
func (x *exchange) promptRoute(name string) (b *Backend, original string, ok bool) {
	route, found := x.view.Load().Prompt(name)
	if found && x.state.byName[route.Backend] != nil {
		return x.state.byName[route.Backend], route.Original, true
	}
	if b = x.lone(x.state); b != nil && b.Config.Prefix == "" && name != "" {
		return b, name, true
	}
	return nil, "", false
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
