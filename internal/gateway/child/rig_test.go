package child

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// testPatience is how long a test waits for what should come at once.
const testPatience = 20 * time.Second

// rig is a backend over a scripted child.
type rig struct {
	*Backend

	t      *testing.T
	script script
	logs   *buffer
	stderr *buffer
}

// Failure says why no process can be called at present, or nil if all is well or nothing was asked for yet.
func (r *rig) Failure() error {
	r.mu.Lock()
	failure := r.failure
	r.mu.Unlock()
	if s := r.servers.Load(); s != nil {
		failure = nil
		if s.modern != nil {
			failure = s.modern.keeper.trouble()
		}
		if s.legacy != nil && s.legacy.keeper.trouble() != nil {
			failure = s.legacy.keeper.trouble()
		}
	}
	return r.failed(failure, false)
}

// trouble says why there is no process that is ready; nil if there is one.
func (k *keeper) trouble() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ready != nil {
		return nil
	}
	return cmp.Or(k.failure, errUnsent)
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newRig makes a backend whose timeouts are short enough to be waited for. The options are changed by change, if given.
func newRig(t *testing.T, s script, change func(*Options)) *rig {
	t.Helper()
	s.State = t.TempDir()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, script: s, logs: &buffer{}, stderr: &buffer{}}
	o := Options{
		Name: "scripted", Command: []string{os.Args[0]}, Env: append(os.Environ(), scriptEnv+"="+string(raw)),
		Logger: slog.New(slog.NewTextHandler(r.logs, nil)), Stderr: r.stderr,
		StopGrace: 4 * time.Second, DiscoverTimeout: 5 * time.Second, CallTimeout: testPatience,
	}
	if change != nil {
		change(&o)
	}
	if r.Backend, err = New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testPatience)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
		if n := r.Status().Running; n != 0 {
			t.Errorf("%d processes run after Close", n)
		}
		if t.Failed() {
			t.Logf("logs:\n%s\nstderr:\n%s", r.logs, r.stderr)
		}
	})
	return r
}

func (r *rig) context() context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), testPatience)
	r.t.Cleanup(cancel)
	return ctx
}

// session opens a legacy session with these client capabilities.
func (r *rig) session(capabilities string) backend.Channel {
	r.t.Helper()
	channel, handle, err := r.Open(r.context(), backend.Client{Capabilities: json.RawMessage(capabilities)})
	if err != nil {
		r.t.Fatalf("open: %v", err)
	}
	if handle.Session == "" || handle.Version == "" {
		r.t.Fatalf("handle %+v has no id or no version", handle)
	}
	return channel
}

func (r *rig) modern() backend.Channel {
	r.t.Helper()
	channel, err := r.Modern(r.context())
	if err != nil {
		r.t.Fatalf("modern: %v", err)
	}
	return channel
}

// recorder is a sink that keeps everything.
type recorder struct {
	mu       sync.Mutex
	messages []string
	response string
	each     func(m *wire.Message) error
	arrived  chan struct{}
}

func newRecorder() *recorder { return &recorder{arrived: make(chan struct{}, 10000)} }

func (r *recorder) Message(m *wire.Message) error {
	r.mu.Lock()
	r.messages = append(r.messages, string(m.Raw))
	r.mu.Unlock()
	r.arrived <- struct{}{}
	if r.each != nil {
		return r.each(m)
	}
	return nil
}

func (r *recorder) Response(in io.Reader) error {
	raw, err := io.ReadAll(in)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.response = string(raw)
	return err
}

func (r *recorder) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.messages...)
}

// next waits for one more message.
func (r *recorder) next(t *testing.T) string {
	t.Helper()
	select {
	case <-r.arrived:
	case <-time.After(testPatience):
		t.Fatal("no message came")
	}
	got := r.got()
	return got[len(got)-1]
}

// tool is a tools/call with the id and arguments.
func tool(id, name, args string) *backend.Call {
	if args == "" {
		args = "{}"
	}
	return toolWith(id, name, args, `{}`)
}

func toolWith(id, name, args, meta string) *backend.Call {
	params := fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":%s}`, name, args, meta)
	return &backend.Call{Message: wire.NewRequest(json.RawMessage(id), "tools/call", json.RawMessage(params))}
}

// textArg are arguments with a text that may hold anything.
func textArg(text string) string {
	return `{"text":` + quote(text) + `}`
}

func request(id, method, params string) *backend.Call {
	return &backend.Call{Message: wire.NewRequest(json.RawMessage(id), method, json.RawMessage(params))}
}

// callTool calls a tool and returns the text of its result, which must bear the id.
func callTool(ctx context.Context, c backend.Channel, id, name, args string) (string, error) {
	got := newRecorder()
	if err := c.Call(ctx, tool(id, name, args), got); err != nil {
		return "", err
	}
	var response struct {
		ID     json.RawMessage `json:"id"`
		Result struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"result"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal([]byte(got.response), &response); err != nil {
		return "", fmt.Errorf("response %q: %w", got.response, err)
	}
	if string(response.ID) != id {
		return "", fmt.Errorf("the response to %s bears id %s", id, response.ID)
	}
	if response.Error != nil || len(response.Result.Content) == 0 {
		return got.response, nil
	}
	return response.Result.Content[0].Text, nil
}

// hold has a stream of the session open for the rest of the test.
func (r *rig) hold(c backend.Channel) {
	r.t.Helper()
	s, ok := c.(*session)
	if !ok {
		r.t.Fatalf("%T is no session", c)
	}
	ctx := r.context()
	go func() { _ = c.Listen(ctx, nil, newRecorder()) }() // it ends with the test
	for tick := time.Tick(time.Millisecond); !s.idleSince().IsZero(); {
		select {
		case <-tick:
		case <-ctx.Done():
			r.t.Fatal("the stream was never opened")
		}
	}
}

func (r *rig) call(c backend.Channel, name, args string) string {
	r.t.Helper()
	text, err := callTool(r.context(), c, "1", name, args)
	if err != nil {
		r.t.Fatalf("call %s: %v", name, err)
	}
	return text
}

// wantClass fails unless err is a *backend.Error of the class.
func wantClass(t *testing.T, err error, class string, sent bool) {
	t.Helper()
	var e *backend.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no backend.Error", err)
	}
	if e.Class != class || e.Sent != sent {
		t.Fatalf("class %s, sent %t; want %s, %t: %v", e.Class, e.Sent, class, sent, err)
	}
}

// eventually waits for a condition that no event tells of.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(testPatience); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}

func (r *rig) notes(file string) []string { return notes(r.script.State, file) }
