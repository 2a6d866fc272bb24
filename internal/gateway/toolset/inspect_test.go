package toolset

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestAWrongStatementIsToldBeforeItIsCalled(t *testing.T) {
	r := newRole(t, `CREATE TABLE a (n int)`)
	r.admin(t, fmt.Sprintf("CREATE TABLE %[1]s.secret (n int)", r.name))
	param := table.SQLParam{Argument: "n"}
	with := func(change func(*table.PostgresTool)) *table.PostgresTool {
		tool := r.statement("SELECT 1")
		change(tool)
		return tool
	}
	cases := map[string]struct {
		tool  *table.PostgresTool
		class string
		want  string
	}{
		"a syntax error": {
			r.statement("SELEC 1"), classStatement,
			"the database refuses the statement: SQLSTATE 42601: syntax error, at character 1 of the statement",
		},
		"a table of no kind": {
			r.statement("SELECT * FROM nothing"), classStatement,
			"the database refuses the statement: SQLSTATE 42P01: a table does not exist, at character 15 of the statement",
		},
		"a column of no kind": {
			r.statement("SELECT m FROM " + r.name + ".a"), classStatement,
			"the database refuses the statement: SQLSTATE 42703: a column does not exist, at character 8 of the statement",
		},
		"a table not to be read": {
			r.statement("SELECT * FROM " + r.name + ".secret"), classStatement,
			"the database refuses the statement: SQLSTATE 42501: the role lacks a privilege",
		},
		"two statements": {
			r.statement("SELECT 1; SELECT 2"), classStatement,
			"the database refuses the statement: SQLSTATE 42601: syntax error",
		},
		"too few parameters": {
			r.statement("SELECT $1::int AS a, $2::int AS b", param), classStatement,
			"the statement has 2 parameters, and the tool has 1",
		},
		"columns of one name": {
			r.statement("SELECT 1 AS a, 2 AS a"), classStatement,
			`the statement returns two columns of the name "a": name them apart with AS`,
		},
		"a type that is not clear": {
			r.statement("SELECT $1 IS NULL AS a", param), classStatement,
			"the database refuses the statement: SQLSTATE 42P18: the type of a parameter cannot be derived: give its type",
		},
		"a statement that locks": {
			r.statement("SELECT n FROM " + r.name + ".a FOR UPDATE"), classStatement,
			"the statement writes or locks rows, and the tool is read-only",
		},
		"a statement that writes": {
			r.statement("WITH w AS (DELETE FROM " + r.name + ".a RETURNING n) SELECT n FROM w"), classStatement,
			"the statement writes or locks rows, and the tool is read-only",
		},
		"an unreadable password": {
			with(func(p *table.PostgresTool) { p.PasswordFile = r.path("data") }), classCredential,
			"the password file cannot be read",
		},
		"a database of no kind": {
			with(func(p *table.PostgresTool) { p.Database = "none" }), classServerError,
			"SQLSTATE 3D000: the database does not exist",
		},
		"a wrong password": {
			with(func(p *table.PostgresTool) { p.User = "admin" }), classUnauthorized,
			"SQLSTATE 28P01: the password is wrong",
		},
		"no password file": {
			with(func(p *table.PostgresTool) { p.PasswordFile += "x" }), classCredential,
			"the password file cannot be read",
		},
		"nobody there": {with(func(p *table.PostgresTool) { p.Port = 1 }), classConnect, ""},
		"a certificate for another": {
			with(func(p *table.PostgresTool) { p.Host = "127.0.0.1" }), classTLS,
			"the database does not prove by TLS who it is",
		},
	}
	r.admin(t, fmt.Sprintf("GRANT DELETE, UPDATE ON %[1]s.a TO %[1]s", r.name))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := open(t, table.Backend{CAFile: r.path("server.crt"), Toolset: &table.Toolset{Postgres: tc.tool}}, Options{})
			_, err := b.Describe(testContext(t))
			failure, ok := errors.AsType[*backend.Error](err)
			if !ok || failure.Class != tc.class || failure.Detail != tc.want || failure.Sent {
				t.Fatalf("got %v\nwant %s: %s", err, tc.class, tc.want)
			}
			if again := b.Check(); again == nil || again.Error() != err.Error() || strings.Contains(again.Error(), canary) {
				t.Errorf("Check says %v", again)
			}
		})
	}
}

func TestWhoRunsTheGatewayIsToldWhatTheDatabaseSays(t *testing.T) {
	r := newRole(t, `SELECT 1`)
	for name, tc := range map[string]struct{ statement, want string }{
		"a table of no kind": {
			"SELECT * FROM nothing", `SQLSTATE 42P01: relation "nothing" does not exist, at character 15 of the statement`,
		},
		"a hint": {
			"SELECT lenth('a')", "SQLSTATE 42883: function lenth(unknown) does not exist, at character 8 of the statement " +
				"(No function matches the given name and argument types. You might need to add explicit type casts.)",
		},
		"what repeats the password": {"SELECT '" + canary + "'::int", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.open(r.statement(tc.statement)).Describe(testContext(t))
			failure, ok := errors.AsType[*backend.Error](err)
			if !ok || failure.Class != classStatement || failure.Told != tc.want || strings.Contains(failure.Error(), canary) {
				t.Errorf("got %v, told %q\nwant told %q", err, failure.Told, tc.want)
			}
		})
	}
}

func TestADatabaseMayWantACertificateInPlaceOfAPassword(t *testing.T) {
	r := newRole(t, `SELECT 1`)
	r.admin(t, "DROP ROLE IF EXISTS "+certified+"; CREATE ROLE "+certified+" LOGIN")
	tool := r.statement("SELECT current_user AS who")
	tool.User, tool.PasswordFile = certified, ""
	own := func(b *table.Backend) {
		b.ClientCertificate = &table.ClientCertificate{CertFile: r.path("client.crt"), KeyFile: r.path("client.key")}
	}
	if got := call(t, r.open(tool, own), "ask", `{}`); string(got.Structured) != `{"rows":[{"who":"certified"}]}` {
		t.Errorf("answered %s", got.text())
	}
	_, err := r.open(tool).Describe(testContext(t))
	if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classUnauthorized {
		t.Errorf("without it: %v", err)
	}
}

func TestAStatementThatBecomesRightIsOffered(t *testing.T) {
	r := newRole(t, `SELECT 1`)
	b := r.open(r.statement("SELECT n FROM " + r.name + ".later"))
	if _, err := b.Describe(testContext(t)); err == nil {
		t.Fatal("a table that is not there was taken")
	}
	r.admin(t, fmt.Sprintf("CREATE TABLE %[1]s.later AS SELECT 7 AS n; GRANT SELECT ON %[1]s.later TO %[1]s", r.name))
	b.Forget()
	if got := call(t, b, "ask", `{}`); string(got.Structured) != `{"rows":[{"n":7}]}` || b.Check() != nil {
		t.Errorf("answered %s, and Check says %v", got.text(), b.Check())
	}
	r.admin(t, fmt.Sprintf("DROP TABLE %s.later", r.name))
	if got := call(t, b, "ask", `{}`); !got.IsError {
		t.Errorf("answered %s", got.text())
	}
	if _, err := b.Describe(testContext(t)); err == nil {
		t.Error("what a call brought to light was not told")
	}
}

func TestAStatementIsLookedAtAgainBesideItsCalls(t *testing.T) {
	r := newRole(t, `CREATE TABLE a AS SELECT 1 AS n`)
	b := open(t, table.Backend{CAFile: r.path("server.crt"), Toolset: &table.Toolset{Postgres: r.statement("SELECT n FROM " + r.name + ".a")}},
		Options{CheckInterval: time.Nanosecond})
	if _, err := b.Describe(testContext(t)); err != nil {
		t.Fatal(err)
	}
	r.admin(t, "DROP TABLE "+r.name+".a")
	if _, err := b.Describe(testContext(t)); err != nil {
		t.Fatalf("who asks waits for nobody, and gets the last verdict: %v", err)
	}
	d, ok := b.source.(*database)
	if !ok {
		t.Fatal("it is no database")
	}
	d.mu.Lock()
	running := d.running
	d.mu.Unlock()
	if running != nil {
		<-running
	}
	if err := b.Check(); err == nil || !strings.Contains(err.Error(), classStatement) {
		t.Errorf("Check says %v", err)
	}
}
