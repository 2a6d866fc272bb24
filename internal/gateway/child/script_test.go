package child

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// script says how the child of a test behaves: the test binary itself, started again with the script in its environment.
type script struct {
	// Legacy and Modern are what it speaks. A handshake of another version is answered with an error, unless Unknown is "exit"
	// or "silent".
	Legacy  bool   `json:"legacy"`
	Modern  bool   `json:"modern"`
	Unknown string `json:"unknown"`
	// Version is answered to initialize; default 2025-11-25.
	Version string `json:"version"`
	// Delay is how long it takes before it reads anything.
	Delay time.Duration `json:"delay"`
	// FirstWaits has the first process read nothing until there is a second.
	FirstWaits bool `json:"firstWaits"`
	// ExitsFirst is how many processes end at once before one stays.
	ExitsFirst int `json:"exitsFirst"`
	// Noise is written to stdout at the start.
	Noise string `json:"noise"`
	// State is a folder where processes leave traces: a file "starts" with a line for each.
	State string `json:"state"`
	// LaterModern makes all processes but the first ones speak Modern only.
	LaterModern int `json:"laterModern"`
	// Echo answers every call with its params, at the least cost.
	Echo bool `json:"echo"`
	// Listens is "never" if subscriptions/listen is not known, and "malformed" if its answer is no message.
	Listens string `json:"listens"`
}

// exit ends a scripted process.
var exit = os.Exit

const scriptEnv = "MCP_CHILD_SCRIPT"

func TestMain(m *testing.M) {
	if raw := os.Getenv(scriptEnv); raw != "" {
		var s script
		if err := json.Unmarshal([]byte(raw), &s); err != nil {
			panic(err)
		}
		(&actor{script: s, cancelled: map[string]chan struct{}{}, answers: map[string]chan json.RawMessage{}}).run()
		os.Exit(0)
	}
	if os.Getenv(reaperEnv) != "" {
		reaperMain()
		os.Exit(0)
	}
	// The race detector holds a process that ends up for a second, for goroutines to be seen; the children are not what is tested.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// actor is the scripted server.
type actor struct {
	script

	mu        sync.Mutex // of stdout and all below
	cancelled map[string]chan struct{}
	answers   map[string]chan json.RawMessage
	caps      string
	asked     int
	listen    []listening
	methods   []string
}

type listening struct{ id, filter json.RawMessage }

type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

type object map[string]any

func (a *actor) run() {
	a.note("starts", fmt.Sprint(os.Getpid()))
	starts := len(a.notes("starts"))
	if a.ExitsFirst > 0 && starts <= a.ExitsFirst {
		exit(7)
	}
	if a.LaterModern > 0 && starts > a.LaterModern {
		a.Legacy, a.Modern = false, true
	}
	seen := make(chan os.Signal, 8)
	signal.Notify(seen, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGTERM)
	go func() {
		for s := range seen {
			a.note("signals", s.String())
			if s == syscall.SIGTERM {
				exit(0)
			}
		}
	}()
	a.raw([]byte(a.Noise))
	for tick := time.Tick(time.Millisecond); a.FirstWaits && starts == 1 && len(a.notes("starts")) == 1; {
		<-tick
	}
	time.Sleep(a.Delay) //nolint:forbidigo // the slowness is what is tested
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			a.note("ends", "stdin closed")
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			a.note("bad", string(line))
			continue
		}
		a.handle(m)
	}
}

func (a *actor) handle(m message) {
	a.mu.Lock()
	a.methods = append(a.methods, m.Method)
	a.mu.Unlock()
	switch m.Method {
	case "": // an answer
		a.mu.Lock()
		c := a.answers[string(m.ID)]
		a.mu.Unlock()
		if c != nil {
			raw, err := json.Marshal(m)
			if err != nil {
				panic(err)
			}
			c <- raw
		}
	case "notifications/cancelled":
		a.cancel(m)
	case "initialize":
		if !a.Legacy {
			a.unknown(m)
			return
		}
		a.caps = string(field(m.Params, "capabilities"))
		version := a.Version
		if version == "" {
			version = "2025-11-25"
		}
		a.reply(m, object{"protocolVersion": version, "serverInfo": object{"name": "scripted", "version": "1"}, "capabilities": object{
			"tools": object{"listChanged": true}, "resources": object{"subscribe": true}, "logging": object{},
		}})
	case "server/discover":
		if !a.Modern {
			a.unknown(m)
			return
		}
		versions := []string{"2026-07-28"}
		if a.Legacy {
			versions = append(versions, "2025-11-25")
		}
		a.reply(m, object{"resultType": "complete", "supportedVersions": versions, "capabilities": object{"tools": object{"listChanged": true}}})
	case "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		a.note("calls", m.Method+" "+strings.TrimSpace(string(m.Params)))
		a.reply(m, object{})
	case "subscriptions/listen":
		a.subscribe(m)
	case "tools/call":
		if a.Echo {
			a.raw([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + string(m.Params) + "}\n"))
			return
		}
		if strings.Contains(string(m.Params), `"deaf"`) {
			a.call(m) // so that nothing more is read
		}
		go a.call(m)
	default:
		if m.ID != nil {
			a.write(message{ID: m.ID, Error: json.RawMessage(`{"code":-32601,"message":"no such method"}`)})
		}
	}
}

func (a *actor) unknown(m message) {
	switch a.Unknown {
	case "exit":
		exit(1)
	case "silent":
	default:
		a.write(message{ID: m.ID, Error: json.RawMessage(`{"code":-32601,"message":"no such method"}`)})
	}
}

// subscribe serves listening the way the Go SDK does on a pipe, which is what makes several of them hard.
func (a *actor) subscribe(m message) {
	if a.Listens == "never" {
		a.unknown(m)
		return
	}
	a.note("listens", string(field(m.Params, "notifications")))
	if a.Listens == "malformed" {
		a.raw([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"a":1,"a":2}}` + "\n"))
		return
	}
	a.notify("notifications/subscriptions/acknowledged", object{
		"_meta": object{"io.modelcontextprotocol/subscriptionId": m.ID}, "notifications": field(m.Params, "notifications"),
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listen = append(a.listen, listening{m.ID, field(m.Params, "notifications")})
}

func (a *actor) cancel(m message) {
	id := string(field(m.Params, "requestId"))
	a.note("cancelled", id)
	a.mu.Lock()
	for _, l := range a.listen {
		if string(l.id) == id {
			a.listen = nil
			a.mu.Unlock()
			a.write(message{ID: l.id, Result: json.RawMessage(`{"resultType":"complete"}`)})
			return
		}
	}
	if c := a.cancelled[id]; c != nil {
		close(c)
		delete(a.cancelled, id)
	}
	a.mu.Unlock()
}

// publish tells the last subscriber, as the Go SDK does.
func (a *actor) publish(method string, params object) {
	a.mu.Lock()
	last := len(a.listen) - 1
	if last < 0 {
		a.mu.Unlock()
		if a.Legacy {
			a.notify(method, params)
		}
		return
	}
	params["_meta"] = object{"io.modelcontextprotocol/subscriptionId": a.listen[last].id}
	a.mu.Unlock()
	a.notify(method, params)
}

func (a *actor) reply(m message, result any) {
	raw, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	a.write(message{ID: m.ID, Result: raw})
}

func (a *actor) text(m message, format string, args ...any) {
	a.reply(m, object{"content": []any{object{"type": "text", "text": fmt.Sprintf(format, args...)}}})
}

func (a *actor) notify(method string, params any) {
	raw, err := json.Marshal(params)
	if err != nil {
		panic(err)
	}
	a.write(message{Method: method, Params: raw})
}

func (a *actor) write(m message) {
	m.Version = "2.0"
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	a.raw(append(raw, '\n'))
}

func (a *actor) raw(line []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = os.Stdout.Write(line)
}

// ask sends a request to the client and returns the whole answer.
func (a *actor) ask(method string) json.RawMessage {
	a.mu.Lock()
	a.asked++
	id := fmt.Sprintf(`"question %d"`, a.asked)
	c := make(chan json.RawMessage, 1)
	a.answers[id] = c
	a.mu.Unlock()
	a.write(message{ID: json.RawMessage(id), Method: method, Params: json.RawMessage(`{}`)})
	return <-c
}

// note appends a line to a file that all processes of a test share.
func (a *actor) note(file, line string) {
	if a.State == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(a.State, file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.ReplaceAll(line, "\n", " ") + "\n"); err != nil {
		panic(err)
	}
}

func (a *actor) notes(file string) []string { return notes(a.State, file) }

func notes(state, file string) []string {
	raw, err := os.ReadFile(filepath.Join(state, file))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

func field(raw json.RawMessage, key string) json.RawMessage {
	var o map[string]json.RawMessage
	_ = json.Unmarshal(raw, &o)
	return o[key]
}
