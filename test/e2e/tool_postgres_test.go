package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

// statement is a tool of one SQL statement, whose only parameter is the argument id.
func statement(db *database, sql string) mcpv1alpha1.MCPToolSpec {
	return mcpv1alpha1.MCPToolSpec{
		Type: mcpv1alpha1.ToolPostgres, Endpoint: db.endpoint(), Schema: takes("id", `{"type": "integer"}`),
		Auth: &mcpv1alpha1.ToolAuth{Type: mcpv1alpha1.AuthPassword, SecretRef: mcpv1alpha1.ToolSecret{ObjectName: named("db-reader")}},
		Postgres: &mcpv1alpha1.PostgresTool{
			Statement: sql, User: "reader", TLS: "Disable", Parameters: []mcpv1alpha1.SQLParameter{{Argument: "id"}},
		},
	}
}

func TestPostgresToolGivesRowsAndAWrongStatementIsToldBeforeAnybodyCallsIt(t *testing.T) {
	t.Parallel()
	f := start(t)
	db := f.database("reader-of-the-test")
	f.tool("pet", statement(db, "SELECT name, born FROM pets WHERE id = $1"))
	f.tool("sneaky", statement(db, "INSERT INTO pets VALUES ($1, 'Eve', NULL) RETURNING id"))
	wrong := f.tool("wrong", statement(db, "SELECT nome FROM pets WHERE id = $1"))
	a := f.agent("team", nil, "pet", "sneaky", "wrong")
	a.awaitReady("pet")
	a.answers("pet", `{"id": 1}`, "Rex", "2020-01-02")
	a.answers("pet", `{"id": 77}`, `"rows":[]`)
	a.fails("pet", `{"id": "1 OR true"}`, "id")

	wrong.await("says what the database says of its statement", agentSoon,
		says[*tool]("Verified", metav1.ConditionFalse, "CheckFailed", "nome"), says[*tool]("Ready", metav1.ConditionFalse, ""))
	a.await("says it too, and serves the rest", agentSoon, serves("pet"), says[*agent]("Routed", metav1.ConditionFalse, "ToolsUnavailable"),
		says[*agent]("Ready", metav1.ConditionTrue, ""))

	wrong.change(func(object *tool) { object.Spec.Postgres.Statement = "SELECT name FROM pets WHERE id = $1" })
	a.await("serves it when it is mended", agentSoon, serves("pet", "wrong"))
	wrong.await("is Ready when it is mended", agentSoon, says[*tool]("Ready", metav1.ConditionTrue, ""))
	a.answers("wrong", `{"id": 2}`, "Tom")

	if out, err := a.call("sneaky", `{"id": 5}`); err == nil {
		t.Errorf("a tool that does not say that it writes wrote: %s", out)
	}
	a.answers("pet", `{"id": 5}`, `"rows":[]`)
}

func TestPasswordOfADatabaseIsRotatedAndNoPodIsReplaced(t *testing.T) {
	t.Parallel()
	f := start(t)
	db := f.database("first")
	f.tool("pet", statement(db, "SELECT name FROM pets WHERE id = $1"))
	a := f.agent("team", nil, "pet")
	a.awaitReady("pet")
	pods := namesOf(a.podsOf("gateway"))

	db.execute("ALTER ROLE reader PASSWORD 'second'")
	a.answers("pet", `{"id": 1}`, "Rex") // over a connection that is there
	credential := secret("db-reader", "password", "second")
	f.patch("db-reader", credential, func() { credential.Data = map[string][]byte{"password": []byte("second")} })
	db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'")
	await(t, "the next connection logs in by the new password", secretSoon, func() string {
		if _, err := a.call("pet", `{"id": 1}`); err != nil {
			return err.Error()
		}
		return ""
	})
	for name := range namesOf(a.podsOf("gateway")) {
		if !pods[name] {
			t.Errorf("a rotated password replaced pods of the gateway: %s is new", name)
		}
	}
}
