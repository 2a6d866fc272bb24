package child

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// arguments of the scripted tools.
type arguments struct {
	Text string `json:"text"`
	N    int    `json:"n"`
	URI  string `json:"uri"`
}

// call runs a tool.
func (a *actor) call(m message) {
	var args arguments
	_ = json.Unmarshal(field(m.Params, "arguments"), &args)
	var name string
	_ = json.Unmarshal(field(m.Params, "name"), &name)
	meta := field(m.Params, "_meta")
	switch name {
	case "echo":
		a.text(m, "%s", args.Text)
	case "pid":
		a.text(m, "%d", os.Getpid())
	case "capabilities":
		a.text(m, "%s", a.caps)
	case "meta":
		a.text(m, "%s", meta)
	case "methods":
		a.mu.Lock()
		methods := strings.Join(a.methods, " ")
		a.mu.Unlock()
		a.text(m, "%s", methods)
	case "wait": // until it is cancelled
		c := make(chan struct{})
		a.mu.Lock()
		a.cancelled[string(m.ID)] = c
		a.mu.Unlock()
		a.note("waiting", args.Text)
		<-c
		a.text(m, "too late")
	case "once": // leaves a trace of being run
		a.note("once", args.Text)
		a.text(m, "done")
	case "die":
		a.note("dying", args.Text)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "exit":
		exit(args.N)
	case "progress":
		for i := range args.N {
			a.notify("notifications/progress", object{"progressToken": field(meta, "progressToken"), "progress": i, "message": args.Text})
		}
		a.note("progressed", "all")
		a.text(m, "done")
	case "log":
		a.notify("notifications/message", object{"level": "info", "data": args.Text})
		a.text(m, "done")
	case "ask":
		answer := a.ask(args.Text)
		a.reply(m, object{"answer": answer})
	case "changed":
		a.publish("notifications/tools/list_changed", object{})
		a.text(m, "done")
	case "updated":
		a.publish("notifications/resources/updated", object{"uri": args.URI})
		a.text(m, "done")
	default:
		a.misbehave(m, name, args)
	}
}

// misbehave runs a tool that breaks the protocol or the process.
func (a *actor) misbehave(m message, name string, args arguments) {
	switch name {
	case "noise":
		a.raw([]byte(args.Text))
		a.text(m, "after the noise")
	case "pieces":
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"text":"in pieces"}}`+"\r\n", m.ID)
		a.mu.Lock()
		defer a.mu.Unlock()
		for i := range len(line) {
			_, _ = os.Stdout.WriteString(line[i : i+1])
		}
	case "huge": // the id comes after the result, as with the TypeScript SDK
		a.raw([]byte(`{"result":{"id":1,"text":"` + strings.Repeat("x", args.N) + `","more":{"id":"2"}},"jsonrpc":"2.0","id":` + string(m.ID) + "}\n"))
	case "hugeWithoutID":
		a.raw([]byte(`{"jsonrpc":"2.0","result":"` + strings.Repeat("x", args.N) + `"}` + "\n"))
	case "hugeRequest":
		a.raw([]byte(`{"jsonrpc":"2.0","id":77,"method":"x","params":{"t":"` + strings.Repeat("x", args.N) + `"}}` + "\n"))
		a.text(m, "asked")
	case "hugeNotification":
		a.raw([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"t":"` + strings.Repeat("x", args.N) + `"}}` + "\n"))
		a.text(m, "notified")
	case "malformed":
		a.raw([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"a":1,"a":2}}` + "\n"))
	case "twice":
		a.text(m, "first")
		a.text(m, "second")
	case "stranger": // a response to nobody's call
		a.raw([]byte(`{"jsonrpc":"2.0","id":987654,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":"x","result":{}}` + "\n"))
		a.text(m, "done")
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "closeStdout":
		_ = os.Stdout.Close()
	case "closeStdin":
		_ = os.Stdin.Close()
		a.text(m, "closed")
	case "deaf": // neither reads nor answers, but stays
		a.mu.Lock()
		a.note("deaf", "yes")
		select {}
	case "stderr":
		fmt.Fprint(os.Stderr, args.Text)
		a.text(m, "done")
	case "grandchild": // in the process group, or in a session of its own, holding stdout
		cmd := exec.Command("sleep", "1000")
		cmd.Stdout = os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: args.Text == "setsid"}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		a.text(m, "%d", cmd.Process.Pid)
	case "slow":
		time.Sleep(time.Duration(args.N) * time.Millisecond) //nolint:forbidigo // the slowness is what is tested
		a.text(m, "at last")
	}
}
