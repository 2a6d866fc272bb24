package gateway

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

func TestEveryClientIsServedByEveryServer(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			g := launch.Serve(t, binary, []table.Backend{k.start(t, "server")})
			for _, version := range versions {
				t.Run(version, func(t *testing.T) {
					c := connect(t, g.URL, version)
					uses(t, c)
					if version == legacy || version == modern && !k.terse {
						hears(t, c)
						if version == legacy || !k.anonymous {
							logs(t, c, version)
						}
					}
					if version == legacy && (k.legacy || !k.heedless) || version == modern && !k.heedless && !k.terse {
						cancels(t, c)
					}
					if k.legacy && version == legacy {
						if got := c.call(t, "ask", nil); got != "accept" {
							t.Errorf("the server asked, and got %q", got)
						}
					}
				})
			}
		})
	}
}

// uses asks for something of everything.
func uses(t *testing.T, c *client) {
	t.Helper()
	ctx := inTime(t)
	names := c.tools(t)
	for _, want := range []string{"echo", "tool-00", "tool-14"} {
		if !slices.Contains(names, want) {
			t.Errorf("the list of tools lacks %s: %q", want, names)
		}
	}
	if got := c.call(t, "echo", map[string]any{"text": "grüße \u2028 😀"}); got != "grüße \u2028 😀" {
		t.Errorf("echo: got %q", got)
	}
	if _, err := c.try(ctx, "missing", nil); err == nil {
		t.Error("a tool that does not exist was called")
	}
	prompt, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "hello", Arguments: map[string]string{"name": "you"}})
	if err != nil || len(prompt.Messages) != 1 {
		t.Errorf("get a prompt: %v, %v", prompt, err)
	}
	prompts, err := c.ListPrompts(ctx, nil)
	if err != nil || len(prompts.Prompts) != 1 {
		t.Errorf("list prompts: %v, %v", prompts, err)
	}
	resources, err := c.ListResources(ctx, nil)
	if err != nil || len(resources.Resources) != 1 {
		t.Errorf("list resources: %v, %v", resources, err)
	}
	templates, err := c.ListResourceTemplates(ctx, nil)
	if err != nil || len(templates.ResourceTemplates) != 1 {
		t.Errorf("list templates: %v, %v", templates, err)
	}
	for _, uri := range []string{greeting, "test://item/7"} {
		content, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(content.Contents) != 1 || content.Contents[0].Text != "content of "+uri {
			t.Errorf("read %s: %v, %v", uri, content, err)
		}
	}
	completion, err := c.Complete(ctx, &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "hello"}, Argument: mcp.CompleteParamsArgument{Name: "name", Value: "r"},
	})
	if err != nil {
		t.Errorf("complete: %v", err)
	} else if diff := cmp.Diff([]string{"red", "green"}, completion.Completion.Values); diff != "" {
		t.Errorf("completions -want +got:\n%s", diff)
	}
}

// hears is told of progress, of a resource and of new tools.
func hears(t *testing.T, c *client) {
	t.Helper()
	ctx := inTime(t)
	params := &mcp.CallToolParams{Name: "progress"}
	params.SetProgressToken("a token")
	if _, err := c.CallTool(ctx, params); err != nil {
		t.Errorf("progress: %v", err)
	}
	c.hears(t, "progress")

	if err := c.Subscribe(ctx, &mcp.SubscribeParams{URI: greeting}); err != nil {
		t.Errorf("subscribe: %v", err)
	}
	// A subscription of 2026-07-28 takes effect some time after the call that makes it.
	heard := make(chan struct{})
	go func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			_, _ = c.try(ctx, "touch", nil)
			select {
			case <-heard:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	c.hears(t, "updated "+greeting)
	close(heard)

	grown := c.call(t, "grow", nil)
	c.hears(t, "tools changed")
	if names := c.tools(t); !slices.Contains(names, grown) {
		t.Errorf("the new tool %s is not listed: %q", grown, names)
	}
	if got := c.call(t, grown, nil); got != grown {
		t.Errorf("the new tool answers %q", got)
	}
}

// logs gets the log messages of a call, from the level on that it asks for.
func logs(t *testing.T, c *client, version string) {
	t.Helper()
	ctx := inTime(t)
	params := &mcp.CallToolParams{Name: "log"}
	if version == modern {
		params.Meta = mcp.Meta{"io.modelcontextprotocol/logLevel": "info"}
	} else if err := c.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}); err != nil { //nolint:staticcheck // deprecated, and in use
		t.Errorf("set the level: %v", err)
	}
	if _, err := c.CallTool(ctx, params); err != nil {
		t.Errorf("log: %v", err)
	}
	c.hears(t, "log info")
	c.hears(t, "log error")
}

// cancels gives up a call, which the server hears of.
func cancels(t *testing.T, c *client) {
	t.Helper()
	before := c.call(t, "cancelled", nil)
	ctx, cancel := context.WithCancel(t.Context())
	params := &mcp.CallToolParams{Name: "slow"}
	params.SetProgressToken("slow")
	ended := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, params)
		ended <- err
	}()
	c.hears(t, "progress")
	cancel()
	if err := <-ended; err == nil {
		t.Error("a cancelled call succeeded")
	}
	launch.Await(t, func() error {
		if now := c.call(t, "cancelled", nil); now == before {
			return context.DeadlineExceeded
		}
		return nil
	})
}
