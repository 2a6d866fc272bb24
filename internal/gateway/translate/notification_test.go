package translate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func TestLogMessagesAreLetThroughFromTheLevelAskedFor(t *testing.T) {
	t.Parallel()
	for i, level := range levels {
		for j, least := range levels {
			if got := LevelAtLeast(level, least); got != (i >= j) {
				t.Errorf("%s where %s is asked for: %v", level, least, got)
			}
		}
		if LevelAtLeast(level, "") || LevelAtLeast(level, "loud") {
			t.Errorf("%s is let through though no level is asked for", level)
		}
	}
	if !LevelAtLeast("chatty", "debug") || LevelAtLeast("chatty", "info") {
		t.Error("an unknown level is not the least severe")
	}
	if KnownLevel("chatty") || !KnownLevel("notice") {
		t.Error("levels are not those of RFC 5424")
	}
}

func TestWhichNotificationsACallerGets(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		message        string
		legacy, modern bool
	}{
		"progress":              {`"notifications/progress","params":{"progressToken":1,"progress":1}`, true, true},
		"log message":           {`"notifications/message","params":{"level":"error","data":1}`, true, true},
		"log message too quiet": {`"notifications/message","params":{"level":"info","data":1}`, false, false},
		"list of tools changed": {`"notifications/tools/list_changed"`, true, false},
		"resource updated":      {`"notifications/resources/updated","params":{"uri":"a:b"}`, true, false},
		"elicitation complete":  {`"notifications/elicitation/complete","params":{}`, true, false},
		"acknowledgement":       {`"notifications/subscriptions/acknowledged","params":{}`, false, false},
		"unknown":               {`"notifications/acme"`, true, false},
	} {
		m := parse(t, `{"jsonrpc":"2.0","method":`+tc.message+`}`)
		if got := ForCaller(m, backend.Legacy, "warning"); got != tc.legacy {
			t.Errorf("%s, legacy caller: %v", name, got)
		}
		if got := ForCaller(m, backend.Modern, "warning"); got != tc.modern {
			t.Errorf("%s, modern caller: %v", name, got)
		}
	}
}

func listen(params string) string {
	return `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":` + params + `}`
}

func TestASubscriptionIsReadAndWrittenAlike(t *testing.T) {
	t.Parallel()
	in := listen(`{"notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourcesListChanged":true,
		"resourceSubscriptions":["a:b","file:///\u00e4"],"acme":true}}`)
	f, err := ParseFilter(parse(t, in))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Filter{Tools: true, Resources: true, URIs: []string{"a:b", "file:///ä"}}, f); diff != "" {
		t.Errorf("filter (-want +got):\n%s", diff)
	}
	client := backend.Client{Info: json.RawMessage(`{"name":"n"}`)}
	wantJSON(t, "request to a backend", f.Listen(json.RawMessage(`"s"`), client, wire.Version20260728).Raw,
		`{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourcesListChanged":true,
		"resourceSubscriptions":["a:b","file:///ä"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"n"}}}}`)
	wantJSON(t, "acknowledgement", f.Acknowledge(json.RawMessage(`5`)).Raw,
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,
		"resourcesListChanged":true,"resourceSubscriptions":["a:b","file:///ä"]},"_meta":{"io.modelcontextprotocol/subscriptionId":5}}}`)
	wantJSON(t, "end", EndSubscription(json.RawMessage(`5`)).Raw,
		`{"jsonrpc":"2.0","id":5,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":5}}}`)
	wantJSON(t, "acknowledgement of nothing", Filter{}.Acknowledge(json.RawMessage(`5`)).Raw,
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},
		"_meta":{"io.modelcontextprotocol/subscriptionId":5}}}`)
}

func TestASubscriptionThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	many := strings.TrimSuffix(strings.Repeat(`"a:b",`, maxURIs+1), ",")
	for name, params := range map[string]string{
		"missing":        `{}`,
		"null":           `{"notifications":null}`,
		"list":           `{"notifications":[]}`,
		"number":         `{"notifications":{"resourceSubscriptions":[1]}}`,
		"empty URI":      `{"notifications":{"resourceSubscriptions":[""]}}`,
		"long URI":       `{"notifications":{"resourceSubscriptions":["` + strings.Repeat("x", maxURIBytes+1) + `"]}}`,
		"too many of it": `{"notifications":{"resourceSubscriptions":[` + many + `]}}`,
	} {
		if f, err := ParseFilter(parse(t, listen(params))); err == nil {
			t.Errorf("%s: accepted as %+v", name, f)
		}
	}
}

func TestAServerAgreesToWhatItOffers(t *testing.T) {
	t.Parallel()
	all := Filter{Tools: true, Prompts: true, Resources: true, URIs: []string{"a:b"}}
	for capabilities, want := range map[string]Filter{
		`{}`:                             {},
		`{"tools":{},"resources":{}}`:    {},
		`{"tools":{"listChanged":true}}`: {Tools: true},
		`{"prompts":{"listChanged":true},"resources":{"subscribe":true}}`:   {Prompts: true, URIs: []string{"a:b"}},
		`{"resources":{"listChanged":true,"subscribe":false},"tools":null}`: {Resources: true},
	} {
		got := all.Within(json.RawMessage(capabilities))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", capabilities, diff)
		}
		if got.Empty() != cmp.Equal(want, Filter{}) {
			t.Errorf("%s: empty is %v", capabilities, got.Empty())
		}
	}
}

func TestASubscriptionPassesWhatItNames(t *testing.T) {
	t.Parallel()
	messages := []string{
		`"notifications/tools/list_changed"`,
		`"notifications/prompts/list_changed"`,
		`"notifications/resources/list_changed"`,
		`"notifications/resources/updated","params":{"uri":"a:b"}`,
		`"notifications/resources/updated","params":{"uri":"a:c"}`,
		`"notifications/message","params":{"level":"error"}`,
	}
	for passes, f := range []Filter{{Tools: true}, {Prompts: true}, {Resources: true}, {URIs: []string{"a:b"}}, {}} {
		for i, m := range messages {
			want := i == passes && !f.Empty()
			if got := f.Passes(parse(t, `{"jsonrpc":"2.0","method":`+m+`}`)); got != want {
				t.Errorf("%+v, %s: %v", f, m, got)
			}
		}
	}
}

func TestAnUpdateConcernsWhoSubscribedToItsResourceOrToOneThatHoldsIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		subscribed, updated string
		want                bool
	}{
		"the same":                 {"file:///d/x", "file:///d/x", true},
		"below a folder":           {"file:///d/", "file:///d/x", true},
		"below one without slash":  {"file:///d", "file:///d/x", true},
		"a part of it":             {"file:///d", "file:///d#part", true},
		"one that begins the same": {"file:///d", "file:///dx", false},
		"the one that holds it":    {"file:///d/x", "file:///d/", false},
		"another":                  {"file:///d/x", "file:///e/x", false},
	} {
		updated := parse(t, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"`+tc.updated+`"}}`)
		f := Filter{URIs: []string{"other:", tc.subscribed}}
		if got := f.Passes(updated); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestANotificationOfASubscriptionBearsItsID(t *testing.T) {
	t.Parallel()
	const legacy = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b","title":"\u0041"}}`
	m := ToSubscription(parse(t, legacy), json.RawMessage(`"s"`))
	wantJSON(t, "with id", m.Raw, `{"jsonrpc":"2.0","method":"notifications/resources/updated",
		"params":{"uri":"a:b","title":"A","_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}`)
	wantJSON(t, "and back", FromSubscription(m).Raw, `{"jsonrpc":"2.0","method":"notifications/resources/updated",
		"params":{"uri":"a:b","title":"A","_meta":{}}}`)
	bare := ToSubscription(parse(t, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`), json.RawMessage(`5`))
	wantJSON(t, "without params", bare.Raw,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":5}}}`)
}
