package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"golang.org/x/sys/unix"
)

// actVar makes this test binary try attempts instead of testing, and names them.
const actVar = "FAIRLEAD_TEST_ACT"

// noDump is a file flag that has no effect on these tests.
const noDump = 0x40

// place is where attempts are made.
type place struct {
	in     string // may be written
	victim string // a file outside, for this attempt only
	dir    string // a folder outside, for this attempt only, with a file in it
}

// attempt is one way to change something outside. It returns nil if it believes that it succeeded.
type attempt struct {
	name string
	try  func(p place) error
}

// attempts are the known ways out. Each has a file and a folder of its own to change.
var attempts = []attempt{
	{"make a file", func(p place) error { return os.WriteFile(p.victim+".new", nil, 0o600) }},
	{"make a folder", func(p place) error { return os.Mkdir(p.victim+".new", 0o700) }},
	{"make a link", func(p place) error { return os.Symlink("/", p.victim+".new") }},
	{"make a pipe", func(p place) error { return unix.Mkfifo(p.victim+".new", 0o600) }},
	{"make a socket", func(p place) error { return unix.Mknod(p.victim+".new", unix.S_IFSOCK|0o600, 0) }},
	{"make a file without a name", func(p place) error { return openWith(p.dir, unix.O_TMPFILE|unix.O_RDWR) }},
	{"open to write", func(p place) error { return openWith(p.victim, unix.O_WRONLY) }},
	{"open to append", func(p place) error { return openWith(p.victim, unix.O_WRONLY|unix.O_APPEND) }},
	{"open to read and write", func(p place) error { return openWith(p.victim, unix.O_RDWR) }},
	{"open to read and truncate", func(p place) error { return openWith(p.victim, unix.O_RDONLY|unix.O_TRUNC) }},
	{"truncate", func(p place) error { return os.Truncate(p.victim, 1) }},
	{"remove a file", func(p place) error { return os.Remove(p.victim) }},
	{"remove a folder", func(p place) error { return os.RemoveAll(p.dir) }},
	{"rename beside", func(p place) error { return os.Rename(p.victim, p.victim+".new") }},
	{"rename in", func(p place) error { return os.Rename(p.victim, filepath.Join(p.in, "taken")) }},
	{"rename a folder in", func(p place) error { return os.Rename(p.dir, filepath.Join(p.in, "taken-folder")) }},
	{"rename out", func(p place) error {
		mine := filepath.Join(p.in, "mine")
		return errors.Join(os.WriteFile(mine, nil, 0o600), os.Rename(mine, p.victim+".new"))
	}},
	{"exchange", func(p place) error {
		mine := filepath.Join(p.in, "exchanged")
		return errors.Join(os.WriteFile(mine, []byte("other\n"), 0o600),
			unix.Renameat2(unix.AT_FDCWD, mine, unix.AT_FDCWD, p.victim, unix.RENAME_EXCHANGE))
	}},
	{"link out", func(p place) error {
		mine := filepath.Join(p.in, "linked")
		return errors.Join(os.WriteFile(mine, nil, 0o600), os.Link(mine, p.victim+".new"))
	}},
	{"link in and write", func(p place) error {
		mine := filepath.Join(p.in, "second-name")
		if err := os.Link(p.victim, mine); err != nil {
			return err
		}
		return os.WriteFile(mine, []byte("changed\n"), 0o600)
	}},
	{"write through a link", func(p place) error {
		link := filepath.Join(p.in, "way-out")
		return errors.Join(os.Symlink(p.victim, link), os.WriteFile(link, []byte("changed\n"), 0o600))
	}},
	{"make through a linked folder", func(p place) error {
		link := filepath.Join(p.in, "folder-out")
		return errors.Join(os.Symlink(p.dir, link), os.WriteFile(filepath.Join(link, "new"), nil, 0o600))
	}},
	{"write by ..", func(p place) error {
		rel, err := filepath.Rel(p.in, p.victim)
		return errors.Join(err, openWith(p.in+"/"+rel, unix.O_WRONLY))
	}},
	{"write below /proc/self/root", func(p place) error { return openWith("/proc/self/root"+p.victim, unix.O_WRONLY) }},
	{"write below /proc/PARENT/root", func(p place) error {
		return openWith(fmt.Sprintf("/proc/%d/root%s", os.Getppid(), p.victim), unix.O_WRONLY)
	}},
	{"write what is open to read", func(p place) error {
		return throughOpen(p.victim, unix.O_RDONLY,
			func(fd int) error { return openWith(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY) })
	}},
	{"write what is open by name alone", func(p place) error {
		return throughOpen(p.victim, unix.O_PATH, func(fd int) error { return openWith(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR) })
	}},
	{"name what is open by name alone", func(p place) error {
		return throughOpen(p.victim, unix.O_PATH, func(fd int) error {
			mine := filepath.Join(p.in, "third-name")
			return errors.Join(unix.Linkat(fd, "", unix.AT_FDCWD, mine, unix.AT_EMPTY_PATH), openWith(mine, unix.O_WRONLY))
		})
	}},
	{"write by a folder that is open", func(p place) error {
		return throughOpen(p.dir, unix.O_RDONLY, func(fd int) error {
			made, err := unix.Openat(fd, "new", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
			return closed(made, err)
		})
	}},
	{"write by a handle", func(p place) error {
		handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, p.victim, 0)
		if err != nil {
			return err
		}
		return throughOpen(p.dir, unix.O_RDONLY, func(fd int) error {
			f, err := unix.OpenByHandleAt(fd, handle, unix.O_WRONLY)
			return closed(f, err)
		})
	}},
	{"write from threads", func(p place) error { return fromThreads(func() error { return openWith(p.victim, unix.O_WRONLY) }) }},
	{"write from a shell", func(p place) error { return shell(`echo changed > "$1"`, p.victim) }},
	{"write from who outlives us", func(p place) error { return fromOrphan(p) }},

	{"chmod", func(p place) error { return unix.Chmod(p.victim, 0o777) }},
	{"chmod a folder", func(p place) error { return unix.Chmod(p.dir, 0o777) }},
	{"chmod what is open", func(p place) error {
		return throughOpen(p.victim, unix.O_RDONLY, func(fd int) error { return unix.Fchmod(fd, 0o777) })
	}},
	{"chmod what is open by name", func(p place) error {
		return throughOpen(p.victim, unix.O_PATH, func(fd int) error { return unix.Fchmodat(fd, "", 0o777, unix.AT_EMPTY_PATH) })
	}},
	{"chmod from a shell", func(p place) error { return shell(`chmod +x "$1"`, p.victim) }},
	{"chown", func(p place) error { return unix.Chown(p.victim, os.Getuid(), os.Getgid()) }},
	{"chown what is open", func(p place) error {
		return throughOpen(p.victim, unix.O_RDONLY, func(fd int) error { return unix.Fchown(fd, os.Getuid(), os.Getgid()) })
	}},
	{"set its times", func(p place) error { return os.Chtimes(p.victim, time.Unix(1, 0), time.Unix(1, 0)) }},
	{"set the times of what is open", func(p place) error {
		return throughOpen(p.victim, unix.O_RDONLY, func(fd int) error { return unix.Futimes(fd, []unix.Timeval{{Sec: 1}, {Sec: 1}}) })
	}},
	{"touch", func(p place) error { return shell(`touch "$1"`, p.victim) }},
	{"set an attribute", func(p place) error { return unix.Setxattr(p.victim, "user.fairlead", []byte("x"), 0) }},
	{"set an attribute of what is open", func(p place) error {
		return throughOpen(p.victim, unix.O_RDONLY, func(fd int) error { return unix.Fsetxattr(fd, "user.fairlead", []byte("x"), 0) })
	}},
	{"set a flag", func(p place) error {
		return throughOpen(p.victim, unix.O_RDONLY, func(fd int) error {
			return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, noDump)
		})
	}},
}

// beyond are attempts on things that are not the test's files. Each must fail in the sandbox; they are not
// made outside it, because some would succeed.
var beyond = []attempt{
	{"make a disk inside", func(p place) error { return unix.Mknod(filepath.Join(p.in, "disk"), unix.S_IFBLK|0o600, 7<<8) }},
	{"make a device inside", func(p place) error { return unix.Mknod(filepath.Join(p.in, "mem"), unix.S_IFCHR|0o600, 1<<8|1) }},
	{"shared memory", func(place) error {
		return openWith("/dev/shm/fairlead-test", unix.O_CREAT|unix.O_WRONLY)
	}},
	{"the parent's name", func(place) error { return openWith(fmt.Sprintf("/proc/%d/comm", os.Getppid()), unix.O_WRONLY) }},
	{"the parent's memory", func(place) error { return openWith(fmt.Sprintf("/proc/%d/mem", os.Getppid()), unix.O_RDWR) }},
	{"trace the parent", func(place) error { return trace(os.Getppid()) }},
	{"take a descriptor of the parent", func(place) error {
		fd, err := unix.PidfdOpen(os.Getppid(), 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		got, err := unix.PidfdGetfd(fd, 1, 0)
		return closed(got, err)
	}},
	{"write the parent's memory", func(place) error {
		var b [1]byte
		_, err := unix.ProcessVMWritev(os.Getppid(), []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: 4096, Len: 1}}, 0)
		return err
	}},
	{"a setting of the kernel", func(place) error { return openWith("/proc/sys/kernel/hostname", unix.O_WRONLY) }},
	{"another cgroup", func(place) error {
		found, _ := filepath.Glob("/sys/fs/cgroup/**/cgroup.procs")
		for _, f := range append(found, "/sys/fs/cgroup/cgroup.procs") {
			if openWith(f, unix.O_WRONLY) == nil {
				return nil
			}
		}
		return unix.EACCES
	}},
	{"the name of the machine", func(place) error { return unix.Sethostname([]byte("fairlead-test")) }},
	{"mount", func(p place) error { return unix.Mount("none", p.dir, "tmpfs", 0, "") }},
	{"bind what is outside inside", func(p place) error { return unix.Mount(p.dir, p.in, "", unix.MS_BIND, "") }},
	{"unmount", func(place) error { return unix.Unmount("/proc", unix.MNT_DETACH) }},
	{"another root", func(p place) error { return unix.PivotRoot(p.in, p.in) }},
	{"mount as root of a world of his own", func(p place) error {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), actVar+"=world", inVar+"="+p.in, dirVar+"="+p.dir, fileVar+"="+p.victim)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_DAC_OVERRIDE},
		}
		out, err := cmd.CombinedOutput()
		switch {
		case err != nil: // this machine does not permit such namespaces
			return err
		case strings.Contains(string(out), "<nil>"):
			fmt.Print(string(out))
			return nil
		}
		return unix.EPERM
	}},
	{"the limits of the parent", func(place) error {
		var old unix.Rlimit
		return unix.Prlimit(os.Getppid(), unix.RLIMIT_CORE, nil, &old)
	}},
	{"a ring of system calls", func(place) error {
		var params [120]byte
		fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
		if errno != 0 {
			return errno
		}
		return unix.Close(int(fd))
	}},
	{"type into the terminal", func(place) error { return unix.IoctlSetPointerInt(0, unix.TIOCSTI, 'x') }},
	{"a snapshot", func(p place) error {
		return throughOpen(p.dir, unix.O_RDONLY, func(fd int) error {
			if err := unix.IoctlSetPointerInt(fd, 0x5000940e, 0); !errors.Is(err, unix.EPERM) {
				return nil // ENOTTY: the call reached the file system
			}
			return unix.EPERM
		})
	}},
	{"a socket with a name", func(p place) error { return speak("unix", filepath.Join(p.dir, "socket")) }},
}

const (
	inVar    = "FAIRLEAD_TEST_IN"
	dirVar   = "FAIRLEAD_TEST_DIR"
	fileVar  = "FAIRLEAD_TEST_FILE"
	abstract = "FAIRLEAD_TEST_ABSTRACT"
)

// actIfAsked is the sandboxed side: it makes the attempts and reports each result.
func actIfAsked() {
	act := os.Getenv(actVar)
	if act == "" {
		return
	}
	switch act {
	case "attempts", "beyond":
		list := attempts
		if act == "beyond" {
			list = beyond
		}
		for i, a := range list {
			fmt.Printf("%s: %v\n", a.name, a.try(placeOf(os.Getenv(inVar), os.Getenv(dirVar), i)))
		}
	case "write":
		err := openWith(os.Getenv(fileVar), unix.O_WRONLY)
		_ = os.WriteFile(filepath.Join(os.Getenv(inVar), "said"), fmt.Append(nil, err), 0o600)
	case "calls":
		makeCalls()
	case "world":
		world(os.Getenv(inVar), os.Getenv(dirVar), os.Getenv(fileVar))
	case "sockets":
		fmt.Printf("named: %v\nabstract: %v\n", speak("unix", filepath.Join(os.Getenv(dirVar), "socket")),
			speak("unix", os.Getenv(abstract)))
		fmt.Printf("datagram: %v\nstreams: %v\n", connects(filepath.Join(os.Getenv(dirVar), "datagram"), unix.SOCK_DGRAM), streams())
	case "signal":
		fmt.Printf("signal: %v\n", unix.Kill(os.Getppid(), 0))
	case "foreign":
		_, _, errno := unix.RawSyscall(0x40000000|unix.SYS_GETPID, 0, 0, 0)
		fmt.Println("went on:", errno)
	case "who":
		who()
	default:
		fmt.Println("no such act:", act)
	}
	os.Exit(0)
}

// world makes an attempt with all capabilities in a new mount namespace.
func world(in, dir, file string) {
	fmt.Println("mount:", unix.Mount("none", dir, "tmpfs", 0, ""))
	fmt.Println("bind:", unix.Mount(dir, in, "", unix.MS_BIND, ""))
	fmt.Println("remount:", unix.Mount("none", "/", "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	fmt.Println("propagate:", unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	fmt.Println("write:", openWith(file, unix.O_WRONLY))
	fd, err := unix.OpenTree(unix.AT_FDCWD, filepath.Dir(file), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err == nil {
		made, err := unix.Openat(fd, filepath.Base(file), unix.O_WRONLY|unix.O_CLOEXEC, 0)
		fmt.Println("write in a copy of the mount:", closed(made, err))
		fmt.Println("move the copy in:", unix.MoveMount(fd, "", unix.AT_FDCWD, in, unix.MOVE_MOUNT_F_EMPTY_PATH))
	}
	fmt.Println("chroot:", errors.Join(unix.Chroot(in), unix.Chdir("/"), openWith("/../"+file, unix.O_WRONLY)))
}

// placeOf is the place of attempt number i.
func placeOf(in, out string, i int) place {
	return place{in: in, victim: filepath.Join(out, fmt.Sprintf("file-%02d", i)), dir: filepath.Join(out, fmt.Sprintf("folder-%02d", i))}
}

// who returns what an execve preserves.
func who() {
	var death int32
	_ = unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&death)), 0, 0, 0)
	sid, _ := unix.Getsid(0)
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "CapEff") || strings.HasPrefix(line, "CapPrm") || strings.HasPrefix(line, "NoNewPrivs") ||
			strings.HasPrefix(line, "Seccomp:") {
			fmt.Print(strings.Join(strings.Fields(line), " "), "\n")
		}
	}
	dir, _ := os.Getwd()
	fmt.Printf("pid %d\nparent %d\ngroup %d\nsession %d\ndeath %d\nargs %q\nmark %s\ndir %s\n", os.Getpid(), os.Getppid(), unix.Getpgrp(),
		sid, death, os.Args[1:], os.Getenv("FAIRLEAD_MARK"), dir)
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, os.Getenv(dirVar)) {
			fmt.Println("open", to)
		}
	}
}

func openWith(p string, flags int) error {
	fd, err := unix.Open(p, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	return closed(fd, err)
}

func closed(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func throughOpen(p string, flags int, use func(fd int) error) error {
	fd, err := unix.Open(p, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open it at all: %w", err)
	}
	defer unix.Close(fd)
	return use(fd)
}

func shell(script, file string) error {
	out, err := exec.Command("/bin/sh", "-c", script, "sh", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// fromThreads makes an attempt on many OS threads; one success is enough.
func fromThreads(try func() error) error {
	const threads = 16
	results := make(chan error, threads)
	for range threads {
		go func() {
			runtime.LockOSThread()
			results <- try()
		}()
	}
	var last error
	for range threads {
		if err := <-results; err == nil {
			return nil
		} else { //nolint:revive // the other way round hides which one counts
			last = err
		}
	}
	return last
}

// fromOrphan makes an attempt in a grandchild, in a session of its own, after its parent exited.
func fromOrphan(p place) error {
	said := filepath.Join(p.in, "said")
	cmd := exec.Command("/bin/sh", "-c", `setsid "$0" >/dev/null 2>&1 </dev/null & exit 0`, os.Args[0])
	cmd.Env = append(os.Environ(), actVar+"=write", fileVar+"="+p.victim, inVar+"="+p.in)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start an orphan: %w", err)
	}
	for end := time.After(patience); ; {
		select {
		case <-end:
			return errors.New("the orphan never said a word")
		case <-wait.After(5 * time.Millisecond):
		}
		switch b, err := os.ReadFile(said); {
		case err != nil || len(b) == 0:
		case string(b) == "<nil>":
			return nil
		default:
			return errors.New(string(b))
		}
	}
}

func trace(pid int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const seize = 0x4206 // PTRACE_SEIZE attaches without stopping
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, seize, uintptr(pid), 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// streams makes a pair of connected sockets, as many programs do for their children.
func streams() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Close(pair[0]), unix.Close(pair[1]))
}

func speak(network, address string) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	return c.Close()
}
