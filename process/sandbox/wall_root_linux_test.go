package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// effective is the lower half of a process's effective capabilities; 0 is the caller.
func effective(pid int) uint32 {
	data := make([]unix.CapUserData, 2)
	_ = unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3, Pid: int32(pid)}, &data[0])
	return data[0].Effective
}

// device makes the file of a device and opens it.
func device1(kind uint32, major, minor uint32) act {
	return func(t target) error {
		p := filepath.Join(t.In, "device")
		return errors.Join(sys(unix.SYS_MKNODAT, at, p, int(kind|0o600), int(unix.Mkdev(major, minor))), openWith(p, unix.O_RDONLY))
	}
}

// opened is the proof that a file of the kernel could be written or read; nothing is.
func opened(p string, flags int) act {
	return func(target) error { return openWith(p, flags) }
}

func plainFile(t target) error { return openWith(t.File, unix.O_RDWR) }

// fsuid sets the user of file accesses, which never says that it failed.
func fsuid(call, id int) error {
	_, _ = raw(call, id)
	if now, _ := raw(call, -1); now != id {
		return unix.EPERM
	}
	return nil
}

// become runs a program that takes rights from its file.
func takes(p func(target) string, want func(ids string) bool) act {
	return func(t target) error {
		cmd := again("ids", nil)
		cmd.Path = p(t)
		out, err := cmd.Output()
		if err == nil && !want(strings.TrimSpace(string(out))) {
			err = fmt.Errorf("it runs as %s", out)
		}
		return err
	}
}

// rootAttempts want what only root may have.
var rootAttempts = []wallAttempt{
	{name: "be another user", call: "setuid", row: RowRoot, root: true, try: func(t target) error { return sys(unix.SYS_SETUID, t.User) }},
	{
		name: "be another real user", call: "setreuid", row: RowRoot, root: true,
		try: func(t target) error { return sys(unix.SYS_SETREUID, t.User, t.User) },
	},
	{
		name: "be another saved user", call: "setresuid", row: RowRoot, root: true,
		try: func(t target) error { return sys(unix.SYS_SETRESUID, t.User, t.User, t.User) },
	},
	{
		name: "be another user for files", call: "setfsuid", row: RowRoot, root: true,
		try: func(t target) error { return fsuid(unix.SYS_SETFSUID, t.User) },
	},
	{
		name: "be of another group", call: "setgid", row: RowRoot, root: true, twin: ownGroup(unix.SYS_SETGID),
		try: func(target) error { return sys(unix.SYS_SETGID, 0) },
	},
	{
		name: "be of another saved group", call: "setresgid", row: RowRoot, root: true, twin: threadOnly,
		try: func(target) error { return sys(unix.SYS_SETRESGID, 0, 0, 0) },
	},
	{
		name: "be of more groups", call: "setgroups", row: RowRoot, root: true, twin: threadOnly,
		try: func(target) error { return sys(unix.SYS_SETGROUPS, 0, 0) },
	},
	{name: "take all rights", call: "capset", row: RowRoot, root: true, twin: threadOnly, try: func(target) error {
		data := make([]unix.CapUserData, 2)
		data[0] = unix.CapUserData{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}
		return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0])
	}},
	{name: "keep rights over a change of user", call: "prctl", row: RowRoot, root: true, twin: threadName, try: func(target) error {
		const noRoot = 1
		return unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0)
	}},
	{name: "drop from the bounding set", call: "prctl", row: RowRoot, root: true, twin: threadName, try: func(target) error {
		return unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_BOOT, 0, 0, 0)
	}},
	{name: "name another program as its own", call: "prctl", row: RowRoot, root: true, twin: threadName, try: func(target) error {
		return throughOpen("/bin/true", unix.O_RDONLY,
			func(fd int) error { return rights(unix.Prctl(unix.PR_SET_MM, 13, uintptr(fd), 0, 0)) })
	}},
	{
		name: "a program with the right of its owner", call: "execve", row: RowRoot, root: true, twin: child,
		try: takes(func(t target) string { return t.Setuid }, func(ids string) bool { return strings.HasPrefix(ids, "0 ") }),
	},
	{
		name: "a program with rights of its file", call: "execve", row: RowRoot, root: true, twin: child,
		try: takes(func(t target) string { return t.FileCap }, func(ids string) bool { return !strings.HasSuffix(ids, " 0") }),
	},
	{
		name: "give a program rights", call: "setxattr", row: RowRoot, root: true,
		twin: func(t target) error { return unix.Setxattr(t.File, attribute, []byte("x"), 0) },
		try:  func(t target) error { return unix.Setxattr(t.mine(), "security.capability", capsOfFile(), 0) },
	},
	{
		name: "give a file to root", call: "fchownat", row: RowRoot, root: true,
		twin: func(t target) error { return unix.Chown(t.mine(), os.Getuid(), os.Getgid()) },
		try:  func(t target) error { return unix.Chown(t.mine(), 0, 0) },
	},
	{
		name: "a disk", call: "mknodat", row: RowRoot, root: true, twin: pipe,
		try: func(t target) error { return sys(unix.SYS_MKNODAT, at, t.In+"/disk", unix.S_IFBLK|0o600, 7<<8) },
	},
	{name: "the memory of the machine", call: "mknodat", row: RowRoot, root: true, twin: pipe, try: device1(unix.S_IFCHR, 1, 1)},
	{name: "the log of the kernel", call: "mknodat", row: RowRoot, root: true, twin: pipe, try: device1(unix.S_IFCHR, 1, 11)},
	{
		name: "the name of the machine", call: "sethostname", row: RowRoot, root: true, twin: allowedHere,
		try: func(target) error { return unix.Sethostname([]byte("fairlead-test")) },
	},
	{
		name: "the domain of the machine", call: "setdomainname", row: RowRoot, root: true, twin: allowedHere,
		try: func(target) error { return unix.Setdomainname([]byte("fairlead-test")) },
	},
	{name: "the clock", call: "adjtimex", row: RowRoot, root: true, twin: allowedHere, try: func(target) error {
		now := &unix.Timex{}
		_, err := unix.Adjtimex(now)
		now.Modes = 0x10 // the status, as it is
		_, err2 := unix.Adjtimex(now)
		return errors.Join(err, err2)
	}},
	{
		name: "start the machine again", call: "reboot", row: RowRoot, root: true, twin: allowedHere,
		try: func(target) error { return rights(sys(unix.SYS_REBOOT, 1, 2, 3, 0)) },
	},
	{
		name: "load a module", call: "init_module", row: RowRoot, root: true, twin: allowedHere,
		try: func(target) error { return rights(sys(unix.SYS_INIT_MODULE, 0, 0, "")) },
	},
	{name: "remove a module", call: "delete_module", row: RowRoot, root: true, twin: allowedHere, try: func(target) error {
		return rights(sys(unix.SYS_DELETE_MODULE, "fairlead-no-such-module", unix.O_NONBLOCK))
	}},
	{
		name: "another kernel", call: "kexec_load", row: RowRoot, root: true, twin: allowedHere,
		try: func(target) error { return rights(sys(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0xffff)) },
	},
	{
		name: "memory on a disk", call: "swapon", row: RowRoot, root: true, twin: allowedHere,
		try: func(target) error { return rights(sys(unix.SYS_SWAPON, "/no/such/file", 0)) },
	},
	{
		name: "no memory on a disk", call: "swapoff", row: RowRoot, root: true, twin: allowedHere,
		try: func(target) error { return rights(sys(unix.SYS_SWAPOFF, "/no/such/file")) },
	},
	{
		name: "a record of all processes", call: "acct", row: RowRoot, root: true, twin: allowedHere,
		try: func(target) error { return rights(sys(unix.SYS_ACCT, "/no/such/file")) },
	},
	{name: "the messages of the kernel", call: "syslog", row: RowRoot, root: true, twin: allowedHere, try: func(target) error {
		const readAll = 3
		return sys(unix.SYS_SYSLOG, readAll, room(), len(room()))
	}},
	{name: "what the kernel prints", call: "syslog", row: RowRoot, root: true, twin: allowedHere, try: func(target) error {
		const level, noLevel = 8, 99
		return rights(sys(unix.SYS_SYSLOG, level, 0, noLevel))
	}},
	{name: "programs in the kernel", call: "bpf", row: RowRoot, root: true, twin: allowedHere, try: func(target) error {
		const nextProgram = 11
		return rights(sys(unix.SYS_BPF, nextProgram, make([]byte, 128), 128))
	}},
	{
		name: "faults of the kernel's accesses", call: "userfaultfd", row: RowRoot, root: true, twin: allowedHere,
		try: func(target) error { return opens(unix.SYS_USERFAULTFD, 0) },
	},
	{
		name: "a ring of system calls", call: "io_uring_setup", row: RowRoot, twin: allowedHere,
		try: func(target) error { return opens(unix.SYS_IO_URING_SETUP, 1, make([]byte, 120)) },
	},
	{
		name: "set a program for failures", call: "faccessat2", row: RowRoot, root: true, twin: plainFile,
		try: opened("/proc/sys/kernel/core_pattern", unix.O_WRONLY),
	},
	{
		name: "set a program for modules", call: "faccessat2", row: RowRoot, root: true, twin: plainFile,
		try: opened("/proc/sys/kernel/modprobe", unix.O_WRONLY),
	},
	{
		name: "settings of the memory", call: "faccessat2", row: RowRoot, root: true, twin: plainFile,
		try: opened("/proc/sys/vm/overcommit_memory", unix.O_WRONLY),
	},
	{
		name: "the magic keys", call: "faccessat2", row: RowRoot, root: true, twin: plainFile,
		try: func(target) error { return notNull("/proc/sysrq-trigger") },
	},
	{
		name: "the memory of the kernel", call: "faccessat2", row: RowRoot, root: true, twin: plainFile,
		try: func(target) error { return notNull("/proc/kcore") },
	},
	{
		name: "the list of keys", call: "faccessat2", row: RowProcess, twin: plainFile,
		try: func(target) error { return leadsAndReads("/proc/keys") },
	},
	{
		name: "the power of the machine", call: "faccessat2", row: RowRoot, root: true, twin: plainFile,
		try: anyOf(unix.O_WRONLY, "/sys/power/state", "/sys/kernel/uevent_helper", "/sys/kernel/mm/*/enabled", "/sys/block/*/uevent"),
	},
	{
		name: "another control group", call: "device", row: RowRoot, root: true, twin: plainFile,
		try: anyOf(unix.O_WRONLY, "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/*/cgroup.procs"),
	},
	{
		name: "the memory of the machine, by its file", call: "device", row: RowRoot, root: true, twin: plainFile,
		try: anyOf(unix.O_RDONLY, "/dev/mem", "/dev/port", "/dev/nvram"),
	},
	{
		name: "the log of the kernel, by its file", call: "device", row: RowRoot, root: true, twin: plainFile,
		try: opened("/dev/kmsg", unix.O_WRONLY),
	},
	{
		name: "the disks, by their files", call: "device", row: RowRoot, root: true, twin: plainFile,
		try: anyOf(unix.O_RDONLY, "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop-control", "/dev/dm-0"),
	},
	{name: "a network card", call: "device", row: RowRoot, root: true, twin: plainFile, try: opened("/dev/net/tun", unix.O_RDWR)},
	{
		name: "the console", call: "device", row: RowRoot, root: true, twin: plainFile,
		try: anyOf(unix.O_WRONLY|unix.O_NOCTTY, "/dev/console", "/dev/tty0", "/dev/ttyS0"),
	},
	{name: "a file system by a program", call: "device", row: RowRoot, root: true, twin: plainFile, try: opened("/dev/fuse", unix.O_RDWR)},
	{
		name: "raw packets", call: "socket", row: RowRoot, root: true, twin: plainSocket,
		try: func(target) error { return opens(unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0) },
	},
	{
		name: "raw internet packets", call: "socket", row: RowRoot, root: true, twin: plainSocket,
		try: func(target) error { return opens(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
	},
	{name: "type into a terminal", call: "ioctl", row: RowProcess, root: true, twin: terminalSize, try: onTerminal(func(fd int) error {
		return sys(unix.SYS_IOCTL, fd, unix.TIOCSTI, []byte("x"))
	})},
	{name: "paste into a terminal", call: "ioctl", row: RowRoot, root: true, twin: terminalSize, try: func(target) error {
		return throughOpen("/dev/tty0", unix.O_RDWR|unix.O_NOCTTY,
			func(fd int) error { return sys(unix.SYS_IOCTL, fd, unix.TIOCLINUX, []byte{6, 0, 0, 0}) })
	}},
	{name: "print on another terminal", call: "ioctl", row: RowProcess, try: onTerminal(nothingMore)},
	{
		name: "be the console", call: "ioctl", row: RowRoot, root: true, twin: terminalSize,
		try: onTerminal(func(fd int) error { return sys(unix.SYS_IOCTL, fd, unix.TIOCCONS, 0) }),
	},
	{name: "locked memory without a limit", call: "mlock", row: RowRoot, root: true, twin: allowedHere, try: func(target) error {
		const size = 64 << 20
		b, err := unix.Mmap(-1, 0, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Munmap(b) }()
		const onFault = 1
		return sys(unix.SYS_MLOCK2, b, size, onFault)
	}},
}

// notNull opens a file that is masked by the empty device.
func notNull(p string) error {
	var st, null unix.Stat_t
	if err := errors.Join(unix.Stat(p, &st), unix.Stat("/dev/null", &null)); err != nil {
		return err
	}
	if st.Rdev == null.Rdev && st.Mode == null.Mode {
		return errors.New("it is masked")
	}
	return anyOf(unix.O_WRONLY, p)(target{})
}

// capsOfFile is security.capability with one right.
func capsOfFile() []byte {
	b := make([]byte, 20)
	b[3], b[0], b[5] = 2, 1, 4 // version 2, effective; CAP_NET_BIND_SERVICE
	return b
}

func ownGroup(call int) act {
	return func(target) error { return sys(call, os.Getgid()) }
}

func threadName(target) error {
	return unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&[]byte("fairlead\x00")[0])), 0, 0, 0)
}

func pipe(t target) error {
	return sys(unix.SYS_MKNODAT, at, filepath.Join(t.In, "pipe"), unix.S_IFIFO|0o600, 0)
}

func plainSocket(target) error { return opens(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0) }

// anyOf opens the first of some files that can be opened.
func anyOf(flags int, patterns ...string) act {
	return func(target) error {
		last := error(unix.ENOENT)
		for _, pattern := range patterns {
			found, _ := filepath.Glob(pattern)
			for _, p := range found {
				if last = openWith(p, flags); last == nil {
					return nil
				}
			}
		}
		return last
	}
}

// onTerminal opens the terminal of another process.
func onTerminal(use func(fd int) error) act {
	return func(t target) error {
		if !t.Inside {
			return throughOpen(t.Keeper.Terminal, unix.O_RDWR|unix.O_NOCTTY, func(fd int) error {
				var st unix.Stat_t
				if err := unix.Fstat(fd, &st); err != nil || st.Dev != t.Keeper.Terminals {
					return errors.Join(err, unix.ENXIO)
				}
				return use(fd)
			})
		}
		return throughOpen(t.Keeper.Terminal, unix.O_RDWR|unix.O_NOCTTY, nothingMore)
	}
}

func terminalSize(t target) error {
	return throughOpen(t.Keeper.Terminal, unix.O_RDWR|unix.O_NOCTTY, func(fd int) error {
		_, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		return err
	})
}
