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
func (d *database) inspect(ctx context.Context) (found *plan, err error) {
	defer d.panics.Catch(d.Backend.config.Name, &err)
	l, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer d.pool.reclaim(ctx, l)
	found, err = d.prepare(ctx, l.connection)
	if err == nil {
		err = simple(ctx, l.connection, "ROLLBACK")
	}
	if err != nil {
		d.pool.drop(ctx, l)
		return nil, d.unfit(ctx, err)
	}
	d.pool.put(ctx, l)
	return found, nil
}

// statementError says what is wrong with a statement that the server takes.
type statementError struct{ why string }

func (e *statementError) Error() string { return e.why }

// possible are the first words of statements that have a plan, so that all of them is known before anybody calls them.
var possible = []string{"SELECT", "VALUES", "TABLE", "WITH", "INSERT", "UPDATE", "DELETE", "MERGE"}

var errImpossible = &statementError{"the statement cannot be a tool: possible are SELECT (without INTO), VALUES, TABLE, WITH, INSERT, UPDATE, " +
	"DELETE and MERGE"}

// keyword is the first word of a statement, in upper case, behind white space, comments and parentheses; empty if there is none.
func keyword(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f\v(")
		switch {
		case strings.HasPrefix(sql, "--"):
			end := strings.IndexAny(sql, "\r\n")
			if end < 0 {
				return ""
			}
			sql = sql[end:]
		case strings.HasPrefix(sql, "/*"):
			sql = afterComment(sql)
		default:
			end := strings.IndexFunc(sql, func(r rune) bool { return (r|0x20) < 'a' || (r|0x20) > 'z' })
			if end < 0 {
				end = len(sql)
			}
			return strings.ToUpper(sql[:end])
		}
	}
}

// afterComment is what follows a comment, which may hold others.
func afterComment(sql string) string {
	for depth, i := 0, 0; i+1 < len(sql); i++ {
		switch sql[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
		}
		if depth == 0 {
			return sql[i+1:]
		}
	}
	return ""
}

func (d *database) unfit(ctx context.Context, err error) error {
	if wrong, ok := err.(*statementError); ok { //nolint:errorlint // nobody wraps it
		return d.failure(classStatement, false, wrong.why, nil)
	}
	state, ok := sqlState(err)
	if answerErrorOf(err) != nil || !ok || isOutage(state) || ctx.Err() != nil {
		return d.pool.unconnected(ctx, err)
	}
	failure := d.failure(classStatement, false, "the database refuses the statement: "+explain(err), err)
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		failure.Told = quote(said)
	}
	if password, err := d.pool.password(); err != nil || password != "" && strings.Contains(failure.Told+failure.Err.Error(), password) {
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
	if !slices.Contains(possible, keyword(d.config.Statement)) {
		return nil, errImpossible
	}
	names := map[string]bool{}
	for _, field := range described.Fields {
		if names[field.Name] {
			return nil, &statementError{fmt.Sprintf("the statement returns two columns of the name %s: name them apart with AS", wire.Quote(field.Name))}
		}
		names[field.Name] = true
	}
	if err := d.explainPlan(ctx, c, len(types), len(described.Fields)); err != nil {
		return nil, err
	}
	return &plan{params: slices.Clone(described.ParamOIDs)}, nil
}

// explainPlan has the server plan the statement for any arguments, which also looks at privileges. A plan that writes does not fit a
// tool that may not.
func (d *database) explainPlan(ctx context.Context, c *connection, params, columns int) error {
	major, _, _ := strings.Cut(c.ParameterStatus("server_version"), ".")
	if n, err := strconv.Atoi(major); err == nil && n < 12 {
		return nil // it cannot be told to plan for any arguments
	}
	sql := "SET LOCAL plan_cache_mode = force_generic_plan; EXPLAIN (FORMAT JSON) EXECUTE " + checkName
	if params > 0 {
		sql += "(" + strings.Repeat("NULL,", params-1) + "NULL)"
	}
	explained, err := readPlan(ctx, c, sql)
	if err != nil {
		return err
	}
	has := func(node string) bool { return bytes.Contains(explained, []byte(`"Node Type": "`+node)) }
	switch {
	case !has(""), columns == 0 && !has("ModifyTable"): // it has no plan, or is SELECT INTO, which makes a table
		return errImpossible
	case !d.config.Write && (has(`ModifyTable"`) || has(`LockRows"`)):
		return &statementError{"the statement writes or locks rows, and the tool is read-only"}
	}
	return nil
}

// maxPlan bounds the plan of a statement, in bytes.
const maxPlan = 1 << 20

var (
	errPlanTooLarge = &statementError{"the statement's plan is larger than 1 MiB: make it simpler"}
	errPlanColumns  = &answerError{"the plan of a statement has other columns than one"}
)

// readPlan returns the answer to EXPLAIN (FORMAT JSON), which is one row of one column.
func readPlan(ctx context.Context, c *connection, sql string) (explained []byte, err error) {
	c.meter.rows = 1
	results := c.Exec(ctx, sql)
	for results.NextResult() {
		for r := results.ResultReader(); err == nil && r.NextRow(); {
			switch values := r.Values(); {
			case len(values) != 1:
				err = errPlanColumns
			case len(values[0]) > maxPlan:
				err = errPlanTooLarge
			default:
				explained = slices.Clone(values[0])
			}
		}
	}
	// Closing reads what is left, of which the meter lets no more than a little come.
	if broken := results.Close(); err == nil {
		err = broken
	}
	return explained, err
}
