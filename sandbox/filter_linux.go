package sandbox

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attributeCalls change what is known about a file and not what is in it. Landlock does
// not see them. The old ones, which some architectures lack, are beside (attributeCallsOld).
var attributeCalls = []uint32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, sysSetxattrat,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, sysRemovexattrat, sysFileSetattr,
}

// Numbers that all architectures share, of calls younger than the library's list.
const (
	sysSetxattrat    = 463
	sysRemovexattrat = 466
	sysFileSetattr   = 469
)

// Kinds of ioctl that reach a file system through a file that is open for reading only:
// flags and quotas, subvolumes and snapshots. Landlock looks at devices alone. kind is the
// second byte of the number; what only reads, or needs a file open for writing, goes on.
var fileIoctls = []struct {
	kind  uint32
	allow []uint32
}{
	{'f', []uint32{unix.FS_IOC_GETFLAGS, 0x80046601, 0xc020660b}},         // read the flags, in both widths; map the extents
	{'X', []uint32{0x801c581f}},                                           // read the extended flags
	{'v', []uint32{0x80087601, 0x80047601}},                               // read the version, in both widths
	{0x94, []uint32{unix.FICLONE, unix.FICLONERANGE, unix.FIDEDUPERANGE}}, // copy without copying: into a file open for writing
}

// typing are the ioctls that put words into a terminal's input, as if its user had typed them.
var typing = []uint32{unix.TIOCSTI, 0x541c}

// Where the kernel lays out a system call for a filter; the low half of an argument first,
// for both architectures are little-endian.
const (
	atNumber = 0
	atArch   = 4
	atArg0   = 16
	atArg1   = 24
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

// unless skips the next n steps where the number at hand is not k.
func unless(k uint32, n int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: skip(n)}
}

func skip(n int) uint8 {
	if n > 255 {
		panic("sandbox: a step of the filter skips further than one byte can say")
	}
	return uint8(n)
}

// on answers where the number at hand is one of ks.
func on(ks []uint32, what uint32) (p []unix.SockFilter) {
	for _, k := range ks {
		p = append(p, unless(k, 1), answer(what))
	}
	return p
}

// within runs a part for one system call and allows what the part does not answer.
func within(call uint32, part []unix.SockFilter) []unix.SockFilter {
	part = append(part, answer(allow))
	return append([]unix.SockFilter{unless(call, len(part))}, part...)
}

// program is the filter. What it does not name goes on: Landlock is the guard, this is for
// what that cannot see.
func (b Box) program() []unix.SockFilter {
	p := []unix.SockFilter{load(atArch), unless(auditArch, 1), {Code: unix.BPF_JMP | unix.BPF_JA, K: 1}, answer(kill), load(atNumber)}
	if foreignFrom > 0 { // a second set of numbers on the same machine would be a way round
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: foreignFrom, Jf: 1}, answer(kill))
	}
	// It carries system calls of its own past this filter; programs do without it.
	p = append(p, on([]uint32{unix.SYS_IO_URING_SETUP}, refuse(unix.ENOSYS))...)
	// The limits of a process outside: with no processor time left the daemon would be ended. 0 is oneself.
	p = append(p, within(unix.SYS_PRLIMIT64, []unix.SockFilter{load(atArg0), unless(0, 1), answer(allow), answer(refuse(unix.EPERM))})...)
	ioctls := append([]unix.SockFilter{load(atArg1)}, on(typing, refuse(unix.EPERM))...)
	if !b.Attributes {
		p = append(p, on(slices.Concat(attributeCalls, attributeCallsOld), refuse(unix.EPERM))...)
		for _, g := range fileIoctls {
			ioctls = append(ioctls, load(atArg1))
			ioctls = append(ioctls, on(g.allow, allow)...)
			ioctls = append(ioctls,
				unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xff00}, unless(g.kind<<8, 1), answer(refuse(unix.EPERM)))
		}
	}
	if !b.Sockets {
		p = append(p, within(unix.SYS_SOCKET, append([]unix.SockFilter{load(atArg0)}, on([]uint32{unix.AF_UNIX}, refuse(unix.EACCES))...))...)
	}
	p = append(p, within(unix.SYS_IOCTL, ioctls)...)
	return append(p, answer(allow))
}

// filter puts the program in front of every thread's system calls, for good.
func (b Box) filter() error {
	steps := b.program()
	prog := unix.SockFprog{Len: uint16(len(steps)), Filter: &steps[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return fmt.Errorf("thread %d has a filter of its own", thread)
	}
	return nil
}
