package proxy

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/network"
)

// query makes a question.
func query(name string, kind uint16) []byte {
	q := []byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(name, ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	return append(q, 0, byte(kind>>8), byte(kind), 0, classInternet)
}

// lookUp asks the session's DNS.
func (r *rig) lookUp(packet []byte) []byte {
	r.t.Helper()
	c, err := net.Dial("udp", r.sockets["dns"].String())
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write(packet); err != nil {
		r.t.Fatal(err)
	}
	answer := make([]byte, 4096)
	n, err := c.Read(answer)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer[:n]
}

// address is the only address of a name in the session.
func (r *rig) address(name string) string {
	r.t.Helper()
	answer := r.lookUp(query(name, typeA))
	if code(answer[3]&15) != codeOK || binary.BigEndian.Uint16(answer[6:]) != 1 {
		r.t.Fatalf("%s: %x", name, answer)
	}
	return netip.AddrFrom4([4]byte(answer[len(answer)-4:])).String()
}

// Names have addresses of the session's own, and nothing is looked up outside.
func TestNames(t *testing.T) {
	r := newRig(t, public("example.org"), nil)
	ours := netip.MustParsePrefix("127.64.0.0/11")
	seen := map[string]string{}
	for _, name := range []string{"example.org", "evil.org", "a.b.c.example.org"} { // allowed, and not: the answer comes with the connection
		a := r.address(name)
		if seen[a] != "" || !ours.Contains(netip.MustParseAddr(a)) || r.address(strings.ToUpper(name)) != a {
			t.Errorf("%s is %s", name, a)
		}
		seen[a] = name
	}
	if a := r.address("localhost"); a != "127.0.0.1" {
		t.Errorf("localhost is %s", a)
	}
	edns := append([]byte{1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1}, query("example.org", typeA)[12:]...)
	edns = append(edns, 0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0)
	for _, tc := range []struct {
		name    string
		packet  []byte
		code    code
		answers uint16
	}{
		{"IPv6", query("example.org", 28), codeOK, 0},
		{"HTTPS", query("example.org", 65), codeOK, 0},
		{"TXT", query("example.org", 16), codeOK, 0},
		{"one label", query("db", typeA), codeNoName, 0},
		{"an address", query("10.0.0.1", typeA), codeNoName, 0},
		{"a local name", query("printer.local", typeA), codeNoName, 0},
		{"an odd name", query("a_b.example.org", typeA), codeNoName, 0},
		{"a reverse name", query("1.0.0.127.in-addr.arpa", 12), codeNoName, 0},
		{"another class", append(query("example.org", typeA)[:len(query("example.org", typeA))-1], 3), codeNotImpl, 0},
		{"an update", append([]byte{1, 2, 5 << 3, 0}, query("example.org", typeA)[4:]...), codeNotImpl, 0},
		{"two questions", append([]byte{1, 2, 1, 0, 0, 2}, query("example.org", typeA)[6:]...), codeFormat, 0},
		{"a pointer", []byte{1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1}, codeFormat, 0},
		{"broken off", query("example.org", typeA)[:20], codeFormat, 0},
		{"EDNS", edns, codeOK, 1},
	} {
		got := r.lookUp(tc.packet)
		answers, same := binary.BigEndian.Uint16(got[6:]), string(got[:2]) == string(tc.packet[:2])
		if code(got[3]&15) != tc.code || answers != tc.answers || got[2]&0x80 == 0 || !same {
			t.Errorf("%s: %x", tc.name, got)
		}
	}
	c := r.dial("dns-tcp", "127.0.0.1")
	q := query("example.org", typeA)
	for range 2 {
		if _, err := c.Write(append([]byte{0, byte(len(q))}, q...)); err != nil {
			t.Fatal(err)
		}
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, answer); err != nil || netip.AddrFrom4([4]byte(answer[len(answer)-4:])).String() != r.address("example.org") {
			t.Errorf("by TCP: %x, %v", answer, err)
		}
	}
	if r.world.looked != nil {
		t.Errorf("looked up outside: %v", r.world.looked)
	}
}

// The resolver of Go programs understands the answers.
func TestResolver(t *testing.T) {
	r := newRig(t, public("example.org"), nil)
	for _, over := range []string{"dns", "dns-tcp"} {
		resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(r.sockets[over].String())
			if err != nil {
				return nil, err
			}
			return net.Dial(r.sockets[over].Network(), net.JoinHostPort("127.0.0.1", port))
		}}
		addrs, err := resolver.LookupNetIP(t.Context(), "ip", "example.org.")
		if err != nil || len(addrs) != 1 || addrs[0].Unmap().String() != r.address("example.org") {
			t.Errorf("%s: %v, %v", over, addrs, err)
		}
	}
}

// The names of a session have a limit, and the next proxy gives the same addresses.
func TestNamesLimit(t *testing.T) {
	r := newRig(t, network.Rules{All: true}, nil)
	first := r.address("example.org")
	one := r.server.session("coder-1")
	for i := range namesMax - 1 {
		if addrs, c := one.address(fmt.Sprintf("n%d.example.org", i)); c != codeOK || len(addrs) != 1 {
			t.Fatalf("name %d: %v, %v", i, addrs, c)
		}
	}
	if got := r.lookUp(query("more.example.org", typeA)); code(got[3]&15) != codeServer {
		t.Errorf("one too many: %x", got)
	}
	if r.address("example.org") != first {
		t.Error("an address has changed")
	}
	if a := newNames().addresses("example.org"); len(a) != 1 || a[0].String() != first {
		t.Errorf("the next proxy gives %v, not %s", a, first)
	}
	many := newNames()
	taken := map[netip.Addr]bool{}
	for i := range namesMax {
		a := many.addresses(fmt.Sprintf("n%d.example.org", i))[0]
		if taken[a] {
			t.Fatalf("%s is given twice", a)
		}
		taken[a] = true
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(query("example.org", typeA))
	f.Add(query("example.org", 28))
	f.Add([]byte{1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1})
	n := newNames()
	f.Fuzz(func(t *testing.T, p []byte) {
		got := answer(p, func(name string) ([]netip.Addr, code) {
			if len(name) > 253 {
				t.Fatalf("a name of %d bytes", len(name))
			}
			return n.addresses(name), codeOK
		})
		if got != nil && (len(got) < dnsHead || got[2]&0x80 == 0 || len(got) > 512 || string(got[:2]) != string(p[:2])) {
			t.Fatalf("%x is answered with %x", p, got)
		}
	})
}
