package catalog

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestAToolThatIsGrantedByItsWholeNameAndNotOfferedIsMissing(t *testing.T) {
	t.Parallel()
	tools := `{"tools":[` + tool("read", "") + `,{"name":"broken"}]}`
	missing := func(name, original, rule string) table.ToolStatus {
		return table.ToolStatus{
			Name: name, Original: original, Verdict: table.ToolMissing,
			Reason: fmt.Sprintf("%s names %q, and the server offers no tool of that name", rule, original),
		}
	}
	rename := func(original, name string) map[string]string { return map[string]string{original: name} }
	for name, tc := range map[string]struct {
		allow, deny []string
		rename      map[string]string
		truncated   string
		want        []table.ToolStatus
	}{
		"all are there":                {allow: []string{"read"}, rename: rename("read", "look")},
		"a pattern names nothing":      {allow: []string{"*", "write_*"}},
		"one that cannot be offered":   {allow: []string{"broken"}},
		"deny names what shall not be": {deny: []string{"write"}},
		"allow, and deny wins":         {allow: []string{"write"}, deny: []string{"w*"}},
		"rename, and allow has it not": {allow: []string{"read"}, rename: rename("write", "put")},
		"the list goes on and is cut":  {allow: []string{"write"}, truncated: "tools/list"},
		"another list is cut": {
			allow: []string{"write"}, truncated: "prompts/list", want: []table.ToolStatus{missing("web_write", "write", "allow")},
		},
		"allow has it": {
			allow: []string{"read", "write", "erase"},
			want:  []table.ToolStatus{missing("web_erase", "erase", "allow"), missing("web_write", "write", "allow")},
		},
		"rename has it": {
			rename: rename("write", "put"), want: []table.ToolStatus{missing("put", "write", "rename")},
		},
		"allow and rename make one": {
			allow: []string{"write"}, rename: rename("write", "put"), want: []table.ToolStatus{missing("put", "write", "allow")},
		},
		"allow by a pattern, rename by its name": {
			allow: []string{"w*"}, rename: rename("write", "put"), want: []table.ToolStatus{missing("put", "write", "rename")},
		},
	} {
		policy := table.ToolPolicy{Allow: tc.allow, Deny: tc.deny, Rename: tc.rename}
		s := source(t, table.Backend{Name: "b", Prefix: "web_", Tools: policy}, map[string]string{"tools/list": tools})
		if tc.truncated != "" {
			s.Catalog.Truncated = []string{tc.truncated}
		}
		v := Compile([]Source{s}, 0)
		got := slices.DeleteFunc(v.Backends()[0].Tools, func(s table.ToolStatus) bool { return s.Verdict != table.ToolMissing })
		if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		for _, s := range got {
			if route, ok := v.Tool(s.Name); ok {
				t.Errorf("%s: a call of %s goes to %+v", name, s.Name, route)
			}
		}
	}
}

func TestAToolThatIsDroppedIsJudgedByPolicyFirstAndOneThatIsListedTwiceByItsFirstDefinition(t *testing.T) {
	t.Parallel()
	tools := `{"tools":[` + tool("read", "") + `,{"name":"broken"},` + tool("read", "") + `]}`
	type verdicts = map[string]table.ToolVerdict
	for name, tc := range map[string]struct {
		policy table.ToolPolicy
		want   verdicts
	}{
		"all is granted":      {table.ToolPolicy{}, verdicts{"web_read": table.ToolServed, "web_broken": table.ToolInvalid}},
		"it is not granted":   {table.ToolPolicy{Allow: []string{"read"}}, verdicts{"web_read": table.ToolServed, "web_broken": table.ToolDenied}},
		"neither is the twin": {table.ToolPolicy{Deny: []string{"r*"}}, verdicts{"web_read": table.ToolDenied, "web_broken": table.ToolInvalid}},
	} {
		s := source(t, table.Backend{Name: "b", Prefix: "web_", Tools: tc.policy}, map[string]string{"tools/list": tools})
		got := verdicts{}
		for _, status := range Compile([]Source{s}, 0).Backends()[0].Tools {
			if before, twice := got[status.Name]; twice {
				t.Errorf("%s: %s is %s and %s", name, status.Name, before, status.Verdict)
			}
			got[status.Name] = status.Verdict
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
