package toolset

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// Each statement is called twice over one connection: what the first call leaves behind, the second would see.
func TestNothingOfASessionIsLeftForTheNextCall(t *testing.T) {
	r := newRole(t, `CREATE FUNCTION prepare() RETURNS text LANGUAGE plpgsql AS
		$$ BEGIN EXECUTE 'PREPARE left_behind AS SELECT 1'; RETURN 'prepared'; END $$`)
	r.admin(t, fmt.Sprintf("CREATE ROLE %[1]s_other; GRANT %[1]s_other TO %[1]s", r.name))
	cases := map[string]struct{ statement, before, after string }{
		"a setting": {
			"SELECT current_setting('app.tenant', true) AS before, set_config('app.tenant', 'acme', false) AS after", "", "acme",
		},
		"a role": {
			"SELECT current_user::text AS before, set_config('role', '" + r.name + "_other', false) AS after", r.name, r.name + "_other",
		},
		"a prepared statement": {
			"SELECT (SELECT count(*)::text FROM pg_prepared_statements WHERE name = 'left_behind') AS before, " + r.name + ".prepare() AS after",
			"0", "prepared",
		},
		"an advisory lock": {
			"SELECT (SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS before, " +
				"pg_advisory_lock(7)::text AS after", "0", "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tool := r.statement("SELECT pg_backend_pid() AS pid, * FROM (" + tc.statement + ") s")
			tool.Write = true // what is rolled back leaves less behind
			b := r.open(tool)
			var pids []string
			for range 2 {
				got := call(t, b, "ask", `{}`)
				var result struct {
					Rows []struct {
						PID    int     `json:"pid"`
						Before *string `json:"before"`
						After  *string `json:"after"`
					} `json:"rows"`
				}
				if err := json.Unmarshal(got.Structured, &result); err != nil || len(result.Rows) != 1 {
					t.Fatalf("answered %s: %v", got.text(), err)
				}
				row := result.Rows[0]
				pids = append(pids, fmt.Sprint(row.PID))
				if diff := cmp.Diff([]string{tc.before, tc.after}, []string{textOf(row.Before), textOf(row.After)}); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
			if pids[0] != pids[1] {
				t.Errorf("not one connection: %s", pids)
			}
		})
	}
	if n := r.admin(t, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); n != "0" {
		t.Errorf("%s advisory locks are held by connections that nobody uses", n)
	}
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func TestAConnectionThatNobodyUsesIsClosed(t *testing.T) {
	r := newRole(t, `SELECT 1`)
	b := r.open(r.statement("SELECT 1 AS n"))
	call(t, b, "ask", `{}`)
	d, ok := b.source.(*database)
	if !ok {
		t.Fatal("it is no database")
	}
	d.pool.mu.Lock()
	c := d.pool.idle[0]
	early := time.Since(c.used) >= connectionIdle
	d.pool.mu.Unlock()
	if d.pool.expire(testContext(t), c); early || len(d.pool.idle) != 1 {
		t.Fatal("it was closed before its time")
	}
	d.pool.mu.Lock()
	c.used = c.used.Add(-connectionIdle)
	if !c.expiry.Reset(0) {
		t.Error("nothing would have closed it")
	}
	d.pool.mu.Unlock()
	select {
	case <-c.CleanupDone():
	case <-testContext(t).Done():
		t.Fatal("it is still open")
	}
	if n := len(d.pool.idle); n != 0 {
		t.Errorf("%d connections are kept", n)
	}
	if got := call(t, b, "ask", `{}`); got.IsError {
		t.Errorf("and after it: %s", got.text())
	}
}

func TestOnlyStatementsThatHaveAPlanAreTools(t *testing.T) {
	r := newRole(t, `CREATE TABLE a AS SELECT 1 AS n; CREATE PROCEDURE x() LANGUAGE sql AS 'SELECT 1'`)
	r.admin(t, fmt.Sprintf("GRANT INSERT, UPDATE, DELETE ON %[1]s.a TO %[1]s; GRANT CREATE ON SCHEMA %[1]s TO %[1]s", r.name))
	describe := func(statement string, write bool) error {
		tool := r.statement(statement)
		tool.Write = write
		_, err := r.open(tool).Describe(testContext(t))
		return err
	}
	a := r.name + ".a"
	for _, statement := range []string{
		"COPY " + a + " TO STDOUT", "COPY " + a + " FROM STDIN", "VACUUM", "SET app.x = '1'", "SHOW all", "RESET ALL", "DO 'BEGIN END'", "BEGIN", "COMMIT",
		"ROLLBACK", "-- nothing", "/* a /* b */ c */", ";", "LISTEN x", "NOTIFY x", "LOAD 'x'", "EXPLAIN SELECT 1", "EXPLAIN ANALYZE SELECT 1",
		"PREPARE x AS SELECT 1", "EXECUTE mcp_gateway_check", "DEALLOCATE ALL", "DISCARD ALL", "DECLARE c CURSOR FOR SELECT 1", "FETCH c",
		"LOCK TABLE " + a, "TRUNCATE " + a, "CALL " + r.name + ".x()", "CHECKPOINT", "CREATE TABLE " + r.name + ".b AS SELECT 1 AS n",
		"SELECT 1 AS n INTO " + r.name + ".b", "WITH w AS (SELECT 1 AS n) SELECT n INTO " + r.name + ".b FROM w",
	} {
		for _, write := range []bool{false, true} {
			err := describe(statement, write)
			if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classStatement || failure.Detail != errImpossible.why {
				t.Errorf("%s (write %t): %v", statement, write, err)
			}
		}
	}
	for statement, write := range map[string]bool{
		"SELECT 1 AS n": false, "select 1 as n": false, "VALUES (1)": false, "TABLE " + a: false, "WITH w AS (SELECT 1 AS n) SELECT n FROM w": false,
		" -- why\n/* what /* it */ is */\t((SELECT 1 AS n))": false, "SELECT n FROM " + a + ";": false, "INSERT INTO " + a + " VALUES (1)": true,
		"UPDATE " + a + " SET n = 2": true, "DELETE FROM " + a + " RETURNING n": true, "WITH w AS (SELECT 1 AS n) INSERT INTO " + a + " TABLE w": true,
		"MERGE INTO " + a + " t USING (SELECT 1 AS n) s ON t.n = s.n WHEN MATCHED THEN DELETE": true,
	} {
		if err := describe(statement, write); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

func TestAPasswordThatCannotBeOneIsTold(t *testing.T) {
	r := newRole(t, `SELECT 1`)
	for content, want := range map[string]string{
		"\n":              "the password of the credential is empty",
		"a\n" + canary:    "the password of the credential has a line feed or another control character inside",
		canary + "\x00\n": "the password of the credential has a line feed or another control character inside",
	} {
		tool := r.statement("SELECT 1 AS n")
		tool.PasswordFile = t.TempDir() + "/password"
		write(t, tool.PasswordFile, []byte(content))
		_, err := r.open(tool).Describe(testContext(t))
		if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classCredential || failure.Told != want {
			t.Errorf("%q: %v", content, err)
		}
	}
	_, err := r.open(r.statement("SELECT 1 AS n"), func(b *table.Backend) { b.Toolset.Postgres.PasswordFile += "x" }).Describe(testContext(t))
	if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classCredential || failure.Told != "" {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestAToolWhoseSchemaCannotBeCheckedIsNotOffered(t *testing.T) {
	const pattern = "#/properties/a/pattern: it must be a regular expression of RE2"
	bad := json.RawMessage(`{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"pattern":"^(?!evil)"}}}}`)
	b := open(t, table.Backend{URL: "https://a.example", Toolset: &table.Toolset{HTTP: []table.HTTPTool{
		{Method: "GET", Definition: json.RawMessage(`{"name":"good","inputSchema":{"type":"object"}}`)},
		{Method: "GET", Path: "/x", Definition: bad},
		{Method: "GET", Path: "/y", Definition: json.RawMessage(
			`{"name":"worse","inputSchema":{"type":"object"},"outputSchema":{"properties":{"a":{"pattern":"("}}}}`)},
	}}}, Options{})
	m, err := ask(t, b, "tools/list", `{}`)
	if err != nil || !strings.Contains(string(m.Result), `"good"`) || strings.Contains(string(m.Result), "bad") || strings.Contains(string(m.Result), "worse") {
		t.Errorf("offered %v: %v", m, err)
	}
	tool := &table.PostgresTool{Definition: bad, Statement: "SELECT 1", Host: "a.example", Database: "d", User: "u"}
	statement := open(t, table.Backend{Toolset: &table.Toolset{Postgres: tool}}, Options{})
	for err, wants := range map[error][]string{
		b.Check():         {"not offered: bad (GET /x): its inputSchema: at " + pattern, "worse (GET /y): its outputSchema: at " + pattern},
		statement.Check(): {"not offered: its inputSchema: at " + pattern},
	} {
		failure, ok := errors.AsType[*backend.Error](err)
		for _, want := range wants {
			if !ok || failure.Class != classDefinition || !strings.Contains(failure.Detail, want) {
				t.Errorf("Check says %v, want %s", err, want)
			}
		}
	}
}

func TestACredentialThatCannotBeOneIsTold(t *testing.T) {
	path := t.TempDir() + "/token"
	write(t, path, []byte("\n"))
	source, err := credential.New(&table.Credential{Type: table.CredentialBearer, ValueFile: path})
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, table.Backend{URL: "https://a.example", Toolset: &table.Toolset{HTTP: []table.HTTPTool{
		{Method: "GET", Definition: json.RawMessage(`{"name":"do","inputSchema":{"type":"object"}}`)},
	}}}, Options{Credential: source})
	_, err = b.Describe(testContext(t))
	if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classCredential ||
		failure.Told != "the token of the credential is empty" || strings.Contains(failure.Detail, "empty") {
		t.Errorf("got %v", err)
	}
}
