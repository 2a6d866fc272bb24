//go:build linux

package network

import (
	"net"
	"testing"
)

func TestOnlyARouteInsideTheClustersRangeIsInTheWay(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		route string
		want  bool
	}{
		"the same range":       {"10.244.0.0/16", true},
		"a part of it":         {"10.244.7.0/24", true},
		"a wider one of a VPN": {"10.0.0.0/8", false},
		"the default route":    {"0.0.0.0/0", false},
		"a neighbour":          {"10.245.0.0/16", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, route, err := net.ParseCIDR(tc.route)
			if err != nil {
				t.Fatal(err)
			}
			if got := within(route, subnet("10.244.0.0/16")); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
