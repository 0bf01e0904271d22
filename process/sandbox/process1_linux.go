package sandbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Attr is how a command of [WrapView] has to be started: in which namespaces, and with which rights in them.
func (v View) Attr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{}
	if v.By != ByNamespaces {
		return attr
	}
	attr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if v.Processes {
		attr.Cloneflags |= unix.CLONE_NEWPID
	}
	if v.Users {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}
	}
	if v.Network != nil {
		attr.Cloneflags |= unix.CLONE_NEWNET
		if v.Users {
			attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE)
		}
	}
	return attr
}

// owner is as whom the program of a view runs.
type owner struct{ uid, gid int }

// unprivileged is the usual number of the user without files.
const unprivileged = 65534

// ownerOf is as whom the program runs. An ordinary user stays the same; root becomes the owner of the workspace, or where that
// is root, the unprivileged user of the system, as whose the files of root are shown.
func ownerOf(v View) (who owner, swap bool, err error) {
	who = owner{os.Geteuid(), os.Getegid()}
	if who.uid != 0 || v.Users {
		return who, false, nil
	}
	var st unix.Stat_t
	if v.Dir != "" {
		if err := unix.Lstat(v.Dir, &st); err != nil {
			return who, false, fmt.Errorf("look at the workspace: %w", err)
		}
	}
	if st.Uid != 0 {
		return owner{int(st.Uid), int(st.Gid)}, true, nil
	}
	who = owner{unprivileged, unprivileged}
	if u, err := user.Lookup("nobody"); err == nil {
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil && uid > 0 && gid > 0 {
			who = owner{uid, gid}
		}
	}
	return who, true, nil
}

// swapped is a user namespace in which root and another user have changed places, for the mounts. It needs a process while it is
// set up.
func swapped(who owner) (fd int, err error) {
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"fairlead"}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER, Ptrace: true, // it stops before its first step, and is ended there
			UidMappings: swapOf(who.uid), GidMappings: swapOf(who.gid), GidMappingsEnableSetgroups: true,
		},
	})
	if err != nil {
		return -1, err
	}
	defer func() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	}()
	return unix.Open(fmt.Sprintf("/proc/%d/ns/user", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

func swapOf(id int) []syscall.SysProcIDMap {
	const all = 1<<32 - 1 // the last number means "no user"
	return slices.DeleteFunc([]syscall.SysProcIDMap{
		{ContainerID: 0, HostID: id, Size: 1},
		{ContainerID: 1, HostID: 1, Size: id - 1},
		{ContainerID: id, HostID: 0, Size: 1},
		{ContainerID: id + 1, HostID: id + 1, Size: all - id - 1},
	}, func(m syscall.SysProcIDMap) bool { return m.Size == 0 })
}

// inView makes the view around this process, starts the program in it, and ends with it. The result is the exit code.
func inView(text string, argv []string) int {
	var v View
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return report(os.Stderr, fmt.Errorf("read the view: %w", err))
	}
	clear(unsafe.Slice(unsafe.StringData(text), len(text))) // it is this process's title, which its children can read
	if err := v.check(); err != nil {
		return report(os.Stderr, err)
	}
	to := reporter(v.Report)
	if v.By == ByLandlock {
		return report(os.Stderr, to.or(v.become(argv, to)))
	}
	ignore()               // all signals are for the program
	runtime.LockOSThread() // the restrictions below are this thread's, and what it starts has them too
	pid, unheld, made, err := v.start(argv)
	if err != nil {
		return report(os.Stderr, to.or(err))
	}
	if len(argv) == 0 { // a trial
		to.say(Started{Unheld: unheld})
		return 0
	}
	to.hand(Started{Unheld: unheld, PID: pid}, made)
	return v.wait(pid, to, made)
}

// ignored are the signals for which the library has handlers, but for those that it needs: the end of a child, and its own between
// threads. A program of the view may send any of them, also one that a fault has.
var ignored = []unix.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGUSR1, unix.SIGSEGV,
	unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM, unix.SIGTERM, unix.SIGSTKFLT, unix.SIGXCPU, unix.SIGXFSZ, unix.SIGVTALRM, unix.SIGPROF,
	unix.SIGWINCH, unix.SIGIO, unix.SIGPWR, unix.SIGSYS,
}

// ignore makes this process ignore signals. What it starts does not: the library gives a child the default of each signal for which it had
// a handler. It does so by the kernel's call, because each signal of the library's costs two changes of threads.
func ignore() {
	for _, sig := range ignored {
		action := [4]uintptr{1} // the first word is the handler: SIG_IGN
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(uint64(0)), 0, 0)
	}
}

// become restricts this process by Landlock and the filter alone, and executes the program.
func (v View) become(argv []string, to reports) error {
	abstract, end := abstractCanaries()
	defer end()
	if _, err := v.box().enclose("/proc/self/exe"); err != nil {
		return err
	}
	unheld := v.try(farSockets{live{whole: true}, abstract}) // no socket is covered: all are closed, or none
	if err := v.missing(unheld); err != nil {
		return err
	}
	if len(argv) == 0 {
		to.say(Started{Unheld: unheld})
		os.Exit(0)
	}
	program, err := find(argv[0])
	if err != nil {
		return err
	}
	if v.Dir != "" {
		if err := os.Chdir(v.Dir); err != nil {
			return err
		}
	}
	to.say(Started{Unheld: unheld})
	return become(program, argv, os.Environ())
}

// box is what Landlock holds of a view. Landlock does not see changes of modes and times, so a program that starts only others of a list,
// as one that gathers information does, makes none at all.
func (v View) box() box {
	b := box{
		Attributes: v.Execute == nil, Terminals: true, Sockets: len(v.Sockets) > 0, Execute: v.Execute, Alone: v.Alone,
		Read: slices.Clone(systemFolders), modes: ownersRights(),
	}
	b.Read = append(b.Read, "/proc", "/dev/ptmx", "/dev/pts")
	b.Read = append(b.Read, harmless...)
	if real, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
		b.Read = append(b.Read, real)
	}
	add := func(p string, write bool) {
		if _, err := os.Lstat(p); p == "" || err != nil {
			return
		}
		if b.Read = append(b.Read, p); write {
			b.Write = append(b.Write, p)
		}
	}
	add(v.Home, true)
	add(v.Temp, true)
	for _, p := range v.Places {
		if p.Access != Hide {
			add(cmp.Or(p.From, p.Path), p.Access == Write)
		}
	}
	return b
}

// reports is where process 1 says what happens; 0: nowhere.
type reports int

func reporter(fd int) reports {
	if fd > 0 {
		unix.CloseOnExec(fd)
	}
	return reports(fd)
}

func (to reports) say(what any) { to.sayWith(what, nil) }

// sayWith hands descriptors over with a report. They need a socket; a report alone may go through a pipe.
func (to reports) sayWith(what any, rights []byte) {
	line, err := json.Marshal(what)
	switch line = append(line, '\n'); {
	case to == 0 || err != nil:
	case rights != nil:
		_ = unix.Sendmsg(int(to), line, rights, nil, unix.MSG_NOSIGNAL) // as below
	default:
		_, _ = unix.Write(int(to), line) // the caller is gone, and with it this process soon
	}
}

func (to reports) or(err error) error {
	if err != nil {
		step, errno := stepOf(err)
		to.say(Started{Error: err.Error(), Step: step, Errno: errno})
	}
	return err
}

// start makes the view and starts the program.
func (v View) start(argv []string) (pid int, unheld []Row, made ownSockets, err error) {
	if v.Processes && os.Getpid() != 1 {
		return 0, nil, made, errors.New("this process is not the first of its namespace; it has to be started with Attr")
	}
	if err := closeOnExec(); err != nil {
		return 0, nil, made, err
	}
	var parentDeath int32
	if err := unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&parentDeath)), 0, 0, 0); err != nil {
		return 0, nil, made, err
	}
	m := mounter{view: v, idmap: -1, live: v.liveSockets()}
	var abstract []string
	if v.Network == nil { // otherwise those of this process are not outside
		var end func()
		abstract, end = abstractCanaries()
		defer end()
	}
	if made, err = v.makeInside(); err != nil {
		return 0, nil, made, atStep(StepNetwork, err)
	}
	if err := m.apart(); err != nil {
		return 0, nil, made, atStep(StepMount, err)
	}
	var swap bool
	if m.who, swap, err = ownerOf(v); err != nil {
		return 0, nil, made, err
	}
	if swap {
		if m.idmap, err = swapped(m.who); err == nil {
			err = v.canSwap(m.idmap)
		}
		if err != nil { // the file system has no such mounts
			m.who, m.idmap = owner{}, -1
		}
		giveStreams(m.who)
	}
	if err := v.closeNested(); err != nil {
		return 0, nil, made, err
	}
	if err := m.mount(); err != nil {
		return 0, nil, made, atStep(StepMount, err)
	}
	if err := v.restrictThread(m.who); err != nil {
		return 0, nil, made, err
	}
	// After the change of the user, with which a machine may allow it again, and before there is a program.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 0, nil, made, err
	}
	if err := v.dieWith(parentDeath); err != nil {
		return 0, nil, made, err
	}
	unheld = v.try(farSockets{m.live, abstract})
	if err := v.missing(unheld); err != nil || len(argv) == 0 {
		return 0, unheld, made, err
	}
	program, err := find(argv[0])
	if err != nil {
		return 0, nil, made, err
	}
	attr := &syscall.ProcAttr{Dir: v.Dir, Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{}}
	if v.Pass > 0 {
		for len(attr.Files) < v.Pass {
			attr.Files = append(attr.Files, ^uintptr(0))
		}
		attr.Files = append(attr.Files, uintptr(v.Pass))
	}
	if !v.Processes {
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	for range busyTries {
		if pid, err = syscall.ForkExec(program, argv, attr); !errors.Is(err, syscall.ETXTBSY) {
			break
		}
		time.Sleep(busyPause)
	}
	if err != nil {
		return 0, nil, made, fmt.Errorf("execute %s: %w", program, err)
	}
	return pid, unheld, made, nil
}

// closeNested closes nested user namespaces. Where the /proc of outside stays, its settings may be covered or read-only; then
// the filter alone refuses them.
func (v View) closeNested() error {
	if !v.Users {
		return nil
	}
	err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	if err != nil && (v.Processes || auditArch == 0) {
		return fmt.Errorf("close nested user namespaces: %w", err)
	}
	return nil
}

// dieWith asks again for the signal at the parent's end: the kernel has forgotten it with the change of the user. The parent may
// have ended meanwhile; then no process reads the reports.
func (v View) dieWith(sig int32) error {
	if sig == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(sig), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the parent: %w", err)
	}
	pipe := []unix.PollFd{{Fd: int32(v.Report)}}
	if n, err := unix.Poll(pipe, 0); v.Report > 0 && err == nil && n > 0 && pipe[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
		return errors.New("the process that started this one is gone")
	}
	return nil
}

// canSwap reports whether the workspace's file system can show root's files as another's.
func (v View) canSwap(idmap int) error {
	dir := v.Dir
	if dir == "" {
		dir = "/"
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(idmap)})
}

// missing refuses a view without a row that is required.
func (v View) missing(unheld []Row) error {
	for _, row := range v.Required {
		if slices.Contains(unheld, row) {
			return fmt.Errorf("the wall does not hold %q here, and it is required; `fairlead doctor` says why", row)
		}
	}
	return nil
}

// wait waits for the program and, if the caller reads the reports and decides about it, for everything else in the view.
func (v View) wait(pid int, to reports, made ownSockets) int {
	quiet(v.Pass)
	if v.Network != nil {
		go made.serve()
	}
	code := CannotSandbox
	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return code // no process is left
		case got == pid:
			code = ws.ExitStatus()
			if ws.Signaled() {
				code = 128 + int(ws.Signal())
			}
			to.say(Ended{Status: uint32(ws)})
			if to == 0 || v.EndsLeft {
				return code
			}
		}
	}
}

// quiet lets go of the program's streams, whose end is otherwise not seen, and of this process's own rights.
func quiet(passed int) {
	if passed > 0 {
		_ = unix.Close(passed)
	}
	if null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup3(null, fd, 0)
		}
		_ = unix.Close(null)
	}
	uid, gid := ownUID(), unix.Getegid() // on this thread they are the program's
	done := make(chan struct{})
	go func() { // on another thread: there are kernels whose Landlock lets a restricted one signal no other, as is needed here
		defer close(done)
		allThreads(uid, gid)
	}()
	<-done
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // as above
}
