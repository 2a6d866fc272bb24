package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// chunks reads in pieces of n bytes.
type chunks struct {
	r io.Reader
	n int
}

func (c chunks) Read(p []byte) (int, error) { return c.r.Read(p[:min(c.n, len(p))]) }

// streamed passes a text through a stream with sources and sinks of several piece sizes, which must not matter.
func streamed(tb testing.TB, in string, stream func(io.Reader) io.Reader) string {
	tb.Helper()
	var first string
	for i, source := range []io.Reader{
		strings.NewReader(in),
		iotest.OneByteReader(strings.NewReader(in)),
		iotest.DataErrReader(strings.NewReader(in)),
		chunks{strings.NewReader(in), 7},
	} {
		sink := stream(source)
		if i == 3 {
			sink = iotest.OneByteReader(sink)
		}
		out, err := io.ReadAll(sink)
		if err != nil {
			tb.Fatalf("%.100s: %v", in, err)
		}
		if i > 0 && string(out) != first {
			tb.Fatalf("in pieces %d:\n%s\nat once:\n%s", i, out, first)
		}
		first = string(out)
	}
	return first
}

func TestALegacyResultGetsWhatANewOneHas(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ method, in, want string }{
		"a call": {
			"tools/call", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"}\"{"}]}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"}\"{"}],"resultType":"complete"}}`,
		},
		"nothing": {
			"tools/call", `{"jsonrpc":"2.0","id":1,"result":{ }}`,
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}`,
		},
		"a list": {
			"tools/list", `{"result":{"tools":[]},"jsonrpc":"2.0","id":1}`,
			`{"result":{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"},"jsonrpc":"2.0","id":1}`,
		},
		"an empty list result": {
			"resources/templates/list", `{"result":{},"jsonrpc":"2.0","id":1}`,
			`{"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private"},"jsonrpc":"2.0","id":1}`,
		},
		"what is there stays": {
			"resources/read", `{"jsonrpc":"2.0","id":1,"result":{"ttlMs":5,"contents":[],"cache\u0053cope":"public"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"ttlMs":5,"contents":[],"cacheScope":"public","resultType":"complete"}}`,
		},
		"names deeper down do not count": {
			"prompts/list", `{"jsonrpc":"2.0","id":1,"result":{"prompts":[{"ttlMs":1}],"_meta":{"cacheScope":"a","resultType":"b"}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"prompts":[{"ttlMs":1}],"_meta":{"cacheScope":"a","resultType":"b"},
			"resultType":"complete","ttlMs":0,"cacheScope":"private"}}`,
		},
		"values do not count": {
			"tools/call", `{"jsonrpc":"2.0","id":"result","result":{"x":"resultType"}}`,
			`{"jsonrpc":"2.0","id":"result","result":{"x":"resultType","resultType":"complete"}}`,
		},
		"another member of that name deeper in the message": {
			"tools/call", `{"jsonrpc":"2.0","vendor":{"result":{}},"id":1,"result":{"a":1}}`,
			`{"jsonrpc":"2.0","vendor":{"result":{}},"id":1,"result":{"a":1,"resultType":"complete"}}`,
		},
		"no object": {
			"acme/count", `{"jsonrpc":"2.0","id":1,"result":[{"a":1},3]}`, `{"jsonrpc":"2.0","id":1,"result":[{"a":1},3]}`,
		},
		"an error": {
			"tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"m"}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"m"}}`,
		},
		"no such resource": {
			"resources/read", `{"jsonrpc":"2.0","id":1,"error":{"message":"m","code": -32002,"data":{"uri":"a:b"}}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m","data":{"uri":"a:b"}}}`,
		},
		"no such resource, in short": {
			"resources/read", `{"jsonrpc":"2.0","id":1,"error":{"message":"m","code":-32002}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m"}}`,
		},
		"another error of a resource": {
			"resources/read", `{"jsonrpc":"2.0","id":1,"error":{"code":-320020,"message":"m","data":{"code":-32002}}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-320020,"message":"m","data":{"code":-32002}}}`,
		},
	} {
		wantJSON(t, name+", whole", resultToModern(parse(t, tc.in), tc.method).Raw, tc.want)
		out := streamed(t, tc.in, func(r io.Reader) io.Reader { return StreamToModern(r, tc.method) })
		wantJSON(t, name+", streamed", []byte(out), tc.want)
	}
}

func TestAStreamedResultIsTouchedAtItsEndOnly(t *testing.T) {
	t.Parallel()
	const head = `{ "jsonrpc":"2.0", "id": 1 , "result" : { "content" : [ 1.0 , "\u00e4" ]  `
	out := streamed(t, head+"}  }\n", func(r io.Reader) io.Reader { return StreamToModern(r, "tools/call") })
	if want := head + `,"resultType":"complete"}  }` + "\n"; out != want {
		t.Errorf("%s\nwant\n%s", out, want)
	}
}

const refused = `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,
	"message":"the server asks for input, which takes a client of protocol version 2026-07-28; nothing was completed"}}`

func TestAResultThatAsksForInputDoesNotReachALegacyClient(t *testing.T) {
	t.Parallel()
	late := `{"jsonrpc":"2.0","id":1,"result":{"content":null,"inputRequests":{"a":"` + strings.Repeat("x", maxHead/2) + `"},"resultType":"input_required"}}`
	for name, tc := range map[string]struct {
		in      string
		refused bool
	}{
		"complete":              {`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}`, false},
		"older":                 {`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, false},
		"nothing":               {`{"jsonrpc":"2.0","id":1,"result":{}}`, false},
		"no object":             {`{"jsonrpc":"2.0","id":1,"result":[{"resultType":"input_required"}]}`, false},
		"an error":              {`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":{"resultType":"input_required"}}}`, false},
		"deeper down":           {`{"jsonrpc":"2.0","id":1,"result":{"_meta":{"resultType":"input_required"},"content":[]}}`, false},
		"as text":               {`{"jsonrpc":"2.0","id":1,"result":{"a":"resultType","b":"input_required"}}`, false},
		"asks":                  {`{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{}}}`, true},
		"asks, said last":       {late, true},
		"asks, said otherwise":  {`{"jsonrpc":"2.0","id":1,"result":{"result\u0054ype":"input\u005frequired"}}`, true},
		"asks, the id at last":  {`{"result":{"resultType":"input_required","content":[]},"id":1,"jsonrpc":"2.0"}`, true},
		"asks, after content":   {`{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"input_required"}}`, true},
		"no type":               {`{"jsonrpc":"2.0","id":1,"result":{"resultType":null,"input_required":{"a":"b"},"c":"d"}}`, false},
		"something else":        {`{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"a"}}`, true},
		"something else, long":  {`{"jsonrpc":"2.0","id":1,"result":{"resultType":"` + strings.Repeat("y", 300) + `"}}`, true},
		"empty content at last": {`{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"complete"}}`, false},
	} {
		want := tc.in
		if tc.refused {
			want = refused
		}
		wantJSON(t, name+", whole", resultToLegacy(parse(t, tc.in)).Raw, want)
		out := streamed(t, tc.in, func(r io.Reader) io.Reader { return StreamToLegacy(r, json.RawMessage(`1`)) })
		wantJSON(t, name+", streamed", []byte(out), want)
		if !tc.refused && out != tc.in {
			t.Errorf("%s: changed to %s", name, out)
		}
	}
}

func TestARefusedResponseIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	source := strings.NewReader(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","x":"` + strings.Repeat("x", 10*maxHead) + `"}}`)
	if _, err := io.ReadAll(StreamToLegacy(source, json.RawMessage(`1`))); err != nil || source.Len() > 0 {
		t.Errorf("%v, %d bytes left", err, source.Len())
	}
}

// TestContentIsNotHeld reads a result of which only the beginning has arrived.
func TestContentIsNotHeld(t *testing.T) {
	t.Parallel()
	const head = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"abc`
	r, w := io.Pipe()
	go func() { _, _ = io.WriteString(w, head) }()
	got := make([]byte, len(head))
	if _, err := io.ReadFull(StreamToLegacy(r, json.RawMessage(`1`)), got); err != nil || string(got) != head {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestAnEndlessHeadIsHeldUpToALimit(t *testing.T) {
	t.Parallel()
	in := `{"jsonrpc":"2.0","id":1,"result":{"a":"` + strings.Repeat("x", 10*maxHead) + `","resultType":"input_required"}}`
	out := streamed(t, in, func(r io.Reader) io.Reader { return StreamToLegacy(r, json.RawMessage(`1`)) })
	if out != in {
		t.Error("a result with a long head was changed")
	}
}

func TestAnErrorOfTheSourceComesAfterItsBytes(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, in := range map[string]string{
		"in the head":   `{"jsonrpc":"2.0","id":1,"res`,
		"in the result": `{"jsonrpc":"2.0","id":1,"result":{"content":[{"a":1}`,
		"in the code":   `{"jsonrpc":"2.0","id":1,"error":{"code":-3200`,
	} {
		for _, stream := range []func(io.Reader) io.Reader{
			func(r io.Reader) io.Reader { return StreamToModern(r, resourcesRead) },
			func(r io.Reader) io.Reader { return StreamToLegacy(r, json.RawMessage(`1`)) },
		} {
			out, err := io.ReadAll(stream(io.MultiReader(strings.NewReader(in), iotest.ErrReader(broken))))
			if string(out) != in || !errors.Is(err, broken) {
				t.Errorf("%s: %q, %v", name, out, err)
			}
		}
	}
}

// FuzzStreams demands that streams do to valid responses what the whole messages become, and pass everything else unharmed.
func FuzzStreams(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"a":"}"}],"resultType":"complete"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":""}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"ttlMs":1,"\u0063acheScope":"\\"}}`,
		`{"result":[{}]`, `}}{{"a":"\u12`, `{"error":{"code":`, "",
	} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, in string, size int) {
		size = max(size, 1)
		var outs [2][]byte
		for i, stream := range []io.Reader{
			StreamToModern(chunks{strings.NewReader(in), size}, resourcesRead),
			StreamToLegacy(chunks{strings.NewReader(in), size}, json.RawMessage(`1`)),
		} {
			out, err := io.ReadAll(stream)
			if err != nil {
				t.Fatal(err)
			}
			outs[i] = out
		}
		m, err := wire.Parse([]byte(in), wire.DefaultLimits)
		if err != nil || m.ID == nil || m.Result == nil && wire.Field(m.Error, "message") == nil {
			return // no response, or an error that lacks what JSON-RPC demands of one
		}
		same(t, "to modern", outs[0], resultToModern(m, resourcesRead).Raw)
		legacy := resultToLegacy(m)
		if !bytes.Equal(legacy.Raw, m.Raw) {
			legacy = CannotCarry(json.RawMessage(`1`))
		}
		if !strings.Contains(in, "content") && !strings.Contains(in, "messages") && len(in) < maxHead {
			same(t, "to legacy", outs[1], legacy.Raw) // with content a stream does not look on
		}
	})
}

func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if diff := cmp.Diff(decoded(t, want), decoded(t, got)); diff != "" {
		t.Errorf("%s (-whole +streamed):\n%s", what, diff)
	}
}
