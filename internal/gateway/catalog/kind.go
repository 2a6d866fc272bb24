// Package catalog knows what the backends of an endpoint offer, and under which names. It reads their lists within limits
// (Fetch), makes of all of them one view with names, policy and conflicts settled (Compile), and tells whether a new view is
// news to clients (Diff). A view routes by exact names: none is ever taken apart.
//
// What backends list is foreign text. An entry that breaks a rule is dropped, with the reason, and costs the others nothing.
// What is kept is kept as it was sent, but for the name.
package catalog

import (
	"encoding/json"
	"strconv"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Kind is one of the four lists of a server.
type Kind int

const (
	// Tools are listed by tools/list, by name.
	Tools Kind = iota
	// Prompts are listed by prompts/list, by name.
	Prompts
	// Resources are listed by resources/list, by URI.
	Resources
	// Templates are listed by resources/templates/list, by URI template (RFC 6570).
	Templates

	kinds = iota
)

// list is how a kind is listed.
type list struct {
	method     string
	member     string // of the result, an array
	key        string // of an entry, what it is called by
	capability string // that offers it
	noun       string // for messages
	most       int    // entries of one backend
}

var lists = [kinds]list{
	Tools:     {"tools/list", "tools", "name", "tools", "tool", 512},
	Prompts:   {"prompts/list", "prompts", "name", "prompts", "prompt", 512},
	Resources: {"resources/list", "resources", "uri", "resources", "resource", 4096},
	Templates: {"resources/templates/list", "resourceTemplates", "uriTemplate", "resources", "resource template", 256},
}

// KindOf returns the kind that a method lists.
func KindOf(method string) (Kind, bool) {
	for kind := range lists {
		if lists[kind].method == method {
			return Kind(kind), true
		}
	}
	return 0, false
}

// Method returns the method that lists the kind.
func (k Kind) Method() string { return lists[k].method }

// Unknown is the answer to a request for a tool, prompt or resource that a view does not have. It is the same for one that does
// not exist, one that policy hides, one in conflict and one that was dropped: nobody learns what else there is.
func Unknown(k Kind, id json.RawMessage, name string, client backend.Era) *wire.Message {
	const longest = 128
	if len(name) > longest {
		name = name[:longest]
	}
	code := wire.CodeInvalidParams
	if k >= Resources && client == backend.Legacy {
		code = wire.CodeResourceNotFoundLegacy
	}
	return wire.NewError(id, code, "unknown "+lists[k].noun+" "+strconv.QuoteToGraphic(name), nil)
}
