package child

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// discard is a sink that reads and forgets.
type discard struct{}

func (discard) Message(*wire.Message) error { return nil }

func (discard) Response(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// ownCPU reports the CPU time of this process, without the child's.
func ownCPU(b *testing.B) (report func()) {
	b.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64((used()-before).Nanoseconds())/float64(b.N), "cpu-ns/op") }
}

// BenchmarkCall measures the gateway's part of a call; the child is cheap and runs beside it.
func BenchmarkCall(b *testing.B) {
	raw, err := json.Marshal(script{Legacy: true, Modern: true, Echo: true})
	if err != nil {
		b.Fatal(err)
	}
	o := Options{
		Command: []string{os.Args[0]}, Env: append(os.Environ(), scriptEnv+"="+string(raw)), Logger: slog.New(slog.DiscardHandler),
	}
	all, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = all.Close(b.Context()) }()
	legacy, _, err := all.Open(b.Context(), backend.Client{})
	if err != nil {
		b.Fatal(err)
	}
	modern, err := all.Modern(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for name, channel := range map[string]backend.Channel{"2025-11-25": legacy, "2026-07-28": modern} {
		for size, text := range map[string]string{"1KB": strings.Repeat("x", 1000), "64KB": strings.Repeat("x", 64000)} {
			c := tool(`"0123"`, "echo", `{"text":"`+text+`"}`)
			b.Run(name+"/"+size+"/1", func(b *testing.B) {
				b.ReportAllocs()
				defer ownCPU(b)()
				for b.Loop() {
					if err := channel.Call(b.Context(), c, discard{}); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(name+"/"+size+"/16", func(b *testing.B) {
				b.ReportAllocs()
				defer ownCPU(b)()
				var workers sync.WaitGroup
				for range 16 {
					workers.Go(func() {
						for range b.N / 16 {
							if err := channel.Call(b.Context(), c, discard{}); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				workers.Wait()
			})
		}
	}
}
