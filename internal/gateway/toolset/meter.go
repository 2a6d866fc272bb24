package toolset

import (
	"encoding/binary"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	// maxSaid bounds what a server says besides rows, from the moment a connection is handed out until it is given back, in bytes: notices,
	// settings, notifications, descriptions. maxSettings bounds what it says of settings on a connection that is used again, since each
	// name of one is kept.
	maxSaid     = 2 << 20
	maxSettings = 1 << 20
)

// answerError says what a server answered that no PostgreSQL server answers. It holds nothing that the server sent.
type answerError struct{ why string }

func (e *answerError) Error() string { return "the database's answer breaks the protocol: " + e.why }

var (
	errSaidTooMuch = &answerError{"it sends notices, settings or other messages without end"}
	errRowsUnasked = &answerError{"it sends more rows than it was asked for"}
)

// errNotPostgres is the error of a server whose first words are none of PostgreSQL's.
var errNotPostgres = errors.New("what answers there does not speak PostgreSQL")

// opens says whether a server's first message can be of the kind: Authentication, ErrorResponse, NoticeResponse, NegotiateProtocolVersion.
func opens(kind byte) bool { return kind == 'R' || kind == 'E' || kind == 'N' || kind == 'v' }

// asked is a connection on which TLS was asked for.
type asked struct {
	net.Conn

	isAnswered bool
}

// Read refuses a first byte that is no answer to that: yes, no, or the begin of an error.
func (a *asked) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	if n > 0 && !a.isAnswered {
		if p[0] != 'S' && p[0] != 'N' && p[0] != 'E' {
			return 0, errNotPostgres
		}
		a.isAnswered = true
	}
	return n, err
}

// answerErrorOf is the answerError in an error, or nil.
func answerErrorOf(err error) *answerError {
	found, _ := errors.AsType[*answerError](err)
	return found
}

// meter reads what a server sends, and stops where it is more than was asked for: nothing else bounds how much that is, since the
// client library reads a command's answer to its end, and keeps the settings that it is told.
type meter struct {
	from io.Reader

	rows     int   // that may still come
	said     int64 // what else may still come, in bytes
	settings int64 // what was said of settings, in bytes

	header [5]byte // of the message that comes: its kind, and its length without the kind
	got    int     // of the header
	left   int64   // of the message behind its header
	heard  bool    // a whole header: it is PostgreSQL that speaks
}

// frontend makes the client's side of a connection whose server is metered. It is for pgconn.Config.BuildFrontend.
func (m *meter) frontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	m.from = r
	m.handedOut()
	return pgproto3.NewFrontend(m, w)
}

// handedOut begins a new use of the connection, in which no rows were asked for yet.
func (m *meter) handedOut() { m.rows, m.said = 0, maxSaid }

// Read reads, and looks at what messages there are.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	if wrong := m.count(p[:n]); wrong != nil {
		return 0, wrong
	}
	return n, err
}

func (m *meter) count(p []byte) error {
	for len(p) > 0 {
		if m.left > 0 {
			n := min(m.left, int64(len(p)))
			p, m.left = p[n:], m.left-n
			continue
		}
		if !m.heard && m.got == 0 && !opens(p[0]) {
			return errNotPostgres
		}
		n := copy(m.header[m.got:], p)
		p, m.got = p[n:], m.got+n
		if m.got < len(m.header) {
			continue
		}
		m.got = 0
		length := int64(binary.BigEndian.Uint32(m.header[1:])) // with the four bytes of its own
		if !m.heard && (length < 4 || length > maxSaid) {
			return errNotPostgres
		}
		m.heard = true
		m.left = max(length-4, 0) // the one who reads the message refuses less
		if err := m.begin(m.header[0], m.left+int64(len(m.header))); err != nil {
			return err
		}
	}
	return nil
}

// begin counts a message of a kind and size.
func (m *meter) begin(kind byte, size int64) error {
	switch kind {
	case 'D': // DataRow
		if m.rows--; m.rows < 0 {
			return errRowsUnasked
		}
		return nil
	case 'S': // ParameterStatus
		m.settings += size
	}
	if m.said -= size; m.said < 0 {
		return errSaidTooMuch
	}
	return nil
}
