package sandbox

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attributeCalls change a file's metadata, not its content. Landlock does not see them. Old calls that some
// architectures lack are in attributeCallsOld.
var attributeCalls = []uint32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, sysSetxattrat,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, sysRemovexattrat, sysFileSetattr,
}

// Numbers of recent calls that all architectures share and the library does not list.
const (
	sysSetxattrat    = 463
	sysRemovexattrat = 466
	sysFileSetattr   = 469
)

// ioctls that change a file system through a file that is open only for reading: flags and quotas, subvolumes
// and snapshots. Landlock restricts only devices. kind is the second byte of the number. Those that only
// read, or need a file that is open for writing, are allowed.
var fileIoctls = []struct {
	kind  uint32
	allow []uint32
}{
	{'f', []uint32{unix.FS_IOC_GETFLAGS, 0x80046601, 0xc020660b}},         // read the flags, in both widths; map the extents
	{'X', []uint32{0x801c581f}},                                           // read the extended flags
	{'v', []uint32{0x80087601, 0x80047601}},                               // read the version, in both widths
	{0x94, []uint32{unix.FICLONE, unix.FICLONERANGE, unix.FIDEDUPERANGE}}, // clone or deduplicate into a file that is open for writing
}

// typing are the ioctls that insert input into a terminal, as if the user had typed it.
var typing = []uint32{unix.TIOCSTI, 0x541c}

// signalCalls send a signal to a process.
var signalCalls = []uint32{
	unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
	unix.SYS_PIDFD_SEND_SIGNAL,
}

// sharedCalls reach objects that all processes of a user share, that no path names, and that outlive the process: System V
// IPC, POSIX message queues and keys.
var sharedCalls = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
}

// schedulingCalls change when a process runs. The first argument says which process; 0 is the caller itself.
var schedulingCalls = []uint32{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR}

// modeCall makes a file with a mode, or changes a mode: which arguments the mode and the flags are. Without flags it always counts.
type modeCall struct{ call, mode, flags uint32 }

var modeCalls = []modeCall{
	{unix.SYS_OPENAT, 3, 2},
	{unix.SYS_FCHMOD, 1, 0},
	{unix.SYS_FCHMODAT, 2, 0},
	{unix.SYS_FCHMODAT2, 2, 0},
	{unix.SYS_MKNODAT, 2, 0},
}

// Offsets of a system call's data in a filter; the low half of an argument comes first, because both
// architectures are little-endian.
const (
	atNumber = 0
	atArch   = 4
	atArg0   = 16
	atArg1   = 24
	perArg   = atArg1 - atArg0
)

const (
	allow = unix.SECCOMP_RET_ALLOW
	kill  = unix.SECCOMP_RET_KILL_PROCESS
)

func refuse(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func answer(what uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what}
}

// unless skips the next n steps if the current number is not k.
func unless(k uint32, n int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: skip(n)}
}

func skip(n int) uint8 {
	if n > 255 {
		panic("sandbox: a step of the filter skips further than one byte can say")
	}
	return uint8(n)
}

// on returns an action if the current number is one of ks.
func on(ks []uint32, what uint32) (p []unix.SockFilter) {
	for _, k := range ks {
		p = append(p, unless(k, 1), answer(what))
	}
	return p
}

// within runs a part for one system call and allows what the part does not decide.
func within(call uint32, part []unix.SockFilter) []unix.SockFilter {
	part = append(part, answer(allow))
	return append([]unix.SockFilter{unless(call, len(part))}, part...)
}

// program is the filter beside Landlock's version. Calls that it does not name are allowed: Landlock is the main protection, and the
// filter covers what Landlock cannot see.
func (b box) program(abi int, more ...unix.SockFilter) []unix.SockFilter {
	p := []unix.SockFilter{load(atArch), unless(auditArch, 1), {Code: unix.BPF_JMP | unix.BPF_JA, K: 1}, answer(kill), load(atNumber)}
	if foreignFrom > 0 { // another set of call numbers on the same machine would bypass the filter
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: foreignFrom, Jf: 1}, answer(kill))
	}
	// io_uring makes system calls that bypass this filter; programs work without it
	p = append(p, on([]uint32{unix.SYS_IO_URING_SETUP}, refuse(unix.ENOSYS))...)
	// Limits of a process outside: without processor time the daemon would be killed. 0 is the caller itself.
	p = append(p, within(unix.SYS_PRLIMIT64, []unix.SockFilter{load(atArg0), unless(0, 1), answer(allow), answer(refuse(unix.EPERM))})...)
	if !b.Attributes {
		p = append(p, on(slices.Concat(attributeCalls, attributeCallsOld), refuse(unix.EPERM))...)
	}
	if b.modes != 0 {
		p = append(p, b.left()...)
	}
	ioctls := append([]unix.SockFilter{load(atArg1)}, on(typing, refuse(unix.EPERM))...)
	if !b.Attributes {
		for _, g := range fileIoctls {
			ioctls = append(ioctls, load(atArg1))
			ioctls = append(ioctls, on(g.allow, allow)...)
			ioctls = append(ioctls,
				unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xff00}, unless(g.kind<<8, 1),
				answer(refuse(unix.EPERM)))
		}
	}
	p = append(p, b.sockets()...)
	if b.Alone && abi < abiApart { // Landlock does not confine signals
		p = append(p, on(signalCalls, refuse(unix.EPERM))...)
	}
	if b.Alone {
		p = append(p, outside()...)
	}
	p = append(p, within(unix.SYS_IOCTL, ioctls)...)
	p = append(p, more...)
	return append(p, answer(allow))
}

// left denies what a program in a view could leave for processes outside, or hear of them, although it only has its own files: a
// program with its owner's rights (modes; the mode of openat2 is in memory, but what is written to such a file later takes the
// rights away), a lease, which makes everyone wait who opens the file, and the kernel's messages about all processes. A process
// group that began outside has processes there, and is its own by the number 0.
func (b box) left() (p []unix.SockFilter) {
	const ioOfGroup = 2
	const makes = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
	with := func(mask uint32, n int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: mask, Jf: skip(n)}
	}
	for _, c := range append(modeCalls, modeCallsOld...) {
		part := []unix.SockFilter{load(atArg0 + c.mode*perArg), with(b.modes, 1), answer(refuse(unix.EPERM))}
		if c.flags != 0 {
			part = append([]unix.SockFilter{load(atArg0 + c.flags*perArg), with(makes, len(part))}, part...)
		}
		p = append(p, within(c.call, part)...)
	}
	refuseOne := func(at, k uint32) []unix.SockFilter {
		return append([]unix.SockFilter{load(at)}, on([]uint32{k}, refuse(unix.EPERM))...)
	}
	if b.group && !b.Alone { // that denies more
		for call, kind := range map[uint32]uint32{unix.SYS_SETPRIORITY: unix.PRIO_PGRP, unix.SYS_IOPRIO_SET: ioOfGroup} {
			own := refuseOne(atArg1, 0)
			p = append(p, within(call, append([]unix.SockFilter{load(atArg0), unless(kind, len(own))}, own...))...)
		}
	}
	if b.signals && !b.Alone {
		p = append(p, within(unix.SYS_KILL, refuseOne(atArg0, 0))...)
	}
	p = append(p, within(unix.SYS_FCNTL, refuseOne(atArg1, unix.F_SETLEASE))...)
	part := []unix.SockFilter{
		load(atArg0), unless(unix.AF_NETLINK, 3),
		load(atArg0 + 2*perArg), unless(unix.NETLINK_CONNECTOR, 1), answer(refuse(unix.EACCES)),
		load(atNumber), // for what follows
	}
	return append(append(p, unless(unix.SYS_SOCKET, len(part))), part...)
}

// outside denies effects on other processes that Landlock does not see. Another program needs some of these calls (a database shares
// memory), so they are not denied to every sandbox.
func outside() []unix.SockFilter {
	p := on(sharedCalls, refuse(unix.EPERM))
	for _, call := range schedulingCalls {
		p = append(p, within(call, []unix.SockFilter{load(atArg0), unless(0, 1), answer(allow), answer(refuse(unix.EPERM))})...)
	}
	const ofProcess, ioOfProcess = unix.PRIO_PROCESS, 1 // others are whole groups and users
	for call, kind := range map[uint32]uint32{unix.SYS_SETPRIORITY: ofProcess, unix.SYS_IOPRIO_SET: ioOfProcess} {
		p = append(p, within(call, []unix.SockFilter{
			load(atArg0), unless(kind, 3), load(atArg1), unless(0, 1), answer(allow), answer(refuse(unix.EPERM)),
		})...)
	}
	return p
}

// sockets denies kinds of sockets. Netlink is not the network: it asks the kernel, and programs need it to list
// what is there.
func (b box) sockets() []unix.SockFilter {
	part := []unix.SockFilter{load(atArg0)}
	switch {
	case b.inside && !b.Alone:
		part = b.insideSockets()
	case b.Alone:
		part = append(part, on([]uint32{unix.AF_NETLINK}, allow)...)
		if b.Sockets {
			part = append(part, on([]uint32{unix.AF_UNIX}, allow)...)
		}
		part = append([]unix.SockFilter{unless(unix.SYS_SOCKET, len(part)+1)}, append(part, answer(refuse(unix.EACCES)))...)
	case !b.Sockets:
		part = within(unix.SYS_SOCKET, append(part, on([]uint32{unix.AF_UNIX}, refuse(unix.EACCES))...))
	default:
		return nil
	}
	if b.Sockets {
		return part
	}
	return append(part, pairs()...)
}

// insideSockets permits the kinds of sockets that the network of a view holds: unix sockets, streams and datagrams of the Internet, and
// asking the kernel for the devices and routes of the view. Others are the machine's (vsock, Bluetooth), or have had faults in the kernel.
func (b box) insideSockets() []unix.SockFilter {
	const kind = 0xf // the rest of the argument are flags
	internet := []unix.SockFilter{load(atArg1), {Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: kind}}
	internet = append(internet, on([]uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM}, allow)...)
	internet = append(internet, answer(refuse(unix.EACCES)))
	asks := append([]unix.SockFilter{load(atArg0 + 2*perArg)}, on([]uint32{unix.NETLINK_ROUTE}, allow)...)
	asks = append(asks, answer(refuse(unix.EACCES)))
	part := []unix.SockFilter{load(atArg0)}
	if b.Sockets {
		part = append(part, on([]uint32{unix.AF_UNIX}, allow)...)
	}
	for family, of := range map[uint32][]unix.SockFilter{unix.AF_INET: internet, unix.AF_INET6: internet, unix.AF_NETLINK: asks} {
		part = append(append(part, unless(family, len(of))), of...)
	}
	part = append(part, answer(refuse(unix.EACCES)))
	part = append([]unix.SockFilter{unless(unix.SYS_SOCKET, len(part))}, part...)
	return append(part, unless(unix.SYS_SOCKETPAIR, 4), load(atArg0),
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AF_UNIX, Jt: 1}, answer(refuse(unix.EACCES)),
		load(atNumber))
}

// pairs denies pairs of unix sockets that are no streams: an end of a pair of datagram sockets can send to any socket that a path or
// an abstract name leads to. An end of a pair of streams is connected for good.
func pairs() []unix.SockFilter {
	const kind = 0xf // the rest of the argument are flags
	return within(unix.SYS_SOCKETPAIR, []unix.SockFilter{
		load(atArg0), unless(unix.AF_UNIX, 4),
		load(atArg1),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: kind},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SOCK_STREAM, Jt: 1},
		answer(refuse(unix.EACCES)),
	})
}

// install makes steps the filter of this thread, permanently.
func install(steps []unix.SockFilter) error {
	prog := unix.SockFprog{Len: uint16(len(steps)), Filter: &steps[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return errno
	}
	return nil
}
