package shim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/internal/socket"
)

const environBytesMax = 4 << 20 // the kernel lets arguments and environment be about this large by default

// processes reads the process table.
func processes() ([]Process, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	all := make([]Process, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProcess(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

func readProcess(pid int) (Process, bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Process{}, false
	}
	defer unix.Close(fd)
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return Process{}, false
	}
	return parseStat(buf[:n])
}

// Lineage returns when a process started, in ticks since boot, and its parent. ok is false for a
// process that has ended, even if it is not reaped yet.
func Lineage(pid int) (began uint64, parent int, ok bool) {
	p, ok := readProcess(pid)
	return p.Start, p.parent, ok && !p.zombie
}

// parseStat reads /proc/PID/stat. The command is in parentheses and may contain any byte, including
// parentheses.
func parseStat(line []byte) (p Process, ok bool) {
	open, shut := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || shut < open {
		return Process{}, false
	}
	var f [20][]byte // a fixed number: the whole table is read at once, and a slice for each process is garbage
	n := 0
	for word := range bytes.FieldsSeq(line[shut+1:]) {
		if f[n] = word; n == len(f)-1 {
			break
		}
		n++
	}
	if f[len(f)-1] == nil {
		return Process{}, false
	}
	var errs [4]error
	p.Command = strings.ToValidUTF8(string(line[open+1:shut]), "?")
	p.PID, errs[0] = strconv.Atoi(string(bytes.TrimSpace(line[:open])))
	p.zombie = f[0][0] == 'Z' || f[0][0] == 'X' || f[0][0] == 'x'
	p.parent, errs[1] = strconv.Atoi(string(f[1]))
	p.group, errs[2] = strconv.Atoi(string(f[2]))
	p.Start, errs[3] = strconv.ParseUint(string(f[19]), 10, 64)
	return p, errors.Join(errs[:]...) == nil && p.PID > 0 && p.parent >= 0
}

// living returns the living processes of the agent's tree, including the agent. It is asked for often, by all shims of
// a team at a time, so it does not read the whole process table: every process of the tree stays below the shim, which
// is a subreaper.
func (k *keeper) living() []Process {
	all := descendants(os.Getpid())
	if k.wall.starts() {
		all = slices.DeleteFunc(all, func(p Process) bool { return p.parent == os.Getpid() && isOurs(p.PID) })
	}
	return all
}

// isOurs reports whether a process is in the shim's own mount namespace. The agent's are all in that of its view, which no process
// leaves. So a child that is ours is a proxy that the shim has started, or the process that starts one.
func isOurs(pid int) bool {
	own, err := os.Readlink("/proc/self/ns/mnt")
	its, unknown := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/mnt")
	return err == nil && unknown == nil && its == own
}

// onlyOurs reports whether all children of this process are proxies. A child that has ended and was not reaped counts as the agent's: it
// is reaped next.
func (k *keeper) onlyOurs() bool {
	all, err := processTable()
	return err == nil && !slices.ContainsFunc(all, func(p Process) bool { return p.parent == os.Getpid() && !isOurs(p.PID) })
}

// waitChild waits for the end of a child. While a proxy is started, the process that starts it is not its business.
func (k *keeper) waitChild() (pid int, ws syscall.WaitStatus, err error) {
	for {
		switch err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, 0, err
		}
		k.starting.Lock()
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		k.starting.Unlock()
		if err == nil && pid > 0 {
			return pid, ws, nil
		}
	}
}

// descendants returns the living descendants of root, without root. The kernel lists the children of each
// thread; where it does not, the whole process table is read.
func descendants(root int) []Process {
	if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children"); err != nil {
		all, _ := processTable() // none: nothing is known of the tree
		return below(all, root)
	}
	var found []Process
	seen := map[int]bool{root: true}
	for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
		threads, _ := os.ReadDir("/proc/" + strconv.Itoa(todo[0]) + "/task") // none: it has ended
		for _, t := range threads {
			list, _ := os.ReadFile("/proc/" + strconv.Itoa(todo[0]) + "/task/" + t.Name() + "/children")
			for word := range bytes.FieldsSeq(list) {
				pid, err := strconv.Atoi(string(word))
				if err != nil || seen[pid] {
					continue
				}
				seen[pid] = true
				todo = append(todo, pid) // also of a zombie: other threads of it may have children
				if p, ok := readProcess(pid); ok && !p.zombie {
					found = append(found, p)
				}
			}
		}
	}
	return found
}

// environOf returns nothing for a process that has ended or is not accessible.
func environOf(pid int) []byte { return appendEnviron(nil, pid) }

// appendEnviron appends the environment of a process to buf.
func appendEnviron(buf []byte, pid int) []byte {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/environ", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return buf
	}
	defer unix.Close(fd)
	for begin := len(buf); len(buf)-begin < environBytesMax; {
		buf = slices.Grow(buf, 4096)
		n, err := unix.Read(fd, buf[len(buf):cap(buf)])
		if n <= 0 || err != nil { // it may end during the read: then it has no environment
			break
		}
		buf = buf[:len(buf)+n]
	}
	return buf
}

func bootID() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(raw))
}

// signalProcess signals the process pid that started at start, and no other process that reuses its
// PID. It reports whether the process existed.
func signalProcess(pid int, start uint64, sig syscall.Signal) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if !alive(pid, start) {
		return false
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0) == nil
}

// waitGone returns when the process has ended, or when ctx or patience ends.
func waitGone(ctx context.Context, pid int, start uint64, patience time.Duration) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if !alive(pid, start) {
		return
	}
	const slice = 50 * time.Millisecond // poll does not react to ctx; this is the maximum delay
	for deadline := time.Now().Add(patience); ctx.Err() == nil && time.Now().Before(deadline); {
		wait := min(slice, time.Until(deadline))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, max(1, int(wait.Milliseconds())))
		if n > 0 || (err != nil && err != unix.EINTR) {
			return
		}
	}
}

func becomeSubreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// nameProcess sets the name in process lists, because the path of the executable is not informative.
func nameProcess(name string) {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0)
}

func agentAttr(attr *syscall.SysProcAttr) { attr.Setsid, attr.Pdeathsig = true, syscall.SIGKILL }

const (
	haveSubreaper   = true
	haveParentDeath = true
)

// closeInherited closes descriptors that the parent left open: everything that survived the exec,
// except ours. The runtime's own descriptors are close-on-exec, so they cannot have survived it.
func closeInherited(keep int) {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return
	}
	names, _ := d.Readdirnames(-1)
	d.Close()
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= 2 || fd == keep {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
	unix.CloseOnExec(keep)
}

// peerOf returns the user and the process at the other end of a unix socket.
func peerOf(c syscall.Conn) (uid, pid int, err error) {
	uid = -1
	err = socket.Control(c, func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			uid, pid = int(cred.Uid), int(cred.Pid)
		}
		return err
	})
	return uid, pid, err
}

// dataSync syncs a file's content and length to disk.
func dataSync(f *os.File) error {
	return socket.Control(f, func(fd int) error {
		for {
			if err := unix.Fdatasync(fd); err != unix.EINTR {
				return err
			}
		}
	})
}

// reserve allocates disk space for a file in advance; errors are ignored.
func reserve(f *os.File, bytes int64) {
	_ = unix.Fallocate(int(f.Fd()), 0, 0, bytes)
}

// openPipe creates a pipe; the shim's end (0 to read, 1 to write) is non-blocking, the agent's end
// is an ordinary one.
func openPipe(ours int) (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	_ = unix.SetNonblock(fds[ours], true)
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// selfExe is this program, even if its file was replaced by an upgrade.
func selfExe() (string, error) { return "/proc/self/exe", nil }
