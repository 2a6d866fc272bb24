package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func names(entries []Entry) []string {
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

func TestAllPagesOfAllListsAreRead(t *testing.T) {
	t.Parallel()
	ch := answers(map[string]string{
		"tools/list":               `{"tools":[` + tool("a", "") + `],"nextCursor":"p\u0032"}`,
		"tools/list p2":            `{"tools":[],"nextCursor":"p3"}`,
		"tools/list p3":            `{"tools":[` + tool("b", `,"vendor": 1.0`) + `],"nextCursor":null}`,
		"prompts/list":             `{"prompts":[{"name":"Ask me","arguments":[]}],"nextCursor":""}`,
		"resources/list":           `{"resources":[{"uri":"test://one","name":"One"}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"test://{id}","name":"Any"}]}`,
	})
	c, err := Fetch(t.Context(), ch, Options{Capabilities: json.RawMessage(everyList)})
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range [kinds][]string{Tools: {"a", "b"}, Prompts: {"Ask me"}, Resources: {"test://one"}, Templates: {"test://{id}"}} {
		if diff := cmp.Diff(want, names(c.Entries[k])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", lists[k].method, diff)
		}
	}
	if got := string(c.Entries[Tools][1].Raw); got != tool("b", `,"vendor": 1.0`) {
		t.Errorf("a definition was changed: %s", got)
	}
	if len(c.Unread)+len(c.Truncated) > 0 {
		t.Errorf("unread %v, truncated %v", c.Unread, c.Truncated)
	}
}

func TestAListThatIsNotOfferedIsNotAskedFor(t *testing.T) {
	t.Parallel()
	for capabilities, want := range map[string][]string{
		`{}`:                            {},
		`{"tools":null}`:                {},
		`{"tools":{},"logging":{}}`:     {"tools/list"},
		`{"prompts":{},"resources":{}}`: {"prompts/list", "resources/list", "resources/templates/list"},
	} {
		ch := answers(map[string]string{"tools/list": toolList()})
		if _, err := Fetch(t.Context(), ch, Options{Capabilities: json.RawMessage(capabilities)}); err != nil {
			t.Errorf("%s: %v", capabilities, err)
		}
		asked := []string{}
		for _, m := range ch.asked {
			asked = append(asked, m.Method)
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("%s (-want +got):\n%s", capabilities, diff)
		}
	}
}

func TestAModernBackendIsAskedInItsOwnWay(t *testing.T) {
	t.Parallel()
	ch := answers(map[string]string{"tools/list": toolList("a")})
	ch.era = backend.Modern
	client := backend.Client{Info: json.RawMessage(`{"name":"mcp-gateway","version":"1"}`)}
	if _, err := Fetch(t.Context(), ch, Options{Capabilities: json.RawMessage(`{"tools":{}}`), Client: client}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		wire.MetaProtocolVersion:    `"2026-07-28"`,
		wire.MetaClientCapabilities: `{}`,
		wire.MetaClientInfo:         `{"name":"mcp-gateway","version":"1"}`,
	} {
		if got := string(ch.asked[0].MetaField(key)); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
}

func TestWhatAServerAsksMeanwhileIsAnswered(t *testing.T) {
	t.Parallel()
	ch := answers(map[string]string{"tools/list": toolList("a")})
	ch.before = `{"jsonrpc":"2.0","id":"p","method":"ping"}`
	if _, err := Fetch(t.Context(), ch, Options{Capabilities: json.RawMessage(`{"tools":{}}`)}); err != nil {
		t.Fatal(err)
	}
	if len(ch.sent) != 1 || string(ch.sent[0].Raw) != `{"jsonrpc":"2.0","id":"p","result":{}}` {
		t.Errorf("sent %v", ch.sent)
	}
}

func TestAToolListThatCannotBeReadIsNoCatalog(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer func(ctx context.Context, m *wire.Message) (string, error)
		class  string
	}{
		"the same cursor again": {func(context.Context, *wire.Message) (string, error) {
			return `{"tools":[],"nextCursor":"again"}`, nil
		}, "NotMCP"},
		"a new cursor for ever": {func(_ context.Context, m *wire.Message) (string, error) {
			return fmt.Sprintf(`{"tools":[],"nextCursor":"after %s"}`, m.ID), nil
		}, "TooLarge"},
		"a long cursor": {func(context.Context, *wire.Message) (string, error) {
			return `{"tools":[],"nextCursor":"` + strings.Repeat("x", maxCursorBytes) + `"}`, nil
		}, "NotMCP"},
		"a cursor that is none": {func(context.Context, *wire.Message) (string, error) {
			return `{"tools":[],"nextCursor":7}`, nil
		}, "NotMCP"},
		"more and more bytes": {func(_ context.Context, m *wire.Message) (string, error) {
			if len(m.ID) > 1 {
				return "", errors.New("asked for ten pages of 4 KiB, though 32 KiB is all it may read")
			}
			return fmt.Sprintf(`{"tools":[],"nextCursor":"%s","x":%q}`, m.ID, strings.Repeat("x", 4<<10)), nil
		}, "TooLarge"},
		"a JSON-RPC error": {func(context.Context, *wire.Message) (string, error) {
			return `!{"code":-32601,"message":"secret"}`, nil
		}, "ServerError"},
		"no list":         {func(context.Context, *wire.Message) (string, error) { return `{"tools":{}}`, nil }, "NotMCP"},
		"no result":       {func(context.Context, *wire.Message) (string, error) { return `1},{`, nil }, "NotMCP"},
		"no JSON":         {func(context.Context, *wire.Message) (string, error) { return `{"tools":[`, nil }, "NotMCP"},
		"bottomless JSON": {func(context.Context, *wire.Message) (string, error) { return strings.Repeat("[", 2000), nil }, "NotMCP"},
		"an error of the channel": {func(context.Context, *wire.Message) (string, error) {
			return "", &backend.Error{Backend: "b", Class: "DNS", Err: errors.New("no such host")}
		}, "DNS"},
		"another error": {func(context.Context, *wire.Message) (string, error) { return "", errors.New("broken") }, "ServerError"},
	} {
		ch := &script{answer: tc.answer}
		_, err := Fetch(t.Context(), ch, Options{Backend: "b", Capabilities: json.RawMessage(everyList), Bytes: 32 << 10})
		got, ok := errors.AsType[*backend.Error](err)
		if !ok || got.Class != tc.class || got.Backend != "b" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want class %s", name, err, tc.class)
		}
		if len(ch.asked) > maxPages {
			t.Errorf("%s: %d pages were read", name, len(ch.asked))
		}
	}
}

func TestALostSessionIsTold(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"tools/list", "resources/list"} {
		ch := &script{answer: func(_ context.Context, m *wire.Message) (string, error) {
			if m.Method == method {
				return "", backend.ErrSession
			}
			return `{"tools":[],"prompts":[],"resources":[]}`, nil
		}}
		if _, err := Fetch(t.Context(), ch, Options{Capabilities: json.RawMessage(everyList)}); !errors.Is(err, backend.ErrSession) {
			t.Errorf("lost at %s: %v", method, err)
		}
	}
}

func TestTooManyEntriesAreCutAndReadingStops(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ most, want, wantPages int }{"by default": {0, 512, 6}, "a limit": {250, 250, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := 0
			ch := &script{answer: func(context.Context, *wire.Message) (string, error) {
				page++
				tools := make([]string, 100)
				for i := range tools {
					tools[i] = tool(fmt.Sprintf("t%d_%d", page, i), "")
				}
				tools[0] = `{"name":"in valid"}`
				return fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, strings.Join(tools, ","), page), nil
			}}
			c, err := Fetch(t.Context(), ch, Options{Capabilities: json.RawMessage(`{"tools":{}}`), Tools: tc.most})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(c.Entries[Tools]) + len(c.Invalid[Tools]); got != tc.want || page != tc.wantPages {
				t.Errorf("%d entries of %d pages, want %d of %d", got, page, tc.want, tc.wantPages)
			}
			if diff := cmp.Diff([]string{"tools/list"}, c.Truncated); diff != "" {
				t.Errorf("truncated (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABrokenListCostsThatListOnly(t *testing.T) {
	t.Parallel()
	results := map[string]string{
		"tools/list":     toolList("a"),
		"prompts/list":   `{"prompts":[{"name":"p"}]}`,
		"resources/list": `{"resources":[{"uri":"a:b"}]}`,
	}
	o := Options{Capabilities: json.RawMessage(everyList)}
	last, err := Fetch(t.Context(), answers(results), o)
	if err != nil {
		t.Fatal(err)
	}
	results["prompts/list"] = `!{"code":-32603,"message":"m"}`
	results["resources/list"] = `{"resources":[{"uri":"a:c"}]}`
	without, err := Fetch(t.Context(), answers(results), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Last = last
	with, err := Fetch(t.Context(), answers(results), o)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		got  *Catalog
		want []string
	}{"never read": {without, []string{}}, "read before": {with, []string{"p"}}} {
		if diff := cmp.Diff(tc.want, names(tc.got.Entries[Prompts])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]string{"prompts/list"}, tc.got.Unread); diff != "" {
			t.Errorf("%s, unread (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]string{"a:c"}, names(tc.got.Entries[Resources])); diff != "" {
			t.Errorf("%s, resources (-want +got):\n%s", name, diff)
		}
	}
}

func TestASilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silentAt := "tools/list"
		ch := &script{answer: func(ctx context.Context, m *wire.Message) (string, error) {
			if m.Method == silentAt {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return toolList("a"), nil
		}}
		o := Options{Capabilities: json.RawMessage(everyList)}
		start := time.Now()
		_, err := Fetch(t.Context(), ch, o)
		if got, ok := errors.AsType[*backend.Error](err); !ok || got.Class != "Timeout" || time.Since(start) != defaultTime {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		silentAt = "prompts/list"
		c, err := Fetch(t.Context(), ch, o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a"}, names(c.Entries[Tools])); diff != "" || len(c.Unread) != 3 {
			t.Errorf("unread %v, tools (-want +got):\n%s", c.Unread, diff)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := Fetch(ctx, ch, o); err == nil {
			t.Error("a catalog was made for a caller who had gone")
		}
	})
}

func TestAnEndlessResponseIsCutOff(t *testing.T) {
	t.Parallel()
	s := &sink{limit: 1 << 16}
	if err := s.Response(&endless{}); !errors.Is(err, errTooLarge) || s.body != nil {
		t.Errorf("%v, %d bytes kept", err, len(s.body))
	}
}

func TestADigestDoesNotDependOnOrderOrWriting(t *testing.T) {
	t.Parallel()
	digest := func(tools string) string {
		c, err := Fetch(t.Context(), answers(map[string]string{"tools/list": tools}), Options{Capabilities: json.RawMessage(`{"tools":{}}`)})
		if err != nil {
			t.Fatal(err)
		}
		return c.Digest
	}
	first := digest(`{"tools":[` + tool("a", `,"title":"\u00e4"`) + `,` + tool("b", "") + `]}`)
	if got := digest(`{"tools":[` + tool("b", "") + `, {"title":"ä","inputSchema":{ "type":"object"},"name":"\u0061"}]}`); got != first {
		t.Error("the digest depends on how the list is written")
	}
	if got := digest(`{"tools":[` + tool("a", `,"title":"\u00e4"`) + `,` + tool("b", `,"_meta":{"a":1}`) + `]}`); got == first {
		t.Error("the digest does not cover _meta")
	}
}
