package mcp

import (
	"errors"
	"net/netip"
	"testing"
)

// addresses says for each whether the policies let it be dialled.
var addresses = []struct {
	addr            string
	cluster, public bool
}{
	{"10.0.0.1", true, false},
	{"172.16.3.4", true, false},
	{"192.168.1.1", true, false},
	{"100.64.0.1", true, false}, // shared range: pods of some clouds
	{"198.18.0.1", true, false},
	{"fd12:3456::1", true, false},
	{"8.8.8.8", true, true},
	{"2600:1900::1", true, true},
	{"::ffff:8.8.8.8", true, true},
	{"64:ff9b::8.8.8.8", true, true},
	{"2001:db8::1", true, false},
	{"192.0.2.1", true, false},
	{"240.0.0.1", true, false},

	{"127.0.0.1", false, false},
	{"127.255.255.254", false, false},
	{"::1", false, false},
	{"0.0.0.0", false, false},
	{"0.1.2.3", false, false},
	{"::", false, false},
	{"169.254.1.1", false, false},
	{"169.254.169.254", false, false},
	{"fe80::1", false, false},
	{"fe80::1%eth0", false, false},
	{"fec0::1", false, false},
	{"224.0.0.1", false, false},
	{"ff02::1", false, false},
	{"255.255.255.255", false, false},
	{"fd00:ec2::254", false, false},
	{"fd20:ce::254", false, false},
	{"100.100.100.200", false, false},
	{"168.63.129.16", false, false},
	{"192.0.0.192", false, false},

	{"::ffff:127.0.0.1", false, false},
	{"::ffff:169.254.169.254", false, false},
	{"::ffff:100.100.100.200", false, false},
	{"::ffff:0.1.2.3", false, false},
	{"fd00:ec2::254%eth0", false, false},
	{"::127.0.0.1", false, false},
	{"::ffff:0:127.0.0.1", false, false},
	{"64:ff9b::127.0.0.1", false, false},
	{"64:ff9b::a9fe:a9fe", false, false},
	{"64:ff9b::10.0.0.1", true, false},
	{"64:ff9b:1::169.254.169.254", false, false},
	{"64:ff9b:1:a9fe:a9:fe00::", false, false},
	{"64:ff9b:1::8.8.8.8", false, false}, // its /48 form is 0.0.0.0
	{"2002:7f00:1::", false, false},
	{"2002:a9fe:a9fe::1", false, false},
	{"2002:808:808::1", true, true},
}

func TestAddressPolicies(t *testing.T) {
	t.Parallel()
	for _, tc := range addresses {
		addr := netip.MustParseAddr(tc.addr)
		if got := (Guard{Allow: AllowCluster}).Allows(addr); got != tc.cluster {
			t.Errorf("AllowCluster lets %s: %v", tc.addr, got)
		}
		if got := (Guard{Allow: AllowPublic}).Allows(addr); got != tc.public {
			t.Errorf("AllowPublic lets %s: %v", tc.addr, got)
		}
	}
}

func TestAGuardRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	all := Guard{Allow: func(netip.Addr) bool { return true }}
	cases := []struct{ network, address string }{
		{"tcp4", "2130706433:80"}, // 127.0.0.1 as a number
		{"tcp4", "0177.0.0.1:80"}, // with an octal part
		{"tcp4", "0x7f.0.0.1:80"},
		{"tcp4", "127.1:80"},
		{"tcp", "localhost:80"},
		{"tcp", "10.0.0.1"},
		{"tcp", ""},
		{"udp", "10.0.0.1:53"},
		{"unix", "/run/x.sock"},
	}
	for _, tc := range cases {
		if err := all.Control(tc.network, tc.address, nil); !errors.Is(err, ErrAddressDenied) {
			t.Errorf("%s %q: %v", tc.network, tc.address, err)
		}
	}
	if err := all.Control("tcp6", "[2600::1%eth0]:80", nil); err != nil {
		t.Errorf("a plain address: %v", err)
	}
	if err := (Guard{}).Control("tcp", "8.8.8.8:80", nil); !errors.Is(err, ErrAddressDenied) {
		t.Errorf("a guard without a policy: %v", err)
	}
}
