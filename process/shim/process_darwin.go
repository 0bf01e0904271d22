package shim

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/internal/socket"
)

// macOS has no subreaper and no parent-death signal: the tree is found
// by parent, process group and mark.
const (
	haveSubreaper   = false
	haveParentDeath = false

	zombieState = 5 // SZOMB in sys/proc.h
)

// waitChild waits for the end of a child.
func (k *keeper) waitChild() (pid int, ws syscall.WaitStatus, err error) {
	err = syscall.EINTR
	for err == syscall.EINTR {
		pid, err = syscall.Wait4(-1, &ws, 0, nil)
	}
	return pid, ws, err
}

// onlyOurs: without views, a shim starts no proxy.
func (k *keeper) onlyOurs() bool { return false }

func processes() ([]Process, error) {
	table, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	all := make([]Process, 0, len(table))
	for i := range table {
		all = append(all, fromKinfo(&table[i]))
	}
	return all, nil
}

func fromKinfo(k *unix.KinfoProc) Process {
	return Process{
		PID: int(k.Proc.P_pid), Start: uint64(k.Proc.P_starttime.Nano()) / 1000, // microseconds here, not ticks
		Command: strings.ToValidUTF8(unix.ByteSliceToString(k.Proc.P_comm[:]), "?"),
		parent:  int(k.Eproc.Ppid), group: int(k.Eproc.Pgid), zombie: k.Proc.P_stat == zombieState,
	}
}

func readProcess(pid int) (Process, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return Process{}, false
	}
	return fromKinfo(k), true
}

// environOf reads kern.procargs2: a count, the program's path, zero bytes, that many arguments, the environment.
func environOf(pid int) []byte {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return nil
	}
	return environAfterArgs(raw)
}

func appendEnviron(buf []byte, pid int) []byte { return append(buf, environOf(pid)...) }

// living returns the living processes of the agent's tree, including the agent. A process may have left the tree, so
// all are looked at.
func (k *keeper) living() []Process {
	all, err := processTable()
	if err != nil {
		return nil
	}
	self := os.Getpid()
	found := below(all, self)
	found = withDescendants(all, join(found, marked(all, k.record.Mark, k.record.AgentStart)))
	return without(all, found, self)
}

func environAfterArgs(raw []byte) []byte {
	if len(raw) < 4 {
		return nil
	}
	argc, rest := int(binary.NativeEndian.Uint32(raw)), raw[4:]
	_, rest, _ = bytes.Cut(rest, []byte{0})
	rest = bytes.TrimLeft(rest, "\x00")
	for range argc {
		var ok bool
		if _, rest, ok = bytes.Cut(rest, []byte{0}); !ok {
			return nil
		}
	}
	return rest
}

func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "unknown"
	}
	return id
}

// signalProcess has no pidfd here: between the look and the signal the number could in theory be given anew.
func signalProcess(pid int, start uint64, sig syscall.Signal) bool {
	return alive(pid, start) && syscall.Kill(pid, sig) == nil
}

func waitGone(ctx context.Context, pid int, start uint64, patience time.Duration) {
	tick := time.NewTicker(attachPause)
	defer tick.Stop()
	late := time.After(patience)
	for alive(pid, start) {
		select {
		case <-tick.C:
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
}

func becomeSubreaper() error { return nil }

func nameProcess(string) {}

func agentAttr(attr *syscall.SysProcAttr) { attr.Setsid = true }

func closeInherited(keep int) {
	for fd := 3; fd < 256; fd++ {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && fd != keep && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
	unix.CloseOnExec(keep)
}

// peerOf returns the user and the process at the other end of a unix socket.
func peerOf(c syscall.Conn) (uid, pid int, err error) {
	uid = -1
	err = socket.Control(c, func(fd int) error {
		cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err == nil {
			uid = int(cred.Uid)
			pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		}
		return err
	})
	return uid, pid, err
}

// dataSync: Sync is F_FULLFSYNC here, which also empties the disk's own cache.
func dataSync(f *os.File) error { return f.Sync() }

func reserve(*os.File, int64) {}

func openPipe(ours int) (r, w *os.File, err error) {
	var fds [2]int
	syscall.ForkLock.RLock()
	err = unix.Pipe(fds[:])
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	_ = unix.SetNonblock(fds[ours], true)
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

func selfExe() (string, error) { return os.Executable() }
