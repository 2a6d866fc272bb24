package wire

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// chunked gives its pieces one a read.
type chunked struct {
	pieces [][]byte
	err    error // at the end
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.pieces) == 0 {
		return 0, c.err
	}
	n := copy(p, c.pieces[0])
	if c.pieces[0] = c.pieces[0][n:]; len(c.pieces[0]) == 0 {
		c.pieces = c.pieces[1:]
	}
	return n, nil
}

// inPieces cuts text into pieces of the given sizes, again and again.
func inPieces(text []byte, sizes ...int) *chunked {
	c := &chunked{err: io.EOF}
	for i := 0; len(text) > 0; i++ {
		n := min(len(text), max(1, sizes[i%len(sizes)]))
		c.pieces = append(c.pieces, text[:n])
		text = text[n:]
	}
	return c
}

func TestOnlyTheTopLevelIDIsReplaced(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`{"id":1,"x":["\"id\":2",{"id":[]}],"\\":"\\\\"},`, 200)
	cases := map[string]struct{ text, want string }{
		"number":          {`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":NEW,"result":{}}`},
		"text":            {`{"id":"a\"b","result":{}}`, `{"id":NEW,"result":{}}`},
		"at the end":      {`{"result":{},"id":"a\\"}`, `{"result":{},"id":NEW}`},
		"white space":     {" {\n\"id\" \t:\r\n 7 , \"a\":1 } \n", " {\n\"id\" \t:\r\n NEW , \"a\":1 } \n"},
		"escaped key":     {`{"\u0069\u0064":null}`, `{"\u0069\u0064":NEW}`},
		"escapes before":  {`{"\n":1,"\\":2,"\"id":3,"id":4}`, `{"\n":1,"\\":2,"\"id":3,"id":NEW}`},
		"hex in capitals": {`{"\u0069d":1,"\u006A":2}`, `{"\u0069d":NEW,"\u006A":2}`},
		"twice":           {`{"id":1,"a":2,"id":3}`, `{"id":NEW,"a":2,"id":NEW}`},
		"odd values":      {`{"id":{"id":[1,"}"]},"id":[{}],"id":true,"id":-1.5e+3}`, `{"id":NEW,"id":NEW,"id":NEW,"id":NEW}`},
		"nested":          {`{"a":{"id":1},"b":[{"id":2}],"c":"id","id":3}`, `{"a":{"id":1},"b":[{"id":2}],"c":"id","id":NEW}`},
		"other keys": {
			`{"i":1,"idd":2,"ID":3,"":4,"\u0069":5,"id\u0000":6,"\nid":7,"i\u0064 ":8,"di":9}`,
			`{"i":1,"idd":2,"ID":3,"":4,"\u0069":5,"id\u0000":6,"\nid":7,"i\u0064 ":8,"di":9}`,
		},
		"id as a text":        {`{"a":"id","b":["id",1]}`, `{"a":"id","b":["id",1]}`},
		"none":                {`{}`, `{}`},
		"long before":         {`{"result":[` + long + `0],"id":1}`, `{"result":[` + long + `0],"id":NEW}`},
		"long after":          {`{"id":1,"result":[` + long + `0]}`, `{"id":NEW,"result":[` + long + `0]}`},
		"text after it":       {`{"id":1}{"id":2}`, `{"id":NEW}{"id":2}`},
		"an array":            {`[{"id":1}]`, `[{"id":1}]`},
		"a text":              {`"id"`, `"id"`},
		"a long id, replaced": {`{"id":"` + strings.Repeat(`\\"`[:2], 3000) + `"}`, `{"id":NEW}`},
	}
	for _, id := range []string{"5", `"` + strings.Repeat("long ", 400) + `"`} {
		for name, tc := range cases {
			want := strings.ReplaceAll(tc.want, "NEW", id)
			for how, r := range map[string]io.Reader{
				"at once":        strings.NewReader(tc.text),
				"byte by byte":   iotest.OneByteReader(strings.NewReader(tc.text)),
				"with the error": iotest.DataErrReader(strings.NewReader(tc.text)),
				"in pieces":      inPieces([]byte(tc.text), 3, 5, 1, 100),
			} {
				r = ReplaceID(r, json.RawMessage(id))
				if how == "in pieces" {
					r = iotest.HalfReader(r)
				}
				if got, err := io.ReadAll(r); string(got) != want || err != nil {
					t.Errorf("%s, %s: error %v, got %.200q, want %.200q", name, how, err, got, want)
				}
			}
		}
	}
}

func TestAMessageThatBreaksOffIsToldApart(t *testing.T) {
	t.Parallel()
	const text = `{"jsonrpc":"2.0","id":"a","result":{"x":["}"]}}`
	for n := range len(text) {
		got, err := io.ReadAll(ReplaceID(strings.NewReader(text[:n]), json.RawMessage("1")))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q passes as whole (%v)", text[:n], err)
		}
		whole := strings.Replace(text, `"a"`, "1", 1)
		if !strings.HasPrefix(whole, string(got)) || n > 30 && len(got) != n-2 {
			t.Errorf("of %q came %q", text[:n], got)
		}
	}
	broken := errors.New("broken")
	_, err := io.ReadAll(ReplaceID(io.MultiReader(strings.NewReader(text[:30]), iotest.ErrReader(broken)), json.RawMessage("1")))
	if !errors.Is(err, broken) {
		t.Errorf("the error of the input becomes %v", err)
	}
}
