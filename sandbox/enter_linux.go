package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

const (
	// writing is what may be done below a writable folder. Creating device files is not included: root could
	// create one for the disk and write to it.
	writing landlock.AccessFSSet = ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRemoveFile | ll.AccessFSRemoveDir |
		ll.AccessFSMakeReg | ll.AccessFSMakeDir | ll.AccessFSMakeSym | ll.AccessFSMakeFifo | ll.AccessFSMakeSock | ll.AccessFSRefer
	// writingFile is the part of writing that applies to a file.
	writingFile landlock.AccessFSSet = ll.AccessFSWriteFile | ll.AccessFSTruncate
	// denied is what is denied where no rule allows it. Reading and executing are not included.
	denied = writing | ll.AccessFSMakeChar | ll.AccessFSMakeBlock | ll.AccessFSIoctlDev
	// apart confines signals and abstract sockets.
	apart landlock.ScopedSet = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
)

// harmless are the devices that may be written.
var harmless = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// Supported returns the kernel's Landlock version, or 0 and why there can be no sandbox.
func Supported() (abi int, why string) {
	abi, err := ll.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.ENOSYS):
		return 0, "the kernel was built without Landlock; Linux 6.2 with CONFIG_SECURITY_LANDLOCK has what is needed"
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, "Landlock was not enabled when the kernel started; add landlock to its lsm= parameter"
	case err != nil:
		return 0, fmt.Sprintf("Landlock does not answer: %v; a container may forbid it", err)
	case abi < abiMin:
		return 0, fmt.Sprintf("the kernel's Landlock is version %d, which lets files be truncated; version %d (Linux 6.2) is needed", abi, abiMin)
	case auditArch == 0:
		return 0, fmt.Sprintf("the filter of system calls is not written for %s", runtime.GOARCH)
	}
	if _, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); err != nil {
		return 0, fmt.Sprintf("the kernel has no filter of system calls: %v; CONFIG_SECCOMP_FILTER is needed", err)
	}
	return abi, ""
}

// enter restricts this process and executes the program; it returns only if that failed.
func enter(box Box, argv []string) error {
	if _, why := Supported(); why != "" {
		return errors.New(why)
	}
	// execve preserves the restrictions of the calling thread, so this goroutine keeps its thread.
	runtime.LockOSThread()
	if err := writable(selfComm); err != nil {
		return fmt.Errorf("there is nothing to prove the sandbox with: %w; /proc must be mounted, and this process in no sandbox yet", err)
	}
	program, err := find(argv[0])
	if err != nil {
		return err
	}
	if err := restrict(box); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("give up root's rights: %w", err)
	}
	if err := box.filter(); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	if err := box.prove(); err != nil {
		return err
	}
	if err := closeOnExec(); err != nil {
		return fmt.Errorf("close what is open: %w", err)
	}
	return become(program, argv)
}

// restrict applies the Landlock rules. Each folder is opened once, so that the checked folder is the one that
// is granted.
func restrict(box Box) error {
	rules := []landlock.Rule{landlock.RWFiles(harmless...).WithIoctlDev().IgnoreIfMissing()}
	var open []int
	defer func() {
		for _, fd := range open {
			unix.Close(fd)
		}
	}()
	for _, w := range box.Write {
		fd, folder, err := openPlain(w)
		if err != nil {
			return err
		}
		open = append(open, fd)
		rights := writingFile
		if folder {
			rights = writing
		}
		rules = append(rules, landlock.PathAccess(rights, fmt.Sprintf("/proc/self/fd/%d", fd)))
	}
	if tty := terminals(); len(tty) > 0 {
		rules = append(rules, landlock.RWFiles(tty...).WithIoctlDev().IgnoreIfMissing())
	}
	if box.Terminals {
		const shown = ll.AccessFSWriteFile | ll.AccessFSIoctlDev // names are neither created nor removed there
		rules = append(rules, landlock.RWFiles("/dev/ptmx").WithIoctlDev().IgnoreIfMissing(), landlock.PathAccess(shown, "/dev/pts").IgnoreIfMissing())
	}
	handled := denied
	if box.Execute != nil {
		handled |= ll.AccessFSExecute
		for _, p := range box.Execute {
			rules = append(rules, landlock.PathAccess(ll.AccessFSExecute, p).IgnoreIfMissing())
		}
	}
	// Best effort only concerns what came after version 3: device ioctls, signals, abstract sockets.
	if err := landlock.MustConfig(handled, apart).BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("restrict by Landlock: %w", err)
	}
	return nil
}

// openPlain opens a folder or a file with O_PATH.
func openPlain(p string) (fd int, folder bool, err error) {
	fd, err = unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	switch {
	case errors.Is(err, unix.ELOOP):
		return -1, false, fmt.Errorf("a symbolic link leads to %s; name the place itself", p)
	case errors.Is(err, unix.ENOENT):
		return -1, false, fmt.Errorf("%s does not exist; make it first", p)
	case err != nil:
		return -1, false, fmt.Errorf("open %s: %w", p, err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err != nil {
		err = fmt.Errorf("look at %s: %w", p, err)
	}
	switch kind := st.Mode & unix.S_IFMT; {
	case err != nil:
	case kind == unix.S_IFDIR:
		return fd, true, nil
	case kind != unix.S_IFREG:
		err = fmt.Errorf("%s is neither a folder nor a file", p)
	case st.Nlink > 1:
		err = fmt.Errorf("%s has %d names (hard links), so writing to it would change another; copy it first", p, st.Nlink)
	default:
		return fd, false, nil
	}
	unix.Close(fd)
	return -1, false, err
}

// terminals are those of the standard streams: already open, so nothing new is granted, but programs reopen
// them by name.
func terminals() (out []string) {
	for fd := range 3 {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
			continue
		}
		name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err == nil && (strings.HasPrefix(name, "/dev/pts/") || strings.HasPrefix(name, "/dev/tty")) {
			out = append(out, name)
		}
	}
	return out
}

// dropCapabilities leaves only the capability to read and write files regardless of their mode. no_new_privs
// prevents an execve from restoring the others.
func dropCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	const keep = 1 << unix.CAP_DAC_OVERRIDE
	data[0].Permitted &= keep
	data[0].Effective &= keep
	data[0].Inheritable = 0 // and thereby the ambient ones
	data[1] = unix.CapUserData{}
	return unix.Capset(&head, &data[0])
}

// selfComm is a file that every process may write (its own name) and that is in no box.
const selfComm = "/proc/self/comm"

func writable(p string) error {
	fd, err := unix.Open(p, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", p, err)
	}
	return unix.Close(fd)
}

// prove tries operations that must fail, because an ineffective sandbox is worse than none.
func (b Box) prove() error {
	if err := writable(selfComm); !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("the sandbox does not hold: opening %s for writing gave %w, not a denial", selfComm, orNothing(err))
	}
	if on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || on != 1 {
		return errors.New("the sandbox does not hold: programs may gain rights")
	}
	if err := unix.Fchmod(-1, 0); !b.Attributes && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("the sandbox does not hold: changing a mode gave %w, not a denial", orNothing(err))
	}
	if b.Sockets {
		return nil
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if !errors.Is(err, unix.EACCES) {
		unix.Close(fd)
		return fmt.Errorf("the sandbox does not hold: a unix socket gave %w, not a denial", orNothing(err))
	}
	return nil
}

var errNothing = errors.New("no error")

func orNothing(err error) error {
	if err == nil {
		return errNothing
	}
	return err
}

// closeOnExec lets only the standard streams through: a folder or file that is open for writing would be a
// hole.
func closeOnExec() error {
	return unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
}

const (
	busyTries = 20 // a program that was just written may still be open in another process's fork
	busyPause = 10 * time.Millisecond
)

// become is execve. The environment is passed on unchanged.
func become(program string, argv []string) (err error) {
	env := os.Environ()
	for range busyTries {
		if err = syscall.Exec(program, argv, env); err != syscall.ETXTBSY {
			break
		}
		time.Sleep(busyPause)
	}
	return fmt.Errorf("execute %s: %w", program, err)
}

// find returns the program's file as a shell with this PATH would. A relative folder in PATH is skipped; a
// program in the current folder needs ./
func find(name string) (string, error) {
	if strings.Contains(name, "/") {
		why := notExecutable(name)
		if errors.Is(why, fs.ErrNotExist) {
			return "", notFound{fmt.Errorf("%s does not exist; give the whole path", name)}
		}
		return name, why
	}
	var found error
	for _, d := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(d) {
			continue
		}
		p := filepath.Join(d, name)
		switch why := notExecutable(p); {
		case why == nil:
			return p, nil
		case !errors.Is(why, fs.ErrNotExist):
			found = why
		}
	}
	if found != nil {
		return "", found
	}
	return "", notFound{fmt.Errorf("no program %q in PATH; install it, or give its whole path", name)}
}
