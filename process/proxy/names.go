package proxy

import (
	"hash/fnv"
	"net/netip"
	"strings"
	"sync"
)

const (
	// namesMax is how many names one session may look up. A crawl of the web has more, a build has hundreds; each has about 200 bytes here.
	namesMax = 10_000

	// firstAddress is of 127.64.0.0/11, whose addresses stand for names.
	firstAddress  = 127<<24 | 64<<16
	addressesBits = 21
)

// names are the addresses by which the programs of a session know names.
type names struct {
	mu      sync.Mutex
	byName  map[string][]netip.Addr
	byAddr  map[netip.Addr]string
	counted int
}

func newNames() *names {
	return &names{byName: map[string][]netip.Addr{}, byAddr: map[netip.Addr]string{}}
}

// fix gives a name an address at which there is a socket for it.
func (n *names) fix(name string, a netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.byAddr[a]; !known && a.IsLoopback() {
		n.byAddr[a] = name
		n.byName[name] = append(n.byName[name], a)
	}
}

// addresses are those of a name; none if there are too many names. The address follows from the name: the next proxy gives it again, and
// programs keep addresses.
func (n *names) addresses(name string) []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	if found := n.byName[name]; found != nil {
		return found
	}
	if n.counted >= namesMax {
		return nil
	}
	n.counted++
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	for place := h.Sum32(); ; place++ {
		v := firstAddress | place&(1<<addressesBits-1)
		a := netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
		if _, taken := n.byAddr[a]; !taken {
			n.byAddr[a], n.byName[name] = name, []netip.Addr{a}
			return n.byName[name]
		}
	}
}

// at is the name of an address.
func (n *names) at(a netip.Addr) (name string, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, known = n.byAddr[a]
	return name, known
}

// isLocalhost reports whether a name is this machine's, which here is the session (RFC 6761).
func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}
