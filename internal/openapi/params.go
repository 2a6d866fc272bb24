package openapi

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// maxParameters is how many parameters an operation may have, and its path besides.
const maxParameters = 128

// maxParameterName is how long the name of a parameter may be, in bytes.
const maxParameterName = 1024

// maxArgument is the length of an argument's name that models' interfaces take.
const maxArgument = 64

// parameter is one of an operation.
type parameter struct {
	name, in, style  string
	required         bool
	explode, byMedia bool // byMedia: written as JSON
	description      string
	schema           any
}

// places are where a parameter may be, in the order in which names are given away: the path comes first.
var places = []string{"path", "query", "header", "cookie"}

// ignored are headers that are no parameters, by the words of OpenAPI.
var ignored = []string{"accept", "content-type", "authorization"}

// parameters lists those of an operation, and of its path that the operation does not replace.
func (c *compiler) parameters(op operation) ([]parameter, error) {
	byPlace := map[string]map[string]parameter{}
	for _, owner := range []map[string]any{op.item, op.object} {
		given, err := elements(owner["parameters"], "its parameters")
		if err != nil {
			return nil, err
		}
		if len(given) > maxParameters {
			return nil, fmt.Errorf("it has %d parameters, the limit is %d", len(given), maxParameters)
		}
		for _, value := range given {
			p, err := c.parameter(value)
			if err != nil {
				return nil, err
			}
			if byPlace[p.in] == nil {
				byPlace[p.in] = map[string]parameter{}
			}
			byPlace[p.in][p.name] = p
		}
	}
	var all []parameter
	for _, place := range places {
		for _, name := range slices.Sorted(maps.Keys(byPlace[place])) {
			if place != "header" || !slices.Contains(ignored, strings.ToLower(name)) {
				all = append(all, byPlace[place][name])
			}
		}
	}
	return all, nil
}

func (c *compiler) parameter(value any) (parameter, error) {
	object, err := c.doc.object(value, "a parameter")
	if err != nil {
		return parameter{}, err
	}
	p := parameter{
		name: text(object["name"]), in: text(object["in"]), style: text(object["style"]), required: truth(object["required"]),
		description: text(object["description"]), schema: object["schema"],
	}
	if n := len(p.name); n > maxParameterName {
		return p, fmt.Errorf("its parameter %s has a name of %d bytes, the limit is %d", quote(p.name), n, maxParameterName)
	}
	if p.name == "" || !slices.Contains(places, p.in) {
		return p, fmt.Errorf("its parameter %s has no name, or is neither in path, query, header nor cookie", quote(p.name))
	}
	if p.style == "" {
		p.style = map[string]string{"path": "simple", "header": "simple", "query": "form", "cookie": "form"}[p.in]
	}
	p.explode = p.style == "form"
	if explode, given := object["explode"].(bool); given {
		p.explode = explode
	}
	p.required = p.required || p.in == "path"
	if content := members(object["content"]); p.schema == nil && len(content) > 0 {
		media := jsonMedia(content)
		if media == "" {
			return p, fmt.Errorf("its parameter %s is not JSON", quote(p.name))
		}
		p.schema, p.byMedia = members(content[media])["schema"], true
	}
	if p.schema == nil {
		p.schema = map[string]any{}
	}
	return p, nil
}

// addParameters gives the parameters their places in the request. One that cannot be sent is left out, unless it is required.
func (b *builder) addParameters(parameters []parameter) error {
	arguments := map[string]string{} // of the path
	for _, p := range parameters {
		if p.in == "path" && !strings.Contains(b.op.path, "{"+p.name+"}") {
			continue // it is in another path of the item
		}
		if err := b.doc.budget.clock.check(); err != nil {
			return err
		}
		style, err := b.styleOf(p)
		if err == nil {
			err = b.addParameter(p, style, arguments)
		}
		switch {
		case err != nil && p.required:
			return fmt.Errorf("its parameter %s (%s) %w", quote(p.name), p.in, err)
		case err != nil:
			b.notes = append(b.notes, fmt.Sprintf("its optional parameter %s (%s) %s", quote(p.name), p.in, err))
		}
	}
	template, err := rename(b.op.path, arguments)
	b.tool.Path = template
	return err
}

func (b *builder) addParameter(p parameter, style table.ParamStyle, arguments map[string]string) error {
	own := &reader{library: b.requests}
	schema, err := own.convert(p.schema, 0)
	if err == nil {
		_, err = b.requests.collect(own, maxDefinition)
	}
	if err != nil {
		return fmt.Errorf("has a schema that cannot be used: %w", err)
	}
	argument, err := b.argument(p.name, p.in)
	if err != nil {
		return err
	}
	b.input.refs, b.input.parts = append(b.input.refs, own.refs...), b.input.parts+own.parts
	b.property(argument, schema, p.description, p.required)
	param := table.Param{Name: p.name, Style: style}
	if argument != p.name {
		param.Argument = argument
	}
	switch p.in {
	case "path":
		arguments[p.name] = argument
	case "query":
		b.tool.Query = append(b.tool.Query, param)
	case "header":
		b.tool.Header = append(b.tool.Header, param)
	}
	return nil
}

// queryStyles are how lists are written, by style and whether they are exploded; the table's default is left out.
var queryStyles = map[string]map[bool]table.ParamStyle{
	"form":           {true: "", false: table.StyleComma},
	"spaceDelimited": {true: "", false: table.StyleSpace},
	"pipeDelimited":  {true: "", false: table.StylePipe},
	"deepObject":     {true: table.StyleDeep, false: table.StyleDeep},
}

// styleOf is how a parameter is written. The error says why it cannot be.
func (b *builder) styleOf(p parameter) (table.ParamStyle, error) {
	objects := b.doc.holdsObjects(p.schema)
	switch {
	case p.in == "cookie":
		return "", errors.New("is a cookie, which is not sent")
	case p.byMedia && p.in == "query":
		return table.StyleJSON, nil
	case p.byMedia:
		return "", errors.New("is JSON, which is sent in a query or body alone")
	case p.in == "header" && !isHeader(p.name):
		return "", errors.New("is no header for arguments: the gateway, the connection or the credential sets it")
	case p.in == "query":
		styles, known := queryStyles[p.style]
		if !known {
			return "", fmt.Errorf("has the style %s, which is not known", quote(p.style))
		}
		if style := styles[p.explode]; !objects || style == table.StyleDeep {
			return style, nil
		}
		return "", fmt.Errorf("holds objects, which the style %s has no writing for here", quote(p.style))
	case p.style != "simple":
		return "", fmt.Errorf("has the style %s; only simple is written there", quote(p.style))
	case objects:
		return "", errors.New("holds objects, which are not written there")
	}
	return "", nil
}

// isHeader says whether an argument may be sent in a header of that name.
func isHeader(name string) bool {
	return checkTool(&table.HTTPTool{
		Definition: []byte(`{"name":"a","inputSchema":{}}`), Method: "GET", Header: []table.Param{{Name: name}},
	}) == nil
}

// argument finds a name for an argument: the parameter's own, made legal; where that is taken, with its place before it.
func (b *builder) argument(name, place string) (string, error) {
	legal := words(name, isNameRune)
	for _, candidate := range []string{legal, place + "_" + legal} {
		if _, taken := b.properties[candidate]; legal != "" && len(candidate) <= maxArgument && !taken {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("has a name that is taken, or longer than %d characters", maxArgument)
}

// property adds an argument to the tool's input.
func (b *builder) property(name string, schema any, description string, required bool) {
	if shown := paragraphs(description, maxDescription); shown != "" {
		object, ok := schema.(map[string]any)
		if !ok {
			object = map[string]any{}
		}
		object = maps.Clone(object)
		object["description"] = shown
		schema = object
	}
	b.properties[name] = schema
	if required {
		b.required = append(b.required, name)
	}
}

// rename puts arguments into a path's template.
func rename(path string, arguments map[string]string) (string, error) {
	var out strings.Builder
	for rest := path; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		out.WriteString(before)
		if !found {
			break
		}
		name, after, closed := strings.Cut(after, "}")
		argument, given := arguments[name]
		if !closed || !given {
			return "", fmt.Errorf("its path has a variable %s that is no parameter", quote(name))
		}
		out.WriteString("{" + argument + "}")
		rest = after
	}
	return out.String(), nil
}
