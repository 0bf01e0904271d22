package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Host is one host that may be reached.
type Host struct {
	// Name is a name in small letters, a pattern such as *.example.org, or an address in its usual form.
	Name string `json:"name"`
	// Port is the only port. 0: those of the web, 443 and 80.
	Port int `json:"port,omitempty"`
	// Named: a person named this host, so it may be private, on loopback, and at its port. A pattern is not named, because who owns a
	// name below it is not known.
	Named bool `json:"named,omitempty"`
}

const (
	nameBytesMax  = 253 // of a name in the DNS
	labelBytesMax = 63  // of a part of it
)

// webPorts are those of a host without a port.
var webPorts = [...]int{443, 80}

// Ports of a session that are the proxy's own.
const (
	ProxyPort = 61080 // in the range for private use, where no service is registered
	NamesPort = 53
)

// Reserved reports whether a port of a session's loopback is the proxy's, so that no other service can be there.
func Reserved(port int) bool { return IsWeb(port) || port == ProxyPort || port == NamesPort }

// IsWeb reports whether a port is one of the web, which a host without a port has.
func IsWeb(port int) bool { return slices.Contains(webPorts[:], port) }

// String is the host as people write it.
func (h Host) String() string {
	name := h.Name
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if h.Port == 0 {
		return name
	}
	return name + ":" + strconv.Itoa(h.Port)
}

// ParseHost reads host, host:port, *.example.org, an IPv4 address, [v6] or [v6]:port. An error is a sentence without a subject.
func ParseHost(text string) (Host, error) {
	if _, rest, found := strings.Cut(text, "://"); found {
		rest, _, _ = strings.Cut(rest, "/")
		return Host{}, fmt.Errorf("is an address of a page; write its host alone, such as %s", quote(rest))
	}
	if strings.Contains(text, "/") {
		return Host{}, errors.New("has a path or a range; write one host, such as example.org or example.org:8443")
	}
	name, port, err := splitPort(lower(text))
	if err != nil {
		return Host{}, err
	}
	return hostOf(name, port)
}

// lower writes the letters of ASCII small. The others stay: Unicode has letters whose small form is one of ASCII, such as the Kelvin sign.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// splitPort splits host:port and [v6]:port. The port is 0 if there is none.
func splitPort(text string) (name string, port int, err error) {
	name, after, found := strings.Cut(text, ":")
	switch {
	case strings.HasPrefix(text, "["):
		inner, rest, bracketed := strings.Cut(text[1:], "]")
		if addr, err := netip.ParseAddr(inner); !bracketed || err != nil || !addr.Is6() {
			return "", 0, errors.New("has brackets without an IPv6 address in them; write it like [2001:db8::1]:8443")
		}
		if rest == "" {
			return inner, 0, nil
		}
		name, found = inner, strings.HasPrefix(rest, ":")
		after = strings.TrimPrefix(rest, ":")
	case !found || strings.Contains(after, ":"):
		return text, 0, nil
	}
	n, err := strconv.ParseUint(after, 10, 16)
	if err != nil || n == 0 || !found || after != strconv.FormatUint(n, 10) {
		return "", 0, errors.New("has no port from 1 to 65535 after the colon; write it like example.org:8443")
	}
	return name, int(n), nil
}

// hostOf is the host that a person named. name is in small letters.
func hostOf(name string, port int) (Host, error) {
	host := Host{Name: name, Port: port, Named: true}
	if rest, pattern := strings.CutPrefix(name, "*."); pattern {
		if spelling(rest) != plain {
			return Host{}, errors.New("is no pattern of public names; write it like *.example.org, with two parts after the star")
		}
		host.Named = false
		return host, nil
	}
	switch spelling(name) {
	case literal:
		addr, _ := netip.ParseAddr(name)
		switch {
		case addr.Is4In6():
			return Host{}, fmt.Errorf("is an IPv4 address inside an IPv6 one; write %s", addr.Unmap())
		case slices.Contains([]Range{rangeUnspecified, rangeMulticast, rangeBroadcast}, rangeOf(addr)):
			return Host{}, errors.New("is the address of no single host")
		}
		host.Name = addr.String()
	case single:
		if port == 0 {
			return Host{}, fmt.Errorf("is neither model, packages, none nor all, and a host's name in one part needs its port, such as %s",
				quote(name+":443"))
		}
	case odd:
		return Host{}, errors.New(oddFault(name))
	case plain, local:
	}
	return host, nil
}

// oddFault says what is wrong with a name.
func oddFault(name string) string {
	switch {
	case strings.ContainsFunc(name, func(r rune) bool { return r > '~' }):
		return "has letters outside of ASCII; write the name in its ASCII form, which begins with xn--"
	case strings.Contains(name, "*"):
		return "has a star in it; a pattern begins with *. and two parts follow, as in *.example.org"
	case strings.HasSuffix(name, "."):
		return "ends with a dot; write the name without it"
	case endsInNumber(name):
		return "is an address in an odd form; write four decimal numbers such as 10.0.0.5, or IPv6 in brackets"
	}
	return "is not the name of a host: letters, digits, dashes and dots, 253 at most, each part 63 at most"
}

// pattern reports whether the host stands for the names below one.
func (h Host) pattern() bool { return strings.HasPrefix(h.Name, "*.") }

// covers reports whether the host is the one that has a name, or a pattern of it. name is in small letters, an address in its usual form.
func (h Host) covers(name string, port int) bool {
	if h.Port != port && (h.Port != 0 || !IsWeb(port)) {
		return false
	}
	if h.pattern() {
		return len(name) >= len(h.Name) && strings.HasSuffix(name, h.Name[1:])
	}
	return h.Name == name
}

// spelled says what kind of text the name of a host is.
type spelled int

const (
	plain   spelled = iota // a name of the DNS with two parts or more
	single                 // a name in one part, such as localhost
	local                  // a name below a zone that is not the public DNS's, such as build.internal
	literal                // an address in a form that every program reads in the same way
	odd                    // anything else
)

// localZones are the ends of names that do not belong to the public DNS, or that machines answer themselves.
var localZones = []string{
	"localhost", // RFC 6761, 6.3
	"local",     // RFC 6762: multicast DNS
	"internal",  // ICANN, 2024-07-29: for private use; Google's metadata server is metadata.google.internal
	"arpa",      // RFC 3172: reverse look-ups; home.arpa (RFC 8375), ipv4only.arpa (RFC 7050), resolver.arpa (RFC 9462)
	"onion",     // RFC 7686: must not be looked up
	"alt",       // RFC 9476: outside of the DNS
}

// spelling reads a name in small letters.
func spelling(name string) spelled {
	if addr, err := netip.ParseAddr(name); err == nil && addr.Zone() == "" {
		return literal
	}
	if name == "" || len(name) > nameBytesMax || endsInNumber(name) {
		return odd
	}
	labels := 0
	for label := range strings.SplitSeq(name, ".") {
		labels++
		if label == "" || len(label) > labelBytesMax || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.ContainsFunc(label, func(r rune) bool { return !isLetterOrDigit(r) && r != '-' }) {
			return odd
		}
	}
	switch {
	case labels == 1:
		return single
	case slices.Contains(localZones, name[strings.LastIndexByte(name, '.')+1:]):
		return local
	}
	return plain
}

func isLetterOrDigit(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' }

// endsInNumber reports whether programs read a name as an IPv4 address: its last part, or that before a final dot, is a number, as in
// 127.1, 0x7f.1 and 2130706433 (WHATWG URL, "ends in a number").
func endsInNumber(name string) bool {
	name = strings.TrimSuffix(name, ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	if hex, is := strings.CutPrefix(last, "0x"); is {
		return !strings.ContainsFunc(hex, func(r rune) bool { return !('0' <= r && r <= '9' || 'a' <= r && r <= 'f') })
	}
	return last != "" && !strings.ContainsFunc(last, func(r rune) bool { return r < '0' || r > '9' })
}
