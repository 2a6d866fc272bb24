package gateway

import (
	"fmt"
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

func TestARequestIsBoundedByWhatTheFlagsSay(t *testing.T) {
	g := launch.Serve(t, binary, []table.Backend{{Name: "server", URL: serve(t, modernOnly(small("server", "who")))}},
		"--max-header-bytes", "8192", "--max-json-members", "20")
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"m%d":%d`, i, i)
		}
		return `{"first":1` + b.String() + `}`
	}
	for name, tc := range map[string]struct {
		arguments string
		want      int
	}{
		"a few members": {members(10), http.StatusOK},
		"too many":      {members(20), http.StatusBadRequest},
	} {
		body, headers := modernCall("who", tc.arguments)
		if r, answer := post(t, g.URL, body, append(headers, "X-Words", strings.Repeat("x", 4<<10))...); r.StatusCode != tc.want {
			t.Errorf("%s: %s, want %d: %.200s", name, r.Status, tc.want, answer)
		}
	}
	r, err := http.NewRequest(http.MethodPost, g.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Words", strings.Repeat("x", 16<<10))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return // the connection may end before the answer was read
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header that is too large: %s", response.Status)
	}
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
