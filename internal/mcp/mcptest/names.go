package mcptest

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
)

// Names answers, until the test ends, whatever name this process looks up, with the addresses that the function it returns was given
// last. Tests that use it must not run in parallel.
func Names(t *testing.T) (stand func(addresses ...string)) {
	t.Helper()
	var stored atomic.Pointer[[]netip.Addr]
	stand = func(addresses ...string) {
		parsed := make([]netip.Addr, len(addresses))
		for i, address := range addresses {
			parsed[i] = netip.MustParseAddr(address)
		}
		stored.Store(&parsed)
	}
	stand()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	before, ended := net.DefaultResolver, make(chan struct{})
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	go func() {
		defer close(ended)
		for query := make([]byte, 4096); ; {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			if answer := resolve(query[:n], *stored.Load()); answer != nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = server.Close()
		<-ended
	})
	return stand
}

// resolve answers a query of one question (RFC 1035), or returns nil for what is none.
func resolve(query []byte, addresses []netip.Addr) []byte {
	const (
		header   = 12
		typeA    = 1
		typeAAAA = 28
	)
	end := header
	for end < len(query) && query[end] != 0 {
		end += int(query[end]) + 1
	}
	if end+5 > len(query) {
		return nil
	}
	kind := binary.BigEndian.Uint16(query[end+1:])
	var found []netip.Addr
	for _, address := range addresses {
		if kind == typeA && address.Is4() || kind == typeAAAA && address.Is6() {
			found = append(found, address)
		}
	}
	// A response without error, recursion desired and available; one question, the answers, nothing else.
	answer := append([]byte{}, query[:2]...)
	answer = append(answer, 0x81, 0x80, 0, 1, 0, byte(len(found)), 0, 0, 0, 0)
	answer = append(answer, query[header:end+5]...)
	for _, address := range found {
		data := address.AsSlice()
		answer = append(answer, 0xc0, header) // the name of the question
		answer = binary.BigEndian.AppendUint16(answer, kind)
		answer = append(answer, 0, 1, 0, 0, 0, 0, 0, byte(len(data)))
		answer = append(answer, data...)
	}
	return answer
}

// Everywhere listens on every address of this machine, until the test ends.
func Everywhere(t *testing.T) (listener net.Listener, port string) {
	t.Helper()
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	if _, port, err = net.SplitHostPort(listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	return listener, port
}
