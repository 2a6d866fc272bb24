package toolset

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// maxURLBytes bounds a request's URL.
const maxURLBytes = 32 << 10

// buildURL puts the arguments into the URL of a tool, and then makes sure that it did not leave the base, however it was built.
func buildURL(base *url.URL, t *table.HTTPTool, args arguments) (*url.URL, error) {
	escaped, err := expand(t.Path, args)
	if err != nil {
		return nil, err
	}
	query, err := encodeQuery(t.Query, args)
	if err != nil {
		return nil, err
	}
	raw := base.Scheme + "://" + base.Host + strings.TrimSuffix(base.EscapedPath(), "/") + escaped
	if raw == base.Scheme+"://"+base.Host {
		raw += "/"
	}
	if query != "" {
		raw += "?" + query
	}
	if len(raw) > maxURLBytes {
		return nil, fmt.Errorf("the arguments make a URL of more than %d bytes", maxURLBytes)
	}
	u, err := url.Parse(raw)
	if err != nil || !within(base, u) {
		return nil, fmt.Errorf("the arguments lead out of the base URL")
	}
	return u, nil
}

// within says whether a URL is at the base or below it, for readers of its path that decode and those that do not.
func within(base, u *url.URL) bool {
	if u.Scheme != base.Scheme || u.Host != base.Host || u.User != nil || u.Opaque != "" || u.Fragment != "" {
		return false
	}
	prefix, escapedPrefix := strings.TrimSuffix(base.Path, "/"), strings.TrimSuffix(base.EscapedPath(), "/")
	for _, p := range []struct{ path, prefix string }{
		{u.EscapedPath(), escapedPrefix}, {u.Path, prefix}, {path.Clean(u.Path), prefix}, {path.Clean(u.EscapedPath()), escapedPrefix},
	} {
		if p.path != p.prefix && !strings.HasPrefix(p.path, p.prefix+"/") {
			return false
		}
	}
	return true
}

// expand fills in a path template. What a segment becomes must be no '.' or '..', and must not hold one between separators, for any
// reader of it: some decode a path before they split it, some twice, some take '\' for '/', some cut a segment at ';'.
func expand(template string, args arguments) (string, error) {
	var out strings.Builder
	for i, segment := range strings.Split(template, "/") {
		if i > 0 {
			out.WriteByte('/')
		}
		var plain, escaped strings.Builder
		var names []string
		for rest := segment; rest != ""; {
			before, after, found := strings.Cut(rest, "{")
			plain.WriteString(before)
			escaped.WriteString(before)
			if !found {
				break
			}
			name, after, _ := strings.Cut(after, "}")
			value, err := pathValue(name, args[name])
			if err != nil {
				return "", err
			}
			names = append(names, name)
			for n, part := range value {
				if n > 0 {
					plain.WriteByte(',')
					escaped.WriteByte(',')
				}
				plain.WriteString(part)
				escaped.WriteString(encode(part))
			}
			rest = after
		}
		switch {
		case len(names) == 0:
		case plain.Len() == 0:
			return "", refuse(names[0], "must not be empty: it is a part of the path")
		case climbs(plain.String()):
			return "", refuse(names[0], "must not have '.' or '..' as a part of the path, encoded or not")
		}
		out.WriteString(escaped.String())
	}
	return out.String(), nil
}

func pathValue(name string, raw json.RawMessage) ([]string, error) {
	if raw == nil {
		return nil, refuse(name, "must be given: it is a part of the path")
	}
	values, err := scalars(name, raw)
	if err != nil {
		return nil, err
	}
	for _, value := range values {
		if strings.ContainsFunc(value, isControl) {
			return nil, refuse(name, "must have no control characters: it is a part of the path")
		}
	}
	return values, nil
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// climbs says whether somebody could find a '.' or '..' segment in what a segment decodes to.
func climbs(segment string) bool {
	for range maxDecodings {
		for part := range strings.FieldsFuncSeq(segment, func(r rune) bool { return r == '/' || r == '\\' }) {
			part, _, _ = strings.Cut(part, ";")
			if part = strings.TrimRight(part, " \x00"); part == "." || part == ".." {
				return true
			}
		}
		decoded := decode(segment)
		if decoded == segment {
			return false
		}
		segment = decoded
	}
	return true // encoded more often than anybody encodes
}

// maxDecodings is how often something may be percent-encoded in an argument for a path.
const maxDecodings = 4

// decode undoes percent-encoding where there is some.
func decode(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if text, err := url.PathUnescape(s[i : i+3]); err == nil {
				out.WriteString(text)
				i += 2
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// encode percent-encodes all but the unreserved characters of RFC 3986, which have no meaning anywhere in a URL.
func encode(s string) string {
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.~", c) >= 0 {
			out.WriteByte(c)
			continue
		}
		out.WriteByte('%')
		out.WriteByte(hex[c>>4])
		out.WriteByte(hex[c&15])
	}
	return out.String()
}

// encodeQuery writes the parameters after the '?'.
func encodeQuery(params []table.Param, args arguments) (string, error) {
	var out []string
	for i := range params {
		p := &params[i]
		value, name := args.valueOf(p)
		if value == nil {
			continue
		}
		pairs, err := queryPairs(p, name, value)
		if err != nil {
			return "", err
		}
		out = append(out, pairs...)
	}
	return strings.Join(out, "&"), nil
}

// separators are between the elements of a list, by style; they are part of the value, so encoded where they are not ','.
var separators = map[table.ParamStyle]string{table.StyleComma: ",", table.StyleSpace: "%20", table.StylePipe: "%7C"}

func queryPairs(p *table.Param, name string, value json.RawMessage) ([]string, error) {
	key := encode(p.Name) + "="
	switch p.Style {
	case table.StyleJSON:
		return []string{key + encode(string(value))}, nil
	case table.StyleDeep:
		return deepPairs(p.Name, name, value)
	default: // lists
	}
	values, err := scalars(name, value)
	if err != nil {
		return nil, err
	}
	for i := range values {
		values[i] = encode(values[i])
	}
	if separator, joined := separators[p.Style]; joined {
		return []string{key + strings.Join(values, separator)}, nil
	}
	for i := range values {
		values[i] = key + values[i]
	}
	return values, nil
}

func deepPairs(key, name string, object json.RawMessage) ([]string, error) {
	if !wire.IsObject(object) {
		return nil, refuse(name, "must be an object")
	}
	var out []string
	for member, value := range wire.Fields(object) {
		if string(value) == "null" {
			continue
		}
		values, err := scalars(name+"."+member, value)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			out = append(out, encode(key+"["+member+"]")+"="+encode(v))
		}
	}
	return out, nil
}
