package network

import (
	"fmt"
	"net/netip"
)

// Range is a kind of addresses that are not those of public hosts. The zero value is a public host's.
type Range string

// The ranges. Those up to rangeReserved a person may reach by naming a host; the others only by naming the address.
const (
	rangePublic        Range = ""
	rangeLoopback      Range = "this machine"
	rangePrivate       Range = "a private network"
	rangeLinkLocal     Range = "the local link"
	rangeShared        Range = "a provider's own network"
	rangeBenchmark     Range = "benchmarks"
	rangeDocumentation Range = "documentation"
	rangeProtocol      Range = "protocols"
	rangeReserved      Range = "reserved addresses"

	rangeMetadata    Range = "metadata of a cloud's machine"
	rangeEmbedded    Range = "IPv4 addresses inside IPv6 ones"
	rangeMulticast   Range = "multicast"
	rangeBroadcast   Range = "broadcast"
	rangeUnspecified Range = "no host"
)

// special are the addresses that are not public. The first row that has an address decides. The sources are IANA's registries of
// special-purpose addresses for IPv4 and IPv6 (RFC 6890, as of 2025) and of multicast, and the documents of the clouds.
var special = [...]struct {
	prefix string
	kind   Range
}{
	// Metadata, which hands out the keys of the machine that asks.
	{"169.254.169.254/32", rangeMetadata},     // AWS, Google, Azure, DigitalOcean, Oracle, Hetzner, OpenStack and others
	{"169.254.170.2/32", rangeMetadata},       // AWS: task roles of ECS
	{"169.254.170.23/32", rangeMetadata},      // AWS: pod identities of EKS
	{"169.254.169.253/32", rangeMetadata},     // AWS: the resolver of the VPC
	{"169.254.169.123/32", rangeMetadata},     // AWS: time
	{"169.254.0.23/32", rangeMetadata},        // Tencent
	{"169.254.42.42/32", rangeMetadata},       // Scaleway
	{"100.100.100.200/32", rangeMetadata},     // Alibaba
	{"192.0.0.192/32", rangeMetadata},         // Oracle, classic
	{"168.63.129.16/32", rangeMetadata},       // Azure: WireServer, a public address
	{"fd00:ec2::/32", rangeMetadata},          // AWS: ::254 metadata, ::23 pod identities, ::253 resolver, ::123 time
	{"fd20:ce::254/128", rangeMetadata},       // Google
	{"fd00:42::42/128", rangeMetadata},        // Scaleway
	{"fd00:c1::a9fe:a9fe/128", rangeMetadata}, // Oracle
	{"fe80::a9fe:a9fe/128", rangeMetadata},    // OpenStack

	// IPv4, in IANA's order.
	{"0.0.0.0/8", rangeUnspecified},         // this network, RFC 791; Linux connects 0.0.0.0 to loopback
	{"10.0.0.0/8", rangePrivate},            // RFC 1918
	{"100.64.0.0/10", rangeShared},          // RFC 6598: carriers, and overlays such as Tailscale
	{"127.0.0.0/8", rangeLoopback},          // RFC 1122
	{"169.254.0.0/16", rangeLinkLocal},      // RFC 3927
	{"172.16.0.0/12", rangePrivate},         // RFC 1918
	{"192.0.0.0/24", rangeProtocol},         // RFC 6890: DS-Lite, NAT64 discovery, PCP, TURN
	{"192.0.2.0/24", rangeDocumentation},    // RFC 5737
	{"192.31.196.0/24", rangeProtocol},      // RFC 7535: AS112
	{"192.52.193.0/24", rangeProtocol},      // RFC 7450: AMT
	{"192.88.99.0/24", rangeProtocol},       // RFC 7526: 6to4 relays, deprecated
	{"192.168.0.0/16", rangePrivate},        // RFC 1918
	{"192.175.48.0/24", rangeProtocol},      // RFC 7534: AS112
	{"198.18.0.0/15", rangeBenchmark},       // RFC 2544; some local proxies answer every name with such an address
	{"198.51.100.0/24", rangeDocumentation}, // RFC 5737
	{"203.0.113.0/24", rangeDocumentation},  // RFC 5737
	{"224.0.0.0/4", rangeMulticast},         // RFC 5771
	{"255.255.255.255/32", rangeBroadcast},  // RFC 919
	{"240.0.0.0/4", rangeReserved},          // RFC 1112

	// IPv6, in IANA's order.
	{"::1/128", rangeLoopback},            // RFC 4291
	{"::/128", rangeUnspecified},          // RFC 4291
	{"::/96", rangeEmbedded},              // RFC 4291: compatible addresses, deprecated
	{"::ffff:0:0:0/96", rangeEmbedded},    // RFC 2765: SIIT
	{"64:ff9b:1::/48", rangePrivate},      // RFC 8215: translation inside a network, whose IPv4 part has no fixed place
	{"100::/64", rangeReserved},           // RFC 6666: discard
	{"100:0:0:1::/64", rangeReserved},     // RFC 9780: dummy prefix
	{"2001::/32", rangeEmbedded},          // RFC 4380: Teredo
	{"2001::/23", rangeProtocol},          // RFC 2928: benchmarks 2001:2::/48, AMT, AS112, ORCHID 2001:10::/28 and 2001:20::/28, DRIP
	{"2001:db8::/32", rangeDocumentation}, // RFC 3849
	{"2002::/16", rangeEmbedded},          // RFC 3056: 6to4
	{"2620:4f:8000::/48", rangeProtocol},  // RFC 7534: AS112
	{"3fff::/20", rangeDocumentation},     // RFC 9637
	{"3ffe::/16", rangeReserved},          // RFC 3701: 6bone, returned
	{"5f00::/16", rangeProtocol},          // RFC 9602: SRv6
	{"fc00::/7", rangePrivate},            // RFC 4193
	{"fe80::/10", rangeLinkLocal},         // RFC 4291
	{"fec0::/10", rangePrivate},           // RFC 3879: site-local, deprecated
	{"ff00::/8", rangeMulticast},          // RFC 4291
}

// globalUnicast is what IANA gives to networks. IPv6 addresses outside of it are reserved.
const globalUnicast = "2000::/3"

// translated is the prefix of NAT64, RFC 6052. Behind it is the host of the last 32 bits: networks with IPv6 alone reach every IPv4 host
// in this way.
const translated = "64:ff9b::/96"

// rangeOf is the range of an address. An IPv4 address in an IPv6 one is judged by itself, if the other one leads there.
func rangeOf(a netip.Addr) Range {
	a = a.WithZone("").Unmap() // resolvers write IPv4 as ::ffff:0:0/96
	if !a.IsValid() {
		return rangeUnspecified
	}
	if within(translated, a) {
		bytes := a.As16()
		return rangeOf(netip.AddrFrom4([4]byte(bytes[12:])))
	}
	for _, row := range special {
		if within(row.prefix, a) {
			return row.kind
		}
	}
	if a.Is6() && !within(globalUnicast, a) {
		return rangeReserved
	}
	return rangePublic
}

// within reports whether a prefix has an address. The prefixes are texts, because a table of values would be made at each start of
// each program, and a connection can wait for the two microseconds.
func within(prefix string, a netip.Addr) bool { return netip.MustParsePrefix(prefix).Contains(a) }

// byName reports whether a named host may have an address of the range. The others are no host's that a person could mean by its name.
func (r Range) byName() bool {
	switch r {
	case rangeMetadata, rangeEmbedded, rangeMulticast, rangeBroadcast, rangeUnspecified:
		return false
	}
	return true
}

// AddressError says why an address is not connected to.
type AddressError struct {
	Host  string
	Addr  netip.Addr
	Range Range
}

func (e *AddressError) Error() string {
	remedy := "a person has to name this host in network"
	if !e.Range.byName() {
		remedy = "if it is meant, a person has to name the address itself in network"
	}
	return fmt.Sprintf("%s leads to %s, an address for %s; %s", e.Host, e.Addr, e.Range, remedy)
}

// Address judges an address of the host that allowed a connection: Verdict.Host. An error is an *AddressError.
func (r Rules) Address(h Host, a netip.Addr) error {
	a = a.Unmap()
	kind := rangeOf(a)
	switch {
	case kind == rangePublic,
		h.Named && kind.byName(),
		h.Named && h.Name == a.String(): // the address itself is named
		return nil
	}
	return &AddressError{Host: h.Name, Addr: a, Range: kind}
}
