package toolset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// checkName is the prepared statement of a check.
const checkName = "mcp_gateway_check"

// sqlTypes are the OIDs of the types and of their arrays, which are the same in every server.
var sqlTypes = map[table.SQLType][2]uint32{
	table.SQLText: {25, 1009}, table.SQLInteger: {20, 1016}, table.SQLNumber: {1700, 1231}, table.SQLBoolean: {16, 1000},
	table.SQLJSON: {3802, 3807}, table.SQLTimestamp: {1184, 1185}, table.SQLDate: {1082, 1182}, table.SQLUUID: {2950, 2951},
}

// inspect has the server prepare and plan the statement, which finds all that is wrong with it but what depends on arguments.
func (d *database) inspect(ctx context.Context) (*plan, error) {
	c, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	found, err := d.prepare(ctx, c)
	if err == nil {
		err = simple(ctx, c, "ROLLBACK")
	}
	if err == nil {
		err = c.Deallocate(ctx, checkName)
	}
	if err != nil {
		d.pool.drop(ctx, c)
		return nil, d.unfit(ctx, err)
	}
	d.pool.put(ctx, c)
	return found, nil
}

// statementError says what is wrong with a statement that the server takes.
type statementError struct{ why string }

func (e *statementError) Error() string { return e.why }

func (d *database) unfit(ctx context.Context, err error) error {
	if wrong, ok := err.(*statementError); ok { //nolint:errorlint // nobody wraps it
		return d.failure(classStatement, false, wrong.why, nil)
	}
	state, ok := sqlState(err)
	if !ok || isOutage(state) || ctx.Err() != nil {
		return d.pool.unconnected(ctx, err)
	}
	failure := d.failure(classStatement, false, "the database refuses the statement: "+explain(err), err)
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		failure.Told = quote(said)
	}
	if password, err := d.pool.password(); err != nil || password != "" && strings.Contains(failure.Told+failure.Error(), password) {
		failure.Told, failure.Err = "", errors.New(failure.Detail) // nobody is told what repeats the password
	}
	return failure
}

// quote is what the database said of the statement. No argument is bound in a check, so none can be in it.
func quote(said *pgconn.PgError) string {
	out := "SQLSTATE " + said.Code + ": " + said.Message
	if said.Position > 0 {
		out += fmt.Sprintf(", at character %d of the statement", said.Position)
	}
	if said.Hint != "" {
		out += " (" + said.Hint + ")"
	}
	return out
}

func (d *database) prepare(ctx context.Context, c *connection) (*plan, error) {
	types := make([]uint32, len(d.config.Params))
	for i, p := range d.config.Params {
		name, isArray := strings.CutSuffix(string(p.Type), table.SQLArray)
		oids := sqlTypes[table.SQLType(name)]
		types[i] = oids[0]
		if isArray {
			types[i] = oids[1]
		}
	}
	described, err := c.Prepare(ctx, checkName, d.config.Statement, types)
	if err != nil {
		return nil, err
	}
	if got, want := len(described.ParamOIDs), len(types); got != want {
		return nil, &statementError{fmt.Sprintf("the statement has %d parameters, and the tool has %d", got, want)}
	}
	names := map[string]bool{}
	for _, field := range described.Fields {
		if names[field.Name] {
			return nil, &statementError{fmt.Sprintf("the statement returns two columns of the name %s: name them apart with AS", wire.Quote(field.Name))}
		}
		names[field.Name] = true
	}
	if err := d.explainPlan(ctx, c, len(types)); err != nil {
		return nil, err
	}
	return &plan{params: slices.Clone(described.ParamOIDs)}, nil
}

// explainPlan has the server plan the statement for any arguments, which also looks at privileges. A plan that writes does not fit a
// tool that may not.
func (d *database) explainPlan(ctx context.Context, c *connection, params int) error {
	major, _, _ := strings.Cut(c.ParameterStatus("server_version"), ".")
	if n, err := strconv.Atoi(major); err == nil && n < 12 {
		return nil // it cannot be told to plan for any arguments
	}
	sql := "SET LOCAL plan_cache_mode = force_generic_plan; EXPLAIN (FORMAT JSON) EXECUTE " + checkName
	if params > 0 {
		sql += "(" + strings.Repeat("NULL,", params-1) + "NULL)"
	}
	results, err := c.Exec(ctx, sql).ReadAll()
	if err != nil {
		return err
	}
	for _, r := range results {
		for _, row := range r.Rows {
			for _, node := range []string{"ModifyTable", "LockRows"} {
				if !d.config.Write && bytes.Contains(row[0], []byte(`"Node Type": "`+node+`"`)) {
					return &statementError{"the statement writes or locks rows, and the tool is read-only"}
				}
			}
		}
	}
	return nil
}
