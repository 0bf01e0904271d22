package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These attempts were written without a look at the others. They look at what stays after a session, at the process that started
// the program, at the other end of a socket, and at what makes processes of outside wait.
var otherAttempts = append([]wallAttempt{
	// A program that runs with its owner's rights is a way out when another user starts it later.
	{
		name: "leave a program with its owner's rights", call: "fchmodat", row: RowRoot, twin: leavesPlain,
		try: leaves(func(_ target, p string) error {
			return sys(unix.SYS_FCHMODAT, at, p, unix.S_ISUID|0o755)
		}),
	},
	{
		name: "leave a program with its owner's rights, open", call: "fchmod", row: RowRoot, twin: leavesPlain,
		try: leaves(func(_ target, p string) error {
			return throughOpen(p, unix.O_RDONLY, func(fd int) error { return sys(unix.SYS_FCHMOD, fd, unix.S_ISUID|0o755) })
		}),
	},
	{
		name: "leave a program with its owner's rights, by name alone", call: "fchmodat2", row: RowRoot, twin: leavesPlain,
		try: leaves(func(_ target, p string) error {
			return throughOpen(p, unix.O_PATH,
				func(fd int) error { return sys(unix.SYS_FCHMODAT2, fd, "", unix.S_ISUID|0o755, unix.AT_EMPTY_PATH) })
		}),
	},
	{
		name: "leave a program with its owner's rights, made so", call: "mknodat", row: RowRoot, twin: leavesPlain,
		try: leaves(func(_ target, p string) error {
			return errors.Join(os.Remove(p), sys(unix.SYS_MKNODAT, at, p, unix.S_IFREG|unix.S_ISUID|0o755, 0))
		}),
	},
	{
		name: "leave a program with its owner's rights, by chmod", call: "a program", row: RowRoot,
		twin: script(`touch "$4/own"; chmod 755 "$4/own"`), try: leaves(func(_ target, p string) error {
			return exec.Command("chmod", "u+s", p).Run()
		}),
	},
	{
		name: "leave a program with its owner's rights, by install", call: "a program", row: RowRoot,
		twin: script(`install -m 755 /dev/null "$4/own"`), try: leaves(func(_ target, p string) error {
			return exec.Command("install", "-m", "4755", "/bin/true", p).Run()
		}),
	},
	{
		name: "leave a program with its owner's rights, by tar", call: "a program", row: RowRoot,
		twin: script(`cd "$4"; touch own; tar cf t own; tar xpf t`), try: leaves(func(t target, p string) error {
			// the mode is in the archive, so no program in the view sets it before
			return exec.Command("sh", "-c", `cd "$1" && tar cf t --mode=4755 "$2" && rm "$2" && tar xpf t`, "sh", t.In,
				filepath.Base(p)).Run()
		}),
	},

	// What makes a program of outside wait for this one.
	{name: "make who writes a file wait", call: "fcntl", row: RowWrite, twin: lockMine, try: lease(unix.F_RDLCK)},
	{name: "make who reads a file wait", call: "fcntl", row: RowWrite, twin: lockMine, try: lease(unix.F_WRLCK)},
	{name: "lock a file that is shown", call: "flock", row: RowProcess, twin: lockMine, try: func(t target) error {
		return throughOpen(filepath.Join(t.Deep, "kept"), unix.O_RDONLY,
			func(fd int) error { return sys(unix.SYS_FLOCK, fd, unix.LOCK_EX|unix.LOCK_NB) })
	}},
	{name: "lock a part of a file that is shown", call: "fcntl", row: RowProcess, twin: lockMine, try: func(t target) error {
		return throughOpen(filepath.Join(t.Deep, "kept"), unix.O_RDONLY, func(fd int) error {
			return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
		})
	}},
	{
		name: "signals of a pipe to another group", call: "fcntl", row: RowProcess,
		try: func(t target) error { return signalsTo(unix.F_SETOWN, -t.Keeper.PID) },
	},
	{name: "signals of a pipe to another thread", call: "fcntl", row: RowProcess, try: func(t target) error {
		const ofThread = 0
		to := [2]int32{ofThread, int32(t.Keeper.PID)}
		return signalsTo(unix.F_SETOWN_EX, int(uintptr(unsafe.Pointer(&to))))
	}},
	{name: "the schedule of another process, by attributes", call: "sched_setattr", row: RowProcess, try: func(t target) error {
		return unix.SchedSetAttr(t.Keeper.PID, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: 5}, 0)
	}},

	// The other end of a socket is a process of outside.
	{name: "a descriptor of the other end of a socket", call: "getsockopt", row: RowProcess, try: peer(func(_ target, pidfd int) error {
		return sys(unix.SYS_PIDFD_SEND_SIGNAL, pidfd, 0, 0, 0)
	})},
	{name: "the number of the other end of a socket", call: "getsockopt", row: RowProcess, try: joined(func(_ target, fd int) error {
		who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil && who.Pid == 0 {
			err = unix.ESRCH
		}
		return err
	})},
	{name: "a descriptor from the other end of a socket", call: "pidfd_getfd", row: RowProcess, try: peer(func(_ target, pidfd int) error {
		return opens(unix.SYS_PIDFD_GETFD, pidfd, 0, 0)
	})},
	{name: "the mounts of the other end of a socket", call: "ioctl", row: RowProcess, try: peer(func(_ target, pidfd int) error {
		const mounts = 0xff03 // PIDFD_GET_MNT_NAMESPACE
		return opens(unix.SYS_IOCTL, pidfd, mounts, 0)
	})},
	{name: "what the kernel says of the other end of a socket", call: "ioctl", row: RowProcess, try: peer(func(_ target, pidfd int) error {
		const info = 0xc040ff0b // PIDFD_GET_INFO
		said := make([]byte, 64)
		said[0] = 1 // its number
		return sys(unix.SYS_IOCTL, pidfd, info, said)
	})},
	{
		name: "the number of the other end of a socket, by its descriptor", call: "read", row: RowProcess,
		try: peer(func(_ target, pidfd int) error {
			text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", pidfd))
			if err == nil && (strings.Contains(string(text), "Pid:\t0\n") || strings.Contains(string(text), "Pid:\t-1\n")) {
				err = unix.ESRCH
			}
			return err
		}),
	},

	// Process 1 of a view was started by a process of outside, and has its environment and its descriptors.
	{name: "the environment of the starter", call: "read", row: RowProcess, try: starterFile("environ")},
	{name: "the map of the memory of the starter", call: "read", row: RowProcess, try: starterFile("maps")},
	{name: "what the starter has read and written", call: "read", row: RowProcess, try: starterFile("io")},
	{name: "the system call of the starter", call: "read", row: RowProcess, try: starterFile("syscall")},
	{name: "the addresses of the starter's program", call: "read", row: RowProcess, try: starterFile("auxv")},
	{name: "the addresses of the kernel", call: "read", row: RowRoot, root: true, twin: allowedHere, try: func(target) error {
		f, err := os.Open("/proc/kallsyms")
		if err != nil {
			return err
		}
		defer f.Close()
		text := make([]byte, 4096)
		n, err := f.Read(text)
		for line := range bytes.Lines(text[:n]) {
			if len(line) > 16 && strings.Trim(string(line[:16]), "0") != "" {
				return nil
			}
		}
		return errors.Join(err, unix.EPERM)
	}},
	{name: "list the descriptors of the starter", call: "getdents64", row: RowProcess, try: func(t target) error {
		_, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", t.Parent))
		return err
	}},
	{name: "the name of an open file of the starter", call: "readlinkat", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_READLINKAT, at, fmt.Sprintf("/proc/%d/fd/1", t.Parent), room(), len(room()))
	}},
	{name: "the program of the starter", call: "readlinkat", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_READLINKAT, at, fmt.Sprintf("/proc/%d/exe", t.Parent), room(), len(room()))
	}},
	{name: "a descriptor from the starter", call: "pidfd_getfd", row: RowProcess, try: func(t target) error {
		fd, err := unix.PidfdOpen(t.Parent, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return opens(unix.SYS_PIDFD_GETFD, fd, 1, 0)
	}},
	{name: "change the memory of the starter", call: "process_vm_writev", row: RowProcess, try: func(t target) error {
		text := []byte("x")
		local, remote := unix.Iovec{Base: &text[0], Len: 1}, [2]uintptr{8, 1} // no memory is there
		return rights(sys(unix.SYS_PROCESS_VM_WRITEV, t.Parent, unsafe.Pointer(&local), 1, unsafe.Pointer(&remote), 1, 0))
	}},
	{name: "compare with the starter", call: "kcmp", row: RowProcess, try: func(t target) error {
		const files = 2
		return sys(unix.SYS_KCMP, os.Getpid(), t.Parent, files, 0, 0)
	}},
	{name: "the lists of locks of the starter", call: "get_robust_list", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_GET_ROBUST_LIST, t.Parent, room(), room())
	}},
	{name: "forget which pages the starter used", call: "write", row: RowProcess, try: func(t target) error {
		return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", t.Parent), []byte("1"), 0)
	}},
	{name: "what the starter leaves when it fails", call: "write", row: RowProcess, try: func(t target) error {
		return os.WriteFile(fmt.Sprintf("/proc/%d/coredump_filter", t.Parent), []byte("0x33"), 0)
	}},
	{name: "hear of the processes of the machine", call: "recvfrom", row: RowProcess, twin: func(target) error {
		return netlink(unix.NETLINK_ROUTE, unix.RTM_GETLINK, unix.NLM_F_DUMP, make([]byte, unix.SizeofIfInfomsg))
	}, try: func(target) error { return processEvents() }},

	// Rights that only root has.
	{name: "rights that stay over a change of user", call: "prctl", row: RowRoot, root: true, twin: threadName, try: func(target) error {
		const noFixup = 4
		return unix.Prctl(unix.PR_SET_SECUREBITS, noFixup, 0, 0, 0)
	}},
	{
		name: "hang the terminal up", call: "vhangup", row: RowRoot, root: true, twin: allowedHere,
		try: func(target) error { return sys(unix.SYS_VHANGUP) },
	},
	{
		name: "mark packets", call: "setsockopt", row: RowRoot, root: true, twin: setsSocket(unix.SOL_SOCKET, unix.SO_RCVBUF),
		try: setsSocket(unix.SOL_SOCKET, unix.SO_MARK),
	},
	{
		name: "memory for packets without a limit", call: "setsockopt", row: RowRoot, root: true,
		twin: setsSocket(unix.SOL_SOCKET, unix.SO_SNDBUF), try: setsSocket(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE),
	},
	{
		name: "packets from every address", call: "setsockopt", row: RowRoot, root: true,
		twin: setsSocket(unix.SOL_SOCKET, unix.SO_KEEPALIVE),
		try:  setsSocket(unix.SOL_IP, unix.IP_TRANSPARENT),
	},
	{
		name: "packets past the kernel", call: "socket", row: RowRoot, root: true, twin: setsSocket(unix.SOL_SOCKET, unix.SO_KEEPALIVE),
		try: func(target) error {
			return opens(unix.SYS_SOCKET, unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		},
	},
	{name: "change a network card by a message", call: "sendto", row: RowRoot, root: true, twin: func(target) error {
		return netlink(unix.NETLINK_ROUTE, unix.RTM_GETLINK, unix.NLM_F_DUMP, make([]byte, unix.SizeofIfInfomsg))
	}, try: func(target) error {
		card := make([]byte, unix.SizeofIfInfomsg)
		binary.NativeEndian.PutUint32(card[4:], 0x7ffffff0) // there is none
		return rights(netlink(unix.NETLINK_ROUTE, unix.RTM_SETLINK, unix.NLM_F_ACK, card))
	}},
	{name: "remove a route by a message", call: "sendto", row: RowRoot, root: true, twin: func(target) error {
		return netlink(unix.NETLINK_ROUTE, unix.RTM_GETROUTE, unix.NLM_F_DUMP, make([]byte, unix.SizeofRtMsg))
	}, try: func(target) error {
		route := make([]byte, unix.SizeofRtMsg)
		route[0], route[4] = unix.AF_INET, 251 // a table without routes
		return rights(netlink(unix.NETLINK_ROUTE, unix.RTM_DELROUTE, unix.NLM_F_ACK, route))
	}},
	{name: "permit itself everything by a filter", call: "seccomp", row: RowRoot, root: true, twin: func(target) error {
		return errors.Join(install([]unix.SockFilter{answer(allow)}), sys(unix.SYS_GETPID))
	}, try: func(target) error {
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		return errors.Join(err, install([]unix.SockFilter{answer(allow)}), unix.Unshare(unix.CLONE_NEWUTS))
	}},
	{name: "another kernel, from a file", call: "kexec_file_load", row: RowRoot, root: true, twin: allowedHere, try: func(target) error {
		return rights(sys(unix.SYS_KEXEC_FILE_LOAD, -1, -1, 1, "", 0))
	}},
	{name: "what another user may store", call: "quotactl_fd", row: RowRoot, root: true, twin: allowedHere, try: func(t target) error {
		const ofUser = 0x80000700 // Q_GETQUOTA of a user
		return throughOpen(t.In, unix.O_RDONLY, func(fd int) error { return rights(sys(unix.SYS_QUOTACTL_FD, fd, ofUser, 4242, room())) })
	}},
	{name: "a schedule before all others, by attributes", call: "sched_setattr", row: RowRoot, root: true, twin: func(target) error {
		return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: 5}, 0)
	}, try: func(target) error {
		return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	}},
	{name: "a table in the kernel", call: "bpf", row: RowRoot, root: true, twin: allowedHere, try: func(target) error {
		const mapCreate, array = 0, 2
		table := [16]uint32{array, 4, 8, 1}
		return opens(unix.SYS_BPF, mapCreate, unsafe.Pointer(&table), int(unsafe.Sizeof(table)))
	}},
	{name: "memory at no address", call: "mmap", row: RowRoot, root: true, twin: mapsAt(1 << 40), try: mapsAt(0)},
	{name: "a pipe without a limit", call: "fcntl", row: RowRoot, root: true, twin: pipeOf(1 << 12), try: pipeOf(8 << 20)},
	{name: "hear which process opens a file", call: "fanotify_init", row: RowRoot, root: true, twin: func(target) error {
		return opens(unix.SYS_INOTIFY_INIT1, unix.IN_CLOEXEC)
	}, try: func(target) error {
		return opens(unix.SYS_FANOTIFY_INIT, unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_REPORT_PIDFD, unix.O_RDONLY)
	}},

	// Places.
	{name: "a secret program as the interpreter of a script", call: "execve of a script", row: RowRead, try: func(t target) error {
		p := filepath.Join(t.In, "script")
		if err := os.WriteFile(p, []byte("#!"+filepath.Join(t.Dir, "program")+"\n"), 0o700); err != nil { //nolint:gosec // it is executed
			return err
		}
		return exec.Command("/bin/sh", "-c", `exec "$0"`, p).Run()
	}},
	{name: "rename the workspace", call: "renameat", row: RowWrite, twin: func(t target) error {
		return errors.Join(os.Mkdir(t.In+"/a", 0o700), os.Rename(t.In+"/a", t.In+"/b"))
	}, try: func(t target) error {
		workspace := filepath.Dir(filepath.Dir(filepath.Dir(t.In)))
		if err := sys(unix.SYS_RENAMEAT, at, workspace, at, workspace+"-away"); err != nil {
			return err
		}
		return os.Rename(workspace+"-away", workspace)
	}},
}, otherOldAttempts...)

// leaves makes a file in the writable folder, and gives it the right of its owner; see that it has it.
func leaves(how func(t target, p string) error) act {
	return func(t target) error {
		p := filepath.Join(t.In, "program")
		if err := os.WriteFile(p, []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // it is one
			return err
		}
		if err := how(t, p); err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil || st.Mode&unix.S_ISUID == 0 {
			return errors.Join(err, unix.EPERM)
		}
		return nil
	}
}

// leavesPlain is the twin: an ordinary program.
func leavesPlain(t target) error { return unix.Fchmodat(at, t.mine(), 0o755, 0) }

func lease(kind int) act {
	return inFile(unix.O_RDONLY, func(_ target, fd int) error { return sys(unix.SYS_FCNTL, fd, unix.F_SETLEASE, kind) })
}

func lockMine(t target) error {
	return throughOpen(t.mine(), unix.O_RDONLY, func(fd int) error {
		return errors.Join(sys(unix.SYS_FLOCK, fd, unix.LOCK_EX|unix.LOCK_NB),
			unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}))
	})
}

func signalsTo(call, whom int) error {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	return sys(unix.SYS_FCNTL, fds[0], call, whom)
}

// joined connects to a socket that is shown, or for the twin to that of a process inside.
func joined(use func(t target, fd int) error) act {
	return func(t target) error {
		address := t.Shown
		if t.Inside {
			address = t.Keeper.Stream
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: address}); err != nil {
			return err
		}
		return use(t, fd)
	}
}

func peer(use func(t target, pidfd int) error) act {
	return joined(func(t target, fd int) error {
		const peerPidfd = 77
		pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, peerPidfd)
		if err != nil {
			return err
		}
		defer unix.Close(pidfd)
		return use(t, pidfd)
	})
}

// starterFile reads a file of the process that started the program.
func starterFile(name string) act {
	return func(t target) error {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", t.Parent, name))
		if err == nil && len(text) == 0 {
			err = unix.ENODATA
		}
		return err
	}
}

func setsSocket(level, option int) act {
	return func(target) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.SetsockoptInt(fd, level, option, 1)
	}
}

func mapsAt(address uintptr) act {
	return func(target) error {
		const size = 4096
		_, err := raw(unix.SYS_MMAP, address, size, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, -1, 0)
		if err == nil {
			err = sys(unix.SYS_MUNMAP, address, size)
		}
		return err
	}
}

func pipeOf(size int) act {
	return func(target) error {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return err
		}
		defer unix.Close(fds[0])
		defer unix.Close(fds[1])
		return sys(unix.SYS_FCNTL, fds[0], unix.F_SETPIPE_SZ, size)
	}
}

// netlink sends one message to the kernel and reads the answer.
func netlink(protocol int, kind, flags uint16, body []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, netlinkMessage(kind, unix.NLM_F_REQUEST|flags, body), 0,
		&unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	text := make([]byte, 64<<10)
	n, _, err := unix.Recvfrom(fd, text, 0)
	if err == nil && n >= unix.NLMSG_HDRLEN+4 && binary.NativeEndian.Uint16(text[4:]) == unix.NLMSG_ERROR {
		if code := int32(binary.NativeEndian.Uint32(text[unix.NLMSG_HDRLEN:])); code != 0 {
			err = syscall.Errno(-code)
		}
	}
	return err
}

func netlinkMessage(kind, flags uint16, body []byte) []byte {
	m := make([]byte, unix.NLMSG_HDRLEN, unix.NLMSG_HDRLEN+len(body))
	binary.NativeEndian.PutUint32(m, uint32(cap(m)))
	binary.NativeEndian.PutUint16(m[4:], kind)
	binary.NativeEndian.PutUint16(m[6:], flags)
	return append(m, body...)
}

// processEvents asks the kernel for a message about each process that begins or ends, and starts one.
func processEvents() error {
	const ofProcesses, listen = 1, 1
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_CONNECTOR)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: ofProcesses}); err != nil {
		return err
	}
	ask := make([]byte, 24)
	for i, word := range []uint32{ofProcesses, ofProcesses, 0, 0, 4, listen} {
		binary.NativeEndian.PutUint32(ask[4*i:], word)
	}
	if err := unix.Sendto(fd, netlinkMessage(unix.NLMSG_DONE, 0, ask), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	patience := unix.NsecToTimeval(int64(time.Second))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
		return err
	}
	if err := exec.Command("/bin/true").Run(); err != nil {
		return err
	}
	for range 100 { // the first is the answer
		text := make([]byte, 4096)
		n, _, err := unix.Recvfrom(fd, text, 0)
		if err != nil {
			return err
		}
		if n >= unix.NLMSG_HDRLEN+24 && binary.NativeEndian.Uint32(text[unix.NLMSG_HDRLEN+20:]) != 0 {
			return nil
		}
	}
	return unix.ENODATA
}
