package upstream

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/gateway/panics"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// unthoughtOf panics wherever it is used.
type unthoughtOf struct{}

func (unthoughtOf) Apply(http.Header) error { panic("nobody thought of that") }

func (unthoughtOf) Redactor() *credential.Redactor { panic("nobody thought of that") }

func (unthoughtOf) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	panic("nobody thought of that")
}

func TestAFaultBesideTheCallersIsAFailureOfTheBackend(t *testing.T) {
	for name, change := range map[string]func(*table.Backend, *Options){
		"where what it speaks is found out": func(_ *table.Backend, o *Options) { o.Credential = unthoughtOf{} },
		"where it is dialled": func(_ *table.Backend, o *Options) {
			o.Dial = func(context.Context, string, string) (net.Conn, error) { panic("nobody thought of that") }
		},
		"where its pods are looked up": func(c *table.Backend, o *Options) {
			c.PodsHost, o.Resolver = "pods.test", unthoughtOf{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var faults atomic.Int64
			b := open(t, "http://127.0.0.1:9", change, func(c *table.Backend, o *Options) {
				c.ProtocolVersion = "2025-11-25"
				o.Panics = panics.New(slog.New(slog.DiscardHandler), func(string) { faults.Add(1) })
			})
			for what, ask := range map[string]func() error{
				"describe": func() error { _, err := b.Describe(testContext(t)); return err },
				"open":     func() error { _, _, err := b.Open(testContext(t), backend.Client{}); return err },
				"look up": func() error {
					if b.pods == nil {
						return errNoPods
					}
					return b.pods.refresh(testContext(t))
				},
				"share": func() error { _, _, err := b.Shared(testContext(t), "subject"); return err },
			} {
				if err := ask(); err == nil || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if faults.Load() == 0 {
				t.Error("no fault was counted")
			}
		})
	}
}

func TestAFaultInATaskEndsTheTask(t *testing.T) {
	var faults atomic.Int64
	b := open(t, "http://127.0.0.1:9", func(_ *table.Backend, o *Options) {
		o.Panics = panics.New(slog.New(slog.DiscardHandler), func(string) { faults.Add(1) })
	})
	b.background(func() { panic("nobody thought of that") })
	b.beside(testContext(t), func(context.Context) { panic("nor of that") })
	if err := b.Close(testContext(t)); err != nil || faults.Load() != 2 {
		t.Errorf("%d faults were counted: %v", faults.Load(), err)
	}
}
