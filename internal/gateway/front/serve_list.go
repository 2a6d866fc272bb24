package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/catalog"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// list answers a list request: a lone backend's own list, filtered, or a page of the catalogs.
func (x *exchange) list(kind catalog.Kind) {
	if b := x.lone(x.state); b != nil {
		if kind == catalog.Tools && catalog.IsByAnnotations(&b.Config) {
			x.awaitCatalogs()
		}
		x.filter = x.filterOf(kind, b)
		x.send(b, x.request, nil)
		return
	}
	x.awaitCatalogs()
	if x.isSessionless() && x.allWantSessions() {
		x.rejectWithoutSession()
		return
	}
	cursor, _ := x.request.StringParam("cursor")
	pooled, ok := listings.Get().(*[]byte)
	if !ok {
		pooled = new([]byte)
	}
	defer listings.Put(pooled)
	out := append(append((*pooled)[:0], `{"jsonrpc":"2.0","id":`...), x.request.ID...)
	out, err := x.view.Load().List(append(out, `,"result":`...), kind, cursor, x.reply.era, x.hidden())
	if err != nil {
		_ = x.reply.send(wire.NewError(x.request.ID, wire.CodeInvalidParams, err.Error(), nil))
		return
	}
	*pooled = append(x.marked(out), '}')
	_ = x.reply.response(bytes.NewReader(*pooled))
}

// hidden says of which backends a list shows nothing, since they could not be called: who names no session sees none of those that want
// one. It is nil where everything is shown.
func (x *exchange) hidden() func(name string) bool {
	if !x.isSessionless() {
		return nil
	}
	wanting := map[string]bool{} // asked once: a page has many entries, and of a backend either all or none are shown
	for _, b := range x.state.Backends {
		if b.wantsSession() {
			wanting[b.Config.Name] = true
		}
	}
	if len(wanting) == 0 {
		return nil
	}
	return func(name string) bool { return wanting[name] }
}

// isSessionless says that the client is of a version that has sessions, and names none.
func (x *exchange) isSessionless() bool { return x.reply.era == backend.Legacy && x.session == nil }

// rejectWithoutSession answers who names no session and asks for what needs one.
func (x *exchange) rejectWithoutSession() {
	x.reply.reject(http.StatusBadRequest, wire.NewError(x.request.ID, wire.CodeInvalidRequest, errNoSession.Error(), nil))
}

// listings are the buffers that lists are written into: up to a page, of a megabyte or so, each time somebody asks.
var listings = sync.Pool{New: func() any { return new([]byte) }}

// filterOf is what changes a list of a lone backend; nil if nothing does.
func (f *Front) filterOf(kind catalog.Kind, b *Backend) func(json.RawMessage) (json.RawMessage, error) {
	switch kind {
	case catalog.Tools:
		return func(result json.RawMessage) (json.RawMessage, error) {
			isRouted := f.isRouted(b)
			filtered, judged, err := catalog.FilterTools(result, b.Config, isRouted)
			denied := func(tool table.ToolStatus) bool {
				return tool.Verdict == table.ToolDenied && isRouted(tool.Name, tool.Original)
			}
			if isRouted != nil && slices.ContainsFunc(judged, denied) {
				b.kickForNews() // calls go by what it said of its tools before
			}
			return filtered, err
		}
	case catalog.Prompts:
		if b.Config.Prefix != "" {
			return func(result json.RawMessage) (json.RawMessage, error) { return catalog.FilterPrompts(result, b.Config) }
		}
	case catalog.Resources, catalog.Templates: // have neither policy nor names of ours
	}
	return nil
}

// marked says in the _meta of a list, which has none yet, which backends' entries may be missing or old.
func (x *exchange) marked(result []byte) []byte {
	var degraded []string
	for _, b := range x.state.Backends {
		if s := b.Status(); s.State != table.BackendReady || slices.Contains(s.Unread, x.request.Method) {
			degraded = append(degraded, b.Config.Name)
		}
	}
	if degraded == nil {
		return result
	}
	names, err := json.Marshal(degraded)
	if err != nil {
		return result // strings always can be marshalled
	}
	result = append(result[:len(result)-1], `,"_meta":{"`+metaDegraded+`":`...)
	return append(append(result, names...), `}}`...)
}

// metaDegraded is the key in a list's _meta that names the backends which do not answer at the moment.
const metaDegraded = "mcp.operator/degraded"

// awaitCatalogs waits, for as long as a listing may take, until every backend was asked once.
func (x *exchange) awaitCatalogs() {
	ctx, cancel := context.WithTimeout(x.r.Context(), x.limits.Listing)
	defer cancel()
	for _, b := range x.state.Backends {
		select {
		case <-b.asked:
		case <-ctx.Done():
			return
		}
	}
}

// listDepth bounds how deep a list that is filtered is nested. Entries have a bound of their own below it, so that one costs itself alone.
const listDepth = 1000

// filtered is a response whose list went through the filter. One that the filter cannot judge as its reader would see it is refused.
func (x *exchange) filtered(r io.Reader) (io.Reader, error) {
	var whole collector
	if err := whole.Response(r); err != nil {
		return nil, err
	}
	result, err := resultOf(whole.Bytes())
	if err == nil && result != nil {
		result, err = x.filter(result)
	}
	switch {
	case err != nil:
		err = fmt.Errorf("the response to %s: %w", x.request.Method, err)
		return nil, &backend.Error{Backend: x.backend.Config.Name, Class: "NotMCP", Sent: true, Err: err}
	case result == nil:
		return bytes.NewReader(whole.Bytes()), nil
	}
	return bytes.NewReader(wire.NewResult(x.request.ID, result).Raw), nil
}

// resultOf is the one result of a response that any reader finds in it; nil for an error.
func resultOf(response []byte) (json.RawMessage, error) {
	checked, err := wire.CheckSyntax(response, wire.Limits{Bytes: maxCollected, Depth: listDepth})
	if err != nil {
		return nil, err
	}
	const result, failure = "result", "error"
	parts, err := wire.Pick(checked, result, failure)
	if err != nil {
		return nil, err
	}
	if wire.Misspelt(checked, result, failure) || (parts[0] == nil) == (parts[1] == nil) {
		return nil, errors.New("not exactly one of result and error")
	}
	return parts[0], nil
}
