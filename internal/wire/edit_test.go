package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEditsSpliceAndLeaveTheRest(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	const call = `{ "id" : 7,"jsonrpc":"2.0", "method":"tools/call" , ` +
		`"params": { "name" : "a", "arguments":{"name":1,"\u00e4":[ ]} , "_meta":{"x":1 , "y":2} } , "_z":0 }`
	const bare = `{"jsonrpc":"2.0","id":1,"method":"m"}`
	const result = `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`
	cases := map[string]struct {
		text  string
		edits []Edit
		want  string
	}{
		"nothing":          {call, nil, call},
		"id":               {call, []Edit{SetID(raw(`"abc"`))}, strings.Replace(call, "7", `"abc"`, 1)},
		"the id's last":    {call, []Edit{SetID(raw(`1`)), SetID(raw(`2`))}, strings.Replace(call, "7", `2`, 1)},
		"param":            {call, []Edit{SetParam("name", raw(`"bb"`))}, strings.Replace(call, `"a"`, `"bb"`, 1)},
		"new param":        {call, []Edit{SetParam("n\"", raw(`1`))}, strings.Replace(call, `"y":2} }`, `"y":2},"n\"":1 }`, 1)},
		"meta":             {call, []Edit{SetMeta("y", raw(`{}`))}, strings.Replace(call, `"y":2`, `"y":{}`, 1)},
		"new meta":         {call, []Edit{SetMeta("z", raw(`3`))}, strings.Replace(call, `"y":2`, `"y":2,"z":3`, 1)},
		"no first of meta": {call, []Edit{RemoveMeta("x")}, strings.Replace(call, `"x":1 , "y"`, `"y"`, 1)},
		"no last of meta":  {call, []Edit{RemoveMeta("y")}, strings.Replace(call, ` , "y":2`, ``, 1)},
		"no inner of meta": {
			`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{ "a":1, "b":2 , "c":3}}}`,
			[]Edit{RemoveMeta("b")},
			`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{ "a":1 , "c":3}}}`,
		},
		"no meta":           {call, []Edit{RemoveMeta("x"), RemoveMeta("y"), RemoveMeta("none")}, strings.Replace(call, `"x":1 , "y":2`, ``, 1)},
		"no first, one new": {call, []Edit{RemoveMeta("x"), SetMeta("b", raw("1"))}, strings.Replace(call, `"x":1 , "y":2`, `"y":2,"b":1`, 1)},
		"a whole meta, and then one of its": {
			bare,
			[]Edit{SetMeta("lost", raw("0")), SetParam("_meta", raw(`{"a":1}`)), SetMeta("b", raw("2"))},
			`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"a":1,"b":2}}}`,
		},
		"set and removed": {
			bare,
			[]Edit{SetMeta("a", raw("1")), RemoveMeta("a"), SetMeta("b", raw("2"))},
			`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"b":2}}}`,
		},
		"removed and set": {
			bare, []Edit{RemoveMeta("a"), SetMeta("a", nil)}, `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"a":null}}}`,
		},
		"params out of nothing": {
			bare,
			[]Edit{SetMeta("a", raw("1")), SetParam("b", raw("2"))},
			`{"jsonrpc":"2.0","id":1,"method":"m","params":{"b":2,"_meta":{"a":1}}}`,
		},
		"params out of null": {
			`{"jsonrpc":"2.0","id":1,"method":"m","params":null}`,
			[]Edit{SetParam("b", raw("2"))},
			`{"jsonrpc":"2.0","id":1,"method":"m","params":{"b":2}}`,
		},
		"nothing out of null": {
			`{"jsonrpc":"2.0","id":1,"method":"m","params":null}`,
			[]Edit{RemoveMeta("b")},
			`{"jsonrpc":"2.0","id":1,"method":"m","params":null}`,
		},
		"meta that is null": {
			`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":null}}`,
			[]Edit{SetMeta("a", raw("1"))},
			`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"a":1}}}`,
		},
		"nothing to remove": {bare, []Edit{RemoveMeta("b")}, bare},
		"an escaped key": {
			`{"jsonrpc":"2.0","id":1,"method":"m","params":{"\u006eame":1}}`,
			[]Edit{SetParam("name", raw("2"))},
			`{"jsonrpc":"2.0","id":1,"method":"m","params":{"\u006eame":2}}`,
		},
		"result": {
			result,
			[]Edit{SetResult("resultType", raw(`"complete"`)), SetResult("a", raw("2")), SetResultMeta("s", raw("{}"))},
			`{"jsonrpc":"2.0","id":1,"result":{"a":2,"resultType":"complete","_meta":{"s":{}}}}`,
		},
		"result of params' edits": {result, []Edit{SetParam("a", raw("2")), SetMeta("b", raw("3"))}, result},
		"request of result edits": {bare, []Edit{SetResult("a", raw("2")), SetResultMeta("b", raw("3"))}, bare},
		"error of result edits": {
			`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`,
			[]Edit{SetResult("a", raw("2"))},
			`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`,
		},
		"error that gets an id": {
			`{"jsonrpc":"2.0","error":{"code":1,"message":""}}`,
			[]Edit{SetID(raw("5"))},
			`{"id":5,"jsonrpc":"2.0","error":{"code":1,"message":""}}`,
		},
		"notification stays one": {
			`{"jsonrpc":"2.0","method":"m"}`,
			[]Edit{SetID(raw("5")), SetParam("a", raw("1"))},
			`{"jsonrpc":"2.0","method":"m","params":{"a":1}}`,
		},
		"members in another order": {
			`{"params":{"a":1},"method":"m","id":1,"jsonrpc":"2.0"}`,
			[]Edit{SetID(raw("22")), SetParam("a", raw("11"))},
			`{"params":{"a":11},"method":"m","id":22,"jsonrpc":"2.0"}`,
		},
	}
	for name, tc := range cases {
		m := mustParse(t, []byte(tc.text))
		got := m.With(tc.edits...)
		if diff := cmp.Diff(tc.want, string(got.Raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
			continue
		}
		if diff := cmp.Diff(mustParse(t, got.Raw), got, cmp.AllowUnexported(Message{}, span{})); diff != "" {
			t.Errorf("%s (-parsed +edited):\n%s", name, diff)
		}
		if diff := cmp.Diff(mustParse(t, []byte(tc.text)), m, cmp.AllowUnexported(Message{}, span{})); diff != "" {
			t.Errorf("%s: the message itself is changed (-want +got):\n%s", name, diff)
		}
	}
}

func TestMoreEditsThanMembers(t *testing.T) {
	t.Parallel()
	m := NewRequest(json.RawMessage("1"), "m", json.RawMessage(`{"_meta":{"k70":0,"k3":0,"gone":0}}`))
	var edits []Edit
	want := `"k70":70,"k3":3`
	for i := range 100 {
		edits = append(edits, SetMeta(fmt.Sprintf("k%d", i), json.RawMessage(fmt.Sprint(i))))
		if i != 3 && i != 70 {
			want += fmt.Sprintf(`,"k%d":%d`, i, i)
		}
	}
	got := m.With(append(edits, RemoveMeta("gone"))...)
	if diff := cmp.Diff(`{"_meta":{`+want+"}}", string(got.Params)); diff != "" {
		t.Errorf("params (-want +got):\n%s", diff)
	}
}
