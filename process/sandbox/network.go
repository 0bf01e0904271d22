package sandbox

import (
	"errors"
	"fmt"
	"slices"
)

// Inside is the network of a view: a namespace that has only loopback, with sockets that a proxy outside answers. A socket stays in the
// namespace in which it was made, so the proxy accepts connections of the view without being in it. Process 1 makes the sockets and
// hands them over with [Started]; then the channel of View.Report is a unix socket. Without a proxy nothing is answered, and nothing
// else is reached.
type Inside struct {
	Named []Named `json:"named,omitempty"` // hosts that a person named with a port
	Local []int   `json:"local,omitempty"` // ports of this machine's loopback
}

// Named is a host with a port, by its place in the list of the proxy's rules.
type Named struct{ Host, Port int }

// Kind says what a socket of a view is for.
type Kind string

const (
	KindProxy   Kind = "proxy"   // TCP, at ProxyPort: requests of programs that know proxies
	KindDNS     Kind = "dns"     // UDP: name look-ups
	KindDNSTCP  Kind = "dns-tcp" // TCP: long ones
	KindTLS     Kind = "tls"     // TCP, port 443 of every address
	KindHTTP    Kind = "http"    // TCP, port 80 of every address
	KindNamed   Kind = "named"   // TCP, at an address for one host, see NamedAddress
	KindLocal   Kind = "local"   // TCP, a port of loopback that leads to the same port outside
	KindSockets Kind = "sockets" // unix: process 1 answers each byte with a new TCP socket of the view, for '6' one of IPv6
)

// ProxyPort is above the ports that the kernel gives to connections, which end at 60999.
const ProxyPort = 61080

// Socket is one socket of a view.
type Socket struct {
	Kind Kind
	Host int // of KindNamed
	Port int // of KindNamed and KindLocal
}

// insideMax bounds the sockets that a person names: the kernel carries 253 in one message.
const insideMax = 240

// Sockets are all sockets of the view, in the order in which process 1 hands them over.
func (in *Inside) Sockets() []Socket {
	all := []Socket{{Kind: KindProxy}, {Kind: KindDNS}, {Kind: KindDNSTCP}, {Kind: KindTLS}, {Kind: KindHTTP}, {Kind: KindSockets}}
	for _, n := range in.Named {
		all = append(all, Socket{KindNamed, n.Host, n.Port})
	}
	for _, port := range in.Local {
		all = append(all, Socket{Kind: KindLocal, Port: port})
	}
	return all
}

// NamedAddress is the address in a view of the host with a place in the list of rules.
func NamedAddress(host int) [4]byte { return [4]byte{127, 96, byte((host + 1) >> 8), byte(host + 1)} }

func (in *Inside) check(by Mechanism) error {
	if in == nil {
		return nil
	}
	if by != ByNamespaces {
		return errors.New("a view without namespaces has no network of its own")
	}
	if n := len(in.Named) + len(in.Local); n > insideMax {
		return fmt.Errorf("%d hosts with a port and ports of this machine, %d are the most; name fewer", n, insideMax)
	}
	for i, n := range in.Named {
		if n.Host < 0 || n.Host >= 1<<16-1 || !isPort(n.Port) || slices.Contains(in.Named[:i], n) {
			return fmt.Errorf("host %d at port %d cannot be in a view", n.Host, n.Port)
		}
	}
	for i, port := range in.Local {
		if !isPort(port) || port == ProxyPort || port == portDNS || slices.Contains(in.Local[:i], port) {
			return fmt.Errorf("port %d of this machine cannot be in a view: a port is a number up to 65535, once in the list, and not %d or %d, which the view has for itself", port, portDNS, ProxyPort)
		}
	}
	return nil
}

const portDNS = 53

func isPort(p int) bool { return p > 0 && p < 1<<16 }
