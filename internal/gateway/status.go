package gateway

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"os"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/internal/version"
)

// status serves what the gateway learned, as a table.Status, to whoever has the token of the file.
func (g *gateway) status(tokenFile string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want, err := os.ReadFile(tokenFile)
		want = bytes.TrimSpace(want)
		got, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if err != nil || len(want) == 0 || !isBearer || subtle.ConstantTimeCompare(want, []byte(got)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the status token is missing or wrong", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(g.learned())
	})
}

// learned is what the gateway knows of its table and backends.
func (g *gateway) learned() table.Status {
	s := table.Status{GatewayVersion: version.String(), Formats: []int{table.Version}, Draining: g.tables.draining.Load()}
	current := g.tables.current.Load() // first: what is refused is told of none that came into use since
	if refused := g.tables.refused.Load(); refused != nil {
		s.TableError = (*refused).Error()
	}
	if current == nil {
		return s
	}
	s.Revision = current.Table.Revision
	for _, b := range current.Backends {
		s.Backends = append(s.Backends, g.front.StatusOf(b))
	}
	return s
}
