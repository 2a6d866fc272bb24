package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// small is a server with these tools, each of which answers with the server's name.
func small(name string, tools ...string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	for _, tool := range tools {
		addTool(s, tool, answering(name))
	}
	return s
}

// blackHole is an address that takes connections and never answers.
func blackHole(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

func TestADeadBackendCostsItsOwnToolsAlone(t *testing.T) {
	g := launch.Serve(t, binary, []table.Backend{
		{Name: "legacy", Prefix: "legacy_", URL: serve(t, streamable(nil)(small("legacy", "who")))},
		{Name: "hole", Prefix: "hole_", URL: blackHole(t)},
		{Name: "modern", Prefix: "modern_", URL: serve(t, modernOnly(small("modern", "who")))},
		{Name: "dead", Prefix: "dead_", URL: "http://127.0.0.1:1"}, // which nobody is ever given
	}, "--listing-timeout", "3s")
	for _, name := range []string{"legacy", "modern"} { // what it knows it lists, whoever is slow then
		launch.Await(t, func() error {
			body, headers := modernCall(name+"_who", `{}`)
			r, answer := post(t, g.URL, body, headers...)
			if !strings.Contains(answer, `"`+name+`"`) || strings.Contains(answer, `"error"`) {
				return fmt.Errorf("%s: %s", r.Status, answer)
			}
			return nil
		})
	}
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			c := connect(t, g.URL, version)
			begun := time.Now()
			r, err := c.ListTools(inTime(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took > 30*time.Second { // the hole would take for ever
				t.Errorf("the list took %s", took)
			}
			var names []string
			for _, tool := range r.Tools {
				names = append(names, tool.Name)
			}
			slices.Sort(names)
			if diff := cmp.Diff([]string{"legacy_who", "modern_who"}, names); diff != "" {
				t.Errorf("tools -want +got:\n%s", diff)
			}
			if diff := cmp.Diff([]any{"hole", "dead"}, r.Meta["mcp.operator/degraded"]); diff != "" {
				t.Errorf("degraded -want +got:\n%s", diff)
			}
			for _, name := range []string{"legacy", "modern"} {
				if got := c.call(t, name+"_who", nil); got != name {
					t.Errorf("%s_who is answered by %s", name, got)
				}
			}
		})
	}
}

func TestNamesAreExact(t *testing.T) {
	// One prefix begins like the other, two servers offer one name, and one tool is renamed.
	g := launch.Serve(t, binary, []table.Backend{
		{Name: "web", Prefix: "web_", URL: serve(t, both(small("web", "scraper_run", "fetch")))},
		{Name: "scraper", Prefix: "web_scraper_", URL: serve(t, both(small("scraper", "run", "stop"))), Tools: table.ToolPolicy{
			Rename: map[string]string{"stop": "halt"},
		}},
	})
	c := connect(t, g.URL, modern)
	names := c.tools(t)
	slices.Sort(names)
	if diff := cmp.Diff([]string{"halt", "web_fetch"}, names); diff != "" {
		t.Errorf("the name that both offer belongs to neither; -want +got:\n%s", diff)
	}
	if got := c.call(t, "halt", nil); got != "scraper" {
		t.Errorf("halt is answered by %s", got)
	}
	for _, hidden := range []string{"web_scraper_run", "run", "stop", "web_scraper_stop", "fetch"} {
		if _, err := c.try(inTime(t), hidden, nil); err == nil {
			t.Errorf("%s could be called", hidden)
		}
	}
}

func TestResourcesAndPromptsAreServedLikeTools(t *testing.T) {
	g := launch.Serve(t, binary, []table.Backend{
		{Name: "a", Prefix: "a_", URL: serve(t, streamable(nil)(newServer("a")))},
		{Name: "b", Prefix: "b_", URL: serve(t, modernOnly(small("b", "who")))},
	})
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			c := connect(t, g.URL, version)
			ctx := inTime(t)
			content, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://item/9"})
			if err != nil || content.Contents[0].Text != "content of test://item/9" {
				t.Errorf("read: %v, %v", content, err)
			}
			prompt, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "a_hello"})
			if err != nil || len(prompt.Messages) != 1 {
				t.Errorf("prompt: %v, %v", prompt, err)
			}
		})
	}
}

func TestLiveClientsLearnOfAnotherTable(t *testing.T) {
	first := table.Backend{Name: "first", Prefix: "old_", URL: serve(t, both(small("first", "who")))}
	second := table.Backend{Name: "second", Prefix: "second_", URL: serve(t, streamable(nil)(small("second", "who")))}
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			g := launch.Serve(t, binary, []table.Backend{first})
			c := connect(t, g.URL, version)
			if diff := cmp.Diff([]string{"old_who"}, c.tools(t)); diff != "" {
				t.Fatalf("tools -want +got:\n%s", diff)
			}
			learn := func(want string, names ...string) {
				t.Helper()
				for tools := []string(nil); !t.Failed() && !slices.Equal(tools, names); slices.Sort(tools) {
					c.hears(t, "tools changed") // without that nobody would look
					tools = c.tools(t)
				}
				if t.Failed() {
					t.Fatalf("while %s", want)
				}
			}
			launch.WriteTable(t, g.Table, first, second) // renames nothing
			learn("a backend is added", "old_who", "second_who")
			renamed := first
			renamed.Prefix = "new_"
			launch.WriteTable(t, g.Table, renamed, second)
			learn("a backend is renamed", "new_who", "second_who")
			if _, err := c.try(inTime(t), "old_who", nil); err == nil {
				t.Error("the old name can still be called")
			}
			if got := c.call(t, "new_who", nil); got != "first" {
				t.Errorf("got %q", got)
			}
			without := second
			without.Tools.Deny = []string{"who"}
			launch.WriteTable(t, g.Table, renamed, without)
			learn("a tool is taken away", "new_who")
			launch.WriteTable(t, g.Table, second)
			learn("a backend is taken away", "second_who")
		})
	}
}

func TestAToolThatIsTakenAwayIsTakenFromRunningCallsToo(t *testing.T) {
	server := table.Backend{Name: "server", URL: serve(t, streamable(nil)(newServer("server")))}
	g := launch.Serve(t, binary, []table.Backend{server})
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			launch.WriteTable(t, g.Table, server)
			c := connect(t, g.URL, version)
			params := &mcp.CallToolParams{Name: "slow"}
			params.SetProgressToken("slow")
			ended := make(chan error, 1)
			launch.Await(t, func() error { // the table before may still be in use
				if _, err := c.try(inTime(t), "echo", map[string]any{"text": "x"}); err != nil {
					return err
				}
				if !slices.Contains(c.tools(t), "slow") {
					return errors.New("the tool is not back yet")
				}
				return nil
			})
			go func() {
				_, err := c.CallTool(inTime(t), params)
				ended <- err
			}()
			c.hears(t, "progress")
			without := server
			without.Tools.Deny = []string{"slow"}
			begun := time.Now()
			launch.WriteTable(t, g.Table, without)
			select {
			case err := <-ended:
				if err == nil {
					t.Error("the call succeeded")
				}
				t.Logf("the call was ended after %s", time.Since(begun))
			case <-time.After(30 * time.Second): // by itself it would end later
				t.Error("the call goes on")
			}
		})
	}
}

func TestAServerThatRefusesAStreamIsNotAskedOnAndOn(t *testing.T) {
	refused := make(chan struct{}, 1000)
	server := streamable(nil)(small("server", "who"))
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			refused <- struct{}{}
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		server.ServeHTTP(w, r)
	}))}})
	c := connect(t, g.URL, legacy)
	for range 50 {
		c.call(t, "who", nil)
	}
	if n := len(refused); n > 5 {
		t.Errorf("the stream was asked for %d times", n)
	}
	select {
	case told := <-c.told:
		t.Errorf("the client was told of %q, and nothing changed", told)
	default:
	}
}
