package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/front"
	"github.com/mcp-operator/mcp-operator/internal/gateway/seal"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// idle is a gateway that does not listen.
func idle() *gateway {
	logger, watch := slog.New(slog.DiscardHandler), telemetry.New(telemetry.Options{})
	return &gateway{
		logger: logger, telemetry: watch, front: front.New(front.Options{Logger: logger, Telemetry: watch, Sealer: seal.Ephemeral()}),
		failed: make(chan error, 1),
	}
}

func tableOf(revision string, backends ...table.Backend) *table.Table {
	return &table.Table{
		Version: table.Version, Revision: revision, Endpoint: table.Endpoint{Path: table.DefaultPath}, Auth: table.Auth{Type: table.AuthNone},
		Backends: backends,
	}
}

func TestATableInUseIsNeverSaidToBeRefused(t *testing.T) {
	t.Parallel()
	g := idle()
	defer g.tables.close(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 5000 {
			revision := strconv.Itoa(i)
			g.refuse(errors.New(revision))
			if err := g.use(t.Context(), tableOf(revision)); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		if s := g.learned(); s.TableError != "" && s.TableError == s.Revision {
			t.Errorf("revision %s is in use, and was refused", s.Revision)
			break
		}
		select {
		case <-done:
			return
		default:
		}
	}
	<-done
}

func TestAServerThatHasAnsweredIsNotGivenUpForItsDeadline(t *testing.T) {
	t.Parallel()
	g := idle()
	g.options.Stdio = &Stdio{StartDeadline: time.Nanosecond}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	defer g.tables.close(ctx)
	err := g.use(ctx, tableOf("1", table.Backend{
		Name: "one", Transport: table.TransportToolset, URL: "https://one.example",
		Toolset: &table.Toolset{HTTP: []table.HTTPTool{{Method: "GET", Definition: json.RawMessage(`{"name":"one","inputSchema":{"type":"object"}}`)}}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-g.tables.current.Load().Backends[0].Ready():
	case <-ctx.Done():
		t.Fatal("it never answered")
	}
	for range 64 { // of what is ready at the same time any may come first
		g.awaitChild(ctx)
	}
	select {
	case err := <-g.failed:
		t.Errorf("the process ends: %v", err)
	default:
	}
}
