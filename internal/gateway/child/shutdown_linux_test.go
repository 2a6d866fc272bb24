package child

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !bytes.Contains(stat[bytes.LastIndexByte(stat, ')'):], []byte(" Z "))
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAChildIsEndedGentlyFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before string // the tool that is called first
		grace  time.Duration
		ctx    time.Duration
		want   string // the trace it leaves
		within time.Duration
	}{
		"by its stdin":                            {"echo", time.Minute, time.Minute, "stdin closed", 5 * time.Second},
		"by SIGTERM if it does not read":          {"deaf", 20 * time.Second, time.Minute, "terminated", 19 * time.Second},
		"by SIGKILL if that does not help":        {"stop", 300 * time.Millisecond, time.Minute, "", 5 * time.Second},
		"by SIGKILL if there is no time for more": {"deaf", time.Hour, 300 * time.Millisecond, "", 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, script{Legacy: true}, func(o *Options) { o.StopGrace, o.ProtocolVersion = c.grace, wire.Version20251125 })
			channel := r.session(`{}`)
			pid := number(t, r.call(channel, "pid", ""))
			go func() { _, _ = callTool(r.context(), channel, "1", c.before, "") }()
			if c.before == "stop" {
				eventually(t, "it is stopped", func() bool {
					stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
					return err == nil && strings.Contains(string(stat), ") T ")
				})
			}
			if c.before == "deaf" {
				eventually(t, "it is deaf", func() bool { return len(r.notes("deaf")) > 0 })
			}
			ctx, cancel := context.WithTimeout(r.context(), c.ctx)
			defer cancel()
			began := time.Now()
			if err := r.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > c.within {
				t.Errorf("it took %s", took)
			}
			if alive(pid) {
				t.Error("it lives")
			}
			traces := append(r.notes("ends"), r.notes("signals")...)
			if c.want != "" && !slices.Contains(traces, c.want) || c.want == "" && len(traces) > 0 && c.before != "deaf" {
				t.Errorf("traces %q", traces)
			}
		})
	}
}

func TestNothingOfAChildIsLeftBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	channel := r.session(`{}`)
	grandchild := number(t, r.call(channel, "grandchild", ""))
	if !alive(grandchild) {
		t.Fatal("there is no grandchild")
	}
	_, _ = callTool(r.context(), channel, "1", "die", "")
	eventually(t, "the grandchild ends with the child", func() bool { return !alive(grandchild) })
}

func TestAGrandchildThatHoldsThePipesDelaysARestartByNoMoreThanAMoment(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true}, nil)
	channel := r.session(`{}`)
	grandchild := number(t, r.call(channel, "grandchild", `{"text":"setsid"}`))
	t.Cleanup(func() { _ = syscall.Kill(grandchild, syscall.SIGKILL) })
	began := time.Now()
	_, err := callTool(r.context(), channel, "1", "die", "")
	wantClass(t, err, "ChildExited", true)
	if got := r.call(channel, "echo", `{"text":"hello"}`); got != "hello" {
		t.Errorf("got %q", got)
	}
	if took := time.Since(began); took > testPatience/2 {
		t.Errorf("it took %s", took)
	}
}

func TestTheEnvironmentOfAChildIsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{}); err == nil {
		t.Error("a backend without a command")
	}
	for _, o := range []Options{
		{Command: []string{"x", "a\x00b"}}, {Command: []string{"x"}, Sessions: "Some"}, {Command: []string{"x"}, ProtocolVersion: "2024-11-05"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("options %+v are accepted", o)
		}
	}
}
