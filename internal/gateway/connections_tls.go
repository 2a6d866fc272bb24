package gateway

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
)

// securedConnections are connections over TLS.
type securedConnections struct {
	*connections

	config *tls.Config
	logger *slog.Logger
}

// Accept returns the next connection, once there is room for it.
func (c *securedConnections) Accept() (net.Conn, error) {
	conn, err := c.connections.Accept()
	if err != nil {
		return nil, err
	}
	raw, ok := conn.(*connection)
	if !ok {
		return nil, errors.Join(errors.New("accept a connection: it is not counted"), conn.Close())
	}
	raw.ciphered = true
	return &secured{Conn: tls.Server(raw, c.config), raw: raw, logger: c.logger}, nil
}

// secured is a connection over TLS. It is no *tls.Conn to net/http, so that the lines of headers are counted where they can be seen;
// the bytes, of the handshake too, are counted below. The first Read brings the handshake about.
type secured struct {
	*tls.Conn

	raw    *connection
	logger *slog.Logger
}

// Read counts the lines of a header.
func (s *secured) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if err != nil && !s.ConnectionState().HandshakeComplete {
		s.refuse(err)
	}
	if n <= 0 || s.raw.header.Load() < 0 {
		return n, err
	}
	if !s.raw.count(linesCost(p[:n])) {
		return 0, net.ErrClosed
	}
	return n, err
}

// refuse tells of a handshake that failed: the log, and a client that speaks without TLS.
func (s *secured) refuse(err error) {
	var record tls.RecordHeaderError
	if errors.As(err, &record) && record.Conn != nil && slices.Contains(plainStarts, string(record.RecordHeader[:])) {
		_, _ = io.WriteString(record.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nThis address is served over TLS: use https.\n")
	}
	fmt.Fprintf(serverLog{s.logger}, "http: TLS handshake error from %s: %v", s.RemoteAddr(), err)
	_ = s.raw.Close()
}

// plainStarts is what requests without TLS begin with.
var plainStarts = []string{"GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET"}
