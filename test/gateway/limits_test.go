package gateway

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
	"github.com/mcp-operator/mcp-operator/test/launch"
)

func TestOfAServerWithTooManyToolsTheFirstAreServed(t *testing.T) {
	g := launch.Serve(t, binary, []table.Backend{
		{Name: "a", Prefix: "a_", URL: serve(t, modernOnly(small("a", "one", "two", "three")))},
		{Name: "b", Prefix: "b_", URL: serve(t, streamable(nil)(small("b", "one", "two")))},
	}, "--max-tools", "2")
	names := connect(t, g.URL, modern).tools(t)
	slices.Sort(names)
	if diff := cmp.Diff([]string{"a_one", "a_three", "b_one", "b_two"}, names); diff != "" {
		t.Errorf("tools -want +got:\n%s", diff)
	}
}

// wordy is a handler whose responses have a header of 8 KiB and more.
func wordy(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Words", strings.Repeat("word", 2<<10))
		handler.ServeHTTP(w, r)
	})
}

func TestTheHeaderOfABackendsResponseIsBounded(t *testing.T) {
	backends := []table.Backend{
		{Name: "wordy", Prefix: "wordy_", URL: serve(t, wordy(modernOnly(small("wordy", "who"))))},
		{Name: "terse", Prefix: "terse_", URL: serve(t, modernOnly(small("terse", "who")))},
	}
	for limit, want := range map[string][]string{"65536": {"terse_who", "wordy_who"}, "4096": {"terse_who"}} {
		g := launch.Serve(t, binary, backends, "--max-response-header-bytes", limit, "--hold", "100ms")
		names := connect(t, g.URL, modern).tools(t)
		slices.Sort(names)
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("with a limit of %s: tools -want +got:\n%s", limit, diff)
		}
	}
}
