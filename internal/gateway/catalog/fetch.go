package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Catalog is everything one backend offers. It is not changed once it was made.
type Catalog struct {
	// Entries are the valid entries of each kind, in the server's order, every name once.
	Entries [kinds][]Entry
	// Invalid are those that were dropped.
	Invalid [kinds][]Invalid
	// Unread are the methods that failed; their lists are those of Options.Last, or empty. tools/list is never among them:
	// without it there is no catalog.
	Unread []string
	// Truncated are the methods whose lists go on after the last entry that is taken.
	Truncated []string
	// Digest is "sha256:" and the hexadecimal SHA-256 over all entries, whatever their order.
	Digest string
}

// Equal says whether two catalogs have the same entries in the same order, and the same is wrong with them. A nil one equals none.
func (c *Catalog) Equal(other *Catalog) bool {
	if c == nil || other == nil || !slices.Equal(c.Unread, other.Unread) || !slices.Equal(c.Truncated, other.Truncated) {
		return false
	}
	for k := range c.Entries {
		isSame := func(a, b Entry) bool { return a.sum == b.sum }
		if !slices.EqualFunc(c.Entries[k], other.Entries[k], isSame) || !slices.Equal(c.Invalid[k], other.Invalid[k]) {
			return false
		}
	}
	return true
}

// Beyond is what may have changed when a backend tells of a change and its catalog is as before: lists of which it has only the beginning.
func (c *Catalog) Beyond() (all Changes) {
	for _, method := range c.Truncated {
		k, _ := KindOf(method)
		all = all.And(Changes{Tools: k == Tools, Prompts: k == Prompts, Resources: k == Resources || k == Templates})
	}
	return all
}

// Options say how a catalog is fetched.
type Options struct {
	// Backend is its name in the table, for errors.
	Backend string
	// Capabilities are the backend's; a list that they do not offer is not asked for.
	Capabilities json.RawMessage
	// Client is what requests of protocol version 2026-07-28 say of the gateway.
	Client backend.Client
	// Last is the catalog that was fetched before, or nil.
	Last *Catalog
	// Time bounds the whole of it. Default 15 s.
	Time time.Duration
	// Tools is how many tools are taken. Default 512.
	Tools int
	// Bytes bounds all responses together. Default 16 MiB.
	Bytes int64
}

const (
	defaultTime  = 15 * time.Second
	defaultBytes = 16 << 20
	// maxPages bounds the pages of one list, maxCursorBytes the cursors that are sent back.
	maxPages       = 100
	maxCursorBytes = 8 << 10
	// pageDepth bounds how deep a page is nested. It is above entryDepth, so that one entry that is too deep is dropped alone.
	pageDepth = 1000
)

// Fetch reads all lists of a backend, page after page. Its error is a *backend.Error, or [backend.ErrSession] in which case the
// channel is of no use any more.
func Fetch(ctx context.Context, ch backend.Channel, o Options) (*Catalog, error) {
	f := fetcher{channel: ch, options: o, left: o.Bytes, catalog: &Catalog{}}
	if f.left == 0 {
		f.left = defaultBytes
	}
	if o.Time == 0 {
		o.Time = defaultTime
	}
	limited, cancel := context.WithTimeout(ctx, o.Time)
	defer cancel()
	c := f.catalog
	for k := range Kind(kinds) {
		if !wire.IsObject(wire.Field(o.Capabilities, lists[k].capability)) {
			continue
		}
		err := f.list(limited, k)
		if err == nil {
			continue
		}
		if k == Tools || errors.Is(err, backend.ErrSession) || errors.Is(ctx.Err(), context.Canceled) {
			return nil, err
		}
		c.Unread = append(c.Unread, lists[k].method)
		c.Entries[k], c.Invalid[k] = nil, nil
		if o.Last != nil {
			c.Entries[k], c.Invalid[k] = o.Last.Entries[k], o.Last.Invalid[k]
		}
	}
	c.Digest = c.digest()
	return c, nil
}

type fetcher struct {
	channel backend.Channel
	options Options
	catalog *Catalog
	left    int64 // bytes that may still be read
	sent    int   // requests, for their ids
}

// most is how many entries of a kind are taken.
func (f *fetcher) most(k Kind) int {
	if k == Tools && f.options.Tools != 0 {
		return f.options.Tools
	}
	return lists[k].most
}

// list reads one list to its end.
func (f *fetcher) list(ctx context.Context, k Kind) error {
	add := newCollector(k)
	defer func() {
		add.sum()
		add.pack()
		f.catalog.Entries[k], f.catalog.Invalid[k] = add.entries, add.invalid
	}()
	seen := map[[sha256.Size]byte]bool{}
	cursor := json.RawMessage(nil)
	for range maxPages {
		page, err := f.page(ctx, k, cursor)
		if page == nil || err != nil {
			return err
		}
		array := wire.Field(page, lists[k].member)
		if !wire.IsArray(array) {
			return f.failure("NotMCP", "the result of %s has no %s", lists[k].method, lists[k].member)
		}
		for entry := range wire.Elements(array) {
			if len(add.entries)+len(add.invalid) == f.most(k) {
				f.catalog.Truncated = append(f.catalog.Truncated, lists[k].method)
				return nil
			}
			if ctx.Err() != nil {
				return f.asError(ctx, ctx.Err())
			}
			add.add(entry)
		}
		if cursor = wire.Field(page, "nextCursor"); cursor == nil || string(cursor) == "null" || string(cursor) == `""` {
			return nil
		}
		if _, isText := wire.String(cursor); !isText || len(cursor) > maxCursorBytes {
			return f.failure("NotMCP", "the cursor of %s is no string of at most %d bytes", lists[k].method, maxCursorBytes)
		}
		sum := sha256.Sum256(cursor)
		if seen[sum] {
			return f.failure("NotMCP", "%s gave the same cursor twice, so its pages never end", lists[k].method)
		}
		seen[sum] = true
	}
	return f.failure("TooLarge", "%s has more than %d pages", lists[k].method, maxPages)
}

func (f *fetcher) failure(class, format string, args ...any) error {
	return &backend.Error{Backend: f.options.Backend, Class: class, Sent: true, Err: fmt.Errorf(format, args...)}
}

// page asks for one page of a list and returns the result. It is nil if the server does not have the method after all, as servers
// without templates often do not; without tools/list nothing works, so there it is an error.
func (f *fetcher) page(ctx context.Context, k Kind, cursor json.RawMessage) (json.RawMessage, error) {
	f.sent++
	params := json.RawMessage(`{}`)
	if cursor != nil {
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	m := wire.NewRequest(json.RawMessage(strconv.Itoa(f.sent)), lists[k].method, params)
	if f.channel.Era() == backend.Modern {
		m = translate.ToModern(m, f.options.Client, wire.Version20260728, "")
	}
	s := &sink{ctx: ctx, channel: f.channel, limit: f.left}
	err := f.channel.Call(ctx, &backend.Call{Message: m}, s)
	f.left -= int64(len(s.body))
	switch {
	case s.tooLarge:
		return nil, f.failure("TooLarge", "%s and the lists before it are larger than allowed", lists[k].method)
	case err != nil:
		return nil, f.asError(ctx, err)
	}
	response, err := wire.CheckSyntax(s.body, wire.Limits{Bytes: max(len(s.body), 1), Depth: pageDepth})
	if err != nil {
		return nil, f.failure("NotMCP", "the response to %s: %w", lists[k].method, err)
	}
	if rpcError := wire.Field(response, "error"); rpcError != nil {
		code := string(wire.Field(rpcError, "code"))
		if k != Tools && code == strconv.Itoa(wire.CodeMethodNotFound) {
			return nil, nil
		}
		return nil, f.failure("ServerError", "%s was answered with a JSON-RPC error", lists[k].method)
	}
	result := wire.Field(response, "result")
	if result == nil {
		return nil, f.failure("NotMCP", "the response to %s has neither a result nor an error", lists[k].method)
	}
	return result, nil
}

// asError gives an error of a channel its class, if it has none yet.
func (f *fetcher) asError(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*backend.Error](err); ok || errors.Is(err, backend.ErrSession) {
		return err
	}
	if ctx.Err() != nil {
		return f.failure("Timeout", "reading its lists took too long: %w", err)
	}
	return f.failure("ServerError", "reading its lists: %w", err)
}

// sink takes one response into memory.
type sink struct {
	ctx      context.Context //nolint:containedctx // of the call the sink belongs to
	channel  backend.Channel
	limit    int64
	body     []byte
	tooLarge bool
}

// Message answers what a server may ask of any client.
func (s *sink) Message(m *wire.Message) error {
	if answer := translate.AnswerServer(m); answer != nil {
		return s.channel.Send(s.ctx, answer)
	}
	return nil
}

var errTooLarge = errors.New("the response is larger than allowed")

// Response reads the response as far as the limit.
func (s *sink) Response(r io.Reader) error {
	var err error
	s.body, err = io.ReadAll(io.LimitReader(r, s.limit+1))
	if int64(len(s.body)) > s.limit {
		s.tooLarge, s.body = true, nil
		return errTooLarge
	}
	return err
}
