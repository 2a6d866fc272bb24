package translate

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func parse(tb testing.TB, raw string) *wire.Message {
	tb.Helper()
	m, err := wire.Parse([]byte(raw), wire.DefaultLimits)
	if err != nil {
		tb.Fatalf("%.200s: %v", raw, err)
	}
	return m
}

// wantJSON compares two JSON texts by what they say, and refuses keys that come twice.
func wantJSON(tb testing.TB, what string, got []byte, want string) {
	tb.Helper()
	if _, err := wire.Check(got, wire.DefaultLimits); err != nil {
		tb.Fatalf("%s: %v: %s", what, err, got)
	}
	if diff := cmp.Diff(decoded(tb, []byte(want)), decoded(tb, got)); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func decoded(tb testing.TB, raw []byte) any {
	tb.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		tb.Fatalf("%s: %v", raw, err)
	}
	return v
}

func TestAVersionBelongsToOneEra(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]struct {
		era        backend.Era
		known      bool
		negotiated string
	}{
		"2026-07-28": {backend.Modern, true, "2025-11-25"},
		"2025-11-25": {backend.Legacy, true, "2025-11-25"},
		"2025-06-18": {backend.Legacy, true, "2025-06-18"},
		"2025-03-26": {backend.Legacy, true, "2025-03-26"},
		"2024-11-05": {backend.Legacy, true, "2024-11-05"},
		"2027-01-01": {backend.Legacy, false, "2025-11-25"},
		"1.0":        {backend.Legacy, false, "2025-11-25"},
		"":           {backend.Legacy, false, "2025-11-25"},
	} {
		era, known := EraOf(version)
		if era != want.era || known != want.known {
			t.Errorf("era of %q: %v %v, want %v %v", version, era, known, want.era, want.known)
		}
		if got := Negotiate(version); got != want.negotiated {
			t.Errorf("initialize with %q agrees on %q, want %q", version, got, want.negotiated)
		}
	}
}

func TestWhatBecomesOfEachMethod(t *testing.T) {
	t.Parallel()
	// In the order legacy to legacy, legacy to modern, modern to legacy, modern to modern.
	for method, want := range map[string][4]Action{
		"initialize":               {Answer, Answer, Refuse, Refuse},
		"ping":                     {Answer, Answer, Refuse, Refuse},
		"logging/setLevel":         {Forward, Answer, Refuse, Refuse},
		"resources/subscribe":      {Forward, Answer, Refuse, Refuse},
		"resources/unsubscribe":    {Forward, Answer, Refuse, Refuse},
		"server/discover":          {Refuse, Refuse, Answer, Answer},
		"subscriptions/listen":     {Refuse, Refuse, Answer, Forward},
		"tools/list":               {Forward, Forward, Forward, Forward},
		"tools/call":               {Forward, Forward, Forward, Forward},
		"prompts/list":             {Forward, Forward, Forward, Forward},
		"prompts/get":              {Forward, Forward, Forward, Forward},
		"resources/list":           {Forward, Forward, Forward, Forward},
		"resources/read":           {Forward, Forward, Forward, Forward},
		"resources/templates/list": {Forward, Forward, Forward, Forward},
		"completion/complete":      {Forward, Forward, Forward, Forward},
		"tasks/get":                {Forward, Refuse, Refuse, Forward},
		"tasks/list":               {Forward, Refuse, Refuse, Forward},
		"acme/search":              {Forward, Forward, Forward, Forward},
	} {
		var got [4]Action
		for i := range got {
			got[i] = Method(method, backend.Era(i/2), backend.Era(i%2))
		}
		if got != want {
			t.Errorf("%s: %v, want %v", method, got, want)
		}
	}
}

func TestARefusalNamesTheMethodButNoMoreThanThat(t *testing.T) {
	t.Parallel()
	wantJSON(t, "refusal", MethodNotFound(json.RawMessage(`"a"`), "ping").Raw,
		`{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"method \"ping\" is not supported"}}`)
	long := string(bytes.Repeat([]byte("x"), 1<<16))
	if raw := MethodNotFound(json.RawMessage(`1`), long).Raw; len(raw) > 300 {
		t.Errorf("the refusal is %d bytes long", len(raw))
	}
}

func TestAServerIsAnsweredWhereNoClientIs(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"ping"}`: `{"jsonrpc":"2.0","id":7,"result":{}}`,
		`{"jsonrpc":"2.0","id":"x","method":"roots/list"}`: `{"jsonrpc":"2.0","id":"x","error":{"code":-32601,
			"message":"method \"roots/list\" is not supported"}}`,
	} {
		wantJSON(t, raw, AnswerServer(parse(t, raw)).Raw, want)
	}
	if answer := AnswerServer(parse(t, `{"jsonrpc":"2.0","method":"notifications/progress"}`)); answer != nil {
		t.Errorf("a notification was answered: %s", answer.Raw)
	}
}

func TestALegacyRequestSaysInMetaWhatItsSessionSaid(t *testing.T) {
	t.Parallel()
	client := backend.Client{
		Capabilities: json.RawMessage(`{"roots":{},"sampling":{},"elicitation":{"form":{}},"tasks":{},"experimental":{"a":{}},"new":{},
			"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}}`),
		Info: json.RawMessage(`{"name":"n","version":"1","icons":[]}`),
	}
	const capabilities = `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}}`
	for name, tc := range map[string]struct {
		in, level, want string
		client          backend.Client
	}{
		"no params": {
			in:     `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
			client: backend.Client{},
			want: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
				"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		},
		"everything": {
			in:     `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":9}}}`,
			client: client, level: "info",
			want: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":9,
				"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `,
				"io.modelcontextprotocol/clientInfo":{"name":"n","version":"1","icons":[]},"io.modelcontextprotocol/logLevel":"info"}}}`,
		},
		"a client cannot say it itself": {
			in: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"root"},
				"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/protocolVersion":"x",
				"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}}}`,
			client: backend.Client{Info: json.RawMessage(`null`)},
			want: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
				"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		},
	} {
		wantJSON(t, name, ToModern(parse(t, tc.in), tc.client, wire.Version20260728, tc.level).Raw, tc.want)
	}
}

func TestWhatIsUnknownInARequestSurvivesByteForByte(t *testing.T) {
	t.Parallel()
	const odd = `"name":"a" , "arguments" : {"n":1.0e2,"s":"\u00e4\/"}, "vendor/x":[ {} ]`
	legacy := `{ "vendor":1, "jsonrpc":"2.0", "id":"\u0031","method":"tools/call","params":{` + odd + `,"_meta":{"traceparent":"00-1"}}}`
	modern := ToModern(parse(t, legacy), backend.Client{}, wire.Version20260728, "")
	if !bytes.Contains(modern.Raw, []byte(odd)) || !bytes.Contains(modern.Raw, []byte(`"traceparent":"00-1"`)) {
		t.Errorf("to modern: %s", modern.Raw)
	}
	if back := ToLegacy(modern); string(back.Raw) != legacy {
		t.Errorf("there and back:\n%s\nwant\n%s", back.Raw, legacy)
	}
}

func TestAModernRequestLosesWhatTheSessionSays(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientInfo":{},"progressToken":"t","io.modelcontextprotocol/clientCapabilities":{},
		"io.modelcontextprotocol/logLevel":"debug"},"name":"a"}}`)
	wantJSON(t, "request", ToLegacy(m).Raw, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"t"},"name":"a"}}`)
}
