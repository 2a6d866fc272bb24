package route

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestWhatIsServedAndNotListedCounts(t *testing.T) {
	t.Parallel()
	const source = "server/web"
	of := func(unlisted int32, backend table.BackendStatus) Heard {
		heard := gatewayOf(backend)
		heard.Unlisted = map[string]int32{backend.Name: unlisted}
		return heard
	}
	for name, tc := range map[string]struct {
		heard  []Heard
		want   []mcpv1alpha1.EffectiveTool
		served int32
	}{
		"one gateway": {
			heard:  []Heard{of(7, web(table.BackendReady, "", served("a")))},
			want:   []mcpv1alpha1.EffectiveTool{effective("a", source, mcpv1alpha1.VerdictServed, "")},
			served: 8,
		},
		"another one has not asked yet": {
			heard:  []Heard{gatewayOf(web(table.BackendUnknown, "")), of(7, web(table.BackendReady, "", served("a")))},
			want:   []mcpv1alpha1.EffectiveTool{effective("a", source, mcpv1alpha1.VerdictServed, "")},
			served: 8,
		},
		"another one lists a problem more, and a tool less that is served": {
			heard: []Heard{
				of(7, web(table.BackendReady, "", served("b"), served("c"))),
				of(8, web(table.BackendReady, "", toolStatus("a", table.ToolInvalid, "x"), served("b"))),
			},
			want: []mcpv1alpha1.EffectiveTool{
				effective("a", source, mcpv1alpha1.VerdictInvalid, "at 1 of 2 gateways: x"),
				effective("b", source, mcpv1alpha1.VerdictServed, ""), effective("c", source, mcpv1alpha1.VerdictServed, ""),
			},
			served: 9,
		},
		"another one cannot reach the server": {
			heard: []Heard{of(7, web(table.BackendReady, "", served("a"))), gatewayOf(web(table.BackendFailed, "Timeout", served("a")))},
			want:  []mcpv1alpha1.EffectiveTool{effective("a", source, mcpv1alpha1.VerdictUnavailable, "at 1 of 2 gateways: it does not answer in time")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, count, _ := Effective(agentOf([]string{"web"}), originsOf([]string{"web"}), tc.heard)
			if diff := cmp.Diff(tc.want, got); diff != "" || count != tc.served {
				t.Errorf("%d are served, want %d; tools (-want +got)\n%s", count, tc.served, diff)
			}
		})
	}
}
