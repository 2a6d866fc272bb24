package toolset

import (
	"encoding/json"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

// FuzzURL holds whatever arguments there are to the base URL: the URL that is sent, read again by net/url and read as servers and
// proxies do that decode too early or too often, is at the host and below the path, has as many segments as the template, and each
// argument comes back as it was.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"a", "..", ".", "%2e%2e", "a/b", `a\b`, "?x=1", "#f", "@evil.example", "//evil.example/", "http://evil.example/", "a\r\nb", "ü", " ", "%", "%zz",
		"..;/", "%252e%252e%252f", "\u2025", "a%00", ";", "&a=b", "+", "..%5c..", ":80", "", "%2F..%2F", "\x7f",
	} {
		f.Add(seed, seed)
	}
	tool := &table.HTTPTool{
		Path: "/users/{id}/x{id}.json", Query: []table.Param{{Name: "q"}, {Name: "l", Argument: "q", Style: table.StyleComma}},
	}
	for _, raw := range []string{"https://api.example.com/v1/t%20x", "https://api.example.com:8443"} {
		base, err := url.Parse(raw)
		if err != nil {
			f.Fatal(err)
		}
		bases = append(bases, base)
	}
	f.Fuzz(func(t *testing.T, id, q string) {
		args := arguments{}
		for name, value := range map[string]string{"id": id, "q": q} {
			raw, err := json.Marshal(value)
			if err != nil {
				t.Skip()
			}
			args[name] = raw
			if err := json.Unmarshal(raw, &value); err != nil {
				t.Fatal(err)
			}
			if name == "id" {
				id = value // with bad UTF-8 mended
			} else {
				q = value
			}
		}
		for _, base := range bases {
			u, err := buildURL(base, tool, args)
			if err != nil {
				continue
			}
			holdsTo(t, base, u, id, q)
		}
	})
}

var bases []*url.URL

func holdsTo(t *testing.T, base, built *url.URL, id, q string) {
	t.Helper()
	u, err := url.Parse(built.String())
	if err != nil {
		t.Fatalf("%q cannot be read again: %v", built, err)
	}
	if u.Scheme != base.Scheme || u.Host != base.Host || u.User != nil || u.Fragment != "" {
		t.Fatalf("%q is not at %q", u, base)
	}
	if want := base.Path + "/users/" + id + "/x" + id + ".json"; u.Path != want {
		t.Fatalf("the path is %q, want %q", u.Path, want)
	}
	if got, want := strings.Count(u.EscapedPath(), "/"), strings.Count(base.EscapedPath(), "/")+3; got != want {
		t.Fatalf("%q has %d segments, want %d", u.EscapedPath(), got, want)
	}
	for _, c := range []byte(u.RequestURI()) {
		if c <= ' ' || c >= 0x7f || c == '\\' || c == '#' || c == '@' {
			t.Fatalf("%q has %q in it", u.RequestURI(), c)
		}
	}
	if got := u.Query(); got.Get("q") != q || got.Get("l") != q || len(got) != 2 {
		t.Fatalf("the query is %v, want %q", got, q)
	}
	// Readers that decode more often than they should, and take '\' for '/', must not be led above the base either.
	for reading, n := u.EscapedPath(), 0; n < 3; n++ {
		cleaned := path.Clean(strings.ReplaceAll(reading, `\`, "/"))
		if !strings.HasPrefix(cleaned, base.Path+"/users/") && !strings.HasPrefix(cleaned, base.EscapedPath()+"/users/") {
			t.Fatalf("%q is read as %q", u, cleaned)
		}
		reading = decode(reading)
	}
}
