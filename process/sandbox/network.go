package sandbox

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

// Inside is the network of a view: a namespace that has only loopback, with sockets that a proxy outside answers. A socket stays in the
// namespace in which it was made, so the proxy accepts connections of the view without being in it. Process 1 makes the sockets and
// hands them over with [Started]; then the channel of View.Report is a unix socket. Without a proxy nothing is answered, and nothing
// else is reached.
type Inside struct {
	More []wire.Socket `json:"more,omitempty"` // beside those that each view has: hosts that a person named with a port, and local ports
}

// InsideOf is the network of a view for the rules of its session.
func InsideOf(rules network.Rules) *Inside {
	in := &Inside{}
	for i, h := range rules.Hosts {
		if h.Named && h.Port != 0 {
			in.More = append(in.More, wire.Socket{Kind: wire.KindNamed, Host: i, Port: h.Port})
		}
	}
	for _, port := range rules.Local {
		in.More = append(in.More, wire.Socket{Kind: wire.KindLocal, Port: port})
	}
	return in
}

// Sockets are all sockets of the view, in the order in which process 1 hands them over. It answers each byte at the one of
// [wire.KindSockets] with a new TCP socket of the view, the byte '6' with one of IPv6.
func (in *Inside) Sockets() []wire.Socket {
	all := make([]wire.Socket, 0, len(everyView)+len(in.More))
	for _, kind := range everyView {
		all = append(all, wire.Socket{Kind: kind})
	}
	return append(all, in.More...)
}

// everyView are the sockets that each view has.
var everyView = [...]wire.Kind{wire.KindProxy, wire.KindDNS, wire.KindDNSTCP, wire.KindTLS, wire.KindHTTP, wire.KindSockets}

// insideMax bounds the other sockets: the kernel carries 253 descriptors in one message.
const insideMax = 240

// namedAddress is the address in a view of the host with a place in the rules.
func namedAddress(host int) [4]byte { return [4]byte{127, 96, byte((host + 1) >> 8), byte(host + 1)} }

func (in *Inside) check(by Mechanism) error {
	if in == nil {
		return nil
	}
	if by != ByNamespaces {
		return errors.New("a view without namespaces has no network of its own")
	}
	if n := len(in.More); n > insideMax {
		return fmt.Errorf("%d hosts with a port and ports of this machine, %d are the most; name fewer", n, insideMax)
	}
	for i, s := range in.More {
		switch isPort := s.Port > 0 && s.Port < 1<<16; {
		case !isPort, slices.Contains(in.More[:i], s):
		case s.Kind == wire.KindNamed && s.Host >= 0 && s.Host < 1<<16-1:
			continue
		case s.Kind == wire.KindLocal && !network.Reserved(s.Port):
			continue
		}
		return fmt.Errorf("the view cannot have the socket %q for port %d: a port is a number up to 65535, once in the list, and none that is its way into the network", s.Kind, s.Port)
	}
	return nil
}
