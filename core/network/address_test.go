package network

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// The rows of the table are prefixes without bits behind them, each once, and each one decides something.
func TestSpecial(t *testing.T) {
	seen := map[netip.Prefix]bool{}
	for _, row := range special {
		prefix, err := netip.ParsePrefix(row.prefix)
		if err != nil || prefix.Masked() != prefix || seen[prefix] {
			t.Errorf("%s is no prefix, or is there twice: %v", row.prefix, err)
			continue
		}
		seen[prefix] = true
		if got := rangeOf(prefix.Addr()); got == rangePublic {
			t.Errorf("the first address of %s is public", row.prefix)
		}
	}
}

// Each address is of one range. The first and the last address of each range are there, and their neighbours outside.
func TestRangeOf(t *testing.T) {
	for kind, addresses := range map[Range]string{
		rangePublic: `1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.255.255 169.255.0.0
			172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 203.0.114.0
			223.255.255.255 168.63.129.15 2000::1 2001:200::1 2001:4860:4860::8888 2003::1 2606:4700::1 2a00::1
			2001:db7::1 2001:db9::1 2620:4f:8001::1 3fff:1000::1 ::ffff:1.1.1.1 64:ff9b::1.1.1.1 64:ff9b::808:808`,
		rangeLoopback: "127.0.0.0 127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 64:ff9b::127.0.0.1",
		rangePrivate: `10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 fc00::1 fdff::1 fd12:3456::1 fec0::1 feff::1
			::ffff:10.0.0.1 ::ffff:192.168.1.1 64:ff9b::10.0.0.1 64:ff9b:1::10.0.0.1 64:ff9b:1:ffff::1 fd00:42::41`,
		rangeLinkLocal:     "169.254.0.0 169.254.0.1 169.254.255.255 fe80::1 fe80::1%eth0 febf::1 ::ffff:169.254.1.1",
		rangeShared:        "100.64.0.0 100.100.100.100 100.127.255.255 64:ff9b::100.64.0.1",
		rangeBenchmark:     "198.18.0.0 198.19.255.255",
		rangeDocumentation: "192.0.2.0 192.0.2.255 198.51.100.1 203.0.113.255 2001:db8::1 2001:db8:ffff::1 3fff::1 3fff:fff::1",
		rangeProtocol: `192.0.0.0 192.0.0.170 192.0.0.255 192.31.196.1 192.52.193.1 192.88.99.1 192.175.48.1 2001:1::1 2001:2::1 2001:10::1
			2001:1ff:ffff::1 2620:4f:8000::1 5f00::1`,
		rangeReserved: `240.0.0.0 255.255.255.254 100:: 100:0:0:1::1 200::1 400::1 1fff::1 3ffe::1 4000::1 6000::1 fbff::1 fe00::1 fe7f::1
			64:ff9a::1 64:ff9b:2::1 64:ff9b:0:0:0:1::`,
		rangeMetadata: `169.254.169.254 169.254.170.2 169.254.170.23 100.100.100.200 192.0.0.192 168.63.129.16 fd00:ec2::254 fd00:ec2::23
			fd20:ce::254 fd00:42::42 fe80::a9fe:a9fe fe80::a9fe:a9fe%eth0 ::ffff:169.254.169.254 64:ff9b::169.254.169.254 64:ff9b::a9fe:a9fe`,
		rangeEmbedded:    "::10.0.0.1 ::1.1.1.1 ::ffff:0:1.1.1.1 2001::1 2001:0:1::1 2002::1 2002:101:101::1 2002:7f00:1::1",
		rangeMulticast:   "224.0.0.0 224.0.0.251 239.255.255.255 ff02::1 ff05::2 ffff::1",
		rangeBroadcast:   "255.255.255.255 ::ffff:255.255.255.255",
		rangeUnspecified: "0.0.0.0 0.255.255.255 :: ::ffff:0.0.0.0",
	} {
		for text := range strings.FieldsSeq(addresses) {
			if got := rangeOf(netip.MustParseAddr(text)); got != kind {
				t.Errorf("%s: %q, not %q", text, got, kind)
			}
		}
	}
	if rangeOf(netip.Addr{}) == rangePublic {
		t.Error("the zero value is public")
	}
}

// An address of a special range is refused for a name, unless a person named it; some only if a person named the address.
func TestAddress(t *testing.T) {
	table, name := Host{Name: "example.org"}, Host{Name: "example.org", Named: true}
	for text, want := range map[string]struct{ table, name, itself bool }{
		"1.1.1.1":                {true, true, true},
		"2606:4700::1":           {true, true, true},
		"10.0.0.5":               {false, true, true},
		"127.0.0.1":              {false, true, true},
		"::1":                    {false, true, true},
		"fd12::1":                {false, true, true},
		"198.18.0.7":             {false, true, true},
		"240.0.0.1":              {false, true, true},
		"169.254.169.254":        {false, false, true},
		"::ffff:169.254.169.254": {false, false, false}, // ParseHost takes its IPv4 form alone
		"168.63.129.16":          {false, false, true},
		"fd00:ec2::254":          {false, false, true},
		"2002:7f00:1::1":         {false, false, true},
		"224.0.0.251":            {false, false, false},
		"0.0.0.0":                {false, false, false},
	} {
		addr := netip.MustParseAddr(text)
		if got := (Rules{}).Address(table, addr) == nil; got != want.table {
			t.Errorf("%s, of the tables: %v", text, got)
		}
		if got := (Rules{}).Address(name, addr) == nil; got != want.name {
			t.Errorf("%s, of a named name: %v", text, got)
		}
		host, err := ParseHost(text)
		if got := err == nil && (Rules{}).Address(host, addr) == nil; got != want.itself {
			t.Errorf("%s, named itself: %v, %v", text, got, err)
		}
	}
	if err := (Rules{}).Address(Host{Name: "169.254.169.254", Named: true}, netip.MustParseAddr("::ffff:169.254.169.254")); err != nil {
		t.Errorf("a named address as resolvers write it: %v", err)
	}
	err := Rules{}.Address(table, netip.MustParseAddr("10.0.0.5"))
	if refused := (*AddressError)(nil); !errors.As(err, &refused) || refused.Range != rangePrivate ||
		err.Error() != "example.org leads to 10.0.0.5, an address for a private network; a person has to name this host in network" {
		t.Errorf("%v", err)
	}
	err = Rules{}.Address(name, netip.MustParseAddr("169.254.169.254"))
	if err == nil || !strings.HasSuffix(err.Error(), "if it is meant, a person has to name the address itself in network") {
		t.Errorf("%v", err)
	}
}
