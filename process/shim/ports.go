package shim

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/internal/socket"
	"golang.org/x/sys/unix"
)

// A shim leases TCP ports for its agent by locking one byte of a file for each of them. All shims of a user
// share the file, so no two agents of any workspace have the same port. The kernel drops the locks when the
// shim ends, however it ends, and a daemon that is killed does not matter.

const (
	portsFile  = "ports"
	portFirst  = 20480 // the range is below the ephemeral ports of Linux (32768) and of macOS (49152)
	portCount  = 8192
	portsTouch = time.Hour // cleaners remove files that are days old
	portVar    = "PORT_"   // and the number of the port in the lease, from 1

	// PortsMax limits the ports of one session, so that hundreds of sessions have room in the range.
	PortsMax = 16
)

// lease locks the ports and adds them to the agent's environment, as PORT_1, PORT_2 and so on.
func (k *keeper) lease(l *Spec) error {
	if l.Launch.Ports == 0 {
		return nil
	}
	if l.Launch.Ports < 0 || l.Launch.Ports > PortsMax {
		return fmt.Errorf("lease %d ports: a session has at most %d", l.Launch.Ports, PortsMax)
	}
	f, err := openPorts()
	if err != nil {
		return fmt.Errorf("lease %d ports: %w", l.Launch.Ports, err)
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(l.Launch.PortsFor)) // a hash never fails
	first := int(sum.Sum32() % (portCount / PortsMax) * PortsMax)
	var ports []int
	for i := 0; i < portCount && len(ports) < l.Launch.Ports; i++ {
		n := (first + i) % portCount
		locked, err := lockByte(f, n)
		if err != nil {
			f.Close()
			return fmt.Errorf("lease %d ports: lock %s: %w", l.Launch.Ports, f.Name(), err)
		}
		if locked && portFree(portFirst+n) { // a port that another program uses stays locked: the next lease skips it at once
			ports = append(ports, portFirst+n)
		}
	}
	if len(ports) < l.Launch.Ports {
		f.Close()
		return fmt.Errorf("lease %d ports: only %d of the ports %d to %d are free; end sessions or programs that use them", l.Launch.Ports,
			len(ports), portFirst, portFirst+portCount-1)
	}
	k.ports, k.record.Ports = f, ports
	l.Launch.Env = slices.DeleteFunc(l.Launch.Env, func(kv string) bool { return leased(kv, len(ports)) })
	for i, port := range ports {
		l.Launch.Env = append(l.Launch.Env, portVar+strconv.Itoa(i+1)+"="+strconv.Itoa(port))
	}
	return nil
}

// leased reports whether an environment variable is one of the lease's own.
func leased(kv string, count int) bool {
	name, _, _ := strings.Cut(kv, "=")
	n, err := strconv.Atoi(strings.TrimPrefix(name, portVar))
	return err == nil && strings.HasPrefix(name, portVar) && n >= 1 && n <= count
}

// release frees the ports when the agent's tree is gone, so that the next session can have them.
func (k *keeper) release() {
	if k.ports != nil {
		k.ports.Close()
		k.ports = nil
	}
}

// touchPorts shows programs that clean temporary folders that the file is in use.
func (k *keeper) touchPorts() {
	if now := time.Now(); k.ports != nil && now.Sub(k.portsTouched) > portsTouch {
		k.portsTouched = now
		_ = os.Chtimes(k.ports.Name(), now, now) // it is repeated long before a cleaner would act
	}
}

// openPorts opens the user's file of leases. Its folder does not depend on the environment, because daemons
// with different environments must share it.
func openPorts() (*os.File, error) {
	dirs := runtimedir.Dirs()
	dir := dirs[len(dirs)-1]
	if err := runtimedir.Private(dir); err != nil {
		return nil, err
	}
	return openPlain(filepath.Join(dir, portsFile), os.O_RDWR|os.O_CREATE)
}

func lockByte(f *os.File, n int) (bool, error) {
	for {
		switch err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: int64(n), Len: 1}); err {
		case nil:
			return true, nil
		case unix.EAGAIN, unix.EACCES:
			return false, nil
		case unix.EINTR:
		default:
			return false, err
		}
	}
}

// portFree reports whether a program on this machine can listen on a port of the loopback addresses.
func portFree(port int) bool {
	name := "port " + strconv.Itoa(port)
	for _, at := range []unix.Sockaddr{
		&unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}},
		&unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}},
	} {
		family := unix.AF_INET
		if _, is6 := at.(*unix.SockaddrInet6); is6 {
			family = unix.AF_INET6
		}
		l, err := socket.Listen(family, at, name)
		switch {
		case err == nil:
			l.Close()
		case family == unix.AF_INET6 && (errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)): // without IPv6
		default:
			return false
		}
	}
	return true
}
