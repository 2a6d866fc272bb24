package bounded

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheOldestGiveWay(t *testing.T) {
	t.Parallel()
	type put struct {
		key   string
		bytes int
	}
	tests := map[string]struct {
		put   []put
		drop  string
		want  []string
		bytes int
	}{
		"what fits":                       {put: []put{{"a", 4}, {"b", 6}}, want: []string{"a", "b"}, bytes: 10},
		"one too many":                    {put: []put{{"a", 4}, {"b", 6}, {"c", 1}}, want: []string{"b", "c"}, bytes: 7},
		"as many as it takes":             {put: []put{{"a", 4}, {"b", 5}, {"c", 1}, {"d", 9}}, want: []string{"c", "d"}, bytes: 10},
		"one in place of itself":          {put: []put{{"a", 4}, {"b", 5}, {"a", 5}}, want: []string{"b", "a"}, bytes: 10},
		"one that was put again is new":   {put: []put{{"a", 4}, {"b", 5}, {"a", 5}, {"c", 5}}, want: []string{"a", "c"}, bytes: 10},
		"one that is too large by itself": {put: []put{{"a", 4}, {"b", 11}}, want: []string{}},
		"one that is dropped":             {put: []put{{"a", 4}, {"b", 6}}, drop: "a", want: []string{"b"}, bytes: 6},
		"one that was never there":        {put: []put{{"a", 4}}, drop: "b", want: []string{"a"}, bytes: 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m Map[string, int]
			for _, p := range tt.put {
				m.Put(p.key, p.bytes, p.bytes, 10)
			}
			m.Drop(tt.drop)
			if diff := cmp.Diff(tt.want, m.Keys()); diff != "" || m.Bytes() != tt.bytes || len(m.kept) != len(tt.want) {
				t.Errorf("%d bytes (-want +got)\n%s", m.Bytes(), diff)
			}
			sum := 0
			for _, key := range m.Keys() {
				value, ok := m.Get(key)
				if !ok {
					t.Errorf("%s is not there", key)
				}
				sum += value
			}
			if sum != tt.bytes {
				t.Errorf("the values sum up to %d, want %d", sum, tt.bytes)
			}
			if _, ok := m.Get(tt.drop); ok {
				t.Errorf("%s is there still", tt.drop)
			}
		})
	}
}
