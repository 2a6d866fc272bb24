package table

import (
	"strings"
	"testing"
)

func TestPatternsMatchOriginalNames(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"search", "search", true},
		{"search", "Search", false},
		{"search", "search_web", false},
		{"search", "web_search", false},
		{"*", "", true},
		{"*", "anything", true},
		{"**", "anything", true},
		{"web_*", "web_", true},
		{"web_*", "web_search", true},
		{"web_*", "web", false},
		{"*_delete", "file_delete", true},
		{"*_delete", "file_delete_all", false},
		{"*_delete", "a_delete_b_delete", true},
		{"a*b", "ab", true},
		{"a*a", "a", false},
		{"ab*ba", "aba", false},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "acb", false},
		{"a*bc*c", "abc", false},
		{"*ab*ab*", "ab", false},
		{"*ab*ab*", "xabyabz", true},
		{"a.c", "abc", false},
		{"[ab]", "a", false},
	} {
		if got := matches(tc.pattern, tc.name); got != tc.want {
			t.Errorf("matches(%q, %q) = %v", tc.pattern, tc.name, got)
		}
	}
}

func TestDenyWinsOverAllow(t *testing.T) {
	policy := ToolPolicy{Allow: []string{"web_*", "search"}, Deny: []string{"*_delete"}}
	for _, tc := range []struct {
		name, rule string
		ok         bool
	}{
		{"search", `allow "search"`, true},
		{"web_read", `allow "web_*"`, true},
		{"web_delete", `deny "*_delete"`, false},
		{"other", "allow", false},
	} {
		if ok, rule := policy.Match(tc.name); ok != tc.ok || rule != tc.rule {
			t.Errorf("Match(%q) = %v, %q; want %v, %q", tc.name, ok, rule, tc.ok, tc.rule)
		}
	}
	all := ToolPolicy{Deny: []string{"x"}}
	if ok, rule := all.Match("y"); !ok || rule != "" {
		t.Errorf("without a list Match = %v, %q", ok, rule)
	}
}

func BenchmarkAPatternMadeToGoBackAndForth(b *testing.B) {
	pattern, name := strings.Repeat("a*", 63)+"b", strings.Repeat("a", 10_000)
	for b.Loop() {
		if matches(pattern, name) {
			b.Fatal("matched")
		}
	}
}

func FuzzMatchAgreesWithTheDefinition(f *testing.F) {
	f.Add("a*b", "aab")
	f.Add("*a*", "bab")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 12 || len(name) > 12 {
			t.Skip("the definition takes exponential time")
		}
		if got, want := matches(pattern, name), definition(pattern, name); got != want {
			t.Errorf("matches(%q, %q) = %v", pattern, name, got)
		}
	})
}

// definition is matches as one would say it.
func definition(pattern, name string) bool {
	switch {
	case pattern == "":
		return name == ""
	case pattern[0] == '*':
		return definition(pattern[1:], name) || name != "" && definition(pattern, name[1:])
	default:
		return name != "" && pattern[0] == name[0] && definition(pattern[1:], name[1:])
	}
}
