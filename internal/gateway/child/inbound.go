package child

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// read takes what the child says, line by line, to the end of its stdout.
func (p *process) read() {
	defer close(p.reading)
	why := p.readAll()
	p.busy.Store(false)
	if !p.reaped(drainTime) {
		p.kill(cmp.Or(why, errClosedStdout))
	}
}

var errClosedStdout = errors.New("it closed its stdout")

// readAll takes what the child says until it says no more. The error is a reason to end the child.
func (p *process) readAll() (why error) {
	defer p.options.Panics.Catch(p.options.Name, &why)
	lines := newLineReader(p.stdout, p.options.LineLimit)
	for {
		line, long, err := lines.next()
		if err != nil {
			return nil
		}
		p.busy.Store(true)
		p.heard()
		switch {
		case long != nil:
			p.broken(long, errTooLong)
		case len(line) > 0:
			p.receive(line)
		}
		p.busy.Store(false)
	}
}

func (p *process) receive(line []byte) {
	m, err := wire.Parse(line, p.options.limits())
	switch {
	case err != nil:
		var h head
		h.write(line)
		if !p.fail(&h, errNotMCP) {
			p.counts.noisy(p.pid, line)
		}
	case m.Kind == wire.Response:
		if c := p.take(m.ID); c != nil {
			c.q.finish(m, p.ledger)
		}
	case m.Kind == wire.Notification && m.Method == methodProgress:
		p.progress(m)
	case m.Kind == wire.Request && m.Method == "ping":
		p.out.post(wire.NewResult(m.ID, nil))
	default:
		p.owner.take(p, m)
	}
}

// take returns the call that a response is for, and forgets it. A late response to a call that was given up is for nobody.
func (p *process) take(id json.RawMessage) *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return nil
	}
	c := p.calls[n]
	delete(p.calls, n)
	if c != nil {
		p.releaseLogs(c, true)
	}
	return c
}

// progress hands a notification to the call whose progress token it bears.
func (p *process) progress(m *wire.Message) {
	n, err := strconv.ParseInt(string(m.Param(progressToken)), 10, 64)
	if err != nil {
		return
	}
	p.mu.Lock()
	c := p.calls[n]
	p.mu.Unlock()
	if c != nil && c.token != nil {
		c.q.push(m.With(wire.SetParam(progressToken, c.token)), p.owner.patience())
	}
}

// fail ends the call that a broken response is for. It reports whether there was one.
func (p *process) fail(h *head, why error) bool {
	if h.method != nil || h.id == nil {
		return false
	}
	c := p.take(h.id)
	if c == nil {
		return false
	}
	c.q.fail(why)
	return true
}

// broken handles a line that was too long to be held. If nobody can be told, whoever waits for it would wait for ever, so the process
// is ended.
func (p *process) broken(h *head, why error) {
	switch {
	case h.method != nil && json.Valid(h.id):
		p.out.post(wire.NewError(h.id, wire.CodeInvalidRequest, "the request is longer than the limit for one line", nil))
	case h.method != nil:
		p.counts.noisy(p.pid, []byte("(a notification longer than the limit for one line)"))
	case h.id == nil:
		p.kill(errors.New("it wrote a line longer than the limit, without an id"))
	default:
		p.fail(h, why)
	}
}

// refuse answers a request of the child's that no client may be asked.
func (p *process) refuse(m *wire.Message) {
	p.out.post(wire.NewError(m.ID, wire.CodeMethodNotFound, "the client has no such capability", nil))
}

// newest returns the newest call in flight whose caller is there, one of a method that runs for long if there is one.
func (p *process) newest() *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *call
	for _, c := range p.calls {
		if c.ours || !c.q.isOpen() {
			continue
		}
		if best == nil || c.runs() && !best.runs() || c.runs() == best.runs() && c.id > best.id {
			best = c
		}
	}
	return best
}

// runs reports whether the method is one that servers do work for.
func (c *call) runs() bool {
	switch c.message.Method {
	case "tools/call", "prompts/get", "resources/read", "completion/complete":
		return true
	}
	return false
}
