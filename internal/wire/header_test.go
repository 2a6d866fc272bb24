package wire

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHeaderValuesAreEncodedWhenTheyMustBe(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"us-east1":                "us-east1",
		"two words, and ~!":       "two words, and ~!",
		"":                        "=?base64??=",
		" a":                      "=?base64?IGE=?=",
		"a ":                      "=?base64?YSA=?=",
		"\ta":                     "=?base64?CWE=?=",
		"Größe":                   "=?base64?R3LDtsOfZQ==?=",
		"a\r\nX-Evil: 1":          "=?base64?YQ0KWC1FdmlsOiAx?=", // attack C5
		"a\x00":                   "=?base64?YQA=?=",
		"a\x7f":                   "=?base64?YX8=?=",
		"=?base64?eA==?=":         "=?base64?PT9iYXNlNjQ/ZUE9PT89?=",
		"=?base64?not the end":    "=?base64?not the end",
		"=?BASE64?eA==?=":         "=?BASE64?eA==?=",
		"http://x/a?b=c&d=e#f%20": "http://x/a?b=c&d=e#f%20",
	} {
		if got := EncodeHeader(value); got != want {
			t.Errorf("%q is encoded as %q, want %q", value, got, want)
		}
		if got, err := DecodeHeader(want); got != value || err != nil {
			t.Errorf("%q is decoded as %q, error %v, want %q", want, got, err, value)
		}
	}
	for _, value := range []string{
		"=?base64?eA=?=", "=?base64?eA?=", "=?base64?e A==?=", "=?base64?e\nA==?=", "=?base64?eB==?=", "=?base64?_-==?=", "=?base64?/w==?=",
		"a\x00", "a\r\nb", "a\x7f", "\xff",
	} {
		if got, err := DecodeHeader(value); err == nil {
			t.Errorf("%q is decoded as %q", value, got)
		}
	}
}

const callToCheck = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Größe",` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

// TestHeadersMustSayWhatTheBodySays is attacks C1, C2 and C3.
func TestHeadersMustSayWhatTheBodySays(t *testing.T) {
	t.Parallel()
	const version, method, name = "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"
	right := func() http.Header {
		return http.Header{version: {"2026-07-28"}, method: {"tools/call"}, name: {"=?base64?R3LDtsOfZQ==?="}}
	}
	cases := map[string]struct {
		change func(http.Header)
		want   string // in the reason; empty: accepted
	}{
		"right":                              {func(http.Header) {}, ""},
		"in other spelling":                  {func(h http.Header) { h.Del(method); h.Add(strings.ToUpper(method), "tools/call") }, ""},
		"not ASCII, and not encoded":         {func(h http.Header) { h.Set(name, "Größe") }, ""},
		"foreign fields":                     {func(h http.Header) { h["X_Mcp"] = []string{"1"}; h.Set("Mcp-Param-X", "1") }, ""},
		"other method":                       {func(h http.Header) { h.Set(method, "tools/list") }, "does not say what method says"},
		"method in capitals":                 {func(h http.Header) { h.Set(method, "Tools/Call") }, "does not say what method says"},
		"other name":                         {func(h http.Header) { h.Set(name, "harmless") }, "does not say what params.name says"},
		"other version":                      {func(h http.Header) { h.Set(version, "2025-11-25") }, "does not say what params._meta"},
		"no version":                         {func(h http.Header) { h.Del(version) }, "Mcp-Protocol-Version is missing"},
		"no method":                          {func(h http.Header) { h.Del(method) }, "Mcp-Method is missing"},
		"no name":                            {func(h http.Header) { h.Del(name) }, "Mcp-Name is missing"},
		"empty name":                         {func(h http.Header) { h.Set(name, "") }, "Mcp-Name is missing"},
		"method twice":                       {func(h http.Header) { h.Add(method, "tools/call") }, "Mcp-Method is there more than once"},
		"name twice":                         {func(h http.Header) { h.Add(name, "harmless") }, "Mcp-Name is there more than once"},
		"version twice":                      {func(h http.Header) { h.Add(version, "2026-07-28") }, "Mcp-Protocol-Version is there more than once"},
		"bad base64":                         {func(h http.Header) { h.Set(name, "=?base64?R3LDtsOfZQ?=") }, "Mcp-Name is not properly encoded"},
		"encoded twice":                      {func(h http.Header) { h.Set(name, EncodeHeader(EncodeHeader("Größe"))) }, "does not say what params.name says"},
		"what the encoded name looks like":   {func(h http.Header) { h.Set(name, "R3LDtsOfZQ==") }, "does not say what params.name says"},
		"underscores beside":                 {func(h http.Header) { h["Mcp_name"] = []string{"harmless"} }, "with underscores"},
		"underscores instead":                {func(h http.Header) { h["MCP_Method"] = h[method]; h.Del(method) }, "with underscores"},
		"underscores in an argument's field": {func(h http.Header) { h["Mcp_Param_X"] = []string{"1"} }, "with underscores"},
		"as large as a header can be":        {func(h http.Header) { h.Set(name, strings.Repeat("a", 1<<20)) }, "does not say what params.name says"},
	}
	for name, tc := range cases {
		h := right()
		tc.change(h)
		err := CheckHeaders(h, mustParse(t, []byte(callToCheck)))
		var e *HeaderError
		if tc.want == "" && err != nil || tc.want != "" && (!errors.As(err, &e) || !strings.Contains(e.Reason, tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if e != nil && (strings.Contains(e.Reason, "harmless") || len(e.Reason) > 200) {
			t.Errorf("%s: the reason repeats the request: %.300s", name, e.Reason)
		}
	}
}

func TestWhatHasANameToRepeat(t *testing.T) {
	t.Parallel()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	for text, want := range map[string]http.Header{
		`"id":1,"method":"tools/call","params":{"name":"a","uri":"u",` + meta + `}`: {
			HeaderMethod:  {"tools/call"},
			HeaderName:    {"a"},
			HeaderVersion: {"2026-07-28"},
		},
		`"id":1,"method":"prompts/get","params":{"name":" a","uri":"u",` + meta + `}`: {
			HeaderMethod:  {"prompts/get"},
			HeaderName:    {"=?base64?IGE=?="},
			HeaderVersion: {"2026-07-28"},
		},
		`"id":1,"method":"resources/read","params":{"name":"a","uri":"u",` + meta + `}`: {
			HeaderMethod:  {"resources/read"},
			HeaderName:    {"u"},
			HeaderVersion: {"2026-07-28"},
		},
		`"id":1,"method":"tools/list","params":{"name":"a",` + meta + `}`: {HeaderMethod: {"tools/list"}, HeaderVersion: {"2026-07-28"}},
		`"method":"notifications/x","params":{}`:                          {HeaderMethod: {"notifications/x"}},
	} {
		m := mustParse(t, []byte(`{"jsonrpc":"2.0",`+text+`}`))
		h := http.Header{}
		m.Headers(h)
		if diff := cmp.Diff(want, h); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if err := CheckHeaders(h, m); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestABodyThatSaysNothingFitsNoHeader(t *testing.T) {
	t.Parallel()
	for _, params := range []string{`{}`, `{"name":1}`, `{"name":""}`, `{"name":"\ud800"}`, `{"arguments":{"name":"a"}}`} {
		m := NewRequest(json.RawMessage("1"), "tools/call", json.RawMessage(params)).With(SetMeta(MetaProtocolVersion, Quote("2026-07-28")))
		for _, name := range []string{"a", "", "=?base64??=", "\ufffd"} {
			h := http.Header{HeaderVersion: {"2026-07-28"}, HeaderMethod: {"tools/call"}, HeaderName: {name}}
			if err := CheckHeaders(h, m); err == nil && params != `{"name":""}` {
				t.Errorf("params %s and the header %q pass", params, name)
			}
		}
	}
	m := NewRequest(json.RawMessage("1"), "tools/list", nil)
	for _, version := range []string{"2026-07-28", "=?base64??=", ""} {
		if err := CheckHeaders(http.Header{HeaderVersion: {version}, HeaderMethod: {"tools/list"}}, m); err == nil {
			t.Errorf("the version %q passes without one in the body", version)
		}
	}
}
