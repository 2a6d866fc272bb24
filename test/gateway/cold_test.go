package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

// TestAGatewayThatStartsBeforeItsServerHoldsCallsOfItsTools: a client that knows the tools, of another replica say, is not told that they
// are gone.
func TestAGatewayThatStartsBeforeItsServerHoldsCallsOfItsTools(t *testing.T) {
	server := &restartable{address: launch.FreeAddress(t), handler: both}
	g := launch.Serve(t, binary, []table.Backend{
		{Name: "down", Prefix: "d_", URL: "http://127.0.0.1:1"}, {Name: "up", Prefix: "u_", URL: "http://" + server.address},
	}, "--hold", "50s") // longer than a busy machine takes to start the server
	var answers sync.WaitGroup
	begun := make(chan struct{}, 10)
	for range 10 {
		answers.Go(func() {
			body, headers := modernCall("u_who", `{}`)
			begun <- struct{}{}
			if r, answer := post(t, g.URL, body, headers...); !strings.Contains(answer, `"server"`) {
				t.Errorf("%s: %s", r.Status, answer)
			}
		})
	}
	for range 10 {
		<-begun
	}
	server.start(t)
	answers.Wait()
}

func TestAServerThatIsDownWhenItsGatewayStartsIsUnavailableAndItsToolsAreNotUnknown(t *testing.T) {
	server := &restartable{address: launch.FreeAddress(t), handler: both}
	server.start(t)
	g := launch.Serve(t, binary, []table.Backend{
		{Name: "down", Prefix: "d_", URL: "http://127.0.0.1:1"}, {Name: "up", Prefix: "u_", URL: "http://" + server.address},
	}, "--hold", "1s")
	body, headers := modernCall("d_who", `{}`)
	asked := time.Now()
	r, answer := post(t, g.URL, body, headers...)
	const want = `"backend \"down\": it refuses connections; the request was not sent, it is safe to try again","data":{"class":"Connect","sent":false}`
	if took := time.Since(asked); r.StatusCode != http.StatusOK || !strings.Contains(answer, want) || took < time.Second {
		t.Errorf("after %s: %s: %s", took, r.Status, answer)
	}
	launch.Await(t, func() error {
		return lacks(string(g.Log(t)), `"tool":"d_who","backend":"down","outcome":"unavailable"`)
	})
	body, headers = modernCall("x_who", `{}`)
	if r, answer := post(t, g.URL, body, headers...); !strings.Contains(answer, "unknown tool") {
		t.Errorf("a name that nobody can have: %s: %s", r.Status, answer)
	}
}

// TestAServerThatMovesEndsItsCallsAtItsOldPlace: nothing was withdrawn.
func TestAServerThatMovesEndsItsCallsAtItsOldPlace(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	at := func(place string) (url string) {
		s := small(place, "who")
		addTool(s, "wait", func(context.Context, *mcp.CallToolRequest, none) (string, error) {
			begun <- struct{}{}
			<-finish
			return place, nil
		})
		return serve(t, both(s))
	}
	other := table.Backend{Name: "other", Prefix: "o_", URL: serve(t, both(small("other", "who")))}
	with := func(url string) []table.Backend {
		return []table.Backend{{Name: "server", Prefix: "s_", URL: url}, other}
	}
	g := launch.Serve(t, binary, with(at("old")))
	clients := []*client{connect(t, g.URL, legacy), connect(t, g.URL, modern)}
	var answers sync.WaitGroup
	for _, c := range clients {
		answers.Go(func() {
			if text, err := c.try(inTime(t), "s_wait", nil); err != nil || text != "old" {
				t.Errorf("the call that was under way: %q, %v", text, err)
			}
		})
		<-begun
	}
	launch.WriteTable(t, g.Table, with(at("new"))...)
	for _, c := range clients {
		launch.Await(t, func() error {
			text, err := c.try(inTime(t), "s_who", nil)
			if err != nil {
				t.Errorf("while it moves: %v", err)
			}
			return lacks(text, "new")
		})
	}
	close(finish)
	answers.Wait()
}

// lacks is an error unless the text has a part.
func lacks(text, part string) error {
	if !strings.Contains(text, part) {
		return fmt.Errorf("%q is not in %q", part, text)
	}
	return nil
}
