package front

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/translate"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// A question is a request of a backend's that is passed on to the client, who answers with a POST of its own, at any replica. Sessions of one
// backend number their questions alike, and each replica may have opened another one since the client's session began. So the id
// that the client is asked under says which session asked: origin ":" the backend's raw id. The origin is the backend's name, which
// stands for the session that the client's own session id holds, or else a mark and what purposeQuestion seals.

// purposeQuestion is what the origins of questions are sealed for.
const purposeQuestion = "question"

// sealedMark begins an origin that is sealed, as no name of a backend does.
const sealedMark = "@"

// origin is a backend's session, in which the client was asked something.
type origin struct {
	Backend string         `json:"b"`
	Handle  backend.Handle `json:"h"`
}

// subject is whom origins are sealed to: an answer counts in the client's session that was asked, and in no other.
func (s *session) subject() string { return hex.EncodeToString(s.key[:]) }

// askID is the id under which the client is asked what a backend's session asks under an id of its own. At one replica it is the same each
// time, so that the client knows what is cancelled.
func (f *Front) askID(s *session, o origin, id json.RawMessage) (json.RawMessage, error) {
	from := o.Backend
	if o.Handle != s.Backends[o.Backend] {
		var err error
		if from, err = s.linkTo(o.Backend).sealed(o.Handle, func() (string, error) { return f.sealOrigin(s, o) }); err != nil {
			return nil, err
		}
	}
	return wire.Quote(from + ":" + string(id)), nil
}

func (f *Front) sealOrigin(s *session, o origin) (string, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("name the session that asks its client: %w", err)
	}
	sealed, err := f.options.Sealer.Seal(purposeQuestion, s.subject(), raw, time.Now().Add(f.limits.SessionAge))
	if err != nil {
		return "", fmt.Errorf("seal the session that asks its client: %w", err)
	}
	return sealedMark + sealed, nil
}

// sealed is the sealed origin of the link's session, which seal makes once.
func (l *link) sealed(h backend.Handle, seal func() (string, error)) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.origin != "" && l.originOf == h {
		return l.origin, nil
	}
	origin, err := seal()
	if err == nil {
		l.origin, l.originOf = origin, h
	}
	return origin, err
}

// asked reads an id of askID.
func (f *Front) asked(s *session, askID json.RawMessage) (o origin, id json.RawMessage, ok bool) {
	text, _ := wire.String(askID)
	from, raw, found := strings.Cut(text, ":")
	if id = json.RawMessage(raw); !found || !json.Valid(id) {
		return o, nil, false
	}
	sealed, isSealed := strings.CutPrefix(from, sealedMark)
	if !isSealed {
		o.Backend = from
		o.Handle, ok = s.Backends[from]
		return o, id, ok
	}
	open, err := f.options.Sealer.Open(purposeQuestion, s.subject(), sealed)
	if err != nil || json.Unmarshal(open, &o) != nil {
		return o, nil, false
	}
	return o, id, true
}

// answer answers a request of a backend's for whom there is nobody to ask. One that reads nothing holds up nobody for long.
func answer(ctx context.Context, to backend.Channel, m *wire.Message) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return to.Send(ctx, translate.AnswerServer(m))
}

// answerTime bounds how long a backend may take an answer, of the gateway's own or of a client's.
const answerTime = 10 * time.Second

// ask passes a request of the backend's on to the client. Across protocol versions, and in a session that others share, there is nobody to
// ask, which the backend was told.
func (x *exchange) ask(m *wire.Message) error {
	if x.session != nil && x.reply.stream && x.channel.Era() == backend.Legacy && m.Method != "ping" {
		return x.question(x.session, origin{x.backend.Config.Name, x.handle}, m, x.reply)
	}
	if err := answer(x.ctx, x.channel, m); err != nil {
		// What is told of sending is told of the answer, not of the request that it is about.
		return backend.Taken(x.backend.Config.Name, "ServerError", fmt.Errorf("answer a request of its: %w", err))
	}
	return nil
}

// ask passes a request of the backend's on to the client, if it is one that can be asked.
func (r *relay) ask(m *wire.Message) error {
	if r.session == nil || r.channel.Era() == backend.Modern {
		return answer(r.ctx, r.channel, m)
	}
	return r.question(r.session, origin{r.backend.Config.Name, r.handle}, m, r.reply)
}

// question asks the client of a session what a backend's asks.
func (f *Front) question(s *session, o origin, m *wire.Message, to *reply) error {
	id, err := f.askID(s, o, m.ID)
	if err != nil {
		return err
	}
	if m.Method != "ping" { // which no person answers, and every client
		s.linkTo(o.Backend).asks(time.Now())
	}
	return to.message(m.With(wire.SetID(id)))
}

// unasked has a backend's notification that it has given up a question say so of the question that the client knows.
func (f *Front) unasked(s *session, o origin, m *wire.Message) *wire.Message {
	id := m.Param("requestId")
	if m.Method != "notifications/cancelled" || s == nil || id == nil {
		return m
	}
	known, err := f.askID(s, o, id)
	if err != nil {
		return m // nor could it be asked
	}
	return m.With(wire.SetParam("requestId", known))
}

// asks notes that the client is asked something.
func (l *link) asks(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastAsked = now
}

// askedSince says whether the client was asked something at that time or later.
func (l *link) askedSince(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.lastAsked.Before(t)
}

// answered passes an answer of the client's on to the session that asked. One that cannot be delivered is accepted all the same, as servers
// accept an answer that they do not wait for (any more): clients of official SDKs take an error here for the end of their connection.
func (v *visit) answered(s *session, m *wire.Message) {
	if err := v.passAnswer(s, m); err != nil {
		v.options.Logger.Info("an answer to a server's question was not delivered", "error", err)
	}
	v.w.WriteHeader(http.StatusAccepted)
}

var (
	errNotAsked  = errors.New("no server has asked a question of this id in this session")
	errNotServed = errors.New("the server that asked is not served here any more")
)

func (v *visit) passAnswer(s *session, m *wire.Message) error {
	if s == nil {
		return errNotAsked
	}
	o, id, ok := v.asked(s, m.ID)
	if !ok {
		return errNotAsked
	}
	b := v.state.byName[o.Backend]
	if b == nil {
		return errNotServed
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), answerTime)
	defer cancel()
	return v.deliver(ctx, s, b, o.Handle, m.With(wire.SetID(id)))
}

// deliver sends an answer in a backend's session, and in no other: there it would be taken for the answer to another question.
func (v *visit) deliver(ctx context.Context, s *session, b *Backend, h backend.Handle, m *wire.Message) (err error) {
	defer v.options.Panics.Catch(b.Config.Name, &err)
	channel, handle := s.linkTo(b.Config.Name).usable(b, nil)
	if channel == nil || handle != h {
		if channel, err = b.Server.Resume(h); err != nil {
			return err
		}
	}
	return channel.Send(ctx, m)
}
