package toolset

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// role is a login of one test, with a schema of its own.
type role struct {
	*server

	t        testing.TB
	name     string
	password string // the file
}

// roles counts those that were made, so that a test can run again.
var roles atomic.Int64

// newRole makes a role that may read what the SQL makes in its schema, and nothing else.
func newRole(t *testing.T, sql string) *role {
	t.Helper()
	s := postgres(t)
	name := strings.ToLower(strings.Map(func(r rune) rune {
		if r == '/' || r == ' ' || r == ',' {
			return '_'
		}
		return r
	}, t.Name()))
	name = fmt.Sprintf("%.50s_%d", name, roles.Add(1))
	s.admin(t, fmt.Sprintf(`CREATE ROLE %[1]s LOGIN PASSWORD '%[2]s'; CREATE SCHEMA %[1]s; SET search_path = %[1]s; %[3]s;
		GRANT USAGE ON SCHEMA %[1]s TO %[1]s; GRANT SELECT ON ALL TABLES IN SCHEMA %[1]s TO %[1]s`, name, canary, sql))
	r := &role{server: s, t: t, name: name, password: t.TempDir() + "/password"}
	write(t, r.password, []byte(canary+"\n"))
	return r
}

// statement is a tool of the role.
func (r *role) statement(sql string, params ...table.SQLParam) *table.PostgresTool {
	return &table.PostgresTool{
		Definition: json.RawMessage(`{"name":"ask","inputSchema":{"type":"object"}}`), Statement: sql, Params: params,
		Host: "localhost", Port: r.port, Database: "postgres", User: r.name, PasswordFile: r.password,
	}
}

func (r *role) open(tool *table.PostgresTool, change ...func(*table.Backend)) *Backend {
	r.t.Helper()
	config := table.Backend{CAFile: r.path("server.crt"), Toolset: &table.Toolset{Postgres: tool}}
	for _, f := range change {
		f(&config)
	}
	return open(r.t, config, Options{})
}

func TestArgumentsAreBound(t *testing.T) {
	r := newRole(t, `CREATE TABLE people (id int, name text); INSERT INTO people VALUES (1, 'Ada'), (2, '''; DROP TABLE people; --')`)
	b := r.open(r.statement("SELECT id, name FROM "+r.name+".people WHERE name = $1 OR id = ANY($2) ORDER BY id",
		table.SQLParam{Argument: "name"}, table.SQLParam{Argument: "ids"}))
	for arguments, want := range map[string]string{
		`{"name":"Ada"}`: `{"rows":[{"id":1,"name":"Ada"}]}`,
		`{"name":"'; DROP TABLE people; --","ids":[]}`: `{"rows":[{"id":2,"name":"'; DROP TABLE people; --"}]}`,
		`{"name":"x' OR '1'='1"}`:                      `{"rows":[]}`,
		`{"ids":[1,2.0]}`:                              `{"rows":[{"id":1,"name":"Ada"},{"id":2,"name":"'; DROP TABLE people; --"}]}`,
		`{}`:                                           `{"rows":[]}`,
	} {
		got := call(t, b, "ask", arguments)
		if diff := cmp.Diff(want, string(got.Structured)); diff != "" || got.IsError || got.text() != want {
			t.Errorf("%s: %s, -want +got:\n%s", arguments, got.text(), diff)
		}
	}
	for arguments, want := range map[string]string{
		`{"ids":["x"]}`:       "the database refused the statement, and nothing was changed: SQLSTATE 22P02: a value is written wrongly for its type",
		`{"name":"a\u0000b"}`: "nothing was sent: the argument name must have no NUL character, which PostgreSQL cannot hold",
	} {
		if got := call(t, b, "ask", arguments); !got.IsError || got.text() != want {
			t.Errorf("%s: %s, want %s", arguments, got.text(), want)
		}
	}
}

func TestValuesKeepTheirTypes(t *testing.T) {
	r := newRole(t, `SELECT 1`)
	cases := map[string]struct {
		kind            table.SQLType
		argument, value string
	}{
		"a text":                 {table.SQLText, `"ü \"\\ '"`, `"ü \"\\ '"`},
		"an integer":             {table.SQLInteger, `-12`, `-12`},
		"an integer of JSON":     {table.SQLInteger, `1.2e3`, `1200`},
		"a large integer":        {table.SQLInteger, `9007199254740993`, `"9007199254740993"`},
		"a number":               {table.SQLNumber, `0.10`, `0.10`},
		"a boolean":              {table.SQLBoolean, `false`, `false`},
		"a document":             {table.SQLJSON, `{"a":["ü\u0022",1,null]}`, `{"a":["ü\"",1,null]}`},
		"a text as a document":   {table.SQLJSON, `"x"`, `"x"`},
		"a time":                 {table.SQLTimestamp, `"2026-11-30T12:00:00.5+01:00"`, `"2026-11-30T11:00:00.5Z"`},
		"a date":                 {table.SQLDate, `"2026-11-30"`, `"2026-11-30"`},
		"a UUID":                 {table.SQLUUID, `"5b9f2b8e-2a53-4d0c-9d8e-0a3f8f2b7c11"`, `"5b9f2b8e-2a53-4d0c-9d8e-0a3f8f2b7c11"`},
		"integers":               {table.SQLInteger + table.SQLArray, `[1,null,3]`, `[1,null,3]`},
		"texts":                  {table.SQLText + table.SQLArray, `["a,b","{\"}","","NULL",null,"\\"]`, `["a,b","{\"}","","NULL",null,"\\"]`},
		"lists of texts":         {table.SQLText + table.SQLArray, `[["a"],["b"]]`, `[["a"],["b"]]`},
		"documents":              {table.SQLJSON + table.SQLArray, `[{"a":1},[2],"x"]`, `[{"a":1},[2],"x"]`},
		"no texts":               {table.SQLText + table.SQLArray, `[]`, `[]`},
		"nothing":                {table.SQLText, `null`, `null`},
		"times":                  {table.SQLTimestamp + table.SQLArray, `["2026-01-01T00:00:00Z"]`, `["2026-01-01T00:00:00Z"]`},
		"a text from a number":   {table.SQLText, `1.5`, `"1.5"`},
		"a text from an object":  {table.SQLText, `{"a":1}`, `"{\"a\":1}"`},
		"a number that is large": {table.SQLNumber, `12345678901234567890`, `"12345678901234567890"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := r.open(r.statement("SELECT $1 AS v", table.SQLParam{Argument: "v", Type: tc.kind}))
			got := call(t, b, "ask", `{"v":`+tc.argument+`}`)
			if diff := cmp.Diff(`{"rows":[{"v":`+tc.value+`}]}`, string(got.Structured)); diff != "" || got.IsError {
				t.Errorf("%s, -want +got:\n%s", got.text(), diff)
			}
		})
	}
}

func TestAStatementThatMayNotWriteDoesNot(t *testing.T) {
	r := newRole(t, `CREATE TABLE log (n int);
		CREATE FUNCTION sneak() RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS 'SELECT 1'`)
	r.admin(t, fmt.Sprintf(`CREATE OR REPLACE FUNCTION %[1]s.sneak() RETURNS int LANGUAGE sql SECURITY DEFINER
		AS 'INSERT INTO %[1]s.log VALUES (1) RETURNING n'`, r.name))
	sql := "SELECT " + r.name + ".sneak() AS n"
	got := call(t, r.open(r.statement(sql)), "ask", `{}`)
	want := "the database refused the statement, and nothing was changed: SQLSTATE 25006: it would change something, which this tool may not"
	if diff := cmp.Diff(want, got.text()); diff != "" || !got.IsError {
		t.Errorf("-want +got:\n%s", diff)
	}
	writer := r.statement(sql)
	writer.Write = true
	if got := call(t, r.open(writer), "ask", `{}`); string(got.Structured) != `{"rows":[{"n":1}]}` {
		t.Errorf("the tool that may was answered %s", got.text())
	}
	if n := r.admin(t, "SELECT count(*) FROM "+r.name+".log"); n != "1" {
		t.Errorf("%s rows were written", n)
	}
}

func TestWhatIsWrittenIsToldWithoutDataOfOthers(t *testing.T) {
	r := newRole(t, `CREATE TABLE users (mail text CONSTRAINT users_mail_key UNIQUE, age int CONSTRAINT users_age_check CHECK (age > 0))`)
	r.admin(t, fmt.Sprintf("GRANT INSERT ON %[1]s.users TO %[1]s", r.name))
	tool := r.statement("INSERT INTO "+r.name+".users VALUES ($1, $2)", table.SQLParam{Argument: "mail"}, table.SQLParam{Argument: "age"})
	tool.Write = true
	b := r.open(tool)
	if got := call(t, b, "ask", `{"mail":"private@example.com","age":1}`); string(got.Structured) != `{"rows":[],"rowsAffected":1}` {
		t.Errorf("answered %s", got.text())
	}
	for arguments, want := range map[string]string{
		`{"mail":"private@example.com","age":1}`: `SQLSTATE 23505: it exists already (constraint "users_mail_key")`,
		`{"mail":"other","age":-7}`:              `SQLSTATE 23514: a check fails (constraint "users_age_check")`,
	} {
		if got := call(t, b, "ask", arguments); !strings.HasSuffix(got.text(), ": "+want) || strings.Contains(got.text(), "private") || !got.IsError {
			t.Errorf("%s: %s", arguments, got.text())
		}
	}
}

func TestRowsAndBytesAreLimited(t *testing.T) {
	r := newRole(t, `SELECT 1`)
	tool := r.statement("SELECT n, repeat('x', $1) AS x FROM generate_series(1, $2) n", table.SQLParam{Argument: "wide"}, table.SQLParam{Argument: "many"})
	tool.MaxRows, tool.MaxBytes = 3, 2000
	b := r.open(tool)
	for arguments, want := range map[string]struct {
		rows      int
		truncated bool
		note      string
	}{
		`{"wide":1,"many":3}`:       {3, false, ""},
		`{"wide":1,"many":1000000}`: {3, true, "Not all rows are here: there are more than 3 rows, of which these are the first."},
		`{"wide":900,"many":3}`:     {2, true, "Not all rows are here: all rows are more than 2000 bytes, and these are the first."},
	} {
		got := call(t, b, "ask", arguments)
		var result struct {
			Rows      []any `json:"rows"`
			Truncated bool  `json:"truncated"`
		}
		if err := json.Unmarshal(got.Structured, &result); err != nil {
			t.Fatal(err)
		}
		if len(result.Rows) != want.rows || result.Truncated != want.truncated || !strings.HasSuffix(got.text(), want.note) || got.IsError {
			t.Errorf("%s: %d rows, truncated %t: %.2500s", arguments, len(result.Rows), result.Truncated, got.text())
		}
	}
	if got := call(t, b, "ask", `{"wide":1000000,"many":1}`); !got.IsError || got.text() != errRowTooLarge.Error() {
		t.Errorf("a row that is too large: %.300s", got.text())
	}
	if got := call(t, b, "ask", `{"wide":1,"many":1}`); got.IsError {
		t.Errorf("and after it: %s", got.text())
	}
}

// What is cut is what is shown: each row may be work that is done.
func TestAStatementThatMayWriteRunsToItsEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		rows, bytes int
		shown       int
		note        string
	}{
		"all are shown": {rows: 10, shown: 10},
		"rows are cut": {
			rows: 3, shown: 3, note: "Not all rows are here: the statement ran to its end and returned 10, of which these are the first 3.",
		},
		"bytes are cut": {
			bytes: 1024, shown: 3, note: "Not all rows are here: the statement ran to its end and returned 10, of which these are the first 3.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRole(t, `CREATE TABLE jobs (id int PRIMARY KEY, done bool DEFAULT false); INSERT INTO jobs SELECT generate_series(1,10)`)
			r.admin(t, fmt.Sprintf(`CREATE FUNCTION %[1]s.finish(i int) RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path = %[1]s
				AS 'UPDATE jobs SET done = true WHERE id = i RETURNING id'`, r.name))
			tool := r.statement(fmt.Sprintf("SELECT %[1]s.finish(id) AS id, repeat('x', 300) AS x FROM %[1]s.jobs WHERE NOT done", r.name))
			tool.MaxRows, tool.MaxBytes, tool.Write = tc.rows, tc.bytes, true
			got := call(t, r.open(tool), "ask", `{}`)
			if n := strings.Count(string(got.Structured), `"id"`); n != tc.shown || got.IsError || !strings.HasSuffix(got.text(), tc.note) {
				t.Errorf("%d rows are shown: %s", n, got.text())
			}
			if n := r.admin(t, "SELECT count(*) FROM "+r.name+".jobs WHERE done"); n != "10" {
				t.Errorf("%s of 10 are done", n)
			}
		})
	}
}

func TestAStatementThatTakesTooLongIsEnded(t *testing.T) {
	r := newRole(t, `SELECT 1`)
	b := r.open(r.statement("SELECT pg_sleep(60)::text AS slept"), func(c *table.Backend) { c.TimeoutSeconds = 1 })
	_, err := ask(t, b, "tools/call", `{"name":"ask"}`)
	if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classTimeout || !failure.Sent {
		t.Errorf("got %v", err)
	}
	if n := r.admin(t, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND usename = '"+r.name+"'"); n != "0" {
		t.Errorf("%s of its statements still run", n)
	}
}

func TestADatabaseWithoutTLSIsNotDialledAtAPublicAddress(t *testing.T) {
	for _, host := range []string{"8.8.8.8", "127.0.0.1", "169.254.169.254", "2001:4860:4860::8888"} {
		config := table.Backend{
			Name: "tools", Transport: table.TransportToolset, AllowPrivate: true, Toolset: &table.Toolset{Postgres: &table.PostgresTool{
				Definition: json.RawMessage(`{"name":"ask","inputSchema":{"type":"object"}}`), Statement: "SELECT 1", Host: host,
				Database: "d", User: "u", TLS: table.TLSDisable,
			}},
		}
		parsed(t, config)
		b, err := New(config, Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Describe(testContext(t))
		if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classDenied {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestConnectionsThatDieAreReplaced(t *testing.T) {
	r := newRole(t, `SELECT 1`)
	b := r.open(r.statement("SELECT pg_backend_pid() AS pid"))
	first := string(call(t, b, "ask", `{}`).Structured)
	if again := string(call(t, b, "ask", `{}`).Structured); again != first {
		t.Errorf("another connection was made: %s, %s", first, again)
	}
	r.admin(t, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '"+r.name+"'")
	if got := call(t, b, "ask", `{}`); got.IsError || string(got.Structured) == first {
		t.Errorf("answered %s", got.text())
	}
}

func TestThePasswordIsReadForEachConnection(t *testing.T) {
	r := newRole(t, `SELECT 1`)
	b := r.open(r.statement("SELECT 1 AS n"))
	call(t, b, "ask", `{}`)
	r.admin(t, fmt.Sprintf("ALTER ROLE %s PASSWORD '%s-2'", r.name, canary))
	write(t, r.password, []byte(canary+"-2"))
	r.admin(t, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '"+r.name+"'")
	if got := call(t, b, "ask", `{}`); got.IsError {
		t.Errorf("answered %s", got.text())
	}
}

func TestTLSIsAsTheTableSays(t *testing.T) {
	r := newRole(t, `SELECT 1`)
	const sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
	cases := map[string]struct {
		mode table.TLSMode
		host string
		ca   string
		want string
	}{
		"the host is verified by default": {"", "localhost", r.path("server.crt"), "true"},
		"the CA alone":                    {table.TLSVerifyCA, "127.0.0.1", r.path("server.crt"), "true"},
		"not at all":                      {table.TLSDisable, "127.0.0.1", "", "false"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tool := r.statement(sql)
			tool.TLS, tool.Host = tc.mode, tc.host
			b := open(t, table.Backend{Toolset: &table.Toolset{Postgres: tool}, AllowPrivate: true, CAFile: tc.ca}, Options{})
			if got := string(call(t, b, "ask", `{}`).Structured); got != `{"rows":[{"ssl":`+tc.want+`}]}` {
				t.Errorf("answered %s", got)
			}
		})
	}
	tool := r.statement(sql)
	tool.TLS = table.TLSVerifyCA
	other := t.TempDir() + "/ca"
	write(t, other, []byte(otherCA(t)))
	b := open(t, table.Backend{Toolset: &table.Toolset{Postgres: tool}, CAFile: other}, Options{})
	if _, err := b.Describe(testContext(t)); err == nil || !strings.Contains(err.Error(), classTLS) {
		t.Errorf("another CA: %v", err)
	}
}
