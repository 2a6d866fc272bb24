package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// maxSubschemas bounds what a client that checks arguments against a schema has to go through.
const maxSubschemas = 5000

var errForeignRef = errors.New("refers to another document, which nobody may fetch")

// checkSchema looks at a JSON Schema as far as a gateway must: that nothing in it makes a client fetch something, and that it has
// a bounded size. Its depth is bounded by that of the entry. Patterns are compiled by nobody here.
func checkSchema(schema json.RawMessage) error {
	c := schemaChecker{left: maxSubschemas}
	return c.schema(schema)
}

type schemaChecker struct{ left int }

// schema checks what stands where a schema may. A keyword that is not known here is taken for one that holds schemas, since a
// reference may lead into it.
func (c *schemaChecker) schema(raw json.RawMessage) error {
	if wire.IsArray(raw) {
		return c.each(raw)
	}
	if !wire.IsObject(raw) {
		return nil
	}
	if c.left--; c.left < 0 {
		return fmt.Errorf("has more than %d parts", maxSubschemas)
	}
	for key, value := range wire.Fields(raw) {
		if err := c.keyword(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (c *schemaChecker) each(array json.RawMessage) error {
	for element := range wire.Elements(array) {
		if err := c.schema(element); err != nil {
			return err
		}
	}
	return nil
}

func (c *schemaChecker) keyword(key string, value json.RawMessage) error {
	switch key {
	case "$ref", "$dynamicRef", "$recursiveRef":
		if target, ok := wire.String(value); ok && !strings.HasPrefix(target, "#") {
			return errForeignRef
		}
		return nil
	case "default", "const", "enum", "examples", "example":
		return nil // values, in which nothing is a keyword
	case "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions":
		for _, schema := range wire.Fields(value) { // here the keys are names
			if err := c.schema(schema); err != nil {
				return err
			}
		}
		return nil
	}
	return c.schema(value)
}
