package route

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestOfAServersToolsARefusedAgentIsShownWhatBothPoliciesLetThrough(t *testing.T) {
	t.Parallel()
	type grant struct {
		policy  mcpv1alpha1.ToolPolicy
		trusted bool
	}
	for name, tc := range map[string]struct {
		was, is grant
		want    table.ToolPolicy
		trusted bool
	}{
		"a tool is denied": {
			grant{}, grant{policy: mcpv1alpha1.ToolPolicy{Deny: []string{"delete"}}}, table.ToolPolicy{Deny: []string{"delete"}}, false,
		},
		"another tool is denied": {
			grant{policy: mcpv1alpha1.ToolPolicy{Deny: []string{"delete_*"}}},
			grant{policy: mcpv1alpha1.ToolPolicy{Deny: []string{"delete_all", "drop"}}},
			table.ToolPolicy{Deny: []string{"delete_*", "drop"}},
			false,
		},
		"fewer tools are allowed": {
			grant{}, grant{policy: mcpv1alpha1.ToolPolicy{Allow: []string{"get_*"}}}, table.ToolPolicy{Allow: []string{"get_*"}}, false,
		},
		"all tools are allowed": {
			grant{policy: mcpv1alpha1.ToolPolicy{Allow: []string{"get_*"}}}, grant{}, table.ToolPolicy{Allow: []string{"get_*"}}, false,
		},
		"other tools are allowed": {
			grant{policy: mcpv1alpha1.ToolPolicy{Allow: []string{"get_*", "list"}}},
			grant{policy: mcpv1alpha1.ToolPolicy{Allow: []string{"get_a*", "get_*", "add"}}},
			table.ToolPolicy{Allow: []string{"get_*"}},
			false,
		},
		"no tool is allowed that was": {
			grant{policy: mcpv1alpha1.ToolPolicy{Allow: []string{"a"}}},
			grant{policy: mcpv1alpha1.ToolPolicy{Allow: []string{"b"}}},
			table.ToolPolicy{Allow: []string{}},
			false,
		},
		"none is allowed": {
			grant{}, grant{policy: mcpv1alpha1.ToolPolicy{Allow: []string{}}}, table.ToolPolicy{Allow: []string{}}, false,
		},
		"patterns only overlap": {
			grant{policy: mcpv1alpha1.ToolPolicy{Allow: []string{"a*"}}},
			grant{policy: mcpv1alpha1.ToolPolicy{Allow: []string{"*b"}}},
			table.ToolPolicy{Allow: []string{}},
			false,
		},
		"only what reads is": {
			grant{trusted: true}, grant{policy: mcpv1alpha1.ToolPolicy{ReadOnly: true}, trusted: true}, table.ToolPolicy{ReadOnly: true}, true,
		},
		"only what reads is, by the word of a server that is trusted now": {
			grant{}, grant{policy: mcpv1alpha1.ToolPolicy{ReadOnly: true}, trusted: true}, table.ToolPolicy{ReadOnly: true}, true,
		},
		"what writes is, too": {
			grant{policy: mcpv1alpha1.ToolPolicy{ReadOnly: true, DenyDestructive: true}, trusted: true},
			grant{},
			table.ToolPolicy{ReadOnly: true, DenyDestructive: true},
			true,
		},
		"the server is trusted": {grant{}, grant{trusted: true}, table.ToolPolicy{}, false},
		"names are others": {
			grant{policy: mcpv1alpha1.ToolPolicy{Rename: map[string]mcpv1alpha1.ToolName{"a": "b"}}},
			grant{policy: mcpv1alpha1.ToolPolicy{Rename: map[string]mcpv1alpha1.ToolName{"a": "c"}}},
			table.ToolPolicy{Rename: map[string]string{"a": "b"}},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := servedInput(t)
			web := &in.Agent.Spec.Servers[0]
			web.Tools, web.Trusted = &tc.was.policy, tc.was.trusted
			out, err := Compile(in)
			if err != nil || len(out.Table.Backends) != 3 {
				t.Fatalf("verdicts %v, error %v", out.Verdicts, err)
			}
			in.Written = Read(out.JSON, out.Table.Revision)
			web.Tools, web.Trusted, web.Prefix = &tc.is.policy, tc.is.trusted, "other_"
			in.Agent.Spec.Auth.Audiences = []string{refusedAudience}
			got := withdrawn(t, in).Backends[0]
			if diff := cmp.Diff(tc.want, got.Tools); diff != "" || got.Trusted != tc.trusted || got.Prefix != "web_" {
				t.Errorf("trusted %t, prefix %q, policy (-want +got)\n%s", got.Trusted, got.Prefix, diff)
			}
		})
	}
}

// TestAPolicyThatNoServerCanHaveShowsNothing: readOnly of one that is not trusted.
func TestAPolicyThatNoServerCanHaveShowsNothing(t *testing.T) {
	t.Parallel()
	in := servedInput(t)
	in.Agent.Spec.Servers[0].Tools = &mcpv1alpha1.ToolPolicy{ReadOnly: true}
	in.Agent.Spec.Auth.Audiences = []string{refusedAudience}
	if diff := cmp.Diff([]string{"tool-orders", "tool-stock"}, backendNames(withdrawn(t, in))); diff != "" {
		t.Errorf("backends (-want +got)\n%s", diff)
	}
}

// TestPatternsInCommonLetThroughNothingElse tries every pair of patterns of up to three of a, b and '*' with every name of up to four.
func TestPatternsInCommonLetThroughNothingElse(t *testing.T) {
	t.Parallel()
	words := func(alphabet string, most int) []string {
		all, last := []string(nil), []string{""}
		for range most {
			var next []string
			for _, word := range last {
				for _, letter := range alphabet {
					next = append(next, word+string(letter))
				}
			}
			all, last = append(all, next...), next
		}
		return all
	}
	lets := func(patterns []string, name string) bool {
		policy := table.ToolPolicy{Allow: patterns}
		ok, _ := policy.Match(name)
		return ok
	}
	patterns, names := words("ab*", 3), words("ab", 4)
	served := 0
	for _, a := range patterns {
		for _, b := range patterns {
			both := commonPatterns([]string{a}, []string{b})
			if both == nil {
				t.Fatalf("%s and %s: what they have in common lets everything through", a, b)
			}
			for _, name := range names {
				isLet := lets(both, name)
				if isLet && (!lets([]string{a}, name) || !lets([]string{b}, name)) {
					t.Fatalf("%s and %s: %v lets %s through", a, b, both, name)
				}
				if a == b && isLet != lets([]string{a}, name) {
					t.Fatalf("%s with itself: %v does not let %s through as before", a, both, name)
				}
				if isLet {
					served++
				}
			}
		}
	}
	if served == 0 {
		t.Error("nothing is ever let through")
	}
}
