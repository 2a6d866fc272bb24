package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// operation is one of a document.
type operation struct {
	method, path string
	// item is the path's object, object the operation's.
	item, object map[string]any

	name   string
	origin origin
}

// String is how messages call it.
func (o operation) String() string { return o.method + " " + line(o.path, maxQuote) }

// methods are those of a path's object, in the order of their tools, and whether a tool can be made of them.
var methods = []struct {
	key      string
	callable bool
}{
	{"get", true}, {"head", true}, {"post", true}, {"put", true}, {"patch", true}, {"delete", true}, {"options", false}, {"trace", false},
}

// maxOperations is how many a document may have, chosen or not.
const maxOperations = 20_000

// operations lists those that are chosen, by path and then by method. A path that cannot be read is left out.
func (c *compiler) operations() ([]operation, error) {
	var chosen []operation
	seen := 0
	unmatched := c.entries()
	paths := members(c.doc.root["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if !strings.HasPrefix(path, "/") {
			continue // an extension
		}
		item, err := c.doc.object(paths[path], "the path")
		if err != nil {
			c.skip(operation{method: "*", path: path}, err)
			continue
		}
		for _, method := range methods {
			if item[method.key] == nil {
				continue
			}
			op := operation{method: strings.ToUpper(method.key), path: path, item: item, object: members(item[method.key])}
			if seen++; seen > maxOperations {
				return nil, fmt.Errorf("it has more than %d operations: cut out what is not needed", maxOperations)
			}
			if err := c.doc.budget.clock.now(); err != nil {
				return nil, err
			}
			unmatched = slices.DeleteFunc(unmatched, func(e entry) bool { return op.matches(e.match) })
			if !c.chooses(op) {
				continue
			}
			if !method.callable {
				c.skip(op, fmt.Errorf("no tool can be made of the method %s", op.method))
				continue
			}
			chosen = append(chosen, op)
		}
	}
	c.unmatched = unmatched
	return chosen, nil
}

// entry is one of include or exclude.
type entry struct {
	place     string
	isExclude bool
	match     mcpv1alpha1.OperationMatch
}

func (c *compiler) entries() []entry {
	var out []entry
	for i, match := range c.opts.Include {
		out = append(out, entry{fmt.Sprintf("include[%d]", i), false, match})
	}
	for i, match := range c.opts.Exclude {
		out = append(out, entry{fmt.Sprintf("exclude[%d]", i), true, match})
	}
	return out
}

// String says that nothing is like it.
func (e entry) String() string {
	var asked []string
	for _, part := range []struct{ name, value string }{
		{"operation", e.match.Operation}, {"tag", e.match.Tag}, {"method", e.match.Method}, {"path", e.match.Path},
	} {
		if part.value != "" {
			asked = append(asked, part.name+" "+line(part.value, maxQuote))
		}
	}
	return e.place + " (" + strings.Join(asked, ", ") + ") matches no operation"
}

// chooses says whether include and exclude let an operation through.
func (c *compiler) chooses(op operation) bool {
	return (len(c.opts.Include) == 0 || slices.ContainsFunc(c.opts.Include, op.matches)) && !slices.ContainsFunc(c.opts.Exclude, op.matches)
}

func (o operation) matches(m mcpv1alpha1.OperationMatch) bool {
	tagged := func(tag any) bool { return text(tag) == m.Tag }
	id := text(o.object["operationId"])
	return (m.Operation == "" || id != "" && fits(m.Operation, id)) &&
		(m.Path == "" || fits(m.Path, o.path)) &&
		(m.Method == "" || m.Method == o.method) &&
		(m.Tag == "" || slices.ContainsFunc(list(o.object["tags"]), tagged))
}

// fits compares a text with a pattern, in which '*' is any run of characters.
func fits(pattern, s string) bool {
	ok, _ := (&table.ToolPolicy{Allow: []string{pattern}}).Match(s)
	return ok
}
