package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/front"
	"github.com/mcp-operator/mcp-operator/internal/gateway/seal"
	"github.com/mcp-operator/mcp-operator/internal/gateway/source"
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

func TestToolsInTheFolderOfDefinitionsAreServedAndGoWithTheirTable(t *testing.T) {
	t.Parallel()
	const tools = `{"http":[{"definition":{"name":"one","inputSchema":{"type":"object"}},"method":"GET"}]}`
	sum := sha256.Sum256([]byte(tools))
	file := table.ToolFile{ConfigMap: "weather", Key: "tools.json", SHA256: hex.EncodeToString(sum[:])}
	folder := t.TempDir()
	path := filepath.Join(folder, file.SHA256)
	if err := os.WriteFile(path, []byte(tools), 0o600); err != nil {
		t.Fatal(err)
	}
	logger, watch := slog.New(slog.DiscardHandler), telemetry.New(telemetry.Options{})
	g := &gateway{
		logger: logger, telemetry: watch,
		front: front.New(front.Options{Logger: logger, Telemetry: watch, Sealer: seal.Ephemeral()}),
	}
	var err error
	if g.definitions, err = source.NewDefinitions(nil, folder, logger, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	defer g.tables.close(ctx)
	with := func(files ...table.ToolFile) *table.Table {
		return &table.Table{
			Version: table.Version, Endpoint: table.Endpoint{Path: table.DefaultPath}, Auth: table.Auth{Type: table.AuthNone},
			Backends: []table.Backend{{
				Name: "weather", Transport: table.TransportToolset, URL: "https://weather.example", Toolset: &table.Toolset{Files: files},
			}},
		}
	}
	missing := file
	missing.SHA256 = strings.Repeat("0", 64)
	if err := g.use(ctx, with(file)); err != nil {
		t.Fatal(err)
	}
	for tick := time.NewTicker(time.Millisecond); len(g.learned().Backends[0].Tools) == 0; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the status is %+v", g.learned())
		}
	}
	if got := g.learned().Backends[0]; got.State != table.BackendReady || len(got.Tools) != 1 || got.Tools[0].Name != "one" {
		t.Errorf("the status is %+v", got)
	}
	if err := g.use(ctx, with(missing)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("what no table names is still there: %v", err)
	}
}

func TestAPanicOfAHandlerIsAnErrorAndABrokenConnectionIsNot(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	server := newServer(nil, slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})), 0)
	server.ErrorLog.Printf("http: TLS handshake error from %s: EOF", "10.0.0.1:80")
	server.ErrorLog.Printf("http: panic serving %s: %v\n%s", "10.0.0.1:80", "boom", "goroutine 1")
	lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "level=DEBUG") || !strings.Contains(lines[1], "level=ERROR") {
		t.Errorf("logged %q", lines)
	}
}
