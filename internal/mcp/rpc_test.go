package mcp

import (
	"errors"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func TestEnvelopes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		text    string
		wantErr error
		answers bool // the request 7
		refuses bool
	}{
		"result":                {`{"jsonrpc":"2.0","id":7,"result":{}}`, nil, true, false},
		"error":                 {`{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"m"}}`, nil, true, false},
		"error for nobody":      {`{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}`, nil, false, true},
		"error without id":      {`{"jsonrpc":"2.0","error":{"code":-1,"message":"m"}}`, nil, false, true},
		"result without id":     {`{"jsonrpc":"2.0","result":{}}`, nil, false, false},
		"id as text":            {`{"jsonrpc":"2.0","id":"7","result":{}}`, nil, false, false},
		"id as fraction":        {`{"jsonrpc":"2.0","id":7.0,"result":{}}`, nil, false, false},
		"request with our id":   {`{"jsonrpc":"2.0","id":7,"method":"ping"}`, nil, false, false},
		"notification":          {`{"jsonrpc":"2.0","method":"x"}`, nil, false, false},
		"unknown members":       {`{"jsonrpc":"2.0","id":7,"result":{},"_x":1,"_x":2}`, nil, true, false},
		"other version":         {`{"jsonrpc":"1.0","id":7,"result":{}}`, errNotRPC, false, false},
		"no version":            {`{"id":7,"result":{}}`, errNotRPC, false, false},
		"version as number":     {`{"jsonrpc":2.0,"id":7,"result":{}}`, errNotRPC, false, false},
		"nothing in it":         {`{"jsonrpc":"2.0","id":7}`, errNotRPC, false, false},
		"result and error":      {`{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":""}}`, errNotRPC, false, false},
		"result and method":     {`{"jsonrpc":"2.0","id":7,"result":{},"method":"x"}`, errNotRPC, false, false},
		"result and odd method": {`{"jsonrpc":"2.0","id":7,"result":{},"method":null}`, errNotRPC, false, false},
		"error without code":    {`{"jsonrpc":"2.0","id":7,"error":{"message":"m"}}`, errNotRPC, false, false},
		"error without message": {`{"jsonrpc":"2.0","id":7,"error":{"code":1}}`, errNotRPC, false, false},
		"error as text":         {`{"jsonrpc":"2.0","id":7,"error":"m"}`, errNotRPC, false, false},
		"key in capitals":       {`{"jsonrpc":"2.0","id":7,"result":{},"Method":"x"}`, errNotRPC, false, false},
		"escaped, in capitals":  {`{"jsonrpc":"2.0","id":7,"result":{},"\u004dethod":"x"}`, errNotRPC, false, false},
		"Kelvin sign":           {`{"jsonrpc":"2.0","id":7,"re\u017fult":{}}`, errNotRPC, false, false},
		"id twice":              {`{"jsonrpc":"2.0","id":8,"result":{},"\u0069d":7}`, wire.ErrDuplicateKey, false, false},
		"error code twice":      {`{"jsonrpc":"2.0","id":7,"error":{"code":1,"code":2,"message":"m"}}`, wire.ErrDuplicateKey, false, false},
		"batch":                 {`[{"jsonrpc":"2.0","id":7,"result":{}}]`, errNotRPC, false, false},
	}
	for name, tc := range cases {
		m, err := parseMessage([]byte(tc.text), DefaultLimits())
		if !errors.Is(err, tc.wantErr) || (err == nil) != (tc.wantErr == nil) {
			t.Errorf("%s: error %v, want %v", name, err, tc.wantErr)
			continue
		}
		if err != nil {
			continue
		}
		if m.answers(7) != tc.answers || m.refuses() != tc.refuses {
			t.Errorf("%s: answers %v, refuses %v", name, m.answers(7), m.refuses())
		}
	}
}

func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}]}}`, `{"jsonrpc":"2.0","error":{"code":1,"message":"\ud800","data":{"supported":["x"]}}}`,
		`{"\u0069d":[],"Method":"x"}`, `[]`, `{"a":1,}`, "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseMessage(data, DefaultLimits())
		if err == nil && m.err != nil && (len(m.err.message) > maxRPCMessageBytes || len(m.err.supported()) > maxVersions) {
			t.Fatalf("more of %q is kept than allowed", data)
		}
	})
}
