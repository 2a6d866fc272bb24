package toolset

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

const (
	// defaultResponse is the largest response of a tool that says nothing.
	defaultResponse = 1 << 20
	// maxExcerpt is how much of the body of a failure is shown.
	maxExcerpt = 4 << 10
)

// answer makes a result of a response.
type answer struct {
	tool     *tool
	response *http.Response
	hide     *credential.Redactor
	limit    int64
}

// read makes the result. The error is one of reading.
func (a *answer) read() (*result, error) {
	if a.limit == 0 {
		a.limit = defaultResponse
	}
	status := a.response.StatusCode
	if status >= 300 {
		return a.refused()
	}
	if encoding := a.response.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return failed("the API answered with HTTP status %d and a compressed body, which was not asked for", status), nil
	}
	body, err := io.ReadAll(io.LimitReader(a.response.Body, a.limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > a.limit {
		return failed("the API answered with HTTP status %d, but the response%s is larger than this tool's limit of %d bytes: ask for less",
			status, a.size(), a.limit), nil
	}
	body, _ = a.hide.Redact(body)
	mediaType := a.mediaType(body)
	switch {
	case len(body) == 0 && a.tool.output == nil:
		return &result{content: []json.RawMessage{text(fmt.Sprintf("HTTP status %d, without content", status))}}, nil
	case contentJSON(mediaType) || a.tool.output != nil || a.tool.http.Response.Select != "":
		return a.json(body), nil
	case isText(mediaType):
		return &result{content: []json.RawMessage{text(string(body))}}, nil
	case slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"}, mediaType):
		return &result{content: []json.RawMessage{image(mediaType, body)}}, nil
	}
	return failed("the API answered with %d bytes that are neither text, JSON nor an image", len(body)), nil
}

// size is what the response says of its own length.
func (a *answer) size() string {
	if a.response.ContentLength < 0 {
		return ""
	}
	return fmt.Sprintf(" of %d bytes", a.response.ContentLength)
}

// refused is the result of a status that is no success.
func (a *answer) refused() (*result, error) {
	status := a.response.StatusCode
	if status < 400 {
		return failed("the API answered with HTTP status %d: redirects are not followed", status), nil
	}
	head := fmt.Sprintf("the API answered with HTTP status %d %s", status, http.StatusText(status))
	excerpt, err := io.ReadAll(io.LimitReader(a.response.Body, 2*maxExcerpt))
	if err != nil {
		return failed("%s", head), nil //nolint:nilerr // the status tells more than how its explanation broke off
	}
	if len(excerpt) == 2*maxExcerpt { // it is cut, and may end with the beginning of a secret
		excerpt = a.hide.RedactHead(excerpt)
	}
	excerpt, _ = a.hide.Redact(excerpt)
	if len(excerpt) == 0 || !isText(a.mediaType(excerpt)) || a.response.Header.Get("Content-Encoding") != "" {
		return failed("%s", head), nil
	}
	return failed("%s: %s", head, strings.ToValidUTF8(string(excerpt[:min(len(excerpt), maxExcerpt)]), "\uFFFD")), nil
}

// mediaType is what the response says it is; if it does not say, text or unknown.
func (a *answer) mediaType(body []byte) string {
	mediaType, _, err := mime.ParseMediaType(a.response.Header.Get("Content-Type"))
	switch {
	case err == nil:
		return mediaType
	case utf8.Valid(body) && bytes.IndexByte(body, 0) < 0:
		return "text/plain"
	}
	return "application/octet-stream"
}

func isText(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || contentJSON(mediaType) || strings.HasSuffix(mediaType, "+xml") ||
		slices.Contains([]string{
			"application/xml", "application/yaml", "application/x-yaml", "application/javascript", "application/x-ndjson",
			"application/jsonl", "application/x-www-form-urlencoded", "application/graphql", "application/sql", "application/toml",
		}, mediaType)
}

func image(mediaType string, body []byte) json.RawMessage {
	out := append([]byte(`{"type":"image","mimeType":`), wire.Quote(mediaType)...)
	out = append(out, `,"data":"`...)
	return append(base64.StdEncoding.AppendEncode(out, body), `"}`...)
}

// json is the result of a JSON response, or of one that should be.
func (a *answer) json(body []byte) *result {
	value, err := wire.Check(body, wire.Limits{Bytes: len(body) + 1})
	wanted := a.tool.output != nil || a.tool.http.Response.Select != ""
	switch {
	case err != nil && wanted:
		return failed("the API answered with HTTP status %d, but not with JSON as this tool promises: %v", a.response.StatusCode, err)
	case err != nil:
		return &result{content: []json.RawMessage{text(string(body))}}
	}
	if pointer := a.tool.http.Response.Select; pointer != "" {
		if value = pick(value, pointer); value == nil {
			return failed("the API's response has nothing at %s", pointer)
		}
	}
	return a.tool.structured(value)
}

// structured is the result of a value, which must fit the outputSchema if there is one.
func (t *tool) structured(value json.RawMessage) *result {
	r := &result{content: []json.RawMessage{text(string(value))}}
	if t.output == nil {
		return r
	}
	if err := t.output.Validate(value, "the result"); err != nil {
		return failed("the response does not fit the tool's outputSchema: %v", err)
	}
	r.structured = compact(value)
	return r
}

// pick finds the value at a JSON pointer, or nil.
func pick(value json.RawMessage, pointer string) json.RawMessage {
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if !wire.IsArray(value) {
			value = wire.Field(value, token)
			continue
		}
		i, found := 0, json.RawMessage(nil)
		for element := range wire.Elements(value) {
			if fmt.Sprint(i) == token {
				found = element
				break
			}
			i++
		}
		value = found
	}
	return value
}
