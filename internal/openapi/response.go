package openapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// maxOutput bounds an output schema, in bytes. A larger one is left out: it would cost more than it tells.
const maxOutput = 64 << 10

// outputSchema is that of the tool; nil if the responses do not promise one JSON object. What a response that succeeds may be else, the
// gateway would have to refuse.
func (b *builder) outputSchema() map[string]any {
	responses := members(b.op.object["responses"])
	var successes []string
	for _, code := range slices.Sorted(maps.Keys(responses)) {
		if strings.HasPrefix(code, "2") {
			successes = append(successes, code)
		}
	}
	if len(successes) != 1 || b.tool.Method == http.MethodHead {
		return nil
	}
	response, err := b.doc.object(responses[successes[0]], "a response")
	if err != nil {
		return nil
	}
	content := members(response["content"])
	media := jsonMedia(content)
	if len(content) != 1 || media == "" || strings.Contains(media, "*") {
		return nil
	}
	return b.objectSchema(members(content[media])["schema"])
}

// objectSchema turns the schema of a response; nil if it is not one of an object, cannot be turned, or is too large.
func (b *builder) objectSchema(schema any) map[string]any {
	if !b.doc.isObject(schema) {
		return nil
	}
	root, err := b.doc.object(schema, "a response")
	if err != nil || truth(root["nullable"]) {
		return nil
	}
	output := &reader{library: b.responses}
	converted, err := output.convert(root, 0)
	if err != nil {
		return nil
	}
	defs, err := b.responses.collect(output, maxOutput)
	out := members(converted)
	if err != nil || out == nil {
		return nil
	}
	out["type"] = "object"
	if defs != nil {
		out["$defs"] = defs
	}
	if size(out) > maxOutput {
		return nil
	}
	return out
}
