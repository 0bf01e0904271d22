package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/internal/boundedlog"
	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(callerVar); folder != "" {
		os.Exit(callAs(folder))
	}
	os.Exit(leaktest.Main(m))
}

// world is the network outside in a test: names, and servers of the test at addresses that nothing else has.
type world struct {
	mu     sync.Mutex
	names  map[string][]netip.Addr
	at     map[netip.AddrPort]string // where the server for an address listens
	looked []string                  // every name that was looked up
	dialed []netip.AddrPort
}

func (w *world) outside() outside {
	var d net.Dialer
	return outside{
		lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.looked = append(w.looked, name)
			addrs := w.names[strings.TrimSuffix(name, ".")]
			if addrs == nil {
				return nil, &net.DNSError{Name: name, IsNotFound: true}
			}
			return addrs, nil
		},
		dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			w.mu.Lock()
			w.dialed = append(w.dialed, to)
			at := w.at[to]
			w.mu.Unlock()
			if at == "" {
				return nil, fmt.Errorf("nothing is at %s in this test", to)
			}
			if at == "silent" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return d.DialContext(ctx, "tcp", at)
		},
	}
}

// name gives a name addresses.
func (w *world) name(name string, addrs ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = nil
	for _, a := range addrs {
		w.names[name] = append(w.names[name], netip.MustParseAddr(a))
	}
}

// put puts a server at an address.
func (w *world) put(addr, at string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at[netip.MustParseAddrPort(addr)] = at
}

func (w *world) dials() []netip.AddrPort {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialed)
}

// rig is a proxy with one session.
type rig struct {
	t       testing.TB
	world   *world
	server  *server
	path    string
	shim    *wire.Conn
	sockets map[string]net.Addr // by kind, or kind and number
	caCert  *x509.Certificate
	caKey   *ecdsa.PrivateKey
	caPEM   []byte
	rules   chan network.Rules // that the shim is sent
}

const (
	publicAddr = "93.184.216.34"
	publicSix  = "2606:2800:220:1::1"
)

// newRig serves a session with rules. change may add to its registration; its files are those of the sockets.
func newRig(t testing.TB, rules network.Rules, change func(*wire.Register, *[]*os.File)) *rig {
	t.Helper()
	r := newServerRig(t)
	r.shim, _ = r.register("coder-1", rules, change)
	return r
}

func newServerRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{
		t: t, world: &world{names: map[string][]netip.Addr{}, at: map[netip.AddrPort]string{}}, sockets: map[string]net.Addr{},
		rules: make(chan network.Rules, 16),
	}
	r.makeCA()
	dir, err := os.MkdirTemp("/tmp", "proxy") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r.path = filepath.Join(dir, "s")
	l, err := net.Listen("unix", r.path)
	if err != nil {
		t.Fatal(err)
	}
	log := boundedlog.New(testLog{t}, logBytesMax)
	r.server = newServer(r.world.outside(), log)
	served := make(chan error, 1)
	go func() { served <- r.server.serve(l) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-served; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return r
}

// testLog shows a log while the test runs.
type testLog struct{ t testing.TB }

func (l testLog) Write(b []byte) (int, error) {
	if l.t.Context().Err() == nil {
		l.t.Log(strings.TrimSpace(string(b)))
	}
	return len(b), nil
}

// call connects to the proxy and says hello.
func (r *rig) call(role wire.Role) *wire.Conn {
	r.t.Helper()
	s, err := net.Dial("unix", r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	c := wire.NewConn(s.(*net.UnixConn))
	r.t.Cleanup(func() { c.Close() })
	if err := c.Send(wire.Message{Hello: &wire.Hello{Version: wire.Version, Role: role}}); err != nil {
		r.t.Fatal(err)
	}
	if m, _, err := c.Receive(); err != nil || m.Hello == nil {
		r.t.Fatalf("no hello: %+v, %v", m, err)
	}
	return c
}

// register makes a session with the usual sockets.
func (r *rig) register(name string, rules network.Rules, change func(*wire.Register, *[]*os.File)) (*wire.Conn, wire.Message) {
	r.t.Helper()
	reg := &wire.Register{Session: name, Agent: "coder", Rules: rules}
	var files []*os.File
	for _, kind := range []wire.Kind{wire.KindProxy, wire.KindTLS, wire.KindHTTP, wire.KindDNSTCP} {
		reg.Sockets = append(reg.Sockets, wire.Socket{Kind: kind})
		files = append(files, r.listen(string(kind), "0.0.0.0:0"))
	}
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.sockets[string(wire.KindDNS)] = p.LocalAddr()
	file, err := p.(*net.UDPConn).File()
	p.Close()
	if err != nil {
		r.t.Fatal(err)
	}
	reg.Sockets, files = append(reg.Sockets, wire.Socket{Kind: wire.KindDNS}), append(files, file)
	if change != nil {
		change(reg, &files)
	}
	c := r.call(wire.RoleSession)
	if err := c.Send(wire.Message{Register: reg}, files...); err != nil {
		r.t.Fatal(err)
	}
	for _, f := range files {
		r.t.Cleanup(func() { f.Close() })
	}
	m, _, err := c.Receive()
	if err != nil {
		r.t.Fatal(err)
	}
	go func() { // as a shim does
		for {
			m, _, err := c.Receive()
			if err != nil {
				return
			}
			if m.Rules != nil {
				r.rules <- m.Rules.Rules
			}
		}
	}()
	return c, m
}

// listen makes a listening socket, and returns it as a file.
func (r *rig) listen(name, at string) *os.File {
	r.t.Helper()
	l, err := net.Listen("tcp4", at)
	if err != nil {
		r.t.Fatal(err)
	}
	defer l.Close()
	r.sockets[name] = l.Addr()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

// port is the port of a socket of the session.
func (r *rig) port(name string) int { return r.sockets[name].(*net.TCPAddr).Port }

// dial connects to a socket of the session, at 127.0.0.1 or another address of loopback.
func (r *rig) dial(name, addr string) *net.TCPConn {
	r.t.Helper()
	c, err := net.Dial("tcp", net.JoinHostPort(addr, fmt.Sprint(r.port(name))))
	if err != nil {
		r.t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	r.t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// ask writes a request to the proxy's port, and reads its answer.
func (r *rig) ask(request string) (*http.Response, string) {
	r.t.Helper()
	c := r.dial("proxy", "127.0.0.1")
	return r.answerOn(c, request)
}

func (r *rig) answerOn(c net.Conn, request string) (*http.Response, string) {
	r.t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		r.t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		r.t.Fatalf("%q: %v", request, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer, string(body)
}

// connect asks for a tunnel. status is 200 if it is one.
func (r *rig) connect(target string) (c *net.TCPConn, status int, words string) {
	r.t.Helper()
	c = r.dial("proxy", "127.0.0.1")
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target); err != nil {
		r.t.Fatal(err)
	}
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, one[0]) {
		if _, err := io.ReadFull(c, one); err != nil {
			r.t.Fatalf("CONNECT %s: %q, %v", target, head, err)
		}
	}
	answer, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head)), &http.Request{Method: http.MethodConnect})
	if err != nil {
		r.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(c)
		return c, answer.StatusCode, strings.TrimSpace(string(body))
	}
	return c, answer.StatusCode, ""
}

// makeCA makes the authority of the test's servers.
func (r *rig) makeCA() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		r.t.Fatal(err)
	}
	r.caKey = key
	r.caCert, _ = x509.ParseCertificate(der)
	r.caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// pool trusts the servers of the test.
func (r *rig) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(r.caCert)
	return p
}

// certificate is for a server of the test.
func (r *rig) certificate(names ...string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	for _, name := range names {
		if a := net.ParseIP(name); a != nil {
			template.IPAddresses = append(template.IPAddresses, a)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, r.caCert, &key.PublicKey, r.caKey)
	if err != nil {
		r.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serveTCP starts a server of the test, and puts it at addresses.
func (r *rig) serveTCP(serve func(net.Conn), addrs ...string) {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.t.Cleanup(func() { c.Close() })
			all.Go(func() { defer c.Close(); serve(c) })
		}
	})
	r.t.Cleanup(func() { l.Close() })
	for _, a := range addrs {
		r.world.put(a, l.Addr().String())
	}
}

// serveTLS starts a TLS server that says its own name and what it is told.
func (r *rig) serveTLS(name string, addrs ...string) {
	r.t.Helper()
	config := &tls.Config{Certificates: []tls.Certificate{r.certificate(name)}}
	r.serveTCP(func(c net.Conn) {
		secured := tls.Server(c, config)
		if _, err := fmt.Fprintf(secured, "hello from %s\n", name); err != nil {
			return
		}
		_, _ = io.Copy(secured, secured)
		_ = secured.CloseWrite()
	}, addrs...)
}

// serveHTTP starts an HTTP server.
func (r *rig) serveHTTP(h http.HandlerFunc, addrs ...string) {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	r.t.Cleanup(func() { s.Close() })
	for _, a := range addrs {
		r.world.put(a, l.Addr().String())
	}
}

// greetTLS makes a handshake with a name over a connection, and returns the server's first line.
func (r *rig) greetTLS(c net.Conn, sni, certified string) (string, error) {
	config := &tls.Config{ServerName: sni, RootCAs: r.pool()}
	if sni != certified {
		config.InsecureSkipVerify = true
	}
	secured := tls.Client(c, config)
	if err := secured.Handshake(); err != nil {
		return "", err
	}
	return bufio.NewReader(secured).ReadString('\n')
}

// watch connects a daemon, and collects its events.
func (r *rig) watch() (*wire.Conn, *watched) {
	r.t.Helper()
	c := r.call(wire.RoleWatcher)
	w := &watched{came: make(chan struct{}, 1000)}
	go func() {
		for {
			m, _, err := c.Receive()
			if err != nil {
				return
			}
			w.mu.Lock()
			w.all = append(w.all, m)
			w.mu.Unlock()
			select {
			case w.came <- struct{}{}:
			default:
			}
		}
	}()
	return c, w
}

type watched struct {
	mu   sync.Mutex
	all  []wire.Message
	came chan struct{}
}

// messages are those that came until now.
func (w *watched) messages() []wire.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

// event is the sum of the events about a host with a verdict.
func (w *watched) event(host string, port int, verdict wire.Verdict) (sum wire.Event) {
	for _, m := range w.messages() {
		if e := m.Event; e != nil && e.Host == host && e.Port == port && e.Verdict == verdict {
			sum.Count += e.Count
			sum.In += e.In
			sum.Out += e.Out
			sum.Why = e.Why
			sum.Session, sum.Agent = e.Session, e.Agent
		}
	}
	return sum
}

// socketPair is the socket at which process 1 of a session makes sockets: here, in this network.
func socketMaker(t *testing.T) *os.File {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours := os.NewFile(uintptr(fds[0]), "process 1")
	go func() {
		defer ours.Close()
		for one := make([]byte, 1); ; {
			if _, err := ours.Read(one); err != nil {
				return
			}
			family := unix.AF_INET
			if one[0] == wire.AskIPv6 {
				family = unix.AF_INET6
			}
			fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
			if err != nil {
				return
			}
			err = unix.Sendmsg(fds[0], one, unix.UnixRights(fd), nil, 0)
			unix.Close(fd)
			if err != nil {
				return
			}
		}
	}()
	return os.NewFile(uintptr(fds[1]), "sockets")
}

// hosts are rules with hosts.
func hosts(texts ...string) (r network.Rules) {
	for _, text := range texts {
		h, err := network.ParseHost(text)
		if err != nil {
			panic(err)
		}
		r.Hosts = append(r.Hosts, h)
	}
	return r
}

// public are rules with hosts that no person named, as those of the tables.
func public(names ...string) (r network.Rules) {
	for _, name := range names {
		r.Hosts = append(r.Hosts, network.Host{Name: name})
	}
	return r
}

func mustAddrPort(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

func addrOrZero(text string) netip.Addr {
	a, _ := netip.ParseAddr(text)
	return a
}
