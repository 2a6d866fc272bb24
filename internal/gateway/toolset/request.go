package toolset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// accept asks for what can be shown to a model.
const accept = "application/json, text/*;q=0.9, image/*;q=0.8, */*;q=0.5"

// call sends one request.
func (a *api) call(ctx context.Context, t *tool, args arguments) (*result, error) {
	request, err := a.request(ctx, t.http, args)
	if err != nil {
		return failed("nothing was sent: %v", err), nil
	}
	var hide *credential.Redactor
	if a.credential != nil {
		if err := a.credential.Apply(request.Header); err != nil {
			return nil, a.unready(unreadable, err)
		}
		hide = a.credential.Redactor()
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, a.unreachable(ctx, err)
	}
	defer response.Body.Close()
	answer := answer{tool: t, response: response, hide: hide, limit: int64(t.http.Response.MaxBytes)}
	r, err := answer.read()
	if err != nil {
		return nil, a.unreachable(ctx, err)
	}
	return r, nil
}

// request makes the request of a call. Errors are for the caller.
func (a *api) request(ctx context.Context, t *table.HTTPTool, args arguments) (*http.Request, error) {
	u, err := buildURL(a.base, t, args)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	if err := addHeaders(header, t.Header, args); err != nil {
		return nil, err
	}
	content, contentType, err := encodeBody(t, args)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if contentType != "" {
		header.Set("Content-Type", contentType)
		body = bytes.NewReader(content)
	}
	header.Set("Accept", accept)
	header.Set("User-Agent", "mcp-gateway/"+a.version)
	request, err := http.NewRequestWithContext(ctx, t.Method, u.String(), body)
	if err != nil {
		return nil, errors.New("the arguments make no valid request")
	}
	request.Header = header
	request.GetBody = nil // so that the transport cannot send it twice
	return request, nil
}

// addHeaders adds the headers that hold arguments. Lists are joined by commas (RFC 9110, section 5.3).
func addHeaders(header http.Header, params []table.Param, args arguments) error {
	for i := range params {
		p := &params[i]
		raw, name := args.valueOf(p)
		if raw == nil {
			continue
		}
		values, err := scalars(name, raw)
		if err != nil {
			return err
		}
		value := strings.Join(values, ",")
		if strings.ContainsFunc(value, isControl) || strings.TrimSpace(value) != value {
			return refuse(name, "must have no control characters and no space at its ends: it is sent in a header")
		}
		header.Set(p.Name, value)
	}
	return nil
}

// encodeBody writes the body; without one, the content type is empty.
func encodeBody(t *table.HTTPTool, args arguments) (content []byte, contentType string, err error) {
	body := t.Body
	if body == nil {
		return nil, "", nil
	}
	if body.Argument != "" {
		content = args[body.Argument]
		if content == nil {
			return nil, "", nil
		}
		return content, "application/json", nil
	}
	members := body.Members
	if len(members) == 0 {
		members = unused(t, args)
	}
	if body.Type == table.BodyForm {
		content, err := encodeForm(members, args)
		return content, "application/x-www-form-urlencoded", err
	}
	content = []byte{'{'}
	for i := range members {
		value, _ := args.valueOf(&members[i])
		if value == nil {
			continue
		}
		if len(content) > 1 {
			content = append(content, ',')
		}
		content = append(append(append(content, wire.Quote(members[i].Name)...), ':'), value...)
	}
	return append(content, '}'), "application/json", nil
}

// unused are the arguments that have no other place in the request, by name.
func unused(t *table.HTTPTool, args arguments) []table.Param {
	var out []table.Param
	for name := range args {
		uses := func(p table.Param) bool {
			return p.Value == nil && (p.Argument == name || p.Argument == "" && p.Name == name)
		}
		if !slices.ContainsFunc(t.Query, uses) && !slices.ContainsFunc(t.Header, uses) && !strings.Contains(t.Path, "{"+name+"}") {
			out = append(out, table.Param{Name: name})
		}
	}
	slices.SortFunc(out, func(a, b table.Param) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func encodeForm(members []table.Param, args arguments) ([]byte, error) {
	var out []string
	for i := range members {
		value, name := args.valueOf(&members[i])
		if value == nil {
			continue
		}
		values, err := scalars(name, value)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			out = append(out, url.QueryEscape(members[i].Name)+"="+url.QueryEscape(v))
		}
	}
	return []byte(strings.Join(out, "&")), nil
}

// contentJSON says whether a media type is JSON's.
func contentJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}

// compact is JSON without the white space between its tokens.
func compact(raw json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return raw
	}
	return out.Bytes()
}
