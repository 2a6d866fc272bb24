package observer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/route"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func manyTools(n int, verdict table.ToolVerdict) []table.ToolStatus {
	var tools []table.ToolStatus
	for i := range n {
		tools = append(tools, table.ToolStatus{Name: fmt.Sprintf("%s%d", verdict, i), Original: "o", Digest: "d", Verdict: verdict, Reason: "r"})
	}
	return tools
}

func TestOfAGatewayIsKeptWhatIsTold(t *testing.T) {
	t.Parallel()
	status := &table.Status{Revision: "r", TableError: "e", Backends: []table.BackendStatus{{
		Name: "server-web", State: table.BackendFailed, ErrorClass: "TLS", ErrorDetail: "more", Since: time.Now(), ServerName: "web", ServerVersion: "1",
		ProtocolVersions: []string{"2025-11-25"}, CatalogDigest: "c", Tools: manyTools(1, table.ToolDenied), Child: &table.ChildStatus{Running: 1},
		PromptCount: 1, ResourceCount: 1, Unread: []string{"prompts/list"}, Truncated: []string{"tools/list"},
		Conflicts: []table.NameConflict{{Kind: "prompt", Name: "a", Backends: []string{"server-web", "tool-x"}}}, ConflictCount: 2,
	}}}
	strip(status)
	want := &table.Status{Revision: "r", TableError: "e", Backends: []table.BackendStatus{{
		Name: "server-web", State: table.BackendFailed, ErrorClass: "TLS", ErrorDetail: "more",
		Tools:     []table.ToolStatus{{Name: "Denied0", Digest: "d", Verdict: table.ToolDenied, Reason: "r"}},
		Truncated: []string{"tools/list"}, Unread: []string{"prompts/list"},
		Conflicts: []table.NameConflict{{Kind: "prompt", Name: "a", Backends: []string{"server-web", "tool-x"}}}, ConflictCount: 2,
	}}}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestWhatIsKeptOfAGatewayIsBounded: what it leaves out is counted all the same.
func TestWhatIsKeptOfAGatewayIsBounded(t *testing.T) {
	t.Parallel()
	backend := func(name string, state table.BackendState, tools ...[]table.ToolStatus) table.BackendStatus {
		return table.BackendStatus{Name: name, State: state, Tools: slices.Concat(tools...)}
	}
	small := func(count int) (list []table.BackendStatus) {
		for i := range count {
			list = append(list, backend(fmt.Sprintf("small%d", i), table.BackendReady, manyTools(10, table.ToolServed)))
		}
		return list
	}
	for name, tt := range map[string]struct {
		backends []table.BackendStatus
		kept     map[string]int // of each backend, by verdict
		unlisted map[string]int32
	}{
		"few": {
			backends: []table.BackendStatus{backend("large", table.BackendReady, manyTools(2048, table.ToolServed))},
			kept:     map[string]int{"large Served": 2048}, unlisted: map[string]int32{},
		},
		"what is held back makes room first": {
			backends: []table.BackendStatus{
				backend("large", table.BackendReady, manyTools(1000, table.ToolDenied), manyTools(1000, table.ToolServed), manyTools(24, table.ToolInvalid)),
				backend("small", table.BackendReady, manyTools(100, table.ToolServed)),
			},
			kept:     map[string]int{"large Invalid": 24, "large Served": 1000, "large Denied": 924, "small Served": 100},
			unlisted: map[string]int32{},
		},
		"one is large, and the others stay whole": {
			backends: append(small(15), backend("large", table.BackendReady, manyTools(1900, table.ToolServed))),
			kept:     map[string]int{"large Served": 1898, "small Served": 150}, unlisted: map[string]int32{"large": 2},
		},
		"two are large, and share what is left": {
			backends: append(small(4),
				backend("large", table.BackendReady, manyTools(1500, table.ToolServed)),
				backend("failed", table.BackendFailed, manyTools(1600, table.ToolServed))),
			kept: map[string]int{"large Served": 1004, "failed Served": 1004, "small Served": 40}, unlisted: map[string]int32{"large": 496},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := &table.Status{Backends: tt.backends}
			unlisted, kept := strip(status), map[string]int{}
			for _, b := range status.Backends {
				for _, tool := range b.Tools {
					kept[strings.TrimRight(b.Name, "0123456789")+" "+string(tool.Verdict)]++
				}
				if c := cap(b.Tools); c > len(b.Tools)+len(b.Tools)/4+64 {
					t.Errorf("room for %d tools of %s is kept", c, b.Name)
				}
			}
			if diff := cmp.Diff(tt.kept, kept); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tt.unlisted, unlisted); diff != "" {
				t.Errorf("served and left out (-want +got)\n%s", diff)
			}
		})
	}
}

// TestTheOrderOfAListTellsNothing: a server may list its tools in another one each time it is asked.
func TestTheOrderOfAListTellsNothing(t *testing.T) {
	t.Parallel()
	keep := func(shuffle func([]table.ToolStatus)) *route.Heard {
		tools := slices.Concat(manyTools(3000, table.ToolServed), manyTools(20, table.ToolConflict), manyTools(20, table.ToolDenied))
		shuffle(tools)
		heard := &route.Heard{Status: table.Status{Backends: []table.BackendStatus{{Name: "large", State: table.BackendReady, Tools: tools}}}}
		heard.Unlisted = strip(&heard.Status)
		return heard
	}
	first := keep(func([]table.ToolStatus) {})
	if again := keep(slices.Reverse[[]table.ToolStatus]); !same(first, again) {
		t.Errorf("(-first +reversed)\n%s", cmp.Diff(first, again))
	}
	if n := first.Unlisted["large"]; n != 972 {
		t.Errorf("%d are left out, want 972", n)
	}
}
