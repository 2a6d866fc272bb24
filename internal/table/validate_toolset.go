package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxToolFileBytes is the size of the largest ToolFile, unpacked. A ConfigMap holds a quarter of it, and packed, all of it.
const MaxToolFileBytes = 4 << 20

// Limits of a toolset.
const (
	maxToolFiles    = 16
	maxParams       = 128
	maxArgumentName = 128
	maxStatement    = 64 << 10
	maxResult       = 16 << 20
	minRowBytes     = 1 << 10
	maxRows         = 10_000
	// maxConfigMapName is Kubernetes' limit of a name, and of a key.
	maxConfigMapName = 253
)

// methodHead asks for a response without content.
const methodHead = "HEAD"

// ParseTools reads the content of a ToolFile as strictly as Parse reads a table. An error is an *InvalidError.
func ParseTools(data []byte) ([]HTTPTool, error) {
	var p problems
	if len(data) > MaxToolFileBytes {
		p.add("file", "is %d bytes long, the limit is %d", len(data), MaxToolFileBytes)
		return nil, p.err()
	}
	var content struct {
		HTTP []HTTPTool `json:"http"`
	}
	switch {
	case !utf8.Valid(data):
		p.add("file", "is not valid UTF-8")
	case !json.Valid(data):
		p.add("file", "is not JSON")
	default:
		checkShape(data, reflect.TypeOf(content), &p)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &content); err != nil {
		p.add("file", "cannot be decoded: %v", err)
		return nil, p.err()
	}
	validateTools(&p, "http", content.HTTP)
	return content.HTTP, p.err()
}

func (b *Backend) validateToolset(p *problems, path string) {
	unwanted(p, path, "with transport Toolset", field{"command", len(b.Command) > 0}, field{"hostHeader", b.HostHeader != ""},
		field{"podsHost", b.PodsHost != ""}, field{"protocolVersion", b.ProtocolVersion != ""})
	t := b.Toolset
	switch {
	case t == nil:
		p.add(path+".toolset", "must be given with transport Toolset")
	case t.Postgres != nil:
		unwanted(p, path, "with a Postgres tool", field{"url", b.URL != ""}, field{"credential", b.Credential != nil},
			field{"toolset.http", len(t.HTTP) > 0}, field{"toolset.files", len(t.Files) > 0})
		t.Postgres.validate(p, path+".toolset.postgres")
		b.validateDatabaseTLS(p, path)
	default:
		if len(t.HTTP)+len(t.Files) == 0 {
			p.add(path+".toolset", "must have http, files or postgres")
		}
		b.validateServer(p, path)
		validateTools(p, path+".toolset.http", t.HTTP)
		if len(t.Files) > maxToolFiles {
			p.add(path+".toolset.files", "are %d, the limit is %d", len(t.Files), maxToolFiles)
		}
		for i, f := range t.Files {
			f.validate(p, index(path+".toolset.files", i))
		}
	}
}

func (f *ToolFile) validate(p *problems, path string) {
	switch {
	case f.File == "" && f.ConfigMap == "":
		p.add(path, "must have a file or a configMap")
	case f.ConfigMap == "":
		unwanted(p, path, "without a configMap", field{"key", f.Key != ""})
		if err := checkFile(f.File); err != nil {
			p.add(path+".file", "%v", err)
		}
	default:
		unwanted(p, path, "with a configMap", field{"file", f.File != ""})
		if !IsConfigMapName(f.ConfigMap) {
			p.add(path+".configMap", "%s must be the name of a ConfigMap: at most %d of a-z, 0-9, '-', '.'", clip(f.ConfigMap), maxConfigMapName)
		}
		if !IsConfigMapKey(f.Key) {
			p.add(path+".key", "must be 1 to %d of A-Z, a-z, 0-9, '_', '-', '.': a key of the ConfigMap", maxConfigMapName)
		}
	}
	if !consists(f.SHA256, 64, 64, digits+"abcdef") {
		p.add(path+".sha256", "must be 64 lower-case hexadecimal digits")
	}
}

// IsConfigMapName says whether a ConfigMap can have the name, a DNS subdomain (RFC 1123). It may become a part of a URL.
func IsConfigMapName(name string) bool {
	const ends = "abcdefghijklmnopqrstuvwxyz" + digits
	return consists(name, 1, maxConfigMapName, ends+"-.") && !strings.Contains(name, "..") &&
		strings.Contains(ends, name[:1]) && strings.Contains(ends, name[len(name)-1:])
}

// IsConfigMapKey says whether a ConfigMap can have the key.
func IsConfigMapKey(key string) bool {
	return consists(key, 1, maxConfigMapName, toolName) && key != "." && !strings.HasPrefix(key, "..")
}

// validateTools checks each tool, and that no two have one name.
func validateTools(p *problems, path string, tools []HTTPTool) {
	if len(tools) > maxListItems {
		p.add(path, "are %d, the limit is %d", len(tools), maxListItems)
		return
	}
	first := map[string]int{}
	for i := range tools {
		name := tools[i].validate(p, index(path, i))
		if j, taken := first[name]; taken && name != "" {
			p.add(index(path, i)+".definition.name", "%s is the name of %s too", clip(name), index(path, j))
		}
		first[name] = i
	}
}

// validateDefinition returns the tool's name.
func validateDefinition(p *problems, path string, definition json.RawMessage) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(definition, &members); err != nil || members == nil {
		p.add(path, "must be a tool object")
		return ""
	}
	var name string
	if err := json.Unmarshal(members["name"], &name); err != nil || !consists(name, 1, maxName, toolName) {
		p.add(path+".name", "must be 1 to %d of A-Z, a-z, 0-9, '_', '-', '.'", maxName)
	}
	for _, key := range []string{"inputSchema", "outputSchema"} {
		schema := bytes.TrimSpace(members[key])
		if key == "outputSchema" && schema == nil {
			continue
		}
		if !bytes.HasPrefix(schema, []byte("{")) {
			p.add(path+"."+key, "must be a JSON Schema that is an object")
		}
	}
	return name
}

func (t *HTTPTool) validate(p *problems, path string) string {
	name := validateDefinition(p, path+".definition", t.Definition)
	withBody := []string{"POST", "PUT", "PATCH", "DELETE"}
	if !slices.Contains(append(withBody, "GET", methodHead), t.Method) {
		p.add(path+".method", "%s is not GET, HEAD, POST, PUT, PATCH or DELETE", clip(t.Method))
	}
	if err := checkTemplate(t.Path); err != nil {
		p.add(path+".path", "%v", err)
	}
	validateParams(p, path+".query", t.Query, true, false)
	validateUnique(p, path+".query", t.Query, func(name string) string { return name })
	validateParams(p, path+".header", t.Header, false, false)
	validateHeaders(p, path+".header", t.Header)
	if t.Body != nil {
		if !slices.Contains(withBody, t.Method) {
			p.add(path+".body", "must not be given with method %s", clip(t.Method))
		}
		t.Body.validate(p, path+".body")
	}
	if t.Method == methodHead {
		t.validateWithoutContent(p, path)
	}
	if r := t.Response; r.MaxBytes < 0 || r.MaxBytes > maxResult {
		p.add(path+".response.maxBytes", "%d must be 1 to %d, or 0 for the default", r.MaxBytes, maxResult)
	}
	if s := t.Response.Select; s != "" && (s[0] != '/' || len(s) > maxText) {
		p.add(path+".response.select", "must be a JSON pointer of at most %d bytes, which begins with '/'", maxText)
	}
	return name
}

// validateWithoutContent refuses what only the content of a response can fit: with HEAD there is none, so that each call would fail.
func (t *HTTPTool) validateWithoutContent(p *problems, path string) {
	var definition struct {
		OutputSchema json.RawMessage `json:"outputSchema"`
	}
	// What cannot be decoded has been refused before.
	if err := json.Unmarshal(t.Definition, &definition); err == nil && definition.OutputSchema != nil {
		p.add(path+".definition.outputSchema", "must not be given with method HEAD, whose responses have no content")
	}
	if t.Response.Select != "" {
		p.add(path+".response.select", "must not be given with method HEAD, whose responses have no content")
	}
}

// validateHeaders checks what is a matter of headers alone.
func validateHeaders(p *problems, path string, headers []Param) {
	for i, h := range headers {
		if err := checkToolHeader(h.Name); err != nil {
			p.add(index(path, i)+".name", "%v", err)
		}
		var value string
		if json.Unmarshal(h.Value, &value) == nil && (strings.ContainsFunc(value, unicode.IsControl) || strings.TrimSpace(value) != value) {
			p.add(index(path, i)+".value", "must have no control characters and no space at its ends: it is sent in a header")
		}
	}
	validateUnique(p, path, headers, strings.ToLower)
}

// validateUnique refuses a name that is given twice: which of them would count is up to whoever reads the request.
func validateUnique(p *problems, path string, params []Param, fold func(string) string) {
	if len(params) > maxParams {
		return // which has been told
	}
	first := make(map[string]int, len(params))
	for i, q := range params {
		name := fold(q.Name)
		if j, taken := first[name]; taken && name != "" {
			p.add(index(path, i)+".name", "%s is the name of %s too", clip(q.Name), index(path, j))
			continue
		}
		first[name] = i
	}
}

// checkTemplate takes a path whose literal parts need no escapes and have one reading, and whose variables are whole.
func checkTemplate(template string) error {
	if template == "" {
		return nil
	}
	if len(template) > maxURL || template[0] != '/' {
		return fmt.Errorf("%s must begin with '/' and have at most %d bytes", clip(template), maxURL)
	}
	literal := strings.Builder{}
	for rest := template; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		literal.WriteString(before)
		if !found {
			break
		}
		name, after, closed := strings.Cut(after, "}")
		if !closed || !isArgumentName(name) || strings.Contains(name, "{") {
			return fmt.Errorf("%s must have the name of an argument between each '{' and '}'", clip(template))
		}
		literal.WriteString("v") // whatever it stands for, it is not '.'
		rest = after
	}
	shape := literal.String()
	if !consists(shape, 1, maxURL, toolName+"~/!$&'()*+,;=:@") || strings.Contains(shape, "//") ||
		shape != "/" && path.Clean(shape) != strings.TrimSuffix(shape, "/") {
		return fmt.Errorf("%s must have only A-Z, a-z, 0-9 and -._~!$&'()*+,;=:@/ outside of variables, and no '.', '..' or '//'", clip(template))
	}
	return nil
}

func isArgumentName(name string) bool {
	return name != "" && len(name) <= maxArgumentName && isPrintable(name, "")
}

func validateParams(p *problems, path string, params []Param, styled, anyValue bool) {
	if len(params) > maxParams {
		p.add(path, "are %d, the limit is %d", len(params), maxParams)
		return
	}
	styles := []ParamStyle{"", StyleRepeat, StyleComma, StyleSpace, StylePipe, StyleDeep, StyleJSON}
	for i := range params {
		q, path := &params[i], index(path, i)
		if !isArgumentName(q.Name) {
			p.add(path+".name", "must be 1 to %d printable bytes", maxArgumentName)
		}
		switch {
		case q.Argument != "" && !isArgumentName(q.Argument):
			p.add(path+".argument", "must be at most %d printable bytes", maxArgumentName)
		case q.Argument != "" && q.Value != nil:
			p.add(path+".value", "must not be given with an argument")
		}
		if !anyValue && strings.HasPrefix(string(q.Value), "{") || !anyValue && strings.HasPrefix(string(q.Value), "[") {
			p.add(path+".value", "must be a string, a number or a boolean")
		}
		switch {
		case q.Style != "" && !styled:
			p.add(path+".style", "must not be given outside of the query")
		case !slices.Contains(styles, q.Style):
			p.add(path+".style", "%s is not known: Repeat, Comma, Space, Pipe, DeepObject or JSON", clip(string(q.Style)))
		}
	}
}

func (b *Body) validate(p *problems, path string) {
	if b.Type != "" && b.Type != BodyJSON && b.Type != BodyForm {
		p.add(path+".type", "%s is not known: %s or %s", clip(string(b.Type)), BodyJSON, BodyForm)
	}
	if b.Argument != "" {
		unwanted(p, path, "with an argument", field{"members", len(b.Members) > 0})
		if b.Type == BodyForm || !isArgumentName(b.Argument) {
			p.add(path+".argument", "must be at most %d printable bytes, with type JSON", maxArgumentName)
		}
	}
	validateParams(p, path+".members", b.Members, false, b.Type != BodyForm)
	validateUnique(p, path+".members", b.Members, func(name string) string { return name })
}
