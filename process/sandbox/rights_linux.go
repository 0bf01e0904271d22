package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// restrictThread takes from this thread, and from what it starts, what a program in a view must not have: rights, new
// namespaces, mounts. Landlock says the same about writing as the mounts do, for a kernel that is wrong about one of them. One that may
// start only programs of a list gets no unix sockets: one that lies in a folder of the view would be reached.
func (v View) restrictThread(who owner) error {
	modes := ownersRights()
	if err := dropRights(who); err != nil {
		return fmt.Errorf("give up rights: %w", err)
	}
	abi, why := Supported()
	b := box{
		Write: v.writable(), Attributes: true, Terminals: true, Sockets: v.Execute == nil, Execute: v.Execute, Alone: v.Alone,
		modes: modes, inside: v.Network != nil,
	}
	b.group = v.Processes && unix.Getpgrp() == 0 // it has no number here
	b.signals = b.group && abi < abiApart
	if why == "" {
		if err := b.restrict(abi, "/dev", "/proc"); err != nil {
			return err
		}
	} else if v.Execute != nil {
		return fmt.Errorf("only some programs may be executed, and %s", why)
	}
	if auditArch == 0 {
		return nil // the filter is the second layer
	}
	return install(b.program(abiApart, viewCalls()...))
}

// ownersRights are the bits of a mode with which a program has its owner's rights, also if another user starts it. What the program
// of a view leaves belongs to the user outside. The bit of the group is a folder's, too, and ordinary users share such folders; for
// root it is closed.
func ownersRights() uint32 {
	if ownUID() == 0 {
		return unix.S_ISUID | unix.S_ISGID
	}
	return unix.S_ISUID
}

// writable are the folders of a view that may be written, as the program sees them.
func (v View) writable() (out []string) {
	out = []string{"/tmp", "/run", "/dev/shm", v.homeAt()}
	for _, p := range v.Places {
		if p.Access != Write && p.Access != Overlay {
			continue
		}
		if _, err := os.Lstat(p.Path); err == nil {
			out = append(out, p.Path)
		}
	}
	slices.Sort(out)
	top := out[:0] // what lies in another folder has its rule from there
	for _, p := range out {
		if len(top) == 0 || !slices.ContainsFunc(top, func(t string) bool { return below(p, t) }) {
			top = append(top, p)
		}
	}
	return top
}

func (v View) homeAt() string {
	if v.HomeAt != "" {
		return v.HomeAt
	}
	return "/home/agent"
}

// dropRights makes this thread an ordinary one for good.
func dropRights(who owner) error {
	const noRoot = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<6 | 1<<7 // NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE, each locked
	for c := range capabilities() {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	if who.uid != os.Geteuid() {
		for _, call := range [][4]uintptr{
			{unix.SYS_SETGROUPS, 0, 0, 0},
			{unix.SYS_SETRESGID, uintptr(who.gid), uintptr(who.gid), uintptr(who.gid)},
			{unix.SYS_SETRESUID, uintptr(who.uid), uintptr(who.uid), uintptr(who.uid)},
		} { // of this thread alone, unlike the library's calls
			if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
				return fmt.Errorf("become user %d: %w", who.uid, errno)
			}
		}
	} else if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil {
		return fmt.Errorf("lock rights: %w", err)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// capabilities is the number of capabilities that this kernel has.
func capabilities() int {
	for c := 0; ; c++ {
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0); err != nil {
			return c
		}
	}
}

// allThreads takes the rights of every thread of this process. It is harmless where it fails: the program has other rights already. A
// program with the C library can only change the user of all threads, with which root loses its rights.
func allThreads(uid, gid int) {
	_, _ = syscall.Setresgid(gid, gid, gid), syscall.Setresuid(uid, uid, uid)
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, _ = syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none[0])), 0)
}

const (
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
	newTime = unix.CLONE_NEWTIME
)

// closedCalls need rights that no program in a view has. They are closed here, too, because each has had faults in the kernel.
var closedCalls = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT,
	unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_USERFAULTFD,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE,
	unix.SYS_FINIT_MODULE,
	unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
}

// viewCalls are the steps of the filter for a view.
func viewCalls() []unix.SockFilter {
	p := on(closedCalls, refuse(unix.EPERM))
	p = append(p, on([]uint32{unix.SYS_CLONE3}, refuse(unix.ENOSYS))...) // its flags are in memory; programs then use clone
	for call, flags := range map[uint32]uint32{unix.SYS_CLONE: newNamespaces, unix.SYS_UNSHARE: newNamespaces | newTime} {
		p = append(p, within(call, []unix.SockFilter{
			load(atArg0), {Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: flags, Jf: 1}, answer(refuse(unix.EPERM)),
		})...)
	}
	return p
}

// try makes one attempt for each row on this thread, which has the program's rights, and returns the rows that do not hold.
func (v View) try(far farSockets) (unheld []Row) {
	for _, row := range Rows {
		if !v.holds(row, far) {
			unheld = append(unheld, row)
		}
	}
	return unheld
}

// farSockets are sockets that the self-test must not reach, besides those of [Canaries].
type farSockets struct {
	live     live
	abstract []string
}

func (v View) holds(row Row, far farSockets) bool {
	attempt, tried := map[Row]func() bool{
		RowWrite:      v.holdsWrite,
		RowAttributes: func() bool { return v.By == ByNamespaces && fails(removesAttribute(v.Canaries.Write)) },
		RowInside:     func() bool { return !v.open(func(p Place) bool { return !p.Must }) },
		RowRead:       v.holdsRead,
		RowNames:      func() bool { return v.By == ByNamespaces && fails(unix.Lstat(orNone(v.Canaries.Read), &unix.Stat_t{})) },
		RowSocket:     func() bool { return v.holdsSocket(far) },
		RowProcess:    func() bool { return v.Processes && !reaches(v.Canaries.PID) },
		RowGit:        func() bool { return v.Git },
		RowRoot:       func() bool { return ownUID() != 0 },
		RowNetwork:    v.holdsNetwork,
	}[row]
	return tried && attempt()
}

func (v View) holdsWrite() bool {
	return fails(makes("/usr/.fairlead-wall")) && fails(makes("/etc/.fairlead-wall")) && fails(openToWrite(orNone(v.Canaries.Write))) &&
		fails(unix.Mount("none", "/tmp", "tmpfs", 0, "")) && !v.open(func(p Place) bool { return p.Must })
}

func (v View) holdsRead() bool {
	fd, err := unix.Open(orNone(v.Canaries.Read), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return fails(closedAgain(fd, err))
}

func (v View) holdsSocket(far farSockets) bool {
	all := slices.Concat(far.live.paths, far.abstract, []string{orNone(v.Canaries.Socket)})
	return far.live.whole && !slices.ContainsFunc(all, func(at string) bool {
		return slices.ContainsFunc(socketKinds, func(kind int) bool { return !fails(connects(at, kind)) })
	})
}

// open reports whether a place that is read-only or hidden inside of a writable one can be written, or made. Landlock never takes
// a folder out of another one. In a view only the answer of a read-only mount counts, for a name that no program can have
// foreseen: a program of an earlier session may have left a file there, or a folder without rights.
func (v View) open(which func(Place) bool) bool {
	return slices.ContainsFunc(v.Places, func(p Place) bool {
		if p.Access != Read && p.Access != Hide || !which(p) || !v.inWritable(p.Path) {
			return false
		}
		info, err := os.Lstat(p.Path)
		switch {
		case err != nil || v.By != ByNamespaces:
			return true
		case !info.IsDir():
			return !fails(openToWrite(p.Path))
		}
		return !errors.Is(makes(path.Join(p.Path, fmt.Sprintf(".fairlead-wall-%x", rand.Uint64()))), unix.EROFS)
	})
}

func (v View) inWritable(at string) bool {
	return slices.ContainsFunc(v.Places, func(p Place) bool { return p.Access == Write && p.Path != at && below(at, p.Path) })
}

// reaches reports whether the process with a number of outside can be reached: a signal arrives, or its environment is read.
func reaches(pid int) bool {
	if pid <= 0 {
		return false
	}
	if err := unix.Kill(pid, 0); err != nil {
		return err == unix.EPERM
	}
	parent, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return err == nil && !strings.Contains(string(parent), "NSpid:\t"+strconv.Itoa(pid)+"\n")
}

// ownUID is the user of this thread: the library's call may ask another.
func ownUID() int {
	uid, _, _ := unix.RawSyscall(unix.SYS_GETEUID, 0, 0, 0)
	return int(uid)
}

func fails(err error) bool { return err != nil }

// orNone is a path that does not exist in place of an empty one.
func orNone(p string) string {
	if p == "" {
		return "/nonexistent/fairlead"
	}
	return p
}

func makes(p string) error {
	fd, err := unix.Open(p, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		_ = unix.Unlink(p)
	}
	return closedAgain(fd, err)
}

func closedAgain(fd int, err error) error {
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// removesAttribute removes an attribute that a file does not have, so that nothing is changed. It fails if the file cannot be changed.
func removesAttribute(p string) error {
	err := unix.Removexattr(orNone(p), "user.fairlead-wall")
	if err == unix.ENODATA || err == unix.EOPNOTSUPP {
		return nil
	}
	return err
}

// socketKinds are the kinds of unix sockets. One of another kind is not reached.
var socketKinds = []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET, unix.SOCK_DGRAM}

// connects connects to a unix socket. A datagram socket is one of a pair, because not every layer sees both ways.
func connects(p string, kind int) error {
	var fd int
	var err error
	if kind == unix.SOCK_DGRAM {
		var pair [2]int
		if pair, err = unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err == nil {
			defer unix.Close(pair[1])
			fd = pair[0]
		}
	} else {
		fd, err = unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if len(p) > 100 {
		return errors.New("the path is too long for a socket")
	}
	if err = unix.Connect(fd, &unix.SockaddrUnix{Name: p}); err == unix.EAGAIN { // too many wait there
		return nil
	}
	return err
}
