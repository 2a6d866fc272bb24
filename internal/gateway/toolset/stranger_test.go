package toolset

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// stranger listens where a database should, and answers each connection as it is told to.
func stranger(t *testing.T, mode table.TLSMode, answer func(net.Conn)) (*Backend, *logs) {
	t.Helper()
	written := &logs{}
	b, err := New(table.Backend{Name: "tools", AllowPrivate: true, Toolset: &table.Toolset{Postgres: &table.PostgresTool{
		Definition: json.RawMessage(`{"name":"ask","inputSchema":{"type":"object"}}`), Statement: "SELECT 1 AS a",
		Host: "database", Database: "d", User: "u", TLS: mode,
	}}}, Options{
		Logger: slog.New(slog.NewTextHandler(written, nil)),
		TLS:    func() (*tls.Config, error) { return &tls.Config{MinVersion: tls.VersionTLS12}, nil },
		Dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				go silent(theirs)
				answer(theirs)
			}()
			return ours, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, written
}

// says sends a text and hangs up.
func says(text string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

// drips sends a text byte by byte.
func drips(text string, every time.Duration) func(net.Conn) {
	return func(conn net.Conn) {
		for i := range len(text) {
			time.Sleep(every) //nolint:forbidigo // of a clock that does not wait
			if _, err := conn.Write([]byte{text[i]}); err != nil {
				return
			}
		}
	}
}

// silent reads, until the other side hangs up.
func silent(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// TestWhatAnswersInPlaceOfADatabaseIsToldForWhatItIs: with TLS and without.
func TestWhatAnswersInPlaceOfADatabaseIsToldForWhatItIs(t *testing.T) {
	const banner = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
	length := func(kind string, n byte) string { return kind + "\x00\x00\x00" + string([]byte{n}) }
	for name, tc := range map[string]struct {
		answer       func(net.Conn)
		class, plain string // with TLS, and without, if that is another
	}{
		"silence":                 {silent, classTimeout, ""},
		"a web server":            {says(banner), classNotPostgres, ""},
		"a mail server":           {says("220 mail ESMTP\r\n"), classNotPostgres, ""},
		"a shell":                 {says("SSH-2.0-OpenSSH_9.9\r\n"), classNotPostgres, ""},
		"garbage":                 {says("\x00\x01\x02\x03garbage"), classNotPostgres, ""},
		"one byte of garbage":     {says("x"), classNotPostgres, ""},
		"garbage in drips":        {drips(strings.Repeat("x", 1000), 3*time.Second), classNotPostgres, ""},
		"an absurd length":        {says("R\x7f\xff\xff\xff"), classNotPostgres, ""},
		"no length":               {says(length("R", 3)), classNotPostgres, ""},
		"a login in drips":        {drips(length("R", 8)+"\x00\x00\x00\x00", 3*time.Second), classNotPostgres, classTimeout},
		"nobody":                  {says(""), classTLS, classServerError},
		"one without TLS":         {says("N"), classTLS, classServerError},
		"one who hangs up on TLS": {says("S"), classServerError, classNotPostgres},
	} {
		for mode, want := range map[table.TLSMode]string{table.TLSVerifyFull: tc.class, table.TLSDisable: tc.plain} {
			t.Run(name+", TLS "+string(mode), func(t *testing.T) {
				if want == "" {
					want = tc.class
				}
				synctest.Test(t, func(t *testing.T) {
					b, _ := stranger(t, mode, tc.answer)
					_, err := b.Describe(t.Context())
					failure, ok := errors.AsType[*backend.Error](err)
					if !ok || failure.Class != want || failure.Sent {
						t.Errorf("answered %v, want %s", err, want)
					}
					if err := b.Close(t.Context()); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Minute) //nolint:forbidigo // until the stranger has noticed
				})
			})
		}
	}
}

// TestWhatADatabaseRefusesALoginWithCannotDisguiseTheLog: nor fill it.
func TestWhatADatabaseRefusesALoginWithCannotDisguiseTheLog(t *testing.T) {
	refusal := &pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: strings.Repeat("\u202eevil\n", 20_000)}
	refused, err := refusal.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, written := stranger(t, table.TLSDisable, says(string(refused)))
	_, err = b.Describe(testContext(t))
	failure, ok := errors.AsType[*backend.Error](err)
	if !ok {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{classUnauthorized, "SQLSTATE 28P01: the password is wrong"}, []string{failure.Class, failure.Detail}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for what, text := range map[string]string{"error": err.Error(), "log": written.String()} {
		if len(text) > 600 || strings.Count(text, "\n") > 1 || strings.Contains(text, "\u202e") || !strings.Contains(text, "Unauthorized") {
			t.Errorf("the %s has %d bytes: %.700s", what, len(text), text)
		}
	}
}
