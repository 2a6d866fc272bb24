package fair

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamespacesComeInTurnAndOfEachInTheOrderThatIsAskedFor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		order Order
		want  []string
	}{
		"the newest and the oldest in alternation": {Alternating, []string{"a/4", "b/1", "c/2", "a/1", "c/1", "a/3", "a/2"}},
		"the newest first":                         {NewestFirst, []string{"a/4", "b/1", "c/2", "a/3", "c/1", "a/2", "a/1"}},
		"the oldest first":                         {OldestFirst, []string{"a/1", "b/1", "c/1", "a/2", "c/2", "a/3", "a/4"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := Queue[string]{Order: tt.order}
			for _, item := range []string{"a/1", "a/2", "a/3", "a/4", "b/1", "c/1", "c/2"} {
				q.Push(item[:1], item)
			}
			var got []string
			for namespace, item, ok := q.Pop(); ok; namespace, item, ok = q.Pop() {
				got = append(got, item)
				q.Done(namespace)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if len(q.waiting)+len(q.busy)+len(q.order) != 0 {
				t.Errorf("kept: %+v", q)
			}
		})
	}
}

func TestANamespaceThatIsBusyEnoughIsPassedOverUntilOneOfItIsDone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		most int
		want []string
	}{
		"one of each unless it is said": {want: []string{"a/3", "b/1"}},
		"two of each":                   {most: 2, want: []string{"a/3", "b/1", "a/2"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := Queue[string]{Most: tt.most, Order: NewestFirst}
			for _, item := range []string{"a/0", "a/1", "a/2", "a/3", "b/1"} {
				q.Push(item[:1], item)
			}
			var got []string
			for _, item, ok := q.Pop(); ok; _, item, ok = q.Pop() {
				got = append(got, item)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			q.Done("b")
			if _, item, ok := q.Pop(); ok {
				t.Errorf("when another one's is done: %q", item)
			}
			q.Done("a")
			if namespace, _, ok := q.Pop(); !ok || namespace != "a" {
				t.Errorf("when one of it is done: %q, %t", namespace, ok)
			}
		})
	}
}
