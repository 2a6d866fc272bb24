package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMessagesAreReadInPlace(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	cases := map[string]struct {
		text string
		want Message
	}{
		"request": {
			` {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}} `,
			Message{ID: raw("7"), Method: "tools/call", Params: raw(`{"name":"a"}`)},
		},
		"members in another order": {
			`{"params":{ },"method":"x/y","id":"a\u0062" ,"jsonrpc":"2.0"}`,
			Message{ID: raw(`"a\u0062"`), Method: "x/y", Params: raw("{ }")},
		},
		"escaped keys and method": {
			`{"json\u0072pc":"2.\u0030","\u0069d":0,"method":"tools\/call"}`,
			Message{ID: raw("0"), Method: "tools/call"},
		},
		"params that are null": {`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, Message{ID: raw("1"), Method: "ping", Params: raw("null")}},
		"id beyond 64 bits": {
			`{"jsonrpc":"2.0","id":-123456789012345678901234567890,"method":"ping"}`,
			Message{ID: raw("-123456789012345678901234567890"), Method: "ping"},
		},
		"empty id": {`{"jsonrpc":"2.0","id":"","method":"ping"}`, Message{ID: raw(`""`), Method: "ping"}},
		"notification": {
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			Message{Kind: Notification, Method: "notifications/initialized"},
		},
		"result": {
			`{"jsonrpc":"2.0","id":7,"result":{"a":[]},"_x":1}`,
			Message{Kind: Response, ID: raw("7"), Result: raw(`{"a":[]}`)},
		},
		"result that is null": {`{"jsonrpc":"2.0","id":7,"result":null}`, Message{Kind: Response, ID: raw("7"), Result: raw("null")}},
		"error": {
			`{"jsonrpc":"2.0","id":"7","error":{"code":-1,"message":"m"}}`,
			Message{Kind: Response, ID: raw(`"7"`), Error: raw(`{"code":-1,"message":"m"}`)},
		},
		"error for nobody": {`{"jsonrpc":"2.0","id":null,"error":{}}`, Message{Kind: Response, ID: raw("null"), Error: raw("{}")}},
		"error without id": {`{"jsonrpc":"2.0","error":{}}`, Message{Kind: Response, Error: raw("{}")}},
	}
	for name, tc := range cases {
		got, err := Parse([]byte(tc.text), DefaultLimits)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		tc.want.Raw = []byte(strings.TrimSpace(tc.text))
		if diff := cmp.Diff(&tc.want, got, cmpopts.IgnoreUnexported(Message{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWhatTwoReadersCouldUnderstandDifferentlyIsNoMessage is attack B15.
func TestWhatTwoReadersCouldUnderstandDifferentlyIsNoMessage(t *testing.T) {
	t.Parallel()
	const jsonError, request = CodeParse, CodeInvalidRequest
	cases := map[string]struct {
		text string
		code int
		id   string // for the answer
		err  error
	}{
		"no JSON":                        {`{"jsonrpc":"2.0","id":7,"method":"ping"`, jsonError, "", ErrSyntax},
		"no object":                      {`"ping"`, request, "", nil},
		"two messages":                   {`{"jsonrpc":"2.0","id":7,"method":"ping"}{}`, jsonError, "", ErrSyntax},
		"no version":                     {`{"id":7,"method":"ping"}`, request, "7", nil},
		"other version":                  {`{"jsonrpc":"1.0","id":7,"method":"ping"}`, request, "7", nil},
		"version as number":              {`{"jsonrpc":2.0,"id":7,"method":"ping"}`, request, "7", nil},
		"nothing in it":                  {`{"jsonrpc":"2.0","id":7}`, request, "7", nil},
		"method and result":              {`{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}`, request, "7", nil},
		"method and error":               {`{"jsonrpc":"2.0","id":7,"method":"ping","error":{}}`, request, "7", nil},
		"result and error":               {`{"jsonrpc":"2.0","id":7,"result":{},"error":{}}`, request, "7", nil},
		"result and params":              {`{"jsonrpc":"2.0","id":7,"result":{},"params":{}}`, request, "7", nil},
		"result and odd method":          {`{"jsonrpc":"2.0","id":7,"result":{},"method":null}`, request, "7", nil},
		"result without id":              {`{"jsonrpc":"2.0","result":{}}`, request, "", nil},
		"error as text":                  {`{"jsonrpc":"2.0","id":7,"error":"m"}`, request, "7", nil},
		"error that is null":             {`{"jsonrpc":"2.0","id":7,"error":null}`, request, "7", nil},
		"empty method":                   {`{"jsonrpc":"2.0","id":7,"method":""}`, request, "7", nil},
		"method as number":               {`{"jsonrpc":"2.0","id":7,"method":1}`, request, "7", nil},
		"NUL in the method":              {`{"jsonrpc":"2.0","id":7,"method":"ping\u0000"}`, request, "7", nil},
		"half a pair in the method":      {`{"jsonrpc":"2.0","id":7,"method":"ping\ud800"}`, request, "7", nil},
		"params as array":                {`{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}`, request, "7", nil},
		"params as text":                 {`{"jsonrpc":"2.0","id":7,"method":"ping","params":"a"}`, request, "7", nil},
		"id null":                        {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, request, "", nil},
		"id as fraction":                 {`{"jsonrpc":"2.0","id":7.0,"method":"ping"}`, request, "", nil},
		"id with exponent":               {`{"jsonrpc":"2.0","id":7e0,"method":"ping"}`, request, "", nil},
		"id true":                        {`{"jsonrpc":"2.0","id":true,"method":"ping"}`, request, "", nil},
		"id as object":                   {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, request, "", nil},
		"NUL in the id":                  {`{"jsonrpc":"2.0","id":"a\u0000","method":"ping"}`, request, "", nil},
		"id twice":                       {`{"jsonrpc":"2.0","id":8,"method":"ping","\u0069d":7}`, request, "", ErrDuplicateKey},
		"method twice":                   {`{"jsonrpc":"2.0","id":8,"method":"ping","method":"tools/call"}`, request, "", ErrDuplicateKey},
		"a foreign key twice":            {`{"jsonrpc":"2.0","id":8,"method":"ping","_x":1,"_x":2}`, request, "", ErrDuplicateKey},
		"an argument twice":              {`{"jsonrpc":"2.0","id":8,"method":"m","params":{"arguments":{"a":1,"a":2}}}`, request, "", ErrDuplicateKey},
		"Method":                         {`{"jsonrpc":"2.0","id":7,"Method":"ping"}`, request, "", ErrKey},
		"Method beside method":           {`{"jsonrpc":"2.0","id":7,"method":"ping","METHOD":"tools/call"}`, request, "", ErrKey},
		"escaped, in capitals":           {`{"jsonrpc":"2.0","id":7,"method":"ping","\u004dethod":"x"}`, request, "", ErrKey},
		"long s":                         {`{"jsonrpc":"2.0","id":7,"method":"ping","re\u017fult":{}}`, request, "", ErrKey},
		"long s, unescaped":              {`{"jſonrpc":"2.0","id":7,"method":"ping"}`, request, "", ErrKey},
		"NUL after a key":                {`{"jsonrpc":"2.0","id":7,"method":"ping","method\u0000":"x"}`, request, "", ErrKey},
		"Name in params":                 {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","Name":"b"}}`, request, "", ErrKey},
		"_Meta in params":                {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","_Meta":{}}}`, request, "", ErrKey},
		"ProgressToken in _meta":         {`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":{"ProgressToken":1}}}`, request, "", ErrKey},
		"TraceParent in _meta":           {`{"jsonrpc":"2.0","id":7,"method":"x","params":{"_meta":{"TraceParent":1}}}`, request, "", ErrKey},
		"too many bytes":                 {`{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat("a", 1000) + `"}`, request, "", ErrTooLarge},
		"nested too deep":                {`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":[[[[[[]]]]]]}}`, request, "", ErrTooDeep},
		"too many members":               {`{"jsonrpc":"2.0","id":7,"method":"ping","a":1,"b":2,"c":3,"d":4,"e":5,"f":6}`, request, "", ErrManyMembers},
		"bad UTF-8":                      {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\xff\"}", jsonError, "", ErrSyntax},
		"a number nobody holds":          {`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1e400}}`, jsonError, "", ErrSyntax},
		"a batch":                        {` [{"jsonrpc":"2.0","id":7,"method":"ping"}]`, request, "", ErrBatch},
		"an empty batch":                 {`[]`, request, "", ErrBatch},
		"a batch of 10,000 (attack C25)": {"[" + strings.Repeat(`{"jsonrpc":"2.0","id":7,"method":"ping"},`, 10_000), request, "", ErrBatch},
	}
	for name, tc := range cases {
		m, err := Parse([]byte(tc.text), Limits{Bytes: 1000, Depth: 6, Members: 8})
		var e *ParseError
		if m != nil || !errors.As(err, &e) {
			t.Errorf("%s: accepted, or refused with %v", name, err)
			continue
		}
		if e.Code != tc.code || string(e.ID) != tc.id || tc.err != nil && !errors.Is(err, tc.err) {
			t.Errorf("%s: code %d, id %q, error %v; want %d, %q, %v", name, e.Code, e.ID, err, tc.code, tc.id, tc.err)
		}
		if strings.Contains(e.Reason, "ping") || e.Reason == "" {
			t.Errorf("%s: reason %q", name, e.Reason)
		}
	}
}

func TestForeignKeysInOtherPlacesAreNobodysBusiness(t *testing.T) {
	t.Parallel()
	mustParse(t, []byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"Name":1,"_Meta":2,"Method":3,"name":{"Name":4}},"x":{"URI":1}}}`))
	mustParse(t, []byte(`{"jsonrpc":"2.0","id":1,"result":{"Name":1,"name":2,"METHOD":3,"_meta":{"ProgressToken":1}}}`))
}

func TestMembersAreFoundByTheirExactKey(t *testing.T) {
	t.Parallel()
	m := mustParse(t, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n\u0061me":"a\u0062","x":{"name":"no"},"n":1,`+
		`"half":"\ud800","_meta":{"progressToken":3}}}`))
	if got, ok := m.StringParam("name"); got != "ab" || !ok {
		t.Errorf("name %q, %v", got, ok)
	}
	for _, key := range []string{"n", "half", "none", "progressToken"} {
		if got, ok := m.StringParam(key); ok {
			t.Errorf("%s is taken for the string %q", key, got)
		}
	}
	if got := m.MetaField("progressToken"); string(got) != "3" {
		t.Errorf("progressToken %s", got)
	}
	if m.MetaField("name") != nil || m.Param("name") == nil || m.ResultField("name") != nil {
		t.Error("members are sought in the wrong place")
	}
	r := mustParse(t, []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`))
	if got := r.ResultField("tools"); string(got) != "[]" || r.Param("tools") != nil || r.MetaField("x") != nil {
		t.Errorf("tools %s", got)
	}
}

func TestMessagesAreBuiltAsTheyAreParsed(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	cases := map[string]struct {
		made *Message
		want string
	}{
		"request":                {NewRequest(raw(`"a"`), "tools/call", raw(`{"x":1}`)), `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"x":1}}`},
		"request without params": {NewRequest(raw("1"), `odd "method"`+"\n", nil), `{"jsonrpc":"2.0","id":1,"method":"odd \"method\"\n"}`},
		"notification":           {NewNotification("n", raw("{}")), `{"jsonrpc":"2.0","method":"n","params":{}}`},
		"result":                 {NewResult(raw("2"), raw(`{"a":1}`)), `{"jsonrpc":"2.0","id":2,"result":{"a":1}}`},
		"empty result":           {NewResult(raw("2"), nil), `{"jsonrpc":"2.0","id":2,"result":{}}`},
		"error": {
			NewError(raw("2"), -32601, "no \x01\xff", nil),
			`{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no \u0001` + "\ufffd" + `"}}`,
		},
		"error with data": {NewError(nil, 1, "", raw(`[1]`)), `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"","data":[1]}}`},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, string(tc.made.Raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(mustParse(t, tc.made.Raw), tc.made, cmp.AllowUnexported(Message{}, span{})); diff != "" {
			t.Errorf("%s (-parsed +made):\n%s", name, diff)
		}
	}
	if got := string(AppendQuote([]byte("x"), "a\"b")); got != `x"a\"b"` {
		t.Errorf("appended: %s", got)
	}
	if got := string(Quote("a\"b\u2028")); got != "\"a\\\"b\u2028\"" {
		t.Errorf("quoted: %s", got)
	}
}
