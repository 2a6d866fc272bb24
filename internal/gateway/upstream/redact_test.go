package upstream

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// token is a credential whose every kind of character some encoder of JSON escapes.
const token = `s3cret+t/ken"=<&>-of-the-gateway`

// withToken gives a backend the token, from a file.
func withToken(t *testing.T) func(*table.Backend, *Options) {
	t.Helper()
	path := t.TempDir() + "/token"
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := credential.New(&table.Credential{Type: table.CredentialBearer, ValueFile: path})
	if err != nil {
		t.Fatal(err)
	}
	return func(_ *table.Backend, o *Options) { o.Credential = source }
}

// echoing is what a server says of the headers it was sent, in an object and that once more in a text.
func echoing(r *http.Request) string {
	inner, err := json.Marshal(map[string]string{"auth": r.Header.Get("Authorization")})
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(string(inner))
	if err != nil {
		return err.Error()
	}
	return string(inner[:len(inner)-1]) + `,"text":` + string(text) + "}"
}

const (
	echoed     = `{"auth":"Bearer [redacted]","text":"{\"auth\":\"Bearer [redacted]\"}"}`
	aBitMore   = 200 << 10
	fillerText = "so they say "
)

// TestWhatAServerTellsOfItsRequestIsWithoutTheCredential has servers that repeat the headers they were sent, in every way to answer.
func TestWhatAServerTellsOfItsRequestIsWithoutTheCredential(t *testing.T) {
	long := strings.Repeat(fillerText, aBitMore/len(fillerText))
	for name, tc := range map[string]struct {
		serve    func(echo string) http.HandlerFunc
		response string
		message  string
	}{
		"a result": {
			serve:    func(echo string) http.HandlerFunc { return asJSON(`{"jsonrpc":"2.0","id":1,"result":` + echo + `}`) },
			response: `{"jsonrpc":"2.0","id":1,"result":` + echoed + `}`,
		},
		"a long result": {
			serve: func(echo string) http.HandlerFunc {
				return asJSON(`{"jsonrpc":"2.0","id":1,"result":{"a":` + echo + `,"b":"` + long + `","c":` + echo + `}}`)
			},
			response: `{"jsonrpc":"2.0","id":1,"result":{"a":` + echoed + `,"b":"` + long + `","c":` + echoed + `}}`,
		},
		"an error": {
			serve: func(echo string) http.HandlerFunc {
				return asStatus(http.StatusBadRequest, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no","data":`+echo+`}}`)
			},
			response: `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no","data":` + echoed + `}}`,
		},
		"a stream": {
			serve: func(echo string) http.HandlerFunc {
				return asStream(event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":`+echo+`}}`),
					event(`{"jsonrpc":"2.0","id":1,"result":`+echo+`}`))
			},
			message:  `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":` + echoed + `}}`,
			response: `{"jsonrpc":"2.0","id":1,"result":` + echoed + `}`,
		},
		"a long stream": {
			serve: func(echo string) http.HandlerFunc {
				return asStream(event(`{"jsonrpc":"2.0","id":1,"result":{"a":` + echo + `,"b":"` + strings.Repeat(long, 10) + `","c":` + echo + `}}`))
			},
			response: `{"jsonrpc":"2.0","id":1,"result":{"a":` + echoed + `,"b":"` + strings.Repeat(long, 10) + `","c":` + echoed + `}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+token {
					t.Errorf("the server was sent %q", r.Header)
				}
				tc.serve(echoing(r))(w, r)
			})).URL, withToken(t))
			for way, channel := range ways(b) {
				var got sink
				if err := channel.Call(testContext(t), toolCall(`1`, "echo", "", channel.Era()), &got); err != nil {
					t.Fatalf("%s: %v", way, err)
				}
				if diff := cmp.Diff(tc.response, got.response); diff != "" {
					t.Errorf("%s, -want +got:\n%.2000s", way, diff)
				}
				if diff := cmp.Diff(tc.message, strings.Join(got.messages, "")); diff != "" {
					t.Errorf("%s: messages, -want +got:\n%.2000s", way, diff)
				}
			}
		})
	}
}

// The ids of the gateway and of its callers are no place for a secret, and a response finds its caller whatever they are.
func TestAResponseWithACredentialFindsItsCaller(t *testing.T) {
	source := credential.NewRedactor("Bearer 4321-abcd")
	b := open(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		m, parsed := wire.Parse(body, wire.Limits{})
		if err != nil || parsed != nil {
			t.Errorf("%v, %v", err, parsed)
			return
		}
		asJSON(fmt.Sprintf(`{"id":%s,"jsonrpc":"2.0","result":{"text":"4321-abcd"}}`, m.ID))(w, r)
	})).URL, func(_ *table.Backend, o *Options) { o.Credential = hides{source} })
	var got sink
	if err := b.modern().Call(testContext(t), toolCall(`"a 4321-abcd"`, "echo", "", backend.Modern), &got); err != nil {
		t.Fatal(err)
	}
	if want := `{"jsonrpc":"2.0","id":"a 4321-abcd","result":{"text":"[redacted]"}}`; got.response != want {
		t.Errorf("got %s, want %s", got.response, want)
	}
}

// hides is a credential that sends nothing.
type hides struct{ secrets *credential.Redactor }

func (hides) Apply(http.Header) error { return nil }

func (h hides) Redactor() *credential.Redactor { return h.secrets }

func TestStreamsOutsideOfCallsAreWithoutTheCredential(t *testing.T) {
	s := newScript()
	s.onGet = func(w http.ResponseWriter, r *http.Request) {
		asStream(event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":`+echoing(r)+`}}`))(w, r)
	}
	b := open(t, serve(t, s).URL, withToken(t))
	channel, _ := openSession(t, b)
	var got sink
	if err := channel.Listen(testContext(t), nil, &got); err != nil {
		t.Fatal(err)
	}
	want := []string{`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":` + echoed + `}}`}
	if diff := cmp.Diff(want, got.messages); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatComesOverHTTPAndSSEIsWithoutTheCredential(t *testing.T) {
	echo := echoing(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}})
	p := newPiped()
	honest := p.on
	p.on = func(m *wire.Message) string {
		if m.Method != "tools/call" {
			return honest(m)
		}
		return event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":`+echo+`}}`) +
			event(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+echo+`}`)
	}
	b := open(t, serve(t, p).URL+"/sse", withToken(t))
	channel, _ := openSession(t, b)
	var got sink
	if err := channel.Call(testContext(t), toolCall(`"x"`, "echo", "", backend.Legacy), &got); err != nil {
		t.Fatal(err)
	}
	if want := `{"jsonrpc":"2.0","id":"x","result":` + echoed + `}`; got.response != want {
		t.Errorf("got %s, want %s", got.response, want)
	}
	want := []string{`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":` + echoed + `}}`}
	if diff := cmp.Diff(want, got.messages); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatAServerSaysOfItselfIsWithoutTheCredential(t *testing.T) {
	s := newScript()
	s.on = func(w http.ResponseWriter, r *http.Request, m *wire.Message) bool {
		if m.Method != "initialize" {
			return false
		}
		result := `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"},"instructions":` +
			string(wire.Quote(r.Header.Get("Authorization"))) + `}`
		asJSON(string(wire.NewResult(m.ID, []byte(result)).Raw))(w, r)
		return true
	}
	d, err := open(t, serve(t, s).URL, withToken(t)).Describe(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := wire.String(wire.Field(d.Initialize, "instructions")); got != "Bearer [redacted]" {
		t.Errorf("its instructions are %q", got)
	}
}
