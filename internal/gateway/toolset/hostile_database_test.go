package toolset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

// impostor speaks PostgreSQL's protocol as far as it is told to. Each step answers in place of an honest server, and returns false to
// leave that to one.
type impostor struct {
	greet   func(*conversation) bool
	query   func(c *conversation, sql string) bool
	execute func(*conversation) bool

	sent atomic.Int64 // in bytes, to all
}

// conversation is a connection to an impostor.
type conversation struct {
	*pgproto3.Backend

	to   *impostor
	conn net.Conn
}

func (c *conversation) Write(p []byte) (int, error) {
	n, err := c.conn.Write(p)
	c.to.sent.Add(int64(n))
	return n, err
}

// manyBytes are more than anybody takes, and what a socket holds besides.
const (
	manyBytes  = 1 << 30
	mostHeard  = 24 << 20
	pieceBytes = 32 << 10
)

// forever sends a message again and again, until nobody listens.
func (c *conversation) forever(message func(i int) pgproto3.BackendMessage) bool {
	for i := 0; c.to.sent.Load() < manyBytes; i++ {
		c.Send(message(i))
		if c.Flush() != nil {
			break
		}
	}
	return true
}

// described says that rows of these columns come.
func (c *conversation) described(columns ...string) {
	fields := make([]pgproto3.FieldDescription, len(columns))
	for i, name := range columns {
		fields[i] = pgproto3.FieldDescription{Name: []byte(name), DataTypeOID: oidText}
	}
	c.Send(&pgproto3.RowDescription{Fields: fields})
}

func (c *conversation) row(values ...string) {
	c.Send(rowOf(values...))
}

func rowOf(values ...string) *pgproto3.DataRow {
	row := &pgproto3.DataRow{}
	for _, v := range values {
		row.Values = append(row.Values, []byte(v))
	}
	return row
}

func (c *conversation) complete(tag string) {
	c.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
}

const oidText = 25

// serve answers one connection until it ends.
func (s *impostor) serve(conn net.Conn) {
	defer conn.Close()
	c := &conversation{to: s, conn: conn}
	c.Backend = pgproto3.NewBackend(conn, c)
	if _, err := c.ReceiveStartupMessage(); err != nil {
		return
	}
	c.Send(&pgproto3.AuthenticationOk{})
	if s.greet == nil || !s.greet(c) {
		c.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: "17.0"})
	}
	c.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for c.Flush() == nil {
		message, err := c.Receive()
		if _, isOver := message.(*pgproto3.Terminate); isOver || err != nil {
			return
		}
		s.answer(c, message)
	}
}

func (s *impostor) answer(c *conversation, message pgproto3.FrontendMessage) {
	switch m := message.(type) {
	case *pgproto3.Query:
		if s.query == nil || !s.query(c, m.String) {
			c.honest(m.String)
		}
		c.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	case *pgproto3.Parse:
		c.Send(&pgproto3.ParseComplete{})
	case *pgproto3.Describe:
		if m.ObjectType == 'S' {
			c.Send(&pgproto3.ParameterDescription{})
		}
		c.described("a")
	case *pgproto3.Bind:
		c.Send(&pgproto3.BindComplete{})
	case *pgproto3.Execute:
		if s.execute == nil || !s.execute(c) {
			c.row("x")
			c.complete("SELECT 1")
		}
	case *pgproto3.Sync:
		c.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	}
}

// honest answers a command as PostgreSQL does.
func (c *conversation) honest(sql string) {
	if !isExplain(sql) {
		c.complete("OK")
		return
	}
	c.complete("SET")
	c.described("QUERY PLAN")
	c.row(`[{"Plan": {"Node Type": "Result"}}]`)
	c.complete("EXPLAIN")
}

func isExplain(sql string) bool { return strings.Contains(sql, "EXPLAIN") }

// tool is a tool of the impostor's.
func (s *impostor) tool(t *testing.T, change ...func(*table.Backend)) *Backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("it listens at %s", listener.Addr())
	}
	config := table.Backend{AllowPrivate: true, Toolset: &table.Toolset{Postgres: &table.PostgresTool{
		Definition: json.RawMessage(`{"name":"ask","inputSchema":{"type":"object"}}`), Statement: "SELECT 1 AS a",
		Host: "127.0.0.1", Port: address.Port, Database: "d", User: "u", TLS: table.TLSDisable,
	}}}
	for _, f := range change {
		f(&config)
	}
	return open(t, config, Options{})
}

// database is a tool of the impostor's, and what it is made of.
func (s *impostor) database(t *testing.T) (*Backend, *database) {
	t.Helper()
	b := s.tool(t)
	d, ok := b.source.(*database)
	if !ok {
		t.Fatal("it is no database")
	}
	return b, d
}

// onQuery answers the commands that begin so.
func onQuery(prefix string, answer func(*conversation) bool) *impostor {
	return &impostor{query: func(c *conversation, sql string) bool { return strings.HasPrefix(sql, prefix) && answer(c) }}
}

func onExplain(answer func(*conversation) bool) *impostor {
	return &impostor{query: func(c *conversation, sql string) bool { return isExplain(sql) && answer(c) }}
}

func TestAnHonestDatabaseOfTheImpostorsKindIsServed(t *testing.T) {
	if got := call(t, (&impostor{}).tool(t), "ask", `{}`); string(got.Structured) != `{"rows":[{"a":"x"}]}` {
		t.Errorf("answered %s", got.text())
	}
}

// TestADatabaseThatAnswersWhatNoDatabaseDoesIsRefused: with a failure of that tool alone, and before it has sent much.
func TestADatabaseThatAnswersWhatNoDatabaseDoesIsRefused(t *testing.T) {
	big := strings.Repeat("x", pieceBytes)
	row := func(int) pgproto3.BackendMessage { return rowOf(big) }
	notice := func(int) pgproto3.BackendMessage { return &pgproto3.NoticeResponse{Message: big} }
	setting := func(i int) pgproto3.BackendMessage {
		return &pgproto3.ParameterStatus{Name: fmt.Sprint("x", i), Value: big}
	}
	notification := func(int) pgproto3.BackendMessage { return &pgproto3.NotificationResponse{Channel: "c", Payload: big} }
	forever := func(message func(int) pgproto3.BackendMessage, columns ...string) func(*conversation) bool {
		return func(c *conversation) bool {
			if columns != nil {
				c.described(columns...)
			}
			return c.forever(message)
		}
	}
	answer := func(send ...pgproto3.BackendMessage) func(*conversation) bool {
		return func(c *conversation) bool {
			for _, m := range send {
				c.Send(m)
			}
			return true
		}
	}
	none := &pgproto3.RowDescription{}
	done := &pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")}
	const endless, unasked = "it sends notices, settings or other messages without end", "it sends more rows than it was asked for"
	const columns = "a row has other columns than it described"
	for name, tc := range map[string]struct {
		is   *impostor
		says string
	}{
		"a plan without columns":    {onExplain(answer(done, none, &pgproto3.DataRow{}, done)), errPlanColumns.why},
		"a row with more values":    {&impostor{execute: answer(rowOf("x", "y"), done)}, columns},
		"a row without values":      {&impostor{execute: answer(&pgproto3.DataRow{}, done)}, columns},
		"rows described twice":      {&impostor{execute: answer(none, &pgproto3.DataRow{}, done)}, errDescribedTwice.why},
		"rows without end":          {&impostor{execute: forever(func(int) pgproto3.BackendMessage { return rowOf("x") })}, unasked},
		"notices in a result":       {&impostor{execute: forever(notice)}, endless},
		"settings in a result":      {&impostor{execute: forever(setting)}, endless},
		"a plan without end":        {onExplain(forever(row, "QUERY PLAN")), unasked},
		"rows for BEGIN":            {onQuery("BEGIN", forever(row, "q")), unasked},
		"rows for ROLLBACK":         {onQuery("ROLLBACK", forever(row, "q")), unasked},
		"notices for BEGIN":         {onQuery("BEGIN", forever(notice)), endless},
		"settings for BEGIN":        {onQuery("BEGIN", forever(setting)), endless},
		"notifications for BEGIN":   {onQuery("BEGIN", forever(notification)), endless},
		"descriptions for BEGIN":    {onQuery("BEGIN", forever(func(int) pgproto3.BackendMessage { return none })), endless},
		"notices before the login":  {&impostor{greet: forever(notice)}, endless},
		"settings before the login": {&impostor{greet: forever(setting)}, endless},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, tc.is.tool(t), "tools/call", `{"name":"ask","arguments":{}}`)
			failure, ok := errors.AsType[*backend.Error](err)
			if want := "the database's answer breaks the protocol: " + tc.says; !ok || failure.Class != classServerError || failure.Detail != want {
				t.Errorf("answered %v, want %s", err, want)
			}
			if sent := tc.is.sent.Load(); sent > mostHeard {
				t.Errorf("it was listened to for %d bytes", sent)
			}
		})
	}
}

// The rows of a statement that may write are read to their end, and where there is none for as long as a call may take.
func TestRowsWithoutEndOfAStatementThatMayWriteEndWithTheCall(t *testing.T) {
	s := &impostor{execute: func(c *conversation) bool { return c.forever(func(int) pgproto3.BackendMessage { return rowOf("x") }) }}
	b := s.tool(t, func(config *table.Backend) { config.TimeoutSeconds, config.Toolset.Postgres.Write = 1, true })
	_, err := ask(t, b, "tools/call", `{"name":"ask","arguments":{}}`)
	if failure, ok := errors.AsType[*backend.Error](err); !ok || failure.Class != classTimeout || !failure.Sent {
		t.Errorf("answered %v", err)
	}
}

func TestAConnectionIsNotKeptThatBringsRowsForItsReset(t *testing.T) {
	is := onQuery("DISCARD", func(c *conversation) bool { return c.forever(func(int) pgproto3.BackendMessage { return rowOf("x") }) })
	b, d := is.database(t)
	if got := call(t, b, "ask", `{}`); string(got.Structured) != `{"rows":[{"a":"x"}]}` {
		t.Errorf("answered %s", got.text())
	}
	d.pool.mu.Lock()
	defer d.pool.mu.Unlock()
	if len(d.pool.idle) != 0 || is.sent.Load() > mostHeard {
		t.Errorf("%d connections are kept, after %d bytes", len(d.pool.idle), is.sent.Load())
	}
}

func TestSettingsThatAddUpCostTheConnection(t *testing.T) {
	is := onQuery("BEGIN", func(c *conversation) bool {
		for i := range 12 {
			c.Send(&pgproto3.ParameterStatus{Name: fmt.Sprint(c.to.sent.Load(), "x", i), Value: strings.Repeat("x", pieceBytes)})
		}
		return false
	})
	b, d := is.database(t)
	var kept []int
	for range 3 { // the first one finds out first what it calls
		call(t, b, "ask", `{}`)
		d.pool.mu.Lock()
		kept = append(kept, len(d.pool.idle))
		d.pool.mu.Unlock()
	}
	if diff := cmp.Diff([]int{1, 0, 1}, kept); diff != "" {
		t.Errorf("connections kept after each call, -want +got:\n%s", diff)
	}
}

func TestAPlanOfMoreThanAMebibyteIsRefused(t *testing.T) {
	for size, want := range map[int]string{maxPlan - 100: "", maxPlan + 1: errPlanTooLarge.why} {
		is := onExplain(func(c *conversation) bool {
			c.complete("SET")
			c.described("QUERY PLAN")
			c.row(`"Node Type": "Result"` + strings.Repeat(" ", size-len(`"Node Type": "Result"`)))
			c.complete("EXPLAIN")
			return true
		})
		_, err := is.tool(t).Describe(testContext(t))
		if failure, ok := errors.AsType[*backend.Error](err); ok != (want != "") || ok && (failure.Class != classStatement || failure.Detail != want) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestAnArrayOfMoreDimensionsThanThereAreIsText(t *testing.T) {
	deep := strings.Repeat("{", 7) + strings.Repeat("}", 7)
	if got := string(appendValue(nil, 1009, []byte(deep))); got != `"`+deep+`"` {
		t.Errorf("7 dimensions are %s", got)
	}
	if got, want := string(appendValue(nil, 1009, []byte("{{{{{{a}}}}},{}}"))), `[[[[[["a"]]]]],[]]`; got != want {
		t.Errorf("6 dimensions are %s, want %s", got, want)
	}
	endless := bytes.Repeat([]byte("{"), 8<<20)
	if got := appendValue(nil, 1009, endless); got[0] != '"' {
		t.Errorf("it begins with %.10s", got)
	}
}
