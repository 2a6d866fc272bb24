package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// readLists reads every list the server offers. Only tools/list can fail the
// probe: it is what a server is for.
func (p *prober) readLists(ctx context.Context) error {
	c := p.result.Capabilities
	if c.Tools {
		if err := p.readTools(ctx); err != nil {
			return err
		}
	}
	p.result.PromptCount = p.countList(ctx, c.Prompts, "prompts/list", "prompts")
	p.result.ResourceCount = p.countList(ctx, c.Resources, "resources/list", "resources")
	p.result.ResourceTemplateCount = p.countList(ctx, c.Resources, "resources/templates/list", "resourceTemplates")
	return nil
}

// countList returns the length of a list, nil if it is not offered or could not
// be read.
func (p *prober) countList(ctx context.Context, offered bool, method, key string) *int32 {
	if !offered || ctx.Err() != nil || p.transport.progress().exhausted {
		if offered {
			p.result.Unread = append(p.result.Unread, method)
		}
		return nil
	}
	var n int32
	err := p.eachEntry(ctx, method, key, func(json.RawMessage) error {
		n++
		return nil
	})
	if err != nil {
		p.result.Unread = append(p.result.Unread, method)
		return nil
	}
	return &n
}

// eachEntry calls visit for every entry of a list, page after page.
func (p *prober) eachEntry(ctx context.Context, method, key string, visit func(json.RawMessage) error) error {
	seen := map[[sha256.Size]byte]bool{}
	cursor := ""
	entries := 0
	for page := 1; ; page++ {
		if page > p.limits.Pages {
			return failure(TooLarge, nil, "The server's %s has more than %d pages.", method, p.limits.Pages)
		}
		result, err := p.listPage(ctx, method, cursor)
		if err != nil {
			return err
		}
		f, err := wire.Pick(result, key, "nextCursor")
		if err != nil || !wire.IsArray(f[0]) {
			return p.listFailure(method, fmt.Sprintf("its result has no list of %s.", key))
		}
		for entry := range wire.Elements(f[0]) {
			if entries++; entries > p.limits.Entries {
				return failure(TooLarge, nil, "The server's %s has more than %d entries.", method, p.limits.Entries)
			}
			if ctx.Err() != nil {
				return p.timeFailure(ctx, method)
			}
			if err := visit(entry); err != nil {
				return err
			}
		}
		if cursor = wire.Text(f[1], maxCursorBytes+utf8.UTFMax); cursor == "" {
			return nil
		}
		if len(cursor) > maxCursorBytes {
			return failure(TooLarge, nil, "The server's %s has a cursor larger than %d bytes.", method, maxCursorBytes)
		}
		sum := sha256.Sum256([]byte(cursor))
		if seen[sum] {
			return p.listFailure(method, "it gave the same cursor twice, so its pages never end.")
		}
		seen[sum] = true
	}
}

// maxCursorBytes bounds the cursors that are sent back.
const maxCursorBytes = 8 << 10

// listPage returns one page of a list.
func (p *prober) listPage(ctx context.Context, method, cursor string) (json.RawMessage, error) {
	params := map[string]any{}
	if cursor != "" {
		params["cursor"] = cursor
	}
	r, err := p.call(ctx, method, p.result.ProtocolVersion, params)
	if err != nil {
		return nil, err
	}
	err = p.judge(method, r)
	_, asked := errors.AsType[*authRequiredError](err)
	switch {
	case asked, oneOf(err, Timeout, TooLarge, ConnectionFailed, Unauthorized), p.lenient && oneOf(err, Forbidden):
		return nil, err
	case oneOf(err, NotMCP, ProtocolError):
		return nil, &Error{Reason: ToolsListFailed, Message: err.Error()}
	case r.status == http.StatusNotFound && p.session != "":
		return nil, failure(ToolsListFailed, nil, "%s", p.lostSession(method))
	case r.hasRPC && childFailure(method, r.message.err) != nil:
		return nil, childFailure(method, r.message.err)
	case r.hasRPC && r.message.err != nil:
		return nil, p.listFailure(method, r.message.err.describe())
	case err != nil:
		return nil, p.listFailure(method, fmt.Sprintf("HTTP %d.", r.status))
	}
	return r.message.result, nil
}

// listFailure says that a list failed after a handshake that did not.
func (p *prober) listFailure(method, why string) *Error {
	return failure(ToolsListFailed, nil, "The MCP handshake succeeded, but %s failed: %s", method, why)
}

func (p *prober) lostSession(step string) string {
	return fmt.Sprintf("The server no longer knew the session it had just handed out when %s was sent (HTTP 404). "+
		"If it has several replicas, set spec.sessions to Stateful.", step)
}

// listedTool is a tool with a valid name.
type listedTool struct {
	name   string
	digest [sha256.Size]byte
}

// readTools fills the result with the tools.
func (p *prober) readTools(ctx context.Context) error {
	var tools []listedTool
	var count int32
	names := map[string]bool{}
	digests := NewDigester(p.limits.DigestBytes)
	err := p.eachEntry(ctx, "tools/list", "tools", func(entry json.RawMessage) error {
		tool, usable, err := readTool(digests, entry)
		switch {
		case err != nil:
			return failure(TooLarge, nil, "The server's tool definitions are too large, or nested too deep, to be compared.")
		case !usable || names[tool.name]:
			p.result.DroppedTools++
			return nil
		}
		count++
		names[tool.name] = true
		tools = append(tools, tool)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(tools, func(a, b listedTool) int { return cmp.Compare(a.name, b.name) })
	kept := tools[:min(len(tools), p.limits.Tools)]
	p.result.ToolCount = &count
	p.result.ToolsTruncated = len(kept) < len(tools)
	p.result.ToolsDigest = digestOf(tools)
	p.result.Tools = make([]Tool, len(kept))
	for i, tool := range kept {
		p.result.Tools[i] = Tool{Name: tool.name, Digest: digestText(tool.digest)}
	}
	return nil
}

// readTool returns false for a tool that no client can use. The only error is
// wire.ErrBudget.
func readTool(digests *Digester, entry json.RawMessage) (listedTool, bool, error) {
	name := wire.Text(wire.Field(entry, "name"), maxToolNameBytes+utf8.UTFMax)
	if !ValidToolName(name) {
		return listedTool{}, false, nil
	}
	digest, err := digests.tool(entry)
	if errors.Is(err, wire.ErrDuplicateKey) {
		return listedTool{}, false, nil
	}
	return listedTool{name: name, digest: digest}, true, err
}

const maxToolNameBytes = 128

// ValidToolName reports whether the specification allows name for a tool: 1-128
// characters of A-Z a-z 0-9 _ - .
func ValidToolName(name string) bool {
	if name == "" || len(name) > maxToolNameBytes {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}
