package openapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// formMedia is the media type of forms.
const formMedia = "application/x-www-form-urlencoded"

// jsonMedia is the media type among those of a content that is JSON; empty if none is.
func jsonMedia(content map[string]any) string {
	best := ""
	for _, media := range slices.Sorted(maps.Keys(content)) {
		essence, _, _ := strings.Cut(media, ";")
		essence = strings.ToLower(strings.TrimSpace(essence))
		switch {
		case essence == "application/json":
			return media
		case strings.HasSuffix(essence, "+json") || essence == "*/*" || essence == "application/*":
			best = media
		}
	}
	return best
}

// addBody gives the arguments of the body their places.
func (b *builder) addBody() error {
	body, err := b.doc.optional(b.op.object["requestBody"], "its request body")
	if err != nil {
		return err
	}
	if body == nil || b.tool.Method == http.MethodGet || b.tool.Method == http.MethodHead {
		return nil // a body has no meaning there (RFC 9110), and OpenAPI ignores it
	}
	content := members(body["content"])
	if media := jsonMedia(content); media != "" {
		return b.addJSON(members(content[media])["schema"], text(body["description"]), truth(body["required"]))
	}
	for media, object := range content {
		if essence, _, _ := strings.Cut(media, ";"); strings.EqualFold(strings.TrimSpace(essence), formMedia) {
			return b.addForm(members(object)["schema"], truth(body["required"]))
		}
	}
	return fmt.Errorf("its request body is neither JSON nor a form: %s", quote(strings.Join(slices.Sorted(maps.Keys(content)), ", ")))
}

// addJSON makes each member of the body an argument, where that says all of it; else the body is one argument.
func (b *builder) addJSON(schema any, description string, required bool) error {
	if schema == nil {
		schema = map[string]any{}
	}
	if object, ok := b.plainObject(schema); ok && b.fit(object) && (required || len(list(object["required"])) == 0) {
		b.tool.Body = &table.Body{}
		return b.addMembers(object, true)
	}
	converted, err := b.input.convert(schema, 0)
	if err != nil {
		return err
	}
	name, err := b.argument("body", "request")
	if err != nil {
		return fmt.Errorf("its body %w", err)
	}
	b.property(name, converted, description, required)
	b.tool.Body = &table.Body{Argument: name}
	return nil
}

// addForm makes each member of a form an argument.
func (b *builder) addForm(schema any, required bool) error {
	object, ok := b.plainObject(schema)
	if !ok {
		return errors.New("its form is not described by a plain object")
	}
	if n := len(members(object["properties"])); n > maxMembers {
		return fmt.Errorf("its form has %d fields, the limit is %d", n, maxMembers)
	}
	b.tool.Body = &table.Body{Type: table.BodyForm}
	return b.addMembers(object, required)
}

// plainObject returns an object schema that its properties describe wholly.
func (b *builder) plainObject(schema any) (map[string]any, bool) {
	object, err := b.doc.object(schema, "a body")
	if err != nil || !b.doc.isObject(schema) || len(members(object["properties"])) == 0 || truth(object["nullable"]) {
		return nil, false
	}
	for _, key := range keywordsOf(object) {
		additional, isFlag := object[key].(bool)
		closed := key == "additionalProperties" && isFlag && !additional
		if keywords[key] >= schemaOf && key != "properties" && !closed || key == "minProperties" || key == "dependentRequired" {
			return nil, false
		}
	}
	return object, true
}

// maxMembers is the table's limit of a body's members.
const maxMembers = 128

// fit says whether the members of an object can be arguments by their own names.
func (b *builder) fit(object map[string]any) bool {
	if len(members(object["properties"])) > maxMembers {
		return false
	}
	for name := range members(object["properties"]) {
		if _, taken := b.properties[name]; taken || len(name) > maxArgument || words(name, isNameRune) != name {
			return false
		}
	}
	return true
}

// addMembers makes the properties of a body's schema arguments.
func (b *builder) addMembers(object map[string]any, required bool) error {
	converted, err := b.input.convert(map[string]any{"properties": object["properties"], "required": object["required"]}, 0)
	if err != nil {
		return err
	}
	shown := members(converted)
	needed := map[string]bool{}
	for _, name := range list(shown["required"]) {
		needed[text(name)] = true
	}
	properties := members(shown["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		isNeeded := required && needed[name]
		if b.tool.Body.Type == table.BodyForm && b.doc.holdsObjects(members(object["properties"])[name]) {
			if isNeeded {
				return fmt.Errorf("its form's field %s holds objects, which a form has no writing for", quote(name))
			}
			b.notes = append(b.notes, fmt.Sprintf("its optional form field %s holds objects", quote(name)))
			continue
		}
		argument, err := b.argument(name, "body")
		if err != nil {
			return fmt.Errorf("its body's member %s %w", quote(name), err)
		}
		b.property(argument, properties[name], "", isNeeded)
		param := table.Param{Name: name}
		if argument != name {
			param.Argument = argument
		}
		b.tool.Body.Members = append(b.tool.Body.Members, param)
	}
	if len(b.tool.Body.Members) == 0 { // without members the body would be all arguments that are used nowhere else, that is none
		b.tool.Body = nil
	}
	return nil
}
