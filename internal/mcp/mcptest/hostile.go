package mcptest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Silent never answers.
func Silent() http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
}

// Drip begins an answer and sends one more byte each interval, for ever.
func Drip(interval time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		flush := http.NewResponseController(w)
		for write(w, " ") && flush.Flush() == nil {
			select {
			case <-ticker.C:
			case <-r.Context().Done():
				return
			}
		}
	})
}

// Endless sends head and then chunk for ever.
func Endless(contentType, head, chunk string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		ok := write(w, head)
		for ok && r.Context().Err() == nil {
			ok = write(w, chunk)
		}
	})
}

// HugeHeader sends a header of n bytes.
func HugeHeader(n int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Huge", strings.Repeat("a", n))
		write(w, "{}")
	})
}

// GzipBomb sends a small compressed body that becomes n bytes.
func GzipBomb(n int) http.Handler {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	chunk := bytes.Repeat([]byte(" "), 1<<16)
	for written := 0; written < n; written += len(chunk) {
		// A bytes.Buffer does not fail.
		_, _ = z.Write(chunk)
	}
	_ = z.Close()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	})
}

// Page is the text/html of a web server that knows nothing of MCP, with the
// given status, whatever it is asked.
func Page(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		Raw(w, status, "text/html", "<html><head><title>Welcome to nginx!</title></head></html>")
	})
}

// Status answers everything with an HTTP status and a body of canary text.
func Status(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, Canary, status)
	})
}

// Canary is text that hostile servers put into bodies and headers, and that must
// never be seen in a message.
const Canary = "canary-7f3a"

// Unauthorized answers 401 with the given WWW-Authenticate headers.
func Unauthorized(challenges ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, c := range challenges {
			w.Header().Add("WWW-Authenticate", c)
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
}

// HostGuard answers status, which is 403 or 421, to all Host headers but the
// allowed ones.
func HostGuard(status int, next http.Handler, allowed ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(allowed, r.Host) {
			http.Error(w, "Invalid Host header", status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Redirect sends everybody to another place.
func Redirect(to string) http.Handler {
	return http.RedirectHandler(to, http.StatusTemporaryRedirect)
}

// EndlessPages lists one tool a page and always another cursor.
func EndlessPages() http.Handler {
	return Legacy(Script{"tools/list": func(w http.ResponseWriter, call Call) {
		Result(w, call, fmt.Sprintf(`{"tools":[],"nextCursor":%q}`, call.Cursor+"x"))
	}})
}

// RepeatedCursor lists pages in a circle.
func RepeatedCursor() http.Handler {
	return Legacy(Script{"tools/list": func(w http.ResponseWriter, call Call) {
		next := map[string]string{"": "a", "a": "b", "b": "a"}[call.Cursor]
		Result(w, call, fmt.Sprintf(`{"tools":[],"nextCursor":%q}`, next))
	}})
}

// ManyTools lists n tools on pages of the given size.
func ManyTools(n, page int) http.Handler {
	return Modern(Script{"tools/list": func(w http.ResponseWriter, call Call) {
		var first int
		if call.Cursor != "" {
			if _, err := fmt.Sscanf(call.Cursor, "%d", &first); err != nil {
				Fail(w, call, http.StatusOK, -32602, "bad cursor")
				return
			}
		}
		last := min(first+page, n)
		w.Header().Set("Content-Type", "application/json")
		writef(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[`, call.ID)
		for i := first; i < last; i++ {
			if i > first {
				write(w, ",")
			}
			writef(w, `{"name":"tool-%06d","inputSchema":{"type":"object"}}`, i)
		}
		write(w, "]")
		if last < n {
			writef(w, `,"nextCursor":"%d"`, last)
		}
		write(w, "}}")
	}})
}

// write reports whether the client still listens.
func write(w http.ResponseWriter, text string) bool {
	_, err := io.WriteString(w, text)
	return err == nil
}
