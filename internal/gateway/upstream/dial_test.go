package upstream

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestWhileDNSIsDownANameLeadsWhereItLedAMomentAgo(t *testing.T) {
	for name, tc := range map[string]struct {
		failure net.DNSError
		ago     time.Duration
		served  bool
	}{
		"it does not answer":                {failure: net.DNSError{Err: "i/o timeout", IsTimeout: true}, served: true},
		"it is in trouble":                  {failure: net.DNSError{Err: "server misbehaving", IsTemporary: true}, served: true},
		"it says that there is no such one": {failure: net.DNSError{Err: "no such host", IsNotFound: true}},
		"it did so long ago":                {failure: net.DNSError{Err: "i/o timeout", IsTimeout: true}, ago: nameMemory},
	} {
		t.Run(name, func(t *testing.T) {
			server := strings.TrimPrefix(serve(t, asJSON(result1)).URL, "http://")
			var down atomic.Bool
			b := open(t, "http://web.default.svc:8080/mcp", func(_ *table.Backend, o *Options) {
				o.Hold = time.Millisecond
				o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					if address == "web.default.svc:8080" {
						if down.Load() {
							return nil, &net.OpError{Op: "dial", Err: &tc.failure}
						}
						address = server
					}
					return (&net.Dialer{}).DialContext(ctx, network, address)
				}
			})
			call := func() error {
				return ways(b)["modern"].Call(testContext(t), toolCall(`1`, "echo", "", backend.Modern), &sink{})
			}
			if err := call(); err != nil {
				t.Fatal(err)
			}
			b.transport.CloseIdleConnections()
			down.Store(true)
			b.dials.mu.Lock()
			b.dials.named.at = b.dials.named.at.Add(-tc.ago)
			b.dials.mu.Unlock()
			err := call()
			if tc.served != (err == nil) || err != nil && (classOf(t, err).Class != classDNS || classOf(t, err).Sent) {
				t.Error(err)
			}
		})
	}
}
