package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestAToolThatBreaksARuleIsDroppedAlone(t *testing.T) {
	t.Parallel()
	schema := func(members string) string { return `{"name":"x","inputSchema":{"type":"object",` + members + `}}` }
	const foreign = "inputSchema refers to another document, which nobody may fetch"
	const badName = "name is not 1 to 128 of A-Z a-z 0-9 . _ -"
	const badType = `inputSchema is not an object with "type": "object"`
	for name, tc := range map[string]struct{ raw, reason string }{
		"no object":                {`"x"`, "not an object"},
		"no name":                  {`{"inputSchema":{"type":"object"}}`, "no name"},
		"name is a number":         {`{"name":1,"inputSchema":{"type":"object"}}`, "no name"},
		"half of a pair":           {`{"name":"\ud800","inputSchema":{"type":"object"}}`, "no name"},
		"empty name":               {tool("", ""), badName},
		"long name":                {tool(strings.Repeat("x", 129), ""), badName},
		"control character":        {`{"name":"a\u0007","inputSchema":{"type":"object"}}`, badName},
		"right to left":            {`{"name":"a\u202eb","inputSchema":{"type":"object"}}`, badName},
		"no width":                 {`{"name":"a\u200bb","inputSchema":{"type":"object"}}`, badName},
		"tag":                      {`{"name":"a\udb40\udc41","inputSchema":{"type":"object"}}`, badName},
		"key twice":                {`{"name":"x","name":"y","inputSchema":{"type":"object"}}`, "JSON object with the same key twice"},
		"key twice further in":     {schema(`"properties":{"a":{},"\u0061":{}}`), "JSON object with the same key twice"},
		"too deep":                 {schema(`"not":` + strings.Repeat(`{"not":`, 70) + `{}` + strings.Repeat(`}`, 70)), "JSON nested too deep"},
		"too large":                {tool("x", `,"y":"`+strings.Repeat("y", entryBytes)+`"`), "JSON too large"},
		"long description":         {tool("x", `,"description":"`+strings.Repeat("y", descriptionBytes+1)+`"`), "description of more than 32 KiB"},
		"no schema":                {`{"name":"x"}`, badType},
		"schema is null":           {`{"name":"x","inputSchema":null}`, badType},
		"schema without a type":    {`{"name":"x","inputSchema":{}}`, badType},
		"schema of a string":       {`{"name":"x","inputSchema":{"type":"string"}}`, badType},
		"schema of several":        {`{"name":"x","inputSchema":{"type":["object","null"]}}`, badType},
		"reference to a URL":       {schema(`"properties":{"a":{"$ref":"https://evil.example/s"}}`), foreign},
		"dynamic reference":        {schema(`"allOf":[{"$dynamicRef":"s.json#x"}]`), foreign},
		"under an unknown keyword": {schema(`"x-more":[{"$ref":"http://169.254.169.254/"}]`), foreign},
		"property named default":   {schema(`"properties":{"default":{"$ref":"file:///etc/passwd"}}`), foreign},
		"result is no schema":      {tool("x", `,"outputSchema":true`), "outputSchema is not an object"},
		"result refers elsewhere":  {tool("x", `,"outputSchema":{"items":{"$ref":"a"}}`), "outputSchema refers to another document, which nobody may fetch"},
		"too many parts": {
			schema(`"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{},`, maxSubschemas), ",") + `]`),
			"inputSchema has more than 5000 parts",
		},
	} {
		s := source(t, table.Backend{Name: "b"}, map[string]string{
			"tools/list": `{"tools":[` + tool("before", "") + `,` + tc.raw + `,` + tool("after", "") + `]}`,
		})
		if diff := cmp.Diff([]string{"before", "after"}, names(s.Catalog.Entries[Tools])); diff != "" {
			t.Errorf("%s: tools (-want +got):\n%s", name, diff)
		}
		if got := s.Catalog.Invalid[Tools]; len(got) != 1 || got[0].Reason != tc.reason {
			t.Errorf("%s: dropped %+v, want for %q", name, got, tc.reason)
		}
	}
}

func TestAToolWhoseHeadersAreNotAllowedIsHiddenAndOthersStay(t *testing.T) {
	t.Parallel()
	property := func(annotated string) string {
		return fmt.Sprintf(`{"name":"x","inputSchema":{"type":"object","properties":{%s}}}`, annotated)
	}
	for name, raw := range map[string]string{
		"line feed":   property(`"a":{"type":"string","x-mcp-header":"A\r\nB"}`),
		"twice":       property(`"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}`),
		"under items": property(`"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`),
		"object type": property(`"a":{"type":"object","x-mcp-header":"A"}`),
		"empty":       property(`"a":{"type":"string","x-mcp-header":""}`),
	} {
		s := source(t, table.Backend{Name: "b"}, map[string]string{"tools/list": `{"tools":[` + raw + `,` + tool("after", "") + `]}`})
		if diff := cmp.Diff([]string{"after"}, names(s.Catalog.Entries[Tools])); diff != "" {
			t.Errorf("%s: tools (-want +got):\n%s", name, diff)
		}
		if got := s.Catalog.Invalid[Tools]; len(got) != 1 || !strings.HasPrefix(got[0].Reason, "x-mcp-header ") {
			t.Errorf("%s: dropped %+v", name, got)
		}
	}
	good := source(t, table.Backend{Name: "b"}, map[string]string{
		"tools/list": `{"tools":[` + property(`"a":{"type":"string","x-mcp-header":"Region"}`) + `]}`,
	})
	route, ok := Compile([]Source{good}, 0).Tool("x")
	if !ok || len(route.ParamHeaders) != 1 || !strings.HasSuffix(route.ParamHeaders[0].Header, "Region") {
		t.Errorf("route %+v, %v", route, ok)
	}
}

func TestAnHonestSchemaIsKept(t *testing.T) {
	t.Parallel()
	for name, members := range map[string]string{
		"references within":         `"$defs":{"a":{"$ref":"#/$defs/b"},"b":{}},"properties":{"x":{"$ref":"#/$defs/a"}}`,
		"a property named $ref":     `"properties":{"$ref":{"type":"string"}}`,
		"a default that looks bad":  `"properties":{"a":{"default":{"$ref":"https://example.com/"},"enum":[{"$ref":"x"}]}}`,
		"named in its own document": `"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/s"`,
		"boolean schemas":           `"additionalProperties":false,"properties":{"a":true}`,
		"patterns":                  `"properties":{"a":{"pattern":"(a+)+$"}}`,
	} {
		s := source(t, table.Backend{Name: "b"}, map[string]string{
			"tools/list": `{"tools":[{"name":"x","inputSchema":{"type":"object",` + members + `}}]}`,
		})
		if len(s.Catalog.Invalid[Tools]) > 0 {
			t.Errorf("%s: dropped for %q", name, s.Catalog.Invalid[Tools][0].Reason)
		}
	}
}

func TestTheSecondOfOneNameIsDropped(t *testing.T) {
	t.Parallel()
	s := toolSource(t, table.Backend{Name: "b"}, "a", "a", "A")
	if diff := cmp.Diff([]string{"a", "A"}, names(s.Catalog.Entries[Tools])); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Invalid{{Name: "a", Reason: "listed before under the same name"}}, s.Catalog.Invalid[Tools]); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
}

func TestPromptsAndResourcesFollowRulesOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := source(t, table.Backend{Name: "b"}, map[string]string{
		"tools/list":     toolList(),
		"prompts/list":   `{"prompts":[{"name":"Été 1"},{"name":"a\u200b"},{"name":"a\tb"},{"name":""},{}]}`,
		"resources/list": `{"resources":[{"uri":"file:///ä b"},{"uri":"a:\u202e"},{"uri":"a:\ufe0f"},{"uri":7}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"a:{b}{?c*}"},{"uriTemplate":"a:{"},
			{"uriTemplate":"a:{` + strings.Repeat("a,", 40) + `a}"},{"uriTemplate":"` + strings.Repeat("x", 2000) + `"}]}`,
	})
	for k, want := range [kinds][]string{
		Tools: {}, Prompts: {"Été 1"}, Resources: {"file:///ä b"}, Templates: {"a:{b}{?c*}"},
	} {
		if diff := cmp.Diff(want, names(s.Catalog.Entries[k])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", lists[k].method, diff)
		}
	}
	if got := len(s.Catalog.Invalid[Prompts]) + len(s.Catalog.Invalid[Resources]) + len(s.Catalog.Invalid[Templates]); got != 10 {
		t.Errorf("%d entries were dropped, want 10", got)
	}
}

func TestANameThatIsShownCannotHideAnything(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal("a\x1b[31m\u202e\u200b\U000e0041 b\n" + strings.Repeat("x", 500))
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(raw); !strings.HasPrefix(got, "a\ufffd[31m\ufffd\ufffd\ufffd b\ufffdxxx") || len(got) > 150 {
		t.Errorf("%q", got)
	}
}
