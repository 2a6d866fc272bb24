package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

var messageSeeds = []string{
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,-0.5e+3,"\ud83d\ude00",null,true]},"_meta":{"progressToken":"t"}}}`,
	`{"jsonrpc":"2.0","method":"n","params":{"\u005fmeta":{"a":{}}}}`, `{"id":"\u0069d","jsonrpc":"2.0","result":{"tools":[{"name":"a"}]}}`,
	`{"jsonrpc":"2.0","error":{"code":1,"message":"\ud800"}}`, ` {"params" : null , "id" :-0,"method":"m","jsonrpc":"2.0" } `,
	`{"jsonrpc":"2.0","id":1,"method":"m","Method":"x"}`, `{"a":1,"\u0061":2}`, "\"\xff\"", `{"a":1,}`, `"\u00`, "1e999", "", "[[[[", "[]",
}

func FuzzParse(f *testing.F) {
	for _, seed := range messageSeeds {
		f.Add([]byte(seed), "key", "value")
	}
	limits := Limits{Depth: 1000, Members: 1000}
	f.Fuzz(func(t *testing.T, data []byte, key, value string) {
		m, err := Parse(data, limits)
		if _, checked := Check(data, limits); err == nil && checked != nil {
			t.Fatalf("Parse accepts what Check refuses: %v", checked)
		}
		if err != nil {
			return
		}
		agreesWithEncodingJSON(t, m)
		editsHold(t, m)
		if key = strings.ToValidUTF8(key, ""); strings.Contains(key+value, "\x00") || protocolKeyButForCase(key) {
			return // With trusts those who make edits
		}
		set := Quote(value)
		editsHold(t, m, SetID(set), SetParam(key, set), SetResult(key, set))
		editsHold(t, m, RemoveMeta(key))
		editsHold(t, m, SetMeta(key, set), SetParam(metaKey, json.RawMessage(`{"a":{}}`)), SetMeta("b", set), RemoveMeta(key), SetResultMeta(key, set))
		editsHold(t, m, SetMeta(key, set), SetParam("name", set), SetParam("arguments", json.RawMessage("{}")))
	})
}

func protocolKeyButForCase(key string) bool {
	object := json.RawMessage("{" + string(Quote(key)) + ":0}")
	return Misspelt(object, envelope.inside.keys...) || Misspelt(object, envelope.inside.inside.keys...)
}

// agreesWithEncodingJSON fails if encoding/json, which takes more, sees another message.
func agreesWithEncodingJSON(t *testing.T, m *Message) {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(m.Raw, &all); err != nil {
		t.Fatalf("accepted what is no JSON: %v", err)
	}
	for key, part := range map[string]json.RawMessage{"id": m.ID, "params": m.Params, "result": m.Result, "error": m.Error} {
		if !bytes.Equal(all[key], part) {
			t.Fatalf("%s is %q to encoding/json, and %q", key, all[key], part)
		}
	}
	var method string
	if m.Kind != Response && (json.Unmarshal(all["method"], &method) != nil || method != m.Method) {
		t.Fatalf("the method is %q to encoding/json, and %q", method, m.Method)
	}
	sameFields(t, m.Params)
	sameFields(t, m.Result)
}

// sameFields fails if Fields, Field and String see another object than encoding/json.
func sameFields(t *testing.T, object json.RawMessage) {
	t.Helper()
	want := map[string]json.RawMessage{}
	_ = json.Unmarshal(object, &want)
	got := map[string]json.RawMessage{}
	for key, value := range Fields(object) {
		got[key] = value
		if !bytes.Equal(Field(object, key), value) {
			t.Fatalf("the field %q of %q is not found", key, object)
		}
		var s string
		if text, ok := String(value); ok && (json.Unmarshal(value, &s) != nil || s != text) {
			t.Fatalf("%q stands for %q to encoding/json, and %q", value, s, text)
		}
	}
	if len(want) != len(got) {
		t.Fatalf("%q has %d fields to encoding/json, and %d", object, len(want), len(got))
	}
	for key, value := range want {
		if !bytes.Equal(got[key], value) {
			t.Fatalf("the field %q of %q is %q", key, object, got[key])
		}
	}
}

// editsHold fails if an edited message is broken, or says something else than its bytes.
func editsHold(t *testing.T, m *Message, edits ...Edit) {
	t.Helper()
	edited := m.With(edits...)
	again, err := Parse(edited.Raw, Limits{Depth: 1002, Members: 1010})
	if err != nil {
		t.Fatalf("%q becomes %q: %v", m.Raw, edited.Raw, err)
	}
	if diff := cmp.Diff(again, edited, cmp.AllowUnexported(Message{}, span{})); diff != "" {
		t.Fatalf("edited message (-parsed +edited):\n%s", diff)
	}
	if len(edits) == 0 && !bytes.Equal(m.Raw, edited.Raw) {
		t.Fatalf("%q becomes %q", m.Raw, edited.Raw)
	}
}

func FuzzStrictJSON(f *testing.F) {
	for _, seed := range messageSeeds {
		f.Add([]byte(seed))
	}
	limits := Limits{Depth: 1000, Members: 1000}
	f.Fuzz(func(t *testing.T, data []byte) {
		// None of these may panic, whatever the text.
		for key, value := range Fields(data) {
			_, _ = Field(data, key), Text(value, 10)
		}
		for value := range Elements(data) {
			_, _ = String(value)
		}
		_, _ = Pick(data, "a", "b")
		_, _ = ParamHeaders(data)
		_ = kindOfHead(data)

		v, err := CheckSyntax(data, limits)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepted what is not JSON: %q", data)
		}
		_, checked := Check(data, limits)
		text, err := canonical(v)
		if checked == nil && err != nil {
			t.Fatalf("Check accepts %q, but: %v", data, err)
		}
		if err != nil {
			return
		}
		again, err := canonical(json.RawMessage(text))
		if err != nil || again != text {
			t.Fatalf("canonical form of the canonical form %q is %q (%v)", text, again, err)
		}
		var a, b any
		if json.Unmarshal(v, &a) != nil || json.Unmarshal([]byte(text), &b) != nil {
			t.Fatalf("canonical form %q cannot be read", text)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("canonical form means something else (-text +canonical):\n%s", diff)
		}
	})
}

func FuzzHeaders(f *testing.F) {
	for _, seed := range []string{"a", "", " a", "Größe", "a\r\nb", "=?base64?eA==?=", "=?base64?", "\xff", "\x00", "=?base64?=?="} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, name, sent string) {
		encoded := EncodeHeader(name)
		for i := range len(encoded) {
			if encoded[i] < 0x20 || encoded[i] > 0x7e {
				t.Fatalf("%q is encoded as %q", name, encoded)
			}
		}
		m := NewRequest(json.RawMessage("1"), "tools/call", json.RawMessage("{}")).
			With(SetParam("name", Quote(name)), SetMeta(MetaProtocolVersion, Quote("2026-07-28")))
		body, _ := m.StringParam("name") // is valid UTF-8, which name may not be
		if got, err := DecodeHeader(EncodeHeader(body)); err != nil || got != body {
			t.Fatalf("%q is decoded as %q, error %v", body, got, err)
		}
		h := http.Header{}
		m.Headers(h)
		if err := CheckHeaders(h, m); err != nil {
			t.Fatalf("our own headers %q are refused: %v", h, err)
		}
		h.Set(HeaderName, sent)
		decoded, err := DecodeHeader(sent)
		if accepted := CheckHeaders(h, m) == nil; accepted != (sent != "" && err == nil && decoded == body) {
			t.Fatalf("the name %q with the header %q: accepted %v", body, sent, accepted)
		}
	})
}

func FuzzReplaceID(f *testing.F) {
	for i, seed := range append(messageSeeds, `{"id":{"a":"}"},"\u0069\u0064":"\\\"","i":1,"x":{"id":[]},"id":0}`, `{"id":1}{"id":2}`, `{"id":}`) {
		f.Add([]byte(seed), `"x"`, uint8(i), uint8(7-i))
	}
	f.Fuzz(func(t *testing.T, data []byte, id string, a, b uint8) {
		got, err := io.ReadAll(ReplaceID(bytes.NewReader(data), json.RawMessage(id)))
		for how, in := range map[string]io.Reader{
			"byte by byte": iotest.OneByteReader(bytes.NewReader(data)), "in pieces": inPieces(data, int(a), int(b)),
		} {
			same, sameErr := io.ReadAll(iotest.OneByteReader(ReplaceID(in, json.RawMessage(id))))
			if !bytes.Equal(got, same) || (err == nil) != (sameErr == nil) {
				t.Fatalf("%s: how the message is cut into reads matters: %q and %q (%v, %v)", how, got, same, err, sameErr)
			}
		}
		v, checked := Check(data, Limits{Depth: 1000})
		if checked != nil || !IsObject(v) || !json.Valid([]byte(id)) {
			return
		}
		var want, have map[string]json.RawMessage
		if err != nil || json.Unmarshal(data, &want) != nil || json.Unmarshal(got, &have) != nil {
			t.Fatalf("%q becomes %q, error %v", data, got, err)
		}
		if want["id"] != nil {
			want["id"] = json.RawMessage(strings.Trim(id, " \t\r\n"))
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Fatalf("%q becomes %q (-want +got):\n%s", data, got, diff)
		}
	})
}
