package child

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

func TestWhatAChildSpeaksIsFoundOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script  script
		options func(*Options)
		want    backend.Description // the versions
		class   string              // of the error, instead
		starts  int
	}{
		"both": {
			script: script{Legacy: true, Modern: true}, starts: 2,
			want: backend.Description{Legacy: true, Modern: true, Versions: []string{"2026-07-28", "2025-11-25"}},
		},
		"2026-07-28 alone": {
			script: script{Modern: true}, starts: 1,
			want: backend.Description{Modern: true, Versions: []string{"2026-07-28"}},
		},
		"2025-11-25, an error to what it does not know": {
			script: script{Legacy: true}, starts: 2,
			want: backend.Description{Legacy: true, Versions: []string{"2025-11-25"}},
		},
		"2024-11-05, exit on what it does not know": {
			script: script{Legacy: true, Unknown: "exit", Version: "2024-11-05"}, starts: 2,
			want: backend.Description{Legacy: true, Versions: []string{"2024-11-05"}},
		},
		"2025-11-25, silence to what it does not know": {
			script: script{Legacy: true, Unknown: "silent"}, starts: 2, options: func(o *Options) { o.DiscoverTimeout = 300 * time.Millisecond },
			want: backend.Description{Legacy: true, Versions: []string{"2025-11-25"}},
		},
		"both, after a start so slow that it passes for silence": {
			script: script{Legacy: true, Modern: true, Delay: 2100 * time.Millisecond}, starts: 2,
			options: func(o *Options) { o.DiscoverTimeout = 1500 * time.Millisecond },
			want:    backend.Description{Legacy: true, Modern: true, Versions: []string{"2026-07-28", "2025-11-25"}},
		},
		"both, after a first start slower than the second": {
			script: script{Legacy: true, Modern: true, FirstWaits: true}, starts: 2,
			options: func(o *Options) { o.DiscoverTimeout = 3 * time.Second }, // of which half is left to the first at the end
			want:    backend.Description{Legacy: true, Modern: true, Versions: []string{"2026-07-28", "2025-11-25"}},
		},
		"2026-07-28 alone, after a slow start": {
			script: script{Modern: true, Delay: 700 * time.Millisecond}, starts: 2,
			options: func(o *Options) { o.DiscoverTimeout = 100 * time.Millisecond },
			want:    backend.Description{Modern: true, Versions: []string{"2026-07-28"}},
		},
		"2025-11-25, after noise": {
			script: script{Legacy: true, Noise: "Welcome!\n{not json}\n\n[1]\n"}, starts: 2,
			want: backend.Description{Legacy: true, Versions: []string{"2025-11-25"}},
		},
		"both, pinned to 2025-11-25": {
			script: script{Legacy: true, Modern: true}, starts: 1, options: func(o *Options) { o.ProtocolVersion = wire.Version20251125 },
			want: backend.Description{Legacy: true, Versions: []string{"2025-11-25"}},
		},
		"both, pinned to 2026-07-28": {
			script: script{Legacy: true, Modern: true}, starts: 1, options: func(o *Options) { o.ProtocolVersion = wire.Version20260728 },
			want: backend.Description{Modern: true, Versions: []string{"2026-07-28", "2025-11-25"}},
		},
		"neither, with errors": {
			script: script{}, class: "NotMCP", options: func(o *Options) { o.HoldTimeout = time.Millisecond },
		},
		"neither, with silence": {
			script: script{Unknown: "silent"}, class: "ChildSilent",
			options: func(o *Options) {
				o.HoldTimeout, o.StartTimeout, o.DiscoverTimeout = 1, 600*time.Millisecond, 100*time.Millisecond
			},
		},
		"neither, since it exits": {
			script: script{ExitsFirst: 1000}, class: "ChildExited", options: func(o *Options) { o.HoldTimeout = time.Millisecond },
		},
		"neither, since it does not exist": {
			script: script{}, class: "ChildExited",
			options: func(o *Options) { o.HoldTimeout, o.Command = time.Millisecond, []string{"/does/not/exist"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.script, c.options)
			d, err := r.Describe(r.context())
			if c.class != "" {
				wantClass(t, err, c.class, false)
				if r.Failure() == nil {
					t.Error("Failure is nil")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (d.Initialize != nil) != d.Legacy || (d.Discover != nil) != d.Modern {
				t.Errorf("initialize %s, discover %s", d.Initialize, d.Discover)
			}
			got := backend.Description{Legacy: d.Legacy, Modern: d.Modern, Versions: d.Versions}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if n := len(r.notes("starts")); n != c.starts {
				t.Errorf("%d processes were started, want %d", n, c.starts)
			}
			if s := r.Status(); s.LastExit != "" || s.Restarts != 0 || r.Failure() != nil {
				t.Errorf("finding out counts as failure: %+v, %v", s, r.Failure())
			}
			_, err = r.Modern(r.context())
			if errors.Is(err, backend.ErrEra) == d.Modern {
				t.Errorf("Modern: %v", err)
			}
			if _, _, err = r.Open(r.context(), backend.Client{}); errors.Is(err, backend.ErrEra) == d.Legacy {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

func TestAChildThatDiesAtItsFirstStartsIsHeldFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true, ExitsFirst: 3}, nil)
	if got := r.call(r.session(`{}`), "echo", `{"text":"hello"}`); got != "hello" {
		t.Errorf("got %q", got)
	}
	if s := r.Status(); s.Restarts == 0 || s.LastExit != "exit status 7" {
		t.Errorf("status %+v", s)
	}
}

func TestAChildThatSpeaksOtherwiseAfterARestartIsAskedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true, LaterModern: 2}, nil)
	channel := r.session(`{}`)
	if _, err := callTool(r.context(), channel, "1", "die", ""); err == nil {
		t.Fatal("it answered after its death")
	}
	eventually(t, "the other version is found", func() bool {
		d, err := r.Describe(r.context())
		return err == nil && d.Modern && !d.Legacy
	})
	if err := channel.Call(r.context(), tool("2", "echo", ""), newRecorder()); !errors.Is(err, backend.ErrSession) {
		t.Errorf("a session of a version that is gone: %v", err)
	}
	if got := r.call(r.modern(), "echo", `{"text":"hello"}`); got != "hello" {
		t.Errorf("got %q", got)
	}
}

func TestForgetAsksAgainWithoutANewProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t, script{Legacy: true, Modern: true}, nil)
	if _, err := r.Describe(r.context()); err != nil {
		t.Fatal(err)
	}
	r.Forget()
	if _, err := r.Describe(r.context()); err != nil {
		t.Fatal(err)
	}
	if n := len(r.notes("starts")); n != 2 {
		t.Errorf("%d processes were started, want 2", n)
	}
	if got := r.call(r.modern(), "methods", ""); strings.Count(got, "server/discover") != 2 {
		t.Errorf("methods: %s", got)
	}
}
