package reconcile

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPauseIsReadAsATruthValueAndWhatIsNoneIsTold(t *testing.T) {
	t.Parallel()
	const told = "The annotation example.com/paused is %, which is neither true nor false, and pauses nothing: set it to true, or remove it"
	tests := map[string]struct {
		annotations map[string]string
		paused      bool
		unreadable  string // the value as it is told
	}{
		"no annotation":      {},
		"another annotation": {annotations: map[string]string{"example.com/other": "true"}},
		"true":               {annotations: map[string]string{"example.com/paused": "true"}, paused: true},
		"True":               {annotations: map[string]string{"example.com/paused": "True"}, paused: true},
		"1":                  {annotations: map[string]string{"example.com/paused": "1"}, paused: true},
		"false":              {annotations: map[string]string{"example.com/paused": "false"}},
		"0":                  {annotations: map[string]string{"example.com/paused": "0"}},
		"yes is not guessed": {annotations: map[string]string{"example.com/paused": "yes"}, unreadable: `"yes"`},
		"no value":           {annotations: map[string]string{"example.com/paused": ""}, unreadable: `""`},
		"a long value is cut": {
			annotations: map[string]string{"example.com/paused": strings.Repeat("x", 99)}, unreadable: `"` + strings.Repeat("x", 32) + `"`,
		},
		"what would draw lies": {annotations: map[string]string{"example.com/paused": "a\n\u202eb"}, unreadable: `"a\n\u202eb"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := ""
			if tt.unreadable != "" {
				want = strings.Replace(told, "%", tt.unreadable, 1)
			}
			paused, problem := IsPaused(&metav1.ObjectMeta{Annotations: tt.annotations}, "example.com/paused")
			if paused != tt.paused || problem != want {
				t.Errorf("paused: %t, want %t; problem\n%s, want\n%s", paused, tt.paused, problem, want)
			}
		})
	}
}
