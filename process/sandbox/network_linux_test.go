package sandbox

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

// needNetwork skips a test where a view cannot have a network of its own.
func needNetwork(t testing.TB) Ability {
	t.Helper()
	a := Abilities()
	if !a.Network {
		t.Skipf("there is no network of a view here: %v", a.Why)
	}
	return a
}

// networked is a view with a network, in which this test binary runs.
type networked struct {
	*exec.Cmd
	reports *json.Decoder
	sockets map[wire.Socket]*os.File
	out     *bufio.Reader
	in      io.WriteCloser
}

// startNetworked starts an act of this binary in a view.
func startNetworked(t *testing.T, v View, act, job string) *networked {
	t.Helper()
	v = Abilities().Apply(v)
	v.Places = append(v.Places, Place{Path: withoutName(os.Args[0]), Access: Read})
	v.Report = 3
	argv, err := WrapView(os.Args[0], []string{os.Args[0]}, v)
	if err != nil {
		t.Fatal(err)
	}
	said, theirs, err := v.OpenReports()
	if err != nil {
		t.Fatal(err)
	}
	n := &networked{Cmd: exec.CommandContext(t.Context(), argv[0], argv[1:]...), sockets: map[wire.Socket]*os.File{}}
	n.SysProcAttr, n.ExtraFiles, n.Stderr = v.Attr(), []*os.File{theirs}, os.Stderr
	n.Env = []string{"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0", wallVar + "=" + act + " " + job}
	out, err := n.StdoutPipe()
	if err == nil {
		n.in, err = n.StdinPipe()
	}
	if err == nil {
		err = n.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	n.out, n.reports = bufio.NewReader(out), json.NewDecoder(said)
	var started Started
	if err := n.reports.Decode(&started); err != nil || started.Error != "" {
		t.Fatalf("%v %s", err, started.Error)
	}
	if v.Network != nil && slices.Contains(started.Unheld, RowNetwork) {
		t.Error("the network is not held")
	}
	files, err := said.Sockets(v)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		n.sockets[v.Network.Sockets()[i]] = f
	}
	t.Cleanup(func() {
		n.in.Close()
		_ = n.Wait()
		said.Close()
		for _, f := range files {
			f.Close()
		}
	})
	return n
}

func withoutName(p string) string { return p[:strings.LastIndexByte(p, '/')] }

// answers says at each socket of a view what it is.
func (n *networked) answers(t *testing.T) {
	t.Helper()
	for s, f := range n.sockets {
		says := fmt.Sprintf("%s %d %d\n", s.Kind, s.Host, s.Port)
		switch s.Kind {
		case wire.KindSockets:
		case wire.KindDNS:
			c, err := net.FilePacketConn(f)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				defer c.Close()
				b := make([]byte, 100)
				for {
					_, from, err := c.ReadFrom(b)
					if err != nil {
						return
					}
					_, _ = c.WriteTo([]byte(says), from)
				}
			}()
			t.Cleanup(func() { c.Close() })
		default:
			l, err := net.FileListener(f)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = io.WriteString(c, says)
					c.Close()
				}
			}()
			t.Cleanup(func() { l.Close() })
		}
	}
}

// dials is the other side of TestNetworkSockets: it answers each line, until there are no more.
func dials() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		how, at, _ := strings.Cut(lines.Text(), " ")
		fmt.Println(strings.ReplaceAll(strings.TrimSpace(dialed(how, at)), "\n", "; "))
	}
}

func dialed(how, at string) string {
	if how == "listen" {
		l, err := net.Listen("tcp", at)
		if err != nil {
			return err.Error()
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, "from inside\n")
				c.Close()
			}
		}()
		return worked
	}
	if how == "read" {
		text, err := os.ReadFile(at)
		return fmt.Sprint(string(text), err)
	}
	c, err := net.DialTimeout(how, at, hangAfter)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(hangAfter))
	if _, err := io.WriteString(c, "who\n"); err != nil {
		return err.Error()
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return line
}

func (n *networked) ask(t *testing.T, question string) string {
	t.Helper()
	if _, err := io.WriteString(n.in, question+"\n"); err != nil {
		t.Fatal(err)
	}
	line, err := n.out.ReadString('\n')
	if err != nil {
		t.Fatal(question, err)
	}
	return strings.TrimSpace(line)
}

// TestNetworkSockets: what a program in a view connects to is accepted at the socket of that kind, outside; what it listens at is reached
// through a socket of process 1.
func TestNetworkSockets(t *testing.T) {
	needNetwork(t)
	rules := network.Rules{Hosts: []network.Host{
		{Name: "example.org"}, {Name: "registry.office", Port: 5000, Named: true}, {Name: "web.office", Port: 443, Named: true},
	}, Local: []int{5432, 25}}
	n := startNetworked(t, View{Network: InsideOf(rules)}, "dials", "")
	n.answers(t)
	for question, want := range map[string]string{
		"tcp 127.0.0.1:61080":   "proxy 0 0",
		"udp 127.0.0.1:53":      "dns 0 0",
		"tcp 127.0.0.1:53":      "dns-tcp 0 0",
		"tcp 127.64.3.9:443":    "tls 0 0",
		"tcp 127.0.0.1:443":     "tls 0 0",
		"tcp 127.64.3.9:80":     "http 0 0",
		"tcp 127.96.0.2:5000":   "named 1 5000",
		"tcp 127.96.0.3:443":    "named 2 443",
		"tcp 127.0.0.1:5432":    "local 0 5432",
		"tcp 127.0.0.1:25":      "local 0 25",
		"listen 127.0.0.1:8000": worked,
		"listen [::1]:8001":     worked,
		"listen 0.0.0.0:8002":   worked,
	} {
		if got := n.ask(t, question); got != want {
			t.Errorf("%s: %q, want %q", question, got, want)
		}
	}
	if got := n.ask(t, "tcp 127.0.0.1:8000"); got != "from inside" {
		t.Errorf("what listens inside is reached as %q", got)
	}
	for question, want := range map[string]string{
		"tcp 127.0.0.1:5000":                                 "refused",
		"tcp 127.96.0.1:5000":                                "refused",
		"tcp 192.0.2.1:443":                                  "unreachable",
		"udp 192.0.2.1:53":                                   "unreachable",
		"tcp [2001:db8::1]:443":                              "unreachable",
		"listen 127.0.0.1:61080":                             "in use",
		"listen 127.64.0.1:443":                              "permission denied",
		"listen 127.0.0.1:53":                                "permission denied",
		"read /etc/resolv.conf":                              "nameserver 127.0.0.1;",
		"read /proc/net/dev":                                 "lo:",
		"read /proc/sys/net/ipv4/ip_unprivileged_port_start": "1024",
	} {
		if got := n.ask(t, question); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", question, got, want)
		}
	}
	service := n.sockets[wire.Socket{Kind: wire.KindSockets}]
	for _, c := range []struct {
		ask byte
		to  unix.Sockaddr
	}{
		{'4', &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 8000}},
		{'6', &unix.SockaddrInet6{Addr: [16]byte{15: 1}, Port: 8001}},
		{'4', &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 8002}},
	} {
		fd := freshSocket(t, service, c.ask)
		if err := unix.Connect(fd, c.to); err != nil {
			t.Errorf("%c: %v", c.ask, err)
		}
		b := make([]byte, 100)
		if size, err := unix.Read(fd, b); err != nil || string(b[:size]) != "from inside\n" {
			t.Errorf("%c: %q, %v", c.ask, b[:max(size, 0)], err)
		}
		unix.Close(fd)
	}
}

// freshSocket asks process 1 for a socket of the view.
func freshSocket(t *testing.T, service *os.File, ask byte) int {
	t.Helper()
	if _, err := service.Write([]byte{ask}); err != nil {
		t.Fatal(err)
	}
	_, files, err := readFiles(service, make([]byte, 1))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d sockets, %v", len(files), err)
	}
	defer files[0].Close()
	fd, err := unix.FcntlInt(files[0].Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestNetworkWaits: a connection waits in its socket until a proxy comes, and what no proxy serves gets nowhere.
func TestNetworkWaits(t *testing.T) {
	needNetwork(t)
	n := startNetworked(t, View{Network: &Inside{}}, "dials", "")
	if _, err := io.WriteString(n.in, "tcp 127.0.0.1:61080\n"); err != nil {
		t.Fatal(err)
	}
	l := n.sockets[wire.Socket{Kind: wire.KindProxy}]
	poll := []unix.PollFd{{Fd: int32(l.Fd()), Events: unix.POLLIN}}
	if ready, err := unix.Poll(poll, int(hangAfter.Milliseconds())); ready != 1 || err != nil {
		t.Fatalf("no connection waits: %v", err)
	}
	n.answers(t)
	line, err := n.out.ReadString('\n')
	if err != nil || line != "proxy 0 0\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestNetworkNeedsAttr: process 1 does not touch the network of another process.
func TestNetworkNeedsAttr(t *testing.T) {
	a := needNetwork(t)
	v := a.Apply(View{Network: &Inside{}})
	argv, err := WrapView(os.Args[0], nil, v)
	if err != nil {
		t.Fatal(err)
	}
	attr := v.Attr()
	attr.Cloneflags &^= unix.CLONE_NEWNET
	attr.AmbientCaps = nil
	if a.Users {
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "started with Attr") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestInsideCheck: a view refuses sockets that it cannot have.
func TestInsideCheck(t *testing.T) {
	t.Parallel()
	port := func(kind wire.Kind, n int) *Inside { return &Inside{More: []wire.Socket{{Kind: kind, Port: n}}} }
	many := &Inside{}
	for i := range insideMax + 1 {
		many.More = append(many.More, wire.Socket{Kind: wire.KindLocal, Port: 2000 + i})
	}
	for name, c := range map[string]struct {
		in *Inside
		by Mechanism
		ok bool
	}{
		"a local port":        {port(wire.KindLocal, 5432), ByNamespaces, true},
		"a named host":        {port(wire.KindNamed, 443), ByNamespaces, true},
		"as many as possible": {&Inside{More: many.More[1:]}, ByNamespaces, true},
		"without namespaces":  {&Inside{}, ByLandlock, false},
		"no port":             {port(wire.KindLocal, 0), ByNamespaces, false},
		"beyond the ports":    {port(wire.KindNamed, 65536), ByNamespaces, false},
		"the proxy's":         {port(wire.KindLocal, network.ProxyPort), ByNamespaces, false},
		"that of names":       {port(wire.KindLocal, 53), ByNamespaces, false},
		"another kind":        {port(wire.KindTLS, 444), ByNamespaces, false},
		"twice":               {&Inside{More: slices.Repeat([]wire.Socket{{Kind: wire.KindLocal, Port: 5432}}, 2)}, ByNamespaces, false},
		"too many":            {many, ByNamespaces, false},
	} {
		if err := (View{By: c.by, Network: c.in}).check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
