package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"golang.org/x/sys/unix"
)

// ownSockets are the sockets that this process has made in the view's network.
type ownSockets struct {
	hand []int // for the caller, in the order of [Inside.Sockets]
	own  int   // the other end of [wire.KindSockets]
}

// waitingMax is how many connections to one socket wait for the proxy, while it is gone or busy: a program may open 1,000 at once.
const waitingMax = 1024

// makeInside gives the view its network. This process is in the namespace already, and the namespace is new: nothing is up in it.
func (v View) makeInside() (made ownSockets, err error) {
	if v.Network == nil {
		return made, nil
	}
	if err := raiseLoopback(); err != nil {
		return made, fmt.Errorf("make the network of the view: %w", err)
	}
	for _, s := range v.Network.Sockets() {
		fd := -1
		if s.Kind == wire.KindSockets {
			var pair [2]int
			if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err == nil {
				fd, made.own = pair[0], pair[1]
			}
		} else {
			fd, err = listen(s)
		}
		if err != nil {
			return made, fmt.Errorf("make the socket %q of the view: %w", s.Kind, err)
		}
		made.hand = append(made.hand, fd)
	}
	return made, nil
}

// listen makes a socket of the view. The ports below 1024 are closed to the program, so that these sockets may share them: the one of
// a single address comes before the one of all addresses.
func listen(s wire.Socket) (fd int, err error) {
	at := unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: s.Port}
	kind := unix.SOCK_STREAM
	switch s.Kind {
	case wire.KindProxy:
		at.Port = network.ProxyPort
	case wire.KindDNS:
		at.Port, kind = network.NamesPort, unix.SOCK_DGRAM
	case wire.KindDNSTCP:
		at.Port = network.NamesPort
	case wire.KindTLS:
		at = unix.SockaddrInet4{Port: 443}
	case wire.KindHTTP:
		at = unix.SockaddrInet4{Port: 80}
	case wire.KindNamed:
		at.Addr = namedAddress(s.Host)
	}
	if fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	if at.Port < 1024 && kind == unix.SOCK_STREAM {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if err == nil {
		err = unix.Bind(fd, &at)
	}
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, waitingMax)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// raiseLoopback brings the loopback device up. It is up in every other network than a new one.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return fmt.Errorf("look at its loopback: %w", err)
	}
	if lo.Uint16()&unix.IFF_UP != 0 {
		return errors.New("this process is in the network of another one; it has to be started with Attr")
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring its loopback up: %w", err)
	}
	return nil
}

// hand tells the caller that the program runs, and gives it the sockets. The caller is gone if that fails, and with it this process soon.
func (to reports) hand(started Started, made ownSockets) {
	if len(made.hand) == 0 {
		to.say(started)
		return
	}
	to.sayWith(started, unix.UnixRights(made.hand...))
	for _, fd := range made.hand {
		unix.Close(fd)
	}
}

// serve answers each byte at [wire.KindSockets] with a new TCP socket of the view, through which the proxy connects to a server in it.
func (made ownSockets) serve() {
	for {
		var ask [1]byte
		n, err := unix.Read(made.own, ask[:])
		switch {
		case err == unix.EINTR:
			continue
		case n <= 0:
			return // no process has the other end
		}
		family := unix.AF_INET
		if ask[0] == wire.AskIPv6 {
			family = unix.AF_INET6
		}
		var rights []byte // without one, none can be made now
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			rights = unix.UnixRights(fd)
		}
		if err := unix.Sendmsg(made.own, ask[:], rights, nil, unix.MSG_NOSIGNAL); err != nil {
			return
		}
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// resolver are the settings of name look-up in a view with a network of its own: the proxy answers.
const resolver = "nameserver 127.0.0.1\n"

// lookUp puts these settings where programs look, which is what /etc/resolv.conf leads to. Without that file they ask the same address. Of
// /etc/hosts only the names of loopback are left: programs that look there first would not reach another address.
func (m *mounter) lookUp() error {
	if err := m.replace("/etc/resolv.conf", func(string) string { return resolver }); err != nil {
		return err
	}
	return m.replace("/etc/hosts", loopbackNames)
}

func loopbackNames(hosts string) string {
	var kept strings.Builder
	for line := range strings.Lines(hosts) {
		if at := strings.Fields(line); len(at) > 1 && (strings.HasPrefix(at[0], "127.") || at[0] == "::1") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// replace has the view show another text in place of a file of the machine. A file that is too large stays.
func (m *mounter) replace(file string, by func(text string) string) error {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	text, err := readMost(real, namesBytesMax+1)
	if err != nil || len(text) > namesBytesMax {
		return nil //nolint:nilerr // it would not be readable inside either
	}
	if strings.HasPrefix(real, "/run/") { // where the view has a folder of its own
		return m.write(real, by(string(text)))
	}
	at, err := m.point(real, false)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	own := "/run/" + path.Base(file)
	if err := m.write(own, by(string(text))); err != nil {
		return err
	}
	from, err := unix.Openat2(m.root, own[1:], &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: noLinks})
	if err != nil {
		return err
	}
	defer unix.Close(from)
	if err := m.over(from, at, 0, unix.MOUNT_ATTR_RDONLY|holdMountFlags|unix.MOUNT_ATTR_NOEXEC); err != nil {
		return fmt.Errorf("put the settings of name look-up at %s: %w", real, err)
	}
	return nil
}

// write makes a file in a folder in memory.
func (m *mounter) write(at, text string) error {
	dir, err := m.folder(path.Dir(at))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat(dir, path.Base(at), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(text))
	return errors.Join(err, unix.Close(fd))
}

// holdsNetwork reports whether nothing outside is reached: the only device that is up is loopback, no route leads elsewhere, and no
// socket is of a kind that is not in a network's namespace. No packet is sent.
func (v View) holdsNetwork() bool {
	if v.Alone {
		return fails(opensSocket(unix.AF_INET, unix.SOCK_DGRAM, 0)) && fails(opensSocket(unix.AF_INET6, unix.SOCK_DGRAM, 0)) &&
			holdsFamilies()
	}
	return v.Network != nil && holdsFamilies() && onlyLoopback() &&
		fails(routes(&unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}, Port: 9})) &&
		fails(routes(&unix.SockaddrInet6{Addr: [16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1}, Port: 9}))
}

// holdsFamilies tries sockets that are the machine's in every network. Without the filter, a module that is loaded later brings more.
func holdsFamilies() bool {
	return auditArch != 0 && fails(opensSocket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)) &&
		fails(opensSocket(unix.AF_BLUETOOTH, unix.SOCK_SEQPACKET, 0)) && fails(opensSocket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)) &&
		fails(opensSocket(unix.AF_PACKET, unix.SOCK_RAW, 0)) && fails(opensSocket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP))
}

func opensSocket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	return closedAgain(fd, err)
}

// routes reports whether there is a way to an address. Connecting a datagram socket sends nothing.
func routes(to unix.Sockaddr) error {
	family := unix.AF_INET
	if _, is6 := to.(*unix.SockaddrInet6); is6 {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}

const devicesBytesMax = 64 << 10 // a new network has a few devices, for each a line

// onlyLoopback reports whether no other device of the network is up. Some kernels give each network tunnels, which are down.
func onlyLoopback() bool {
	text, err := readMost("/proc/thread-self/net/dev", devicesBytesMax)
	fd, open := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil || open != nil {
		return false
	}
	defer unix.Close(fd)
	found := false
	for line := range strings.Lines(string(text)) {
		name, _, is := strings.Cut(line, ":")
		if !is {
			continue // the heading
		}
		device, err := unix.NewIfreq(strings.TrimSpace(name))
		if err != nil || unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, device) != nil {
			return false
		}
		up := device.Uint16()&unix.IFF_UP != 0
		if loopback := device.Uint16()&unix.IFF_LOOPBACK != 0; up && !loopback {
			return false
		}
		found = found || up
	}
	return found
}

// callersSockets is the kernel's list of unix sockets in the network of the process that started this one, which may be another one.
func (v View) callersSockets() string {
	if v.Network == nil {
		return "/proc/net/unix"
	}
	status, _ := os.ReadFile("/proc/self/status")
	_, parent, _ := strings.Cut(string(status), "\nPPid:")
	parent, _, _ = strings.Cut(parent, "\n")
	return filepath.Join("/proc", strings.TrimSpace(parent), "net", "unix")
}
