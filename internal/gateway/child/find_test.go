package child

import (
	"errors"
	"testing"
)

func TestTwoErrorsThatSayTheSameAreToldOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first, second error
		want          string
	}{
		"the same":  {errors.New("a"), errors.New("a"), "a"},
		"different": {errors.New("a"), errors.New("b"), "a\nb"},
		"one":       {nil, errors.New("b"), "b"},
	} {
		if got := both(tc.first, tc.second); got.Error() != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
