package route

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// methodOf is the method of an operation; the schema sets the default too.
func methodOf(h *mcpv1alpha1.HTTPTool) string {
	if h == nil {
		return "POST"
	}
	return cmp.Or(h.Method, "POST")
}

// httpTool makes the operation, but for its definition.
func httpTool(spec *mcpv1alpha1.MCPToolSpec, input json.RawMessage) (*table.HTTPTool, error) {
	out := &table.HTTPTool{Method: methodOf(spec.HTTP), Response: table.Response{MaxBytes: int(spec.MaxResponseBytes)}}
	asked := spec.HTTP
	if asked == nil {
		asked = &mcpv1alpha1.HTTPTool{}
	}
	out.Path, out.Query, out.Header = asked.Path, paramsOf(asked.Query), paramsOf(asked.Headers)
	if asked.Response != nil {
		out.Response.Select = asked.Response.Select
	}
	switch body := asked.Body; {
	case body != nil:
		out.Body = &table.Body{
			Type: table.BodyType(cmp.Or(body.Type, string(table.BodyJSON))), Argument: body.Argument, Members: paramsOf(body.Members),
		}
	case slices.Contains([]string{"POST", "PUT", "PATCH"}, out.Method):
		out.Body = &table.Body{Type: table.BodyJSON}
	}
	return out, checkArguments(out, input)
}

func paramsOf(asked []mcpv1alpha1.HTTPParam) []table.Param {
	var out []table.Param
	for _, p := range asked {
		param := table.Param{Name: p.Name, Argument: p.Argument, Style: table.ParamStyle(p.Style)}
		if p.Value != nil {
			param.Value = compact(p.Value.Raw)
		}
		out = append(out, param)
	}
	return out
}

// compact is JSON without white space; of what is none it makes null, which the table refuses.
func compact(raw []byte) json.RawMessage {
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return json.RawMessage("null")
	}
	return out.Bytes()
}

// checkArguments refuses an operation that sends what nobody can give.
func checkArguments(t *table.HTTPTool, input json.RawMessage) error {
	known := argumentsOf(input)
	for rest := t.Path; ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			break
		}
		name, after, _ := strings.Cut(after, "}")
		if !known.required[name] {
			return invalid("http.path: schema.input must require the argument '%s', which is a part of the path", line(name, maxQuoted))
		}
		rest = after
	}
	for _, place := range []struct {
		field  string
		params []table.Param
	}{{"query", t.Query}, {"headers", t.Header}, {"body.members", bodyMembers(t.Body)}} {
		for i, p := range place.params {
			if p.Value != nil {
				continue
			}
			if err := known.check(cmp.Or(p.Argument, p.Name), fmt.Sprintf("http.%s[%d]", place.field, i)); err != nil {
				return err
			}
		}
	}
	if t.Body != nil && t.Body.Argument != "" {
		return known.check(t.Body.Argument, "http.body.argument")
	}
	return nil
}

func bodyMembers(b *table.Body) []table.Param {
	if b == nil {
		return nil
	}
	return b.Members
}

// postgresTool makes the statement, but for its definition.
func postgresTool(spec *mcpv1alpha1.MCPToolSpec, input json.RawMessage) (*table.PostgresTool, error) {
	asked := spec.Postgres
	if asked == nil {
		return nil, invalid("postgres must be given with type postgres")
	}
	if hasSecond(asked.Statement) {
		return nil, invalid("postgres.statement: there is another statement behind a semicolon: a tool is one; WITH can hold several")
	}
	host, port, database, err := postgresEndpoint(spec.Endpoint)
	if err != nil {
		return nil, err
	}
	out := &table.PostgresTool{
		Statement: asked.Statement, Write: spec.Annotations != nil && given(spec.Annotations.Destructive, false),
		MaxRows: int(asked.MaxRows), MaxBytes: int(spec.MaxResponseBytes),
		Host: host, Port: port, Database: database, User: asked.User, TLS: table.TLSMode(cmp.Or(asked.TLS, string(table.TLSVerifyFull))),
	}
	known := argumentsOf(input)
	for i, p := range asked.Parameters {
		if err := known.check(p.Argument, fmt.Sprintf("postgres.parameters[%d]", i)); err != nil {
			return nil, err
		}
		out.Params = append(out.Params, table.SQLParam{Argument: p.Argument, Type: table.SQLType(cmp.Or(p.Type, string(known.sqlType(p.Argument))))})
	}
	return out, nil
}
