package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-operator/mcp-operator/internal/gateway/backend"
	"github.com/mcp-operator/mcp-operator/internal/gateway/credential"
	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// canned is a server that allocates nothing for a request, so that what is measured in its process is the client. It
// answers every request with the same bytes.
func canned(tb testing.TB, response []byte) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answerAlike(conn, response)
		}
	}()
	return "http://" + l.Addr().String() + "/mcp"
}

func answerAlike(conn net.Conn, response []byte) {
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 16<<10)
	for {
		length := 0
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return
			}
			if line = bytes.TrimSpace(line); len(line) == 0 {
				break
			}
			if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				length, _ = strconv.Atoi(string(value)) // it is net/http's
			}
		}
		if _, err := in.Discard(length); err != nil {
			return
		}
		if _, err := conn.Write(response); err != nil {
			return
		}
	}
}

// cannedResponse is the answer to request 1.
func cannedResponse(stream bool, size int) []byte {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":%q}],"resultType":"complete"}}`, strings.Repeat("x", size))
	if stream {
		body = "event: message\ndata: " + body + "\n\n"
		return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"+
			"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	}
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

type fixedCredential struct{}

func (fixedCredential) Apply(h http.Header) error {
	h["Authorization"] = []string{"Bearer token"}
	return nil
}

var fixedRedactor = credential.NewRedactor("Bearer token")

func (fixedCredential) Redactor() *credential.Redactor { return fixedRedactor }

// ways are the channels whose calls are measured, without a server that could open them.
func ways(b *Backend) map[string]backend.Channel {
	legacy := &session{Backend: b, to: b.targetAt("")}
	legacy.to.session, legacy.to.version = "session", wire.Version20251125
	return map[string]backend.Channel{"legacy": legacy, "modern": b.modern()}
}

func BenchmarkCall(b *testing.B) {
	for _, way := range []string{"legacy", "modern"} {
		for _, stream := range []bool{false, true} {
			for _, size := range []int{1 << 10, 1 << 20} {
				name := fmt.Sprintf("%s/%s/%d", way, map[bool]string{false: "JSON", true: "SSE"}[stream], size)
				b.Run(name, func(b *testing.B) {
					up := open(b, canned(b, cannedResponse(stream, size)), func(_ *table.Backend, o *Options) { o.Credential = fixedCredential{} })
					channel := ways(up)[way]
					call := toolCall(`1`, "echo", fmt.Sprintf(`{"text":%q}`, strings.Repeat("y", 1<<10)), channel.Era())
					b.SetBytes(int64(size))
					b.ReportAllocs()
					b.SetParallelism(8)
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							if err := channel.Call(b.Context(), call, ignored{}); err != nil {
								b.Error(err)
								return
							}
						}
					})
				})
			}
		}
	}
}

// BenchmarkBareTransport is the part of BenchmarkCall that net/http needs for itself.
func BenchmarkBareTransport(b *testing.B) {
	for _, stream := range []bool{false, true} {
		b.Run(map[bool]string{false: "JSON", true: "SSE"}[stream], func(b *testing.B) {
			url := canned(b, cannedResponse(stream, 1<<10))
			message := toolCall(`1`, "echo", fmt.Sprintf(`{"text":%q}`, strings.Repeat("y", 1<<10)), backend.Legacy).Message
			transport := &http.Transport{MaxIdleConnsPerHost: 100}
			b.Cleanup(transport.CloseIdleConnections)
			b.ReportAllocs()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader(message.Raw))
					if err != nil {
						b.Error(err)
						return
					}
					response, err := transport.RoundTrip(r)
					if err != nil {
						b.Error(err)
						return
					}
					_, err = io.Copy(io.Discard, response.Body)
					if err = errors.Join(err, response.Body.Close()); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
