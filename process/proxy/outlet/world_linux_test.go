package outlet_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	evil     = "evil.example.net" // no rule allows it
	provider = "api.anthropic.com"
	fronted  = "fronted.example.net" // what an allowed host serves beside its own name, inside TLS

	evilAt, providerAt, secondAt = "93.184.216.66", "93.184.216.80", "93.184.216.36"
	allowedSix, evilSix          = "2606:2800:220:1::34", "2606:2800:220:1::66"
	private, metadata            = "10.1.2.3", "169.254.169.254"

	worldKey = "sk-ant-the-real-key" // of the session, which its program does not have
)

// world is the network of a machine of the tests: all addresses are those of its loopback, every port of worldPorts has a server at every
// address, and names are answered by a resolver of the test.
type world struct {
	authority []byte // in PEM
	ca        *x509.Certificate
	caKey     *ecdsa.PrivateKey

	mu    sync.Mutex
	seen  []visit
	asked []string       // of the resolver
	count map[string]int // of look-ups of a name
}

// visit is a request that reached a server.
type visit struct {
	Addr, Host, SNI string
	Port            int
	Key             bool // it had the session's key
}

// String is the beginning of each answer: an attempt knows by it what it has reached.
func (v visit) String() string {
	return fmt.Sprintf("at %s %d for %s sni %s key %t end", v.Addr, v.Port, v.Host, v.SNI, v.Key)
}

var worldPorts = []int{80, 443, 22, 853, 8443, 7777, 61080}

// zone has the addresses of names: a look-up gets the next ones, and all others the last ones. Every other name is evil's.
var zone = map[string][][]string{
	allowed:    {{allowedAt, allowedSix}},
	fronted:    {{allowedAt}},
	provider:   {{providerAt}},
	"internal": {{private}},

	"second.example.com": {{secondAt}},
	// The public hosts that are allowed, and whose names lead elsewhere.
	"rebind.example.com":    {{secondAt}, {private}},
	"loopback.example.com":  {{"127.0.0.1"}},
	"loopback6.example.com": {{"::1"}},
	"private10.example.com": {{private}}, "private172.example.com": {{"172.16.5.5"}}, "private192.example.com": {{"192.168.7.7"}},
	"metadata.example.com": {{metadata}}, "alibaba.example.com": {{"100.100.100.200"}}, "metadata6.example.com": {{"fd00:ec2::254"}},
	"azure.example.com": {{"168.63.129.16"}}, "carrier.example.com": {{"100.64.1.1"}}, "local.example.com": {{"fd12:3456::7"}},
	"nat64.example.com": {{"64:ff9b::a01:203"}}, "sixtofour.example.com": {{"2002:a01:203::1"}}, "teredo.example.com": {{"2001::5"}},
	"compatible.example.com": {{"::10.1.2.3"}}, "benchmark.example.com": {{"198.18.0.9"}}, "document.example.com": {{"203.0.113.7"}},
	"zero.example.com": {{"0.0.0.0"}}, "reserved.example.com": {{"240.0.0.9"}}, "mixed.example.com": {{private, secondAt}},
	"site.example.com": {{"fec0::7"}}, "linklocal.example.com": {{"169.254.7.7"}}, "protocol.example.com": {{"192.0.0.9"}},
}

// addresses of the machine, beside 127.0.0.1 and ::1.
var addresses = []string{
	allowedAt, evilAt, providerAt, secondAt, private, "172.16.5.5", "192.168.7.7", metadata, "100.100.100.200", "168.63.129.16", "100.64.1.1",
	"198.18.0.9", "203.0.113.7", "240.0.0.9", "169.254.7.7", "192.0.0.9",
	allowedSix, evilSix, "fd00:ec2::254", "fd12:3456::7", "64:ff9b::a01:203", "2002:a01:203::1", "2001::5", "::10.1.2.3", "fec0::7",
}

// newWorld makes the machine's network.
func newWorld(t testing.TB) *world {
	w := &world{count: map[string]int{}}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "world"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ok(t, err)
	w.caKey, w.authority = key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	w.ca, err = x509.ParseCertificate(der)
	ok(t, err)
	dir := t.TempDir()
	ok(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	for file, text := range map[string]string{"hosts": "127.0.0.1 localhost\n", "resolv.conf": "nameserver 127.0.0.1\n"} {
		ok(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
		ok(t, unix.Mount(filepath.Join(dir, file), "/etc/"+file, "", unix.MS_BIND, ""))
	}
	ok(t, exec.Command("ip", "link", "set", "lo", "up").Run())
	for _, at := range addresses {
		args := []string{"addr", "add", at + "/32", "dev", "lo"}
		if netip.MustParseAddr(at).Is6() {
			args = []string{"addr", "add", at + "/128", "dev", "lo", "nodad"}
		}
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", args, out)
		}
	}
	for _, port := range worldPorts {
		l, err := net.Listen("tcp", fmt.Sprint(":", port))
		ok(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go w.serve(c)
			}
		}()
	}
	w.serveNames(t)
	quic, err := net.ListenPacket("udp", "0.0.0.0:443")
	ok(t, err)
	t.Cleanup(func() { quic.Close() })
	go func() {
		b := make([]byte, 2000)
		for {
			_, from, err := quic.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = quic.WriteTo([]byte("datagram of the world"), from)
		}
	}()
	return w
}

// serveNames answers look-ups.
func (w *world) serveNames(t testing.TB) {
	udp, err := net.ListenPacket("udp", "127.0.0.1:53")
	ok(t, err)
	tcp, err := net.Listen("tcp", "127.0.0.1:53")
	ok(t, err)
	t.Cleanup(func() { udp.Close(); tcp.Close() })
	go func() {
		b := make([]byte, 4096)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(w.resolve(b[:n]), from)
		}
	}()
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var size [2]byte
				if _, err := io.ReadFull(c, size[:]); err != nil {
					return
				}
				p := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(c, p); err != nil {
					return
				}
				out := w.resolve(p)
				_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
			}()
		}
	}()
}

const (
	recordA    = 1
	recordAAAA = 28
	dnsReached = "the resolver of the world"
)

// resolve answers one packet. Every kind of record but addresses has the same text.
func (w *world) resolve(p []byte) []byte {
	var labels []string
	at := 12
	for at < len(p) && p[at] != 0 {
		size := int(p[at])
		if at+1+size > len(p) {
			return nil
		}
		labels = append(labels, string(p[at+1:at+1+size]))
		at += 1 + size
	}
	if at+5 > len(p) {
		return nil
	}
	name, kind := strings.ToLower(strings.Join(labels, ".")), binary.BigEndian.Uint16(p[at+1:])
	w.mu.Lock()
	w.asked = append(w.asked, name)
	found, known := zone[name]
	if !known {
		found = [][]string{{evilAt, evilSix}}
	}
	if kind == recordA || len(found) == 1 {
		w.count[name]++
	}
	now := found[min(max(w.count[name]-1, 0), len(found)-1)]
	w.mu.Unlock()
	var answers [][]byte
	for _, text := range now {
		switch a := netip.MustParseAddr(text); {
		case kind == recordA && a.Is4(), kind == recordAAAA && a.Is6():
			answers = append(answers, a.AsSlice())
		}
	}
	if kind != recordA && kind != recordAAAA {
		answers = [][]byte{[]byte(dnsReached)}
	}
	out := append([]byte(nil), p[:2]...)
	out = append(out, 0x81, 0x80, 0, 1, 0, byte(len(answers)), 0, 0, 0, 0)
	out = append(out, p[12:at+5]...)
	for _, a := range answers {
		out = append(out, 0xc0, 12)
		out = binary.BigEndian.AppendUint16(out, kind)
		out = append(out, 0, 1, 0, 0, 0, 0)
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(a))), a...)
	}
	return out
}

// lookup is what the servers of the world know of a name, in all spellings that programs read as an address.
func (w *world) lookup(name string) string {
	if a, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return a.String()
	}
	if a, is := asAddress(name); is {
		return a
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if name == "localhost" {
		return "127.0.0.1"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	found, known := zone[name]
	if !known {
		return evilAt
	}
	w.count[name]++
	return found[min(w.count[name]-1, len(found)-1)][0]
}

// asAddress reads a name as inet_aton does.
func asAddress(name string) (string, bool) {
	parts := strings.Split(name, ".")
	var v uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		if err != nil || len(parts) > 4 {
			return "", false
		}
		if i == len(parts)-1 {
			v |= n
		} else {
			v |= n << (8 * (3 - i))
		}
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}).String(), true
}

// certificate is for any name.
func (w *world) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := hello.ServerName
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name}}
	if name == "" {
		template.DNSNames = []string{"none"}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, w.ca, w.caKey.Public(), w.caKey)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: w.caKey}, err
}

// peeked is a connection with what was read of it.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// serve serves one connection: TLS or not, requests, and as a proxy that leads everywhere.
func (w *world) serve(conn net.Conn) {
	defer conn.Close()
	at := conn.LocalAddr().(*net.TCPAddr).AddrPort()
	c := &peeked{conn, bufio.NewReader(conn)}
	first, err := c.r.Peek(1)
	if err != nil {
		return
	}
	v := visit{Addr: at.Addr().Unmap().String(), Port: int(at.Port())}
	if first[0] == 4 || first[0] == 5 {
		w.socks(c)
		return
	}
	if first[0] == 0x16 {
		secure := tls.Server(c, &tls.Config{GetCertificate: w.certificate})
		if secure.Handshake() != nil {
			return
		}
		v.SNI = secure.ConnectionState().ServerName
		c = &peeked{secure, bufio.NewReader(secure)}
		defer secure.Close()
	}
	for w.answer(c, v) {
	}
}

// answer serves one request, as tolerantly as a server can be: it believes the last Host, and chunks before lengths.
func (w *world) answer(c *peeked, v visit) (again bool) {
	var head []string
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return false
		}
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			break
		}
		if len(head) > 0 && (line[0] == ' ' || line[0] == '\t') {
			head[len(head)-1] += strings.TrimSpace(line)
			continue
		}
		head = append(head, line)
	}
	if len(head) == 0 {
		return true
	}
	method, rest, _ := strings.Cut(head[0], " ")
	target, _, _ := strings.Cut(rest, " ")
	chunked, length, upgrade := false, 0, ""
	for _, line := range head[1:] {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "host":
			v.Host = value
		case "transfer-encoding":
			chunked = strings.Contains(value, "chunked")
		case "content-length":
			length, _ = strconv.Atoi(value)
		case "upgrade":
			upgrade = value
		case "x-api-key":
			v.Key = value == worldKey
		}
	}
	u, err := url.Parse(target)
	proxied := method == "CONNECT" || err == nil && u.Host != ""
	keyed := v.Port == 61080 && strings.HasPrefix(target, "/anthropic/")
	if proxied || keyed {
		w.carry(c, method, target, head, keyed)
		return false
	}
	w.mu.Lock()
	w.seen = append(w.seen, v)
	w.mu.Unlock()
	switch {
	case chunked:
		for {
			line, err := c.r.ReadString('\n')
			if err != nil {
				return false
			}
			n, err := strconv.ParseUint(strings.TrimSpace(line), 16, 16)
			if err != nil {
				return false
			}
			_, _ = c.r.Discard(int(n) + 2)
			if n == 0 {
				break
			}
		}
	case length > 0:
		_, _ = c.r.Discard(length)
	}
	body := v.String() + "\n"
	status, more := "200 OK", ""
	switch {
	case method == "TRACE":
		body += strings.Join(head, "\n")
	case upgrade != "":
		_, err := io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+upgrade+"\r\n\r\n")
		return err == nil
	case err == nil && u.Query().Get("to") != "":
		status, more = "307 Temporary Redirect", "Location: "+u.Query().Get("to")+"\r\n"
	}
	_, err = fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Type: text/plain\r\n%sContent-Length: %d\r\n\r\n%s", status, more, len(body), body)
	return err == nil
}

// carry is an open proxy: it connects to everything, and sends what came as it came, with the key where it is asked for one.
func (w *world) carry(c *peeked, method, target string, head []string, keyed bool) {
	var host, first string
	port := "80"
	switch {
	case keyed:
		host, port = provider, "443"
		first = strings.Replace(head[0], "/anthropic/", "/", 1) + "\r\nHost: " + provider + "\r\nX-Api-Key: " + worldKey + "\r\n"
		for _, line := range head[1:] {
			if !strings.HasPrefix(strings.ToLower(line), "host:") {
				first += line + "\r\n"
			}
		}
		first += "\r\n"
	case method == "CONNECT":
		var err error
		if host, port, err = net.SplitHostPort(target); err != nil {
			return
		}
	default:
		u, _ := url.Parse(target)
		host = u.Hostname()
		if u.Scheme == "https" {
			port = "443"
		}
		if u.Port() != "" {
			port = u.Port()
		}
		line := strings.Replace(head[0], target, u.RequestURI(), 1)
		first = line + "\r\n" + strings.Join(head[1:], "\r\n") + "\r\n\r\n"
	}
	out, err := net.DialTimeout("tcp", net.JoinHostPort(w.lookup(host), port), 5*time.Second)
	if err != nil {
		_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
		return
	}
	if keyed || strings.HasPrefix(target, "https:") {
		out = tls.Client(out, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	}
	defer out.Close()
	if method == "CONNECT" {
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			return
		}
	} else if _, err := io.WriteString(out, first); err != nil {
		return
	}
	w.pipe(c, out)
}

func (*world) pipe(c, out net.Conn) {
	go func() {
		_, _ = io.Copy(out, c)
		if half, is := out.(interface{ CloseWrite() error }); is {
			_ = half.CloseWrite()
		}
	}()
	_, _ = io.Copy(c, out)
}

// socks serves SOCKS 4a and 5 without a login.
func (w *world) socks(c *peeked) {
	version, _ := c.r.ReadByte()
	var host string
	var port uint16
	b := make([]byte, 8)
	switch version {
	case 5:
		n, _ := c.r.ReadByte()
		_, _ = c.r.Discard(int(n))
		_, _ = c.Write([]byte{5, 0})
		if _, err := io.ReadFull(c.r, b[:5]); err != nil {
			return
		}
		name := make([]byte, int(b[4])+2)
		if _, err := io.ReadFull(c.r, name); err != nil {
			return
		}
		host, port = string(name[:len(name)-2]), binary.BigEndian.Uint16(name[len(name)-2:])
	default:
		if _, err := io.ReadFull(c.r, b[:7]); err != nil {
			return
		}
		port = binary.BigEndian.Uint16(b[1:])
		_, _ = c.r.ReadString(0)
		name, _ := c.r.ReadString(0)
		host = strings.TrimSuffix(name, "\x00")
	}
	out, err := net.DialTimeout("tcp", net.JoinHostPort(w.lookup(host), strconv.Itoa(int(port))), 5*time.Second)
	if err != nil {
		return
	}
	defer out.Close()
	if version == 5 {
		_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	} else {
		_, _ = c.Write([]byte{0, 90, 0, 0, 0, 0, 0, 0})
	}
	w.pipe(c, out)
}

// forget begins a new record of what was reached.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen, w.asked, w.count = nil, nil, map[string]int{}
}

// record is what was reached, and which names were asked for.
func (w *world) record() ([]visit, []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen), slices.Clone(w.asked)
}

// exchange is a request and its answer over one connection. It reads until it has what it looks for, or the end.
func exchange(c net.Conn, request, until string) (string, error) {
	_ = c.SetDeadline(time.Now().Add(actPatience))
	if _, err := io.WriteString(c, request); err != nil {
		return "", err
	}
	var got bytes.Buffer
	b := make([]byte, 4096)
	for {
		n, err := c.Read(b)
		got.Write(b[:n])
		if strings.Contains(got.String(), until) {
			return got.String(), nil
		}
		if err != nil {
			return got.String(), errors.Join(err, fmt.Errorf("%.300q", got.String()))
		}
	}
}

const actPatience = 10 * time.Second

// reachable reports whether the rules of the session allow what a server has seen.
func reachable(v visit) bool {
	switch v.Addr {
	case allowedAt, allowedSix:
		secure := v.Port == 443 && v.SNI == allowed
		plain := v.Port == 80 && v.SNI == "" && v.Host == allowed
		return !v.Key && (plain || secure && (v.Host == allowed || v.Host == fronted))
	case secondAt:
		return strings.HasSuffix(v.Host, ".example.com") && !v.Key && v.Port == 80
	case providerAt:
		return v.Host == provider && v.SNI == provider && v.Port == 443
	}
	return false
}
