package observer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	}}}
	strip(status)
	want := &table.Status{Revision: "r", TableError: "e", Backends: []table.BackendStatus{{
		Name: "server-web", State: table.BackendFailed, ErrorClass: "TLS", ErrorDetail: "more",
		Tools: []table.ToolStatus{{Name: "Denied0", Digest: "d", Verdict: table.ToolDenied, Reason: "r"}},
	}}}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatIsKeptOfAGatewayIsBounded(t *testing.T) {
	t.Parallel()
	status := &table.Status{Backends: []table.BackendStatus{
		{Name: "large", Tools: slices.Concat(manyTools(1000, table.ToolDenied), manyTools(1000, table.ToolServed), manyTools(24, table.ToolInvalid))},
		{Name: "small", Tools: manyTools(100, table.ToolServed)},
	}}
	strip(status)
	kept := map[string]int{}
	for _, b := range status.Backends {
		for _, tool := range b.Tools {
			kept[b.Name+" "+string(tool.Verdict)]++
		}
	}
	want := map[string]int{"large Invalid": 24, "large Served": 1000, "small Served": 100}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if c := cap(status.Backends[0].Tools); c > 1024+256 {
		t.Errorf("room for %d tools is kept", c)
	}
}
