package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// writingFile is what may be done to a writable file.
	writingFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// writing is what may be done below a writable folder. Creating device files is not included: root could
	// create one for the disk and write to it.
	writing = writingFile | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REFER
	// denied is what is denied where no rule allows it. Reading and executing are not included.
	denied = writing | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// reading is what may be done to what can be read.
	reading = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// device is what may be done to a device that may be written.
	device = writingFile | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// harmless are the devices that may be written.
var harmless = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// Supported returns the kernel's Landlock version, or 0 and why there can be no sandbox.
func Supported() (abi int, why string) {
	abi, err := landlock(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION, 0)
	abi = min(abi, abiAsked)
	switch {
	case errors.Is(err, unix.ENOSYS), abiAsked == 0:
		return 0, "the kernel was built without Landlock; Linux 6.2 with CONFIG_SECURITY_LANDLOCK has what is needed"
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, "Landlock was not enabled when the kernel started; add landlock to its lsm= parameter"
	case err != nil:
		return 0, fmt.Sprintf("Landlock does not answer: %v; a container may forbid it", err)
	case abi < abiMin:
		return 0, fmt.Sprintf("the kernel's Landlock is version %d, which lets files be truncated; version %d (Linux 6.2) is needed", abi,
			abiMin)
	case auditArch == 0:
		return 0, fmt.Sprintf("the filter of system calls is not written for %s", runtime.GOARCH)
	}
	if _, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); err != nil {
		return 0, fmt.Sprintf("the kernel has no filter of system calls: %v; CONFIG_SECCOMP_FILTER is needed", err)
	}
	return abi, ""
}

// landlock is one of the kernel's calls.
func landlock(call, a, b, c, d uintptr) (int, error) {
	r, _, errno := unix.Syscall6(call, a, b, c, d, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}

// enclose restricts this thread, which must be locked, and what it starts. It returns the program's file.
func (b box) enclose(name string) (program string, err error) {
	abi, why := Supported()
	if why != "" {
		return "", errors.New(why)
	}
	if err := writable(selfComm); err != nil {
		return "", fmt.Errorf("there is nothing to prove the sandbox with: %w; /proc must be mounted, and this process in no sandbox yet",
			err)
	}
	if program, err = find(name); err != nil {
		return "", err
	}
	if err := b.restrict(abi); err != nil {
		return "", err
	}
	if err := dropCapabilities(); err != nil {
		return "", fmt.Errorf("give up root's rights: %w", err)
	}
	if err := install(b.program(abi)); err != nil {
		return "", fmt.Errorf("filter system calls: %w", err)
	}
	if err := b.prove(); err != nil {
		return "", err
	}
	if err := closeOnExec(); err != nil {
		return "", fmt.Errorf("close what is open: %w", err)
	}
	return program, nil
}

// restrict applies the Landlock rules. Each folder is opened once, so that the checked folder is the one that
// is granted. more are folders in which devices and settings of processes may be written.
func (b box) restrict(abi int, more ...string) error {
	set := ruleset{handled: denied}
	if b.Read != nil {
		set.handled |= reading
	}
	if b.Execute != nil {
		set.handled |= unix.LANDLOCK_ACCESS_FS_EXECUTE
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: set.handled}
	if abi < abiDevices {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
		set.handled = attr.Handled_access_fs
	}
	if abi >= abiApart {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	var err error
	if set.fd, err = landlock(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0, 0); err != nil {
		return fmt.Errorf("make the rules of Landlock: %w", err)
	}
	defer unix.Close(set.fd)
	for _, w := range b.Write {
		fd, folder, err := openPlain(w)
		if err != nil {
			return err
		}
		rights := uint64(writingFile | unix.LANDLOCK_ACCESS_FS_READ_FILE)
		if folder {
			rights = writing | reading
		}
		err = set.grant(rights, fd)
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("allow to write %s: %w", w, err)
		}
	}
	grants := map[uint64][]string{device: slices.Concat(terminals(), harmless, more), reading: b.Read}
	if b.Terminals {
		grants[device] = append(grants[device], "/dev/ptmx")
		const shown = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV // names are neither created nor removed there
		grants[shown] = []string{"/dev/pts"}
	}
	if b.Execute != nil {
		grants[unix.LANDLOCK_ACCESS_FS_EXECUTE] = b.Execute
	}
	for rights, files := range grants {
		for _, p := range files {
			if err := set.grantPath(rights, p); err != nil {
				return err
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new rights: %w", err)
	}
	if _, err := landlock(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set.fd), 0, 0, 0); err != nil {
		return fmt.Errorf("restrict by Landlock: %w", err)
	}
	return nil
}

// ruleset collects the rules of one process.
type ruleset struct {
	fd      int
	handled uint64 // what is denied without a rule
}

// grantPath allows what is done to a file or below a folder, if it exists.
func (r ruleset) grantPath(rights uint64, p string) error {
	fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return fmt.Errorf("open %s: %w", p, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &^= unix.LANDLOCK_ACCESS_FS_READ_DIR // the kernel takes no right of folders for a file
	}
	if err := r.grant(rights, fd); err != nil {
		return fmt.Errorf("allow %s: %w", p, err)
	}
	return nil
}

func (r ruleset) grant(rights uint64, fd int) error {
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handled, Parent_fd: int32(fd)}
	_, err := landlock(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0)
	return err
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
		open := fmt.Sprintf("/proc/self/fd/%d", fd) // in a view, the name may be that of another terminal, or of none
		name, err := os.Readlink(open)
		if err == nil && (strings.HasPrefix(name, "/dev/pts/") || strings.HasPrefix(name, "/dev/tty")) {
			out = append(out, open)
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
func (b box) prove() error {
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
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if !errors.Is(err, unix.EACCES) {
		unix.Close(pair[0])
		unix.Close(pair[1])
		return fmt.Errorf("the sandbox does not hold: a pair of datagram sockets gave %w, not a denial", orNothing(err))
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

// become is execve.
func become(program string, argv, env []string) (err error) {
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
