package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The machine of the attempts: a network namespace of the test's own, in which every address is one of its loopback. No packet leaves it.
const (
	public4, private4, metadata4, carrier4, local4 = "203.0.113.7", "10.1.2.3", "169.254.169.254", "100.64.1.1", "127.0.0.1"
	public6, private6, mapped6                     = "2001:db8::7", "fd00:ec2::254", "::ffff:203.0.113.7"
	machinePort, ownPort                           = 7777, 7778 // ownPort: of a server beside the attempts
	abstractName                                   = "@fairlead-network-test"
)

// networkAttempt is one way out of a view's network.
type networkAttempt struct {
	name string
	try  func() error
	twin func() error // the same act, to what a view has
}

// says dials the machine's server, or the view's own one.
func says(how, at string) func() error {
	return func() error {
		if got := dialed(how, at); got != "machine\n" {
			return errors.New(got)
		}
		return nil
	}
}

func dialing(how, host string, port int) networkAttempt {
	at, own := net.JoinHostPort(host, fmt.Sprint(port)), "127.0.0.1"
	if strings.Contains(host, ":") {
		own = "::1"
	}
	return networkAttempt{how + " to " + at, says(how, at), says(how, net.JoinHostPort(own, fmt.Sprint(ownPort)))}
}

func making(name string, family, kind, protocol int) networkAttempt {
	return networkAttempt{
		"a socket: " + name, func() error { return opensSocket(family, kind, protocol) },
		func() error {
			return errors.Join(opensSocket(unix.AF_INET, unix.SOCK_STREAM, 0), opensSocket(unix.AF_INET6, unix.SOCK_DGRAM, 0),
				opensSocket(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0), opensSocket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE))
		},
	}
}

// sending is an act with an address: the public one, and that of the view.
func sending(name string, act func(to unix.Sockaddr) error) networkAttempt {
	return networkAttempt{
		name, func() error { return act(&unix.SockaddrInet4{Addr: [4]byte{203, 0, 113, 7}, Port: machinePort}) },
		func() error { return act(&unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: ownPort}) },
	}
}

// mapped connects a socket of IPv6 to an address of IPv4.
func mapped(name string, kind int) networkAttempt {
	connect := func(at string, port int) func() error {
		return func() error {
			return throughSocket(unix.AF_INET6, kind, 0, func(fd int) error {
				return unix.Connect(fd, &unix.SockaddrInet6{Addr: [16]byte(net.ParseIP(at).To16()), Port: port})
			})
		}
	}
	return networkAttempt{name, connect(mapped6, machinePort), connect("::ffff:127.0.0.1", ownPort)}
}

// listed looks for a text in a file of the network.
func listed(file, text string) error {
	b, err := os.ReadFile(file)
	if err == nil && !strings.Contains(string(b), text) {
		err = errors.New("not listed")
	}
	return err
}

// hasAddress looks for an address of this network.
func hasAddress(want string) error {
	all, err := net.InterfaceAddrs()
	if err == nil && !slices.ContainsFunc(all, func(a net.Addr) bool { return strings.HasPrefix(a.String(), want) }) {
		err = errors.New("not listed")
	}
	return err
}

// networkAttempts are the attempts.
func networkAttempts() (all []networkAttempt) {
	for _, host := range []string{public4, private4, metadata4, carrier4, local4} {
		all = append(all, dialing("tcp4", host, machinePort), dialing("udp4", host, machinePort))
	}
	for _, host := range []string{public6, private6} {
		all = append(all, dialing("tcp6", host, machinePort), dialing("udp6", host, machinePort))
	}
	for _, host := range []string{public4, public6} {
		all = append(all, dialing("tcp", host, 443), dialing("udp", host, 443), dialing("udp", host, 53), dialing("tcp", host, 53),
			dialing("tcp", host, 80), dialing("tcp", host, 853))
	}
	abstract := func(kind int, name string) networkAttempt {
		return networkAttempt{
			"abstract socket, " + name, func() error { return connects(abstractName+name, kind) },
			func() error {
				own := abstractName + "-own-" + name
				return throughSocket(unix.AF_UNIX, kind, 0, func(fd int) error {
					err := unix.Bind(fd, &unix.SockaddrUnix{Name: own})
					if err == nil && kind != unix.SOCK_DGRAM {
						err = unix.Listen(fd, 1)
					}
					return errors.Join(err, connects(own, kind))
				})
			},
		}
	}
	stream := func(protocol int) func(to unix.Sockaddr) error {
		return func(to unix.Sockaddr) error {
			return throughSocket(unix.AF_INET, unix.SOCK_STREAM, protocol, func(fd int) error { return unix.Connect(fd, to) })
		}
	}
	multipath := sending("MPTCP", stream(unix.IPPROTO_MPTCP))
	multipath.twin = sending("TCP", stream(0)).twin // the only one that a view has
	return append(all,
		mapped("tcp to a mapped address", unix.SOCK_STREAM), mapped("udp to a mapped address", unix.SOCK_DGRAM), multipath,
		sending("TCP fast open", func(to unix.Sockaddr) error {
			return throughSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) error {
				return unix.Sendto(fd, []byte("who\n"), unix.MSG_FASTOPEN, to)
			})
		}),
		sending("UDP without connect", func(to unix.Sockaddr) error {
			return throughSocket(unix.AF_INET, unix.SOCK_DGRAM, 0, func(fd int) error { return unix.Sendto(fd, []byte("who\n"), 0, to) })
		}),
		networkAttempt{"from an address of the machine", bindsTo(10, 1, 2, 3), bindsTo(127, 1, 2, 3)},
		networkAttempt{"a multicast group", sendsTo(224, 0, 0, 251), sendsTo(127, 0, 0, 1)},
		networkAttempt{
			"the machine's connections are listed", func() error { return listed("/proc/net/tcp6", fmt.Sprintf(":%04X ", machinePort)) },
			func() error { return listed("/proc/net/tcp6", fmt.Sprintf(":%04X ", ownPort)) },
		},
		networkAttempt{
			"the machine's addresses are listed", func() error { return hasAddress(private4) },
			func() error { return hasAddress("127.0.0.1") },
		},
		abstract(unix.SOCK_STREAM, "stream"), abstract(unix.SOCK_SEQPACKET, "seqpacket"), abstract(unix.SOCK_DGRAM, "dgram"),
		making("vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0), making("ALG", unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
		making("Bluetooth", unix.AF_BLUETOOTH, unix.SOCK_SEQPACKET, 0), making("CAN", unix.AF_CAN, unix.SOCK_RAW, 1),
		making("TIPC", unix.AF_TIPC, unix.SOCK_SEQPACKET, 0), making("RDS", unix.AF_RDS, unix.SOCK_SEQPACKET, 0),
		making("SMC", unix.AF_SMC, unix.SOCK_STREAM, 0), making("XDP", unix.AF_XDP, unix.SOCK_RAW, 0),
		making("QIPCRTR", unix.AF_QIPCRTR, unix.SOCK_DGRAM, 0), making("key", unix.AF_KEY, unix.SOCK_RAW, 2),
		making("SCTP", unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP), making("PPP over Ethernet", unix.AF_PPPOX, unix.SOCK_STREAM, 0),
		making("uevents", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT),
		making("sock_diag", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG),
		making("netfilter", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER),
		making("generic netlink", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC),
		making("audit", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT),
		networkAttempt{"a pair of TIPC sockets", socketPair(unix.AF_TIPC), socketPair(unix.AF_UNIX)},
	)
}

func throughSocket(family, kind, protocol int, use func(fd int) error) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return use(fd)
}

func bindsTo(a, b, c, d byte) func() error {
	return func() error {
		return throughSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) error {
			return unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{a, b, c, d}})
		})
	}
}

func sendsTo(a, b, c, d byte) func() error {
	return func() error {
		return throughSocket(unix.AF_INET, unix.SOCK_DGRAM, 0, func(fd int) error {
			return unix.Sendto(fd, []byte("who\n"), 0, &unix.SockaddrInet4{Addr: [4]byte{a, b, c, d}, Port: 5353})
		})
	}
}

func socketPair(family int) func() error {
	return func() error {
		ends, err := unix.Socketpair(family, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return errors.Join(unix.Close(ends[0]), unix.Close(ends[1]))
	}
}

// cannotEverywhereNetwork says which are sockets whose modules not every kernel has.
func cannotEverywhereNetwork(name string) bool {
	return strings.HasPrefix(name, "a socket: ") || name == "MPTCP" || strings.Contains(name, "TIPC")
}

// makeNetworkAttempts prints what each attempt gave, and its twin.
func makeNetworkAttempts() {
	if err := serveMachine(ownPort); err != nil {
		fmt.Println("a server of its own:", err)
		os.Exit(1)
	}
	out := json.NewEncoder(os.Stdout)
	for _, a := range networkAttempts() {
		outcome := func(act func() error) string {
			return outcomeOf(func(target) error { return act() }, target{In: "/tmp"})
		}
		_ = out.Encode([3]string{a.name, outcome(a.try), outcome(a.twin)})
	}
}

// makeMachine is the machine: it has the addresses and servers, and makes the attempts in a view with a network, and in one without.
func makeMachine() {
	fail := func(err error) {
		if err != nil {
			fmt.Println("the machine:", err)
			os.Exit(1)
		}
	}
	fail(raiseLoopback())
	for _, at := range []string{public4 + "/32", private4 + "/32", metadata4 + "/32", carrier4 + "/32"} {
		fail(exec.Command("ip", "addr", "add", at, "dev", "lo").Run())
	}
	for _, at := range []string{public6 + "/128", private6 + "/128"} {
		fail(exec.Command("ip", "addr", "add", at, "dev", "lo", "nodad").Run())
	}
	fail(exec.Command("ip", "route", "add", "224.0.0.0/4", "dev", "lo").Run())
	for _, port := range []int{machinePort, 443, 53, 80, 853} {
		fail(serveMachine(port))
	}
	for name, kind := range map[string]int{"stream": unix.SOCK_STREAM, "seqpacket": unix.SOCK_SEQPACKET, "dgram": unix.SOCK_DGRAM} {
		fd, err := unix.Socket(unix.AF_UNIX, kind, 0)
		fail(err)
		fail(unix.Bind(fd, &unix.SockaddrUnix{Name: abstractName + name}))
		if kind != unix.SOCK_DGRAM {
			fail(unix.Listen(fd, 8))
		}
	}
	for _, in := range []*Inside{nil, {}} {
		v := Abilities().Apply(View{Network: in, Places: []Place{{Path: withoutName(os.Args[0]), Access: Read}}})
		argv, err := WrapView(os.Args[0], []string{os.Args[0]}, v)
		fail(err)
		cmd := exec.Command(argv[0], argv[1:]...)
		if in == nil { // the control: the machine's network without any view
			cmd = exec.Command(os.Args[0])
		} else {
			cmd.SysProcAttr = v.Attr()
		}
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), wallVar+"=network"), os.Stdout, os.Stderr
		fail(cmd.Run())
	}
}

func serveMachine(port int) error {
	l, err := net.Listen("tcp", fmt.Sprint(":", port))
	if err != nil {
		return err
	}
	u, err := net.ListenUDP("udp", &net.UDPAddr{Port: port})
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "machine\n")
			c.Close()
		}
	}()
	go func() {
		b := make([]byte, 100)
		oob := make([]byte, 100)
		raw, err := u.SyscallConn()
		if err != nil {
			return
		}
		_ = raw.Control(func(fd uintptr) { // the answer comes from the address that was asked
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		})
		for {
			_, size, _, from, err := u.ReadMsgUDP(b, oob)
			if err != nil {
				return
			}
			_, _, _ = u.WriteMsgUDP([]byte("machine\n"), sourceOf(oob[:size]), from)
		}
	}()
	return nil
}

// sourceOf makes the address to which a datagram came the source of the answer.
func sourceOf(oob []byte) []byte {
	messages, _ := unix.ParseSocketControlMessage(oob)
	for _, m := range messages {
		if m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO {
			info := *(*unix.Inet4Pktinfo)(unsafe.Pointer(&m.Data[0]))
			info.Spec_dst = info.Addr
			return unix.PktInfo4(&info)
		}
		if m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO {
			info := *(*unix.Inet6Pktinfo)(unsafe.Pointer(&m.Data[0]))
			return unix.PktInfo6(&info)
		}
	}
	return nil
}

// TestNetworkAttempts makes every known attempt to get out of a view's network: first without a view, to see that it works at all, and
// then in a view, where none may succeed, while its allowed twin does.
func TestNetworkAttempts(t *testing.T) {
	needNetwork(t)
	if os.Geteuid() != 0 {
		t.Skip("only root makes the network namespace that stands for the machine")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip gives that machine its addresses: ", err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", wallVar+"=network-machine")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var results [][3]string
	for line := range strings.Lines(string(out)) {
		var r [3]string
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		results = append(results, r)
	}
	all := networkAttempts()
	if len(results) != 2*len(all) {
		t.Fatalf("%d results of %d attempts: %s", len(results), len(all), out)
	}
	for i, a := range all {
		if free := results[i]; free[0] != a.name || free[1] != worked {
			if !cannotEverywhereNetwork(a.name) {
				t.Errorf("%s does not even work free, so it proves nothing: %q", a.name, free)
			}
			t.Logf("%s: not on this machine: %s", a.name, free[1])
		}
		held := results[len(all)+i]
		if held[0] != a.name || held[1] == worked {
			t.Errorf("%s: %q", a.name, held)
		}
		if held[2] != worked {
			t.Errorf("%s: its allowed twin gave %q", a.name, held[2])
		}
		if strings.HasPrefix(a.name, "a socket: ") && held[1] != unix.EACCES.Error() { // whatever modules there are
			t.Errorf("%s: the filter lets it through: %q", a.name, held)
		}
	}
}
