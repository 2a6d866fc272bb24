package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// FuzzEntry reads anything as an entry of each kind: nothing may panic, and what is kept can be renamed, listed and matched.
func FuzzEntry(f *testing.F) {
	for _, seed := range []string{
		tool("a", `,"annotations":{"readOnlyHint":true},"outputSchema":{"items":[{"$ref":"#/a"}]}`),
		`{"name":"x","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`,
		`{"uri":"file:///a"}`, `{"uriTemplate":"a:{b}{?c*,d:3}{&e}{/f}{.g}{;h}{#i}{+j}"}`, `{"uriTemplate":"{` + strings.Repeat("a,", 31) + `a*}"}`,
		`{"name":"\ud800\udc00"}`, `[]`, `{`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for k := range Kind(kinds) {
			add := newCollector(k)
			add.add(json.RawMessage(in))
			add.sum()
			for _, e := range add.entries {
				renamed := e.appendAs(nil, "other")
				if len(renamed) != e.lengthAs("other") {
					t.Errorf("%s is %d bytes long, and said to be %d", renamed, len(renamed), e.lengthAs("other"))
				}
				if _, err := wire.Check(renamed, wire.DefaultLimits); err != nil || !wire.TextIs(wire.Field(renamed, lists[k].key), "other") {
					t.Errorf("%s under another name is %s", in, renamed)
				}
				if k == Templates {
					e.pattern.MatchString("a:b/c?d=e#f")
				}
			}
			for _, i := range add.invalid {
				if strings.ContainsFunc(i.Name, func(r rune) bool { return hidden(r) && r != '\uFFFD' }) || i.Reason == "" {
					t.Errorf("%s is shown as %q for %q", in, i.Name, i.Reason)
				}
			}
		}
	})
}
