package sandbox

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// call is a system call as a filter sees it.
type call struct {
	number, arch uint32
	args         [6]uint64
}

// judge interprets a filter for a call like the kernel. It supports only the instructions that program uses.
func judge(t *testing.T, p []unix.SockFilter, c call) uint32 {
	t.Helper()
	var data [64]byte
	binary.LittleEndian.PutUint32(data[0:], c.number)
	binary.LittleEndian.PutUint32(data[4:], c.arch)
	for i, a := range c.args {
		binary.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	var a uint32
	for at := 0; at < len(p); at++ {
		s := p[at]
		jump := func(is bool) {
			if is {
				at += int(s.Jt)
			} else {
				at += int(s.Jf)
			}
		}
		switch s.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.LittleEndian.Uint32(data[s.K:])
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= s.K
		case unix.BPF_JMP | unix.BPF_JA:
			at += int(s.K)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == s.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(a&s.K != 0)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= s.K)
		case unix.BPF_RET | unix.BPF_K:
			return s.K
		default:
			t.Fatalf("step %d: code %#x is not known", at, s.Code)
		}
	}
	t.Fatal("it ran off the end")
	return 0
}

func TestFilter(t *testing.T) {
	eperm, eacces, enosys := refuse(unix.EPERM), refuse(unix.EACCES), refuse(unix.ENOSYS)
	ioctl := func(cmd uint64) call { return call{number: unix.SYS_IOCTL, args: [6]uint64{3, cmd}} }
	for _, c := range []struct {
		what                       string
		call                       call
		strict, attributes, speaks uint32
	}{
		{"read", call{number: unix.SYS_READ}, allow, allow, allow},
		{"openat", call{number: unix.SYS_OPENAT}, allow, allow, allow},
		{"execve", call{number: unix.SYS_EXECVE}, allow, allow, allow},
		{"fchmodat", call{number: unix.SYS_FCHMODAT}, eperm, allow, eperm},
		{"fchownat", call{number: unix.SYS_FCHOWNAT}, eperm, allow, eperm},
		{"utimensat", call{number: unix.SYS_UTIMENSAT}, eperm, allow, eperm},
		{"setxattrat", call{number: sysSetxattrat}, eperm, allow, eperm},
		{"file_setattr", call{number: sysFileSetattr}, eperm, allow, eperm},
		{"file_getattr", call{number: 468}, allow, allow, allow},
		{"getxattr", call{number: unix.SYS_GETXATTR}, allow, allow, allow},
		{"io_uring_setup", call{number: unix.SYS_IO_URING_SETUP}, enosys, enosys, enosys},
		{"one's own limits", call{number: unix.SYS_PRLIMIT64}, allow, allow, allow},
		{"the limits of another", call{number: unix.SYS_PRLIMIT64, args: [6]uint64{1}}, eperm, eperm, eperm},
		{"a unix socket", socket(unix.AF_UNIX), eacces, eacces, allow},
		{"a unix socket, with rubbish above", socket(1<<32 | unix.AF_UNIX), eacces, eacces, allow},
		{"a pair of streams", pair(unix.AF_UNIX, unix.SOCK_STREAM), allow, allow, allow},
		{"a pair of streams, with flags", pair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK), allow, allow, allow},
		{"a pair of datagram sockets", pair(unix.AF_UNIX, unix.SOCK_DGRAM), eacces, eacces, allow},
		{"the same, with flags", pair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK), eacces, eacces, allow},
		{"the same, with rubbish above", pair(1<<32|unix.AF_UNIX, 1<<32|unix.SOCK_DGRAM), eacces, eacces, allow},
		{"the same, as raw sockets", pair(unix.AF_UNIX, unix.SOCK_RAW), eacces, eacces, allow},
		{"a pair of packet sockets", pair(unix.AF_UNIX, unix.SOCK_SEQPACKET), eacces, eacces, allow},
		{"a pair of another family", pair(unix.AF_TIPC, unix.SOCK_DGRAM), allow, allow, allow},
		{"a socket of the network", socket(unix.AF_INET6), allow, allow, allow},
		{"ask a terminal's size", ioctl(unix.TIOCGWINSZ), allow, allow, allow},
		{"type into a terminal", ioctl(unix.TIOCSTI), eperm, eperm, eperm},
		{"the same, with rubbish above", ioctl(1<<32 | unix.TIOCSTI), eperm, eperm, eperm},
		{"read flags", ioctl(unix.FS_IOC_GETFLAGS), allow, allow, allow},
		{"set flags", ioctl(unix.FS_IOC_SETFLAGS), eperm, allow, eperm},
		{"set flags, in 32 bits", ioctl(0x40046602), eperm, allow, eperm},
		{"set a project's quota", ioctl(0x401c5820), eperm, allow, eperm},
		{"make a subvolume", ioctl(0x5000940e), eperm, allow, eperm},
		{"clone a file", ioctl(unix.FICLONE), allow, allow, allow},
		{"clone a part of a file", ioctl(unix.FICLONERANGE), allow, allow, allow},
	} {
		c.call.arch = auditArch
		for box, want := range map[*box]uint32{{}: c.strict, {Attributes: true}: c.attributes, {Sockets: true}: c.speaks} {
			if got := judge(t, box.program(abiApart), c.call); got != want {
				t.Errorf("%s in %+v: %#x, want %#x", c.what, *box, got, want)
			}
		}
	}
}

func socket(family uint64) call {
	return call{number: unix.SYS_SOCKET, args: [6]uint64{family, 1}}
}

func pair(family, kind uint64) call {
	return call{number: unix.SYS_SOCKETPAIR, args: [6]uint64{family, kind}}
}

func setPriority(which, who uint64) call {
	return call{number: unix.SYS_SETPRIORITY, args: [6]uint64{which, who}}
}

// Alone, no network and no unix socket can be had; signals are denied where Landlock does not confine them.
func TestFilterOfAlone(t *testing.T) {
	alone := box{Alone: true}
	for _, c := range []struct {
		what string
		call call
		abi  int
		want uint32
	}{
		{"the network", socket(unix.AF_INET), abiApart, refuse(unix.EACCES)},
		{"the network, with rubbish above", socket(1<<32 | unix.AF_INET6), abiApart, refuse(unix.EACCES)},
		{"raw packets", socket(unix.AF_PACKET), abiApart, refuse(unix.EACCES)},
		{"a virtual machine", socket(unix.AF_VSOCK), abiApart, refuse(unix.EACCES)},
		{"a unix socket", socket(unix.AF_UNIX), abiApart, refuse(unix.EACCES)},
		{"the kernel's lists", socket(unix.AF_NETLINK), abiApart, allow},
		{"a pair of streams", pair(unix.AF_UNIX, unix.SOCK_STREAM), abiApart, allow},
		{"a pair of datagram sockets", pair(unix.AF_UNIX, unix.SOCK_DGRAM), abiApart, refuse(unix.EACCES)},
		{"a signal, which Landlock confines", call{number: unix.SYS_KILL}, abiApart, allow},
		{"a signal", call{number: unix.SYS_KILL}, abiApart - 1, refuse(unix.EPERM)},
		{"a signal to a thread", call{number: unix.SYS_TGKILL}, abiApart - 1, refuse(unix.EPERM)},
		{"a signal by descriptor", call{number: unix.SYS_PIDFD_SEND_SIGNAL}, abiApart - 1, refuse(unix.EPERM)},
		{"a read", call{number: unix.SYS_READ}, abiApart - 1, allow},
		{"memory that outlives the process", call{number: unix.SYS_SHMGET}, abiApart, refuse(unix.EPERM)},
		{"memory of another", call{number: unix.SYS_SHMAT}, abiApart, refuse(unix.EPERM)},
		{"remove a semaphore", call{number: unix.SYS_SEMCTL}, abiApart, refuse(unix.EPERM)},
		{"a message queue", call{number: unix.SYS_MSGGET}, abiApart, refuse(unix.EPERM)},
		{"a queue with a name", call{number: unix.SYS_MQ_OPEN}, abiApart, refuse(unix.EPERM)},
		{"a key", call{number: unix.SYS_ADD_KEY}, abiApart, refuse(unix.EPERM)},
		{"one's own priority", setPriority(unix.PRIO_PROCESS, 0), abiApart, allow},
		{"the priority of another", setPriority(unix.PRIO_PROCESS, 77), abiApart, refuse(unix.EPERM)},
		{"the priority of the group", setPriority(unix.PRIO_PGRP, 0), abiApart, refuse(unix.EPERM)},
		{"the priority of the user", setPriority(unix.PRIO_USER, 0), abiApart, refuse(unix.EPERM)},
		{"one's own priority of input and output", call{number: unix.SYS_IOPRIO_SET, args: [6]uint64{1, 0}}, abiApart, allow},
		{"that of another", call{number: unix.SYS_IOPRIO_SET, args: [6]uint64{1, 77}}, abiApart, refuse(unix.EPERM)},
		{"that of the user", call{number: unix.SYS_IOPRIO_SET, args: [6]uint64{3, 0}}, abiApart, refuse(unix.EPERM)},
		{"one's own processors", call{number: unix.SYS_SCHED_SETAFFINITY}, abiApart, allow},
		{"the processors of another", call{number: unix.SYS_SCHED_SETAFFINITY, args: [6]uint64{77}}, abiApart, refuse(unix.EPERM)},
		{"the scheduling of another", call{number: unix.SYS_SCHED_SETATTR, args: [6]uint64{77}}, abiApart, refuse(unix.EPERM)},
	} {
		c.call.arch = auditArch
		if got := judge(t, alone.program(c.abi), c.call); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.what, got, c.want)
		}
	}
	both := box{Alone: true, Sockets: true}
	unixCall := socket(unix.AF_UNIX)
	unixCall.arch = auditArch
	if got := judge(t, both.program(abiApart), unixCall); got != allow {
		t.Errorf("a unix socket that is allowed: %#x", got)
	}
}

// Every listed call is denied, and a call of another architecture kills the process.
func TestFilterOfAll(t *testing.T) {
	p := box{}.program(abiApart)
	for _, nr := range append(attributeCalls, attributeCallsOld...) {
		if got := judge(t, p, call{number: nr, arch: auditArch}); got != refuse(unix.EPERM) {
			t.Errorf("call %d: %#x", nr, got)
		}
		if got := judge(t, p, call{number: nr, arch: auditArch + 1}); got != kill {
			t.Errorf("call %d of another architecture: %#x", nr, got)
		}
		if foreignFrom > 0 {
			if got := judge(t, p, call{number: foreignFrom | nr, arch: auditArch}); got != kill {
				t.Errorf("call %d of the other interface: %#x", nr, got)
			}
		}
	}
	t.Log(len(p), "steps")
}
