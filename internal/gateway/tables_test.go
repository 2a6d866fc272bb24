package gateway

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/front"
	"github.com/mcp-operator/mcp-operator/internal/gateway/seal"
	"github.com/mcp-operator/mcp-operator/internal/gateway/telemetry"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestARefusedTableIsSaidToLeaveAnotherInUseOnlyIfThereIsOne(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	g := &gateway{logger: slog.New(slog.NewTextHandler(&log, nil)), telemetry: telemetry.New(telemetry.Options{})}
	g.refuse(errors.New("it is wrong"))
	if !strings.Contains(log.String(), "no routing table yet") {
		t.Errorf("logged %s", log.String())
	}
	g.tables.current.Store(&front.State{})
	g.refuse(errors.New("it is wrong"))
	if !strings.Contains(log.String(), "the one in use serves on") {
		t.Errorf("logged %s", log.String())
	}
}

func TestATableThatComesAfterTheEndStartsNothing(t *testing.T) {
	t.Parallel()
	logger, watch := slog.New(slog.DiscardHandler), telemetry.New(telemetry.Options{})
	g := &gateway{
		logger: logger, telemetry: watch,
		front: front.New(front.Options{Logger: logger, Telemetry: watch, Sealer: seal.Ephemeral()}),
	}
	g.tables.close(t.Context())
	late := &table.Table{
		Version: table.Version, Endpoint: table.Endpoint{Path: table.DefaultPath}, Auth: table.Auth{Type: table.AuthNone},
		Backends: []table.Backend{{Name: "late", Transport: table.TransportStdio, Command: []string{"/bin/cat"}}},
	}
	if err := g.use(t.Context(), late); err != nil {
		t.Error(err)
	}
	if g.tables.current.Load() != nil {
		t.Error("it is in use, and its child is ended by nobody")
		g.giveUp(t.Context(), g.tables.current.Load().Backends[0])
	}
}
