package toolset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// column is one of a result.
type column struct {
	key string // the name as JSON text
	oid uint32
}

// rows are the result of a statement.
type rows struct {
	columns   []column
	list      []byte // the elements of the list, as JSON
	count     int    // of those in list
	seen      int    // of all that came
	truncated string // why, if not all are there
	full      bool   // that is for their bytes
	abandoned bool   // the server is still sending
	affected  int64  // of a statement that returns no rows, else -1
}

// begin opens a transaction. A connection that died unnoticed is replaced: nothing but BEGIN was sent.
func (d *database) begin(ctx context.Context) (*lease, error) {
	for fresh := false; ; fresh = true {
		l, reused, err := d.pool.get(ctx, fresh)
		if err != nil {
			return nil, err
		}
		if err = d.open(ctx, l); err == nil {
			return l, nil
		}
		if !reused || ctx.Err() != nil {
			return nil, d.pool.unconnected(ctx, err)
		}
	}
}

// open opens the transaction on a connection, which is dropped where that cannot be done.
func (d *database) open(ctx context.Context, l *lease) (err error) {
	isOpen := false
	defer func() {
		if !isOpen {
			d.pool.drop(ctx, l)
		}
	}()
	err = simple(ctx, l.connection, d.opening())
	isOpen = err == nil
	return err
}

// opening begins a transaction in which a statement's result does not depend on how the server is configured.
func (d *database) opening() string {
	mode := "READ ONLY"
	if d.config.Write {
		mode = "READ WRITE"
	}
	return "BEGIN " + mode + "; SET LOCAL statement_timeout = " + strconv.FormatInt(d.timeout.Milliseconds(), 10) +
		"; SET LOCAL client_min_messages = 'error'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601'; SET LOCAL TimeZone = 'UTC'"
}

// finish ends the transaction and gives the connection back.
func (d *database) finish(ctx context.Context, l *lease) error {
	end := "ROLLBACK"
	if d.config.Write {
		end = "COMMIT"
	}
	if err := simple(ctx, l.connection, end); err != nil {
		return err
	}
	d.pool.put(ctx, l)
	return nil
}

// simple runs commands that return no rows. Nothing of their answers is kept.
func simple(ctx context.Context, c *connection, sql string) error { return c.Exec(ctx, sql).Close() }

var (
	errOtherColumns   = &answerError{"a row has other columns than it described"}
	errDescribedTwice = &answerError{"it describes the rows of one statement twice"}
)

var errRowTooLarge = errors.New("a row is larger than this tool's limit: select less of it")

// execute runs the statement, of which the parameters are bound. Where the tool may write it runs to its end, since each row may be work that
// is done: what is more than allowed is read, counted and dropped, row by row. Else the server is asked for one row more than allowed.
func (d *database) execute(ctx context.Context, c *connection, types []uint32, values [][]byte) (*rows, error) {
	out := c.Frontend()
	out.SendParse(&pgproto3.Parse{Query: d.config.Statement, ParameterOIDs: types})
	out.SendBind(&pgproto3.Bind{Parameters: values})
	out.SendDescribe(&pgproto3.Describe{ObjectType: 'P'})
	most := uint32(d.maxRows) + 1 //nolint:gosec // it was validated
	c.meter.rows = d.maxRows + 1
	if d.config.Write {
		most, c.meter.rows = 0, math.MaxInt // all of them; the statement's time bounds how many
	}
	out.SendExecute(&pgproto3.Execute{MaxRows: most})
	out.SendSync(&pgproto3.Sync{})
	deadline, _ := ctx.Deadline()
	if err := c.Conn().SetWriteDeadline(deadline); err != nil {
		return nil, err
	}
	if err := out.Flush(); err != nil {
		return nil, err
	}
	if err := c.Conn().SetWriteDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return d.collect(ctx, c)
}

// collect reads the answer to the statement.
func (d *database) collect(ctx context.Context, c *connection) (*rows, error) {
	r := &rows{affected: -1}
	var refused error
	for {
		message, err := c.ReceiveMessage(ctx)
		if err != nil {
			if _, tooLong := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); tooLong {
				return nil, errRowTooLarge
			}
			return nil, errors.Join(refused, err)
		}
		switch m := message.(type) {
		case *pgproto3.RowDescription:
			if r.columns != nil {
				return nil, errDescribedTwice
			}
			r.columns = columnsOf(m.Fields)
		case *pgproto3.DataRow:
			if len(m.Values) != len(r.columns) {
				return nil, errOtherColumns
			}
			r.seen++
			r.add(m.Values, d.maxRows, d.maxBytes)
			if r.full && !d.config.Write { // else it is read to its end, so that it can be committed
				r.abandoned = true
				return r, nil
			}
		case *pgproto3.CommandComplete:
			if r.columns == nil {
				r.affected = pgconn.NewCommandTag(string(m.CommandTag)).RowsAffected()
			}
		case *pgproto3.ErrorResponse:
			refused = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ReadyForQuery:
			if r.truncated != "" && d.config.Write {
				r.truncated = fmt.Sprintf("the statement ran to its end and returned %d, of which these are the first %d", r.seen, r.count)
			}
			return r, refused
		}
	}
}

func columnsOf(fields []pgproto3.FieldDescription) []column {
	out := make([]column, len(fields))
	for i, f := range fields {
		out[i] = column{string(wire.Quote(string(f.Name))), f.DataTypeOID}
	}
	return out
}

// add takes a row, unless there are enough.
func (r *rows) add(values [][]byte, maxRows, maxBytes int) {
	if r.count >= maxRows && r.truncated == "" {
		r.truncated = fmt.Sprintf("there are more than %d rows, of which these are the first", maxRows)
	}
	if r.truncated != "" {
		return
	}
	size := len(r.list)
	if r.count > 0 {
		r.list = append(r.list, ',')
	}
	r.list = append(r.list, '{')
	for i, value := range values {
		if i > 0 {
			r.list = append(r.list, ',')
		}
		r.list = append(append(r.list, r.columns[i].key...), ':')
		r.list = appendValue(r.list, r.columns[i].oid, value)
	}
	r.list = append(r.list, '}')
	if len(r.list) > maxBytes {
		r.list = r.list[:size]
		r.truncated, r.full = fmt.Sprintf("all rows are more than %d bytes, and these are the first", maxBytes), true
		return
	}
	r.count++
}

func (r *rows) result(t *tool) *result {
	value := append([]byte(`{"rows":[`), r.list...)
	value = append(value, ']')
	if r.truncated != "" {
		value = append(value, `,"truncated":true`...)
	}
	if r.affected >= 0 {
		value = append(value, `,"rowsAffected":`...)
		value = strconv.AppendInt(value, r.affected, 10)
	}
	value = append(value, '}')
	out := t.structured(value)
	if !out.isError {
		out.structured = value
		if r.truncated != "" {
			out.content = append(out.content, text("Not all rows are here: "+r.truncated+"."))
		}
	}
	return out
}
