package observer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

func TestConflictsAreKeptAsTheyMayBeShown(t *testing.T) {
	t.Parallel()
	const invisible, turned = "\u200b", "\u202e"
	conflict := func(kind, name string, backends ...string) table.NameConflict {
		return table.NameConflict{Kind: kind, Name: name, Backends: backends}
	}
	for name, tt := range map[string]struct{ told, want []table.NameConflict }{
		"sorted, each once": {
			told: []table.NameConflict{conflict("resource", "b", "y", "x"), conflict("prompt", "c", "x", "y"), conflict("resource", "b", "x", "y")},
			want: []table.NameConflict{conflict("prompt", "c", "x", "y"), conflict("resource", "b", "x", "y")},
		},
		"of no kind that there is": {told: []table.NameConflict{conflict("tool", "a", "x"), conflict("<b>", "a", "x")}},
		"a name that would mislead": {
			told: []table.NameConflict{conflict("prompt", "a\n"+turned+"b"+invisible, "x\x1b[31m", "y")},
			want: []table.NameConflict{conflict("prompt", "a b", "x [31m", "y")},
		},
		"a name that is too long": {
			told: []table.NameConflict{conflict("prompt", strings.Repeat("é", 200), "x")},
			want: []table.NameConflict{conflict("prompt", strings.Repeat("é", 126)+"…", "x")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, conflictsOf(tt.told)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	var many []table.NameConflict
	for i := range 5000 {
		many = append(many, conflict("prompt", fmt.Sprint(i), strings.Fields(strings.Repeat("x ", 5000))...))
	}
	if got := conflictsOf(many); len(got) != table.MaxConflicts || len(got[0].Backends) != 1 {
		t.Errorf("%d are kept, of %d backends", len(got), len(got[0].Backends))
	}
}

func TestOnlyListsThatThereAreCanBeUnread(t *testing.T) {
	t.Parallel()
	got := unreadOf([]string{"resources/list", "prompts/list", "resources/list", "tools/list", "\x1b"})
	if diff := cmp.Diff([]string{"prompts/list", "resources/list"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
