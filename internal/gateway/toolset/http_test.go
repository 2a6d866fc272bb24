package toolset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/mcp"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

var plainDialer net.Dialer

// echo answers with what it was asked.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, "%s %s\n%s\n%s\n%s", r.Method, r.RequestURI, r.Header.Get("X-Note"), r.Header.Get("Content-Type"), body)
}

func TestArgumentsGoWhereTheyBelong(t *testing.T) {
	constant := func(s string) json.RawMessage { return json.RawMessage(s) }
	cases := map[string]struct {
		tool            table.HTTPTool
		arguments, want string
	}{
		"a path": {
			table.HTTPTool{Method: "GET", Path: "/users/{id}/posts"},
			`{"id":"a b/c?d#e%ü@:"}`,
			"GET /v1/users/a%20b%2Fc%3Fd%23e%25%C3%BC%40%3A/posts\n\n\n",
		},
		"a list in a path": {table.HTTPTool{Method: "GET", Path: "/{ids}"}, `{"ids":[1,"b,c",true]}`, "GET /v1/1,b%2Cc,true\n\n\n"},
		"no path at all":   {table.HTTPTool{Method: "GET"}, `{}`, "GET /v1\n\n\n"},
		"a query": {
			table.HTTPTool{Method: "GET", Path: "/s", Query: []table.Param{{Name: "q", Argument: "text"}, {Name: "key&", Value: constant(`"a=b"`)}}},
			`{"text":"x&admin=1 #ü"}`, "GET /v1/s?q=x%26admin%3D1%20%23%C3%BC&key%26=a%3Db\n\n\n",
		},
		"an argument that is not given": {
			table.HTTPTool{Method: "GET", Path: "/s", Query: []table.Param{{Name: "a"}, {Name: "b"}}}, `{"a":null}`, "GET /v1/s\n\n\n",
		},
		"lists in a query": {
			table.HTTPTool{Method: "GET", Path: "/s", Query: []table.Param{
				{Name: "r"},
				{Name: "c", Argument: "r", Style: table.StyleComma},
				{Name: "s", Argument: "r", Style: table.StyleSpace},
				{Name: "p", Argument: "r", Style: table.StylePipe},
				{Name: "j", Argument: "r", Style: table.StyleJSON},
			}},
			`{"r":["1","x,y"]}`, "GET /v1/s?r=1&r=x%2Cy&c=1,x%2Cy&s=1%20x%2Cy&p=1%7Cx%2Cy&j=%5B%221%22%2C%22x%2Cy%22%5D\n\n\n",
		},
		"an object in a query": {
			table.HTTPTool{Method: "GET", Path: "/s", Query: []table.Param{{Name: "f", Style: table.StyleDeep}}},
			`{"f":{"a":1,"b]&c":["x","y"]}}`, "GET /v1/s?f%5Ba%5D=1&f%5Bb%5D%26c%5D=x&f%5Bb%5D%26c%5D=y\n\n\n",
		},
		"a header": {
			table.HTTPTool{Method: "GET", Header: []table.Param{{Name: "X-Note", Argument: "n"}}}, `{"n":["a","ü b"]}`, "GET /v1\na,ü b\n\n",
		},
		"a body of all that has no other place": {
			table.HTTPTool{Method: "POST", Path: "/u/{id}", Query: []table.Param{{Name: "q"}}, Body: &table.Body{}},
			`{"id":1,"z":{"a":[1.50]},"q":"x","b":"\u00fc"}`, "POST /v1/u/1?q=x\n\napplication/json\n" + `{"b":"\u00fc","z":{"a":[1.50]}}`,
		},
		"a body of one argument": {
			table.HTTPTool{Method: "PUT", Body: &table.Body{Argument: "doc"}}, `{"doc":[1,2]}`, "PUT /v1\n\napplication/json\n[1,2]",
		},
		"a body of named members and a constant": {
			table.HTTPTool{Method: "PATCH", Body: &table.Body{Members: []table.Param{
				{Name: "user", Argument: "u"}, {Name: "fixed", Value: constant(`{"a":1}`)}, {Name: "absent"},
			}}},
			`{"u":"x","v":"unused"}`, "PATCH /v1\n\napplication/json\n" + `{"user":"x","fixed":{"a":1}}`,
		},
		"a form": {
			table.HTTPTool{Method: "POST", Body: &table.Body{Type: table.BodyForm}},
			`{"a":"x&y=z","l":[1,2]}`,
			"POST /v1\n\napplication/x-www-form-urlencoded\na=x%26y%3Dz&l=1&l=2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := openAPI(t, echo, tc.tool)
			if diff := cmp.Diff(tc.want, call(t, b, "do", tc.arguments).text()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestArgumentsThatCouldLeaveTheirPlaceAreRefused(t *testing.T) {
	tool := table.HTTPTool{Method: "GET", Path: "/u/{id}", Header: []table.Param{{Name: "X-Note", Argument: "n"}}, Query: []table.Param{{Name: "q"}}}
	cases := map[string]struct{ arguments, want string }{
		"dots":                       {`{"id":".."}`, "must not have '.' or '..'"},
		"one dot":                    {`{"id":"."}`, "must not have '.' or '..'"},
		"dots before a slash":        {`{"id":"../admin"}`, "must not have '.' or '..'"},
		"dots after one":             {`{"id":"a/../../admin"}`, "must not have '.' or '..'"},
		"backslashes":                {`{"id":"..\\admin"}`, "must not have '.' or '..'"},
		"encoded dots":               {`{"id":"%2e%2E"}`, "must not have '.' or '..'"},
		"dots encoded twice":         {`{"id":"%252e."}`, "must not have '.' or '..'"},
		"dots encoded without end":   {`{"id":"%25252525252525252e"}`, "must not have '.' or '..'"},
		"an encoded slash":           {`{"id":"..%2fadmin"}`, "must not have '.' or '..'"},
		"a path parameter":           {`{"id":"..;x=1/admin"}`, "must not have '.' or '..'"},
		"nothing":                    {`{"id":""}`, "must not be empty"},
		"no argument":                {`{}`, "must be given"},
		"a line feed in the path":    {`{"id":"a\r\nHost: evil"}`, "no control characters"},
		"NUL in the path":            {`{"id":"a\u0000"}`, "no control characters"},
		"an object in the path":      {`{"id":{"a":1}}`, "must be a string"},
		"a line feed in the header":  {`{"id":1,"n":"a\r\nX-Evil: 1"}`, "no control characters"},
		"a space at a header's end":  {`{"id":1,"n":"a "}`, "no space at its ends"},
		"an object in the query":     {`{"id":1,"q":{"a":1}}`, "must be a string"},
		"a list in a list":           {`{"id":1,"q":[[1]]}`, "must be a string"},
		"a URL that is far too long": {`{"id":"` + strings.Repeat("x", 40_000) + `"}`, "more than 32768 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := openAPI(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was sent", r.RequestURI) }, tool)
			if got := call(t, b, "do", tc.arguments); !got.IsError || !strings.Contains(got.text(), tc.want) {
				t.Errorf("got %+v, want an error with %q", got, tc.want)
			}
		})
	}
}

func TestInvalidArgumentsAreNotSent(t *testing.T) {
	b := openAPI(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }, table.HTTPTool{
		Method: "GET", Definition: json.RawMessage(`{"name":"do","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9}},
			"required":["n"],"additionalProperties":false}}`),
	})
	got := call(t, b, "do", `{"n":10,"m":1}`)
	want := "the arguments do not fit the tool's inputSchema, and nothing was sent: m: is not known; known are n; n: must be at most 9"
	if diff := cmp.Diff(want, got.text()); diff != "" || !got.IsError {
		t.Errorf("error %t, -want +got:\n%s", got.IsError, diff)
	}
}

func TestTheCredentialIsSent(t *testing.T) {
	var got http.Header
	b := openAPI(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header }, table.HTTPTool{Method: "GET"})
	call(t, b, "do", `{}`)
	if got.Get("Authorization") != "Bearer "+canary || got.Get("Accept-Encoding") != "" || got.Get("Cookie") != "" {
		t.Errorf("sent %v", got)
	}
}

func TestAnAddressThatIsNotAllowedIsNotDialled(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "169.254.169.254", "10.0.0.1", "[fd00::1]"} {
		for _, allowPrivate := range []bool{false, true} {
			if allowPrivate && (host == "10.0.0.1" || host == "[fd00::1]") {
				continue
			}
			b := open(t, table.Backend{
				URL: "http://" + host + ":" + port, AllowPrivate: allowPrivate, TimeoutSeconds: 5,
				Toolset: &table.Toolset{HTTP: []table.HTTPTool{{Method: "GET", Definition: json.RawMessage(`{"name":"do","inputSchema":{"type":"object"}}`)}}},
			}, Options{Dial: newDial(mcp.GuardFor(allowPrivate), nil)})
			_, err := ask(t, b, "tools/call", `{"name":"do"}`)
			failure, ok := errors.AsType[*backend.Error](err)
			if !ok || failure.Class != classDenied || failure.Sent || !errors.Is(err, mcp.ErrAddressDenied) {
				t.Errorf("%s: %v", host, err)
			}
		}
	}
}

func TestOnlyTheHostOfTheTableIsDialled(t *testing.T) {
	_, err := only("api.example.com:443", plainDialer.DialContext)(testContext(t), "tcp", "evil.example:443")
	if !errors.Is(err, mcp.ErrAddressDenied) {
		t.Errorf("got %v", err)
	}
}

func TestAFailureOfTheWayHasItsClass(t *testing.T) {
	hang := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(hang) })
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(cut.Close)
	secure := httptest.NewTLSServer(http.HandlerFunc(echo))
	t.Cleanup(secure.Close)
	const gone = "http://127.0.0.1:1" // of a server that was closed another may have the port
	for url, want := range map[string]struct {
		class string
		sent  bool
	}{
		slow.URL: {classTimeout, true}, cut.URL: {classServerError, true}, secure.URL: {classTLS, false}, gone: {classConnect, false},
		"http://does-not-exist.invalid": {classDNS, false},
	} {
		seconds := 20 // for what is not to be timed out, on the slowest machine
		if want.class == classTimeout {
			seconds = 1
		}
		b := open(t, table.Backend{
			URL: url, TimeoutSeconds: seconds,
			Toolset: &table.Toolset{HTTP: []table.HTTPTool{{
				Method: "POST", Query: []table.Param{{Name: "q"}}, Definition: json.RawMessage(`{"name":"do","inputSchema":{"type":"object"}}`),
			}}},
		}, Options{})
		_, err := ask(t, b, "tools/call", `{"name":"do","arguments":{"q":"private"}}`)
		failure, ok := errors.AsType[*backend.Error](err)
		if !ok || failure.Class != want.class || failure.Sent != want.sent || strings.Contains(err.Error(), "private") {
			t.Errorf("%s: %v, want %+v", url, err, want)
		}
	}
}

func TestToolsMayComeFromFiles(t *testing.T) {
	content := []byte(`{"http":[{"definition":{"name":"second","inputSchema":{"type":"object"}},"method":"GET","path":"/two"},
		{"definition":{"name":"odd","inputSchema":{"type":"object","$ref":"https://evil.example/schema"}},"method":"GET"}]}`)
	sum := sha256.Sum256(content)
	file := filepath.Join(t.TempDir(), "tools.json")
	server := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(server.Close)
	b := open(t, table.Backend{URL: server.URL, Toolset: &table.Toolset{
		HTTP:  []table.HTTPTool{{Method: "GET", Definition: json.RawMessage(`{"name":"first","inputSchema":{"type":"object"}}`)}},
		Files: []table.ToolFile{{File: file, SHA256: hex.EncodeToString(sum[:])}},
	}}, Options{})
	for name, wrong := range map[string][]byte{"not there": nil, "another one": []byte(`{"http":[]}`)} {
		if wrong != nil {
			write(t, file, wrong)
		}
		_, err := b.Describe(testContext(t))
		if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classDefinition || b.Check() == nil {
			t.Errorf("%s: described with %v", name, err)
		}
	}
	write(t, file, content)
	m, err := ask(t, b, "tools/list", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(m.Result, &list); err != nil || len(list.Tools) != 2 || list.Tools[0].Name != "first" || list.Tools[1].Name != "second" {
		t.Errorf("listed %s", m.Result)
	}
	if err := b.Check(); err == nil || !strings.Contains(err.Error(), "odd (GET ): its inputSchema") {
		t.Errorf("the tool that is not offered is told as %v", err)
	}
	if got := call(t, b, "second", `{}`).text(); !strings.HasPrefix(got, "GET /two\n") {
		t.Errorf("answered %q", got)
	}
}

func TestTheHeaderOfAResponseIsBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Words", strings.Repeat("word", 2<<10))
	}))
	t.Cleanup(server.Close)
	config := table.Backend{URL: server.URL, Toolset: &table.Toolset{
		HTTP: []table.HTTPTool{{Method: "GET", Definition: json.RawMessage(`{"name":"do","inputSchema":{"type":"object"}}`)}},
	}}
	if got := call(t, open(t, config, Options{}), "do", `{}`); got.IsError {
		t.Errorf("within the default: %s", got.text())
	}
	_, err := ask(t, open(t, config, Options{HeaderBytes: 4 << 10}), "tools/call", `{"name":"do"}`)
	if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classServerError {
		t.Errorf("over the limit: %v", err)
	}
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNotOfferedIsRefused(t *testing.T) {
	b := openAPI(t, echo, table.HTTPTool{Method: "GET"})
	for method, want := range map[string]string{
		`prompts/list {}`: "-32601", `tools/call {"name":"other"}`: "-32602",
		`tools/list {"cursor":"x"}`: "-32602",
	} {
		method, params, _ := strings.Cut(method, " ")
		m, err := ask(t, b, method, params)
		if err != nil || !strings.Contains(string(m.Error), want) {
			t.Errorf("%s %s: %v %s", method, params, err, m.Raw)
		}
	}
	if _, _, err := b.Open(testContext(t), backend.Client{}); !errors.Is(err, backend.ErrEra) {
		t.Errorf("a session: %v", err)
	}
	channel, err := b.Modern(testContext(t))
	if err != nil || channel.Era() != backend.Modern {
		t.Fatal(err)
	}
	if err := channel.Listen(testContext(t), nil, nil); !errors.Is(err, backend.ErrNoStream) {
		t.Errorf("listening: %v", err)
	}
}

// notThere is a credential whose file is not there (yet).
type notThere struct{}

func (notThere) Apply(http.Header) error { return fs.ErrNotExist }

func (notThere) Redactor() *credential.Redactor { return nil }

func TestWithoutItsCredentialAToolsetFailsBeforeAnythingIsCalled(t *testing.T) {
	b := open(t, table.Backend{
		URL:     "https://192.0.2.1/v1",
		Toolset: &table.Toolset{HTTP: []table.HTTPTool{{Definition: json.RawMessage(`{"name":"do","inputSchema":{"type":"object"}}`), Method: "GET"}}},
	}, Options{Credential: notThere{}})
	for _, method := range []string{"tools/list", "tools/call"} {
		_, err := ask(t, b, method, `{"name":"do"}`)
		if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classCredential || failure.Sent {
			t.Errorf("%s: %v", method, err)
		}
	}
}
