package translate

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

var carriesAll = Carries{ListChanged: true, Subscribe: true, Logging: true}

const everyCapability = `{"tools":{"listChanged":true,"acme":1},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},
	"logging":{},"completions":{"a":1},"experimental":{"x":{}},"tasks":{"list":{}},"acme":{},
	"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"b":2}}}`

func TestAModernClientIsToldOfALegacyServer(t *testing.T) {
	t.Parallel()
	initialize := json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":` + everyCapability + `,"serverInfo":{"name":"s","version":"1","icons":[]},
		"instructions":"Use \u0041.","_meta":{"vendor":1},"acme":[1.0]}`)
	wantJSON(t, "all carried", ReadInitialize(initialize).Across(carriesAll).Discover(),
		`{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],
		"ttlMs":0,"cacheScope":"private","capabilities":{"tools":{"listChanged":true,"acme":1},"prompts":{"listChanged":true},
		"resources":{"subscribe":true,"listChanged":true},"logging":{},"completions":{"a":1},
		"extensions":{"io.modelcontextprotocol/ui":{"b":2}}},"instructions":"Use A.",
		"_meta":{"vendor":1,"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1","icons":[]}},"acme":[1.0]}`)
	wantJSON(t, "nothing carried", ReadInitialize(json.RawMessage(`{"capabilities":`+everyCapability+`}`)).Across(Carries{}).Discover(),
		`{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],
		"ttlMs":0,"cacheScope":"private","capabilities":{"tools":{"acme":1},"prompts":{},"resources":{},"completions":{"a":1},
		"extensions":{"io.modelcontextprotocol/ui":{"b":2}}}}`)
}

func TestALegacyClientIsToldOfAModernServer(t *testing.T) {
	t.Parallel()
	discover := json.RawMessage(`{"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":60000,"cacheScope":"public",
		"capabilities":{"tools":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{}}},"instructions":"Do.",
		"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"},"vendor":{}},"acme":null}`)
	wantJSON(t, "result of initialize", ReadDiscover(discover).Across(carriesAll).Initialize("2025-03-26"),
		`{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"},
		"instructions":"Do.","_meta":{"vendor":{}},"acme":null}`)
	wantJSON(t, "a server without a name", ReadDiscover(json.RawMessage(`{"supportedVersions":[]}`)).Across(carriesAll).Initialize("2026-07-28"),
		`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"unknown","version":"unknown"}}`)
}

func TestWithinAnEraAnOfferIsWholeButForVersions(t *testing.T) {
	t.Parallel()
	o := ReadInitialize(json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":` + everyCapability + `,"serverInfo":{"name":"s","version":"1"}}`))
	o.Info, o.Instructions = json.RawMessage(`{"name":"front","version":"2"}`), "Mine."
	wantJSON(t, "initialize", o.Initialize("2025-11-25"), `{"protocolVersion":"2025-11-25","capabilities":`+everyCapability+`,
		"serverInfo":{"name":"front","version":"2"},"instructions":"Mine."}`)
}

func TestSeveralBackendsOfferWhatOneOfThemServes(t *testing.T) {
	t.Parallel()
	offer := func(capabilities, instructions string) Offer {
		return Offer{Capabilities: json.RawMessage(capabilities), Instructions: instructions}
	}
	for name, tc := range map[string]struct {
		parts   []Part
		carries Carries
		want    string
	}{
		"none, but there may be": {nil, carriesAll, `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}}`},
		"union": {
			[]Part{
				{"a", offer(`{"tools":{},"logging":{},"tasks":{},"resources":{}}`, "")},
				{"b", offer(`{"prompts":{"listChanged":true},"completions":{},"experimental":{"x":{}}}`, "")},
			},
			carriesAll,
			`{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true},"completions":{},"logging":{}}`,
		},
		"subscriptions": {
			[]Part{{"a", offer(`{"resources":{}}`, "")}, {"b", offer(`{"resources":{"subscribe":true}}`, "")}},
			Carries{Subscribe: true},
			`{"tools":{},"prompts":{},"resources":{"subscribe":true}}`,
		},
		"nothing carried": {
			[]Part{{"a", offer(everyCapability, "")}},
			Carries{},
			`{"tools":{},"prompts":{},"resources":{},"completions":{},"extensions":{"io.modelcontextprotocol/ui":{"b":2}}}`,
		},
		"one that never answered may have lists": {
			[]Part{{"a", offer(`{"tools":{}}`, "")}, {"b", Offer{}}},
			Carries{ListChanged: true},
			`{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}}`,
		},
	} {
		wantJSON(t, name, Merge(tc.parts, tc.carries).Capabilities, tc.want)
	}
}

func TestInstructionsOfSeveralBackendsStandUnderTheirNames(t *testing.T) {
	t.Parallel()
	parts := []Part{{"web", Offer{Instructions: " Search first.\n"}}, {"silent", Offer{}}, {"files", Offer{Instructions: "Read only."}}}
	if got, want := Merge(parts, carriesAll).Instructions, "# web\n\nSearch first.\n\n# files\n\nRead only."; got != want {
		t.Errorf("instructions %q, want %q", got, want)
	}
}

func TestOneBackendCannotCrowdOutTheInstructionsOfOthers(t *testing.T) {
	t.Parallel()
	parts := []Part{{"loud", Offer{Instructions: strings.Repeat("ä", 1<<20)}}, {"b", Offer{Instructions: "Second."}}}
	got := Merge(parts, carriesAll).Instructions
	if len(got) > maxPartInstructions+100 || !strings.HasSuffix(got, "…\n\n# b\n\nSecond.") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: …%s", len(got), got[len(got)-40:])
	}
	for range 100 {
		parts = append(parts, parts[0])
	}
	if got := Merge(parts, carriesAll).Instructions; len(got) > maxInstructions+200 {
		t.Errorf("%d bytes of instructions", len(got))
	}
}
