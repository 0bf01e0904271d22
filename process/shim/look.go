package shim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/internal/socket"
	"golang.org/x/sys/unix"
)

// Sight is the state of a session's folder as found without changing anything.
type Sight struct {
	Status
	Answers bool           // a living shim in the folder answered
	Silence string         // running, but no answer: what was tried
	Other   *OtherProtocol // why its shim was not asked; nil: it speaks this protocol
	Agent   Life           // of the agent's process, if its record names one
	Shim    Life           // of the shim's
}

// Life is the state of a process that is identified by its PID and start time.
type Life string

const (
	LifeUnknown Life = ""        // no process is named
	Lives       Life = "lives"   //
	Stopped     Life = "stopped" // SIGSTOP or a debugger: it exists and does nothing
	Gone        Life = "gone"    // no process has this PID, or it waits to be reaped
	Reused      Life = "reused"  // the PID belongs to another process by now
)

// LifeOf examines one process. A start time of 0 is not compared.
func LifeOf(pid int, start uint64) Life {
	if pid <= 0 {
		return LifeUnknown
	}
	p, ok := readProcess(pid)
	switch {
	case !ok || p.zombie:
		return Gone
	case start != 0 && p.Start != start:
		return Reused
	case isStopped(pid):
		return Stopped
	}
	return Lives
}

// lookPatience is how long a shim may take to answer.
const lookPatience = 500 * time.Millisecond

// Look determines the state of the session in a folder like Adopt, but changes nothing: it writes no
// file, raises no fence and ends no process. A living shim receives a hello with epoch 0, which it
// refuses; the refusal shows that it answers. The session's lock is tried briefly and shared, as
// when adopting; a concurrent caller tries again.
func Look(ctx context.Context, folder string) (Sight, error) {
	folder, err := realFolder(folder)
	if err != nil {
		return Sight{}, fmt.Errorf("look: %w", err)
	}
	sight, err := lookAt(ctx, folder)
	if err != nil {
		return Sight{}, fmt.Errorf("look at the session in %s: %w", folder, err)
	}
	return sight, nil
}

func lookAt(ctx context.Context, folder string) (Sight, error) {
	for range 2 { // it may end between the two reads of its record
		if s, err := endedSight(folder); s != nil || err != nil {
			return deref(s), err
		}
		held, err := isHeld(folder)
		if err != nil {
			return Sight{}, fmt.Errorf("look who holds it: %w", err)
		}
		if held {
			return heldSight(ctx, folder)
		}
	}
	return leftSight(folder)
}

func deref(s *Sight) Sight {
	if s == nil {
		return Sight{}
	}
	return *s
}

// isHeld reports whether a shim has the folder's lock.
func isHeld(folder string) (bool, error) {
	f, err := openPlain(filepath.Join(folder, lockFile), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() // releases the lock
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case err == nil:
		return false, nil
	case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EINTR):
		return true, nil
	default:
		return false, err
	}
}

// sightOf is the state according to a record, with the state of its processes.
func sightOf(folder string, r *agentRecord) Sight {
	var s Sight
	if r != nil {
		s.Status = r.status()
		if r.BootID == bootID() {
			s.Agent, s.Shim = LifeOf(r.AgentPID, r.AgentStart), LifeOf(r.ShimPID, r.ShimStart)
		} else {
			s.Agent, s.Shim = Gone, Gone
		}
	}
	s.Fence, _ = readFence(folder) // an unreadable fence is reported by the daemon that takes it
	return s
}

// endedSight is a session with an exit record; nil if there is none.
func endedSight(folder string) (*Sight, error) {
	r, err := readAgent(folder)
	if err != nil && !errors.As(err, new(*damaged)) {
		return nil, err
	}
	if r.other() != nil {
		return nil, nil //nolint:nilerr // its exit record is not read
	}
	e, err := readExit(folder)
	if e == nil || err != nil {
		return nil, err
	}
	s := sightOf(folder, r)
	_, noAck := os.Stat(filepath.Join(folder, ackedFile))
	s.Phase, s.Exit, s.SpoolBytes, s.Acked = Exited, e, e.SpoolBytes, noAck == nil
	return &s, nil
}

// heldSight is a session whose shim is alive.
func heldSight(ctx context.Context, folder string) (Sight, error) {
	r, err := readAgent(folder)
	if err != nil && !errors.As(err, new(*damaged)) {
		return Sight{}, err
	}
	s := sightOf(folder, r)
	s.Phase, s.SpoolBytes = Running, sizeOf(folder)
	if s.Other = r.other(); s.Other != nil {
		s.Silence = s.Other.Error()
		return s, nil
	}
	recorded := ""
	if r != nil {
		recorded = r.Socket
	}
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	var tried []string
	for _, path := range socketPaths(folder, recorded) {
		conn, st, err := dial(ctx, path, 0)
		if conn != nil { // it accepts any epoch
			conn.Close()
			s.Status, s.Answers = *st, true
			return s, nil
		}
		if errors.As(err, new(*Fenced)) {
			s.Answers = true
			return s, nil
		}
		tried = append(tried, err.Error())
	}
	if ctx.Err() != nil {
		tried = []string{fmt.Sprintf("it said nothing for %v", lookPatience)}
	}
	s.Silence = strings.Join(tried, "; ")
	return s, nil
}

// leftSight is a session without a shim and without an exit record.
func leftSight(folder string) (Sight, error) {
	r, err := readAgent(folder)
	if errors.As(err, new(*damaged)) {
		s := sightOf(folder, nil)
		s.Phase, s.Why = Lost, err.Error()
		return s, nil
	}
	if err != nil {
		return Sight{}, err
	}
	s := sightOf(folder, r)
	s.SpoolBytes = sizeOf(folder)
	switch {
	case r == nil:
		s.Phase = NeverStarted
	case r.Step == stepCannotStart && r.other() == nil:
		s.Phase, s.Why = NeverStarted, r.Why
	case r.BootID != bootID():
		s.Phase, s.Why = Lost, "the machine was started anew meanwhile"
	default:
		s.Phase, s.Why = Lost, r.lostWhy()
	}
	return s, nil
}

func sizeOf(folder string) int64 {
	size, err := OutputBytes(folder)
	if err != nil {
		return 0
	}
	return size
}

// Socket is one socket in a runtime folder of Fairlead: of a shim (h-…) or a daemon (d-…) of any
// workspace.
type Socket struct {
	Path  string
	Stale bool   // it has no listener
	Fault string // other users own it or can use it
	seen  os.FileInfo
}

// SocketOf is the name of the socket for a session folder's shim, in any runtime folder.
func SocketOf(folder string) (string, error) {
	real, err := realFolder(folder)
	if err != nil {
		return "", err
	}
	return runtimedir.SocketName("h", real), nil
}

// staleAfter is how old a socket without a listener must be to count as left behind: a new one has
// none for an instant.
const staleAfter = 5 * time.Second

// Sockets lists the contents of this user's runtime folders without changing them. A folder that
// other users can access is listed as a fault, under its own path.
func Sockets() []Socket {
	var all []Socket
	for _, dir := range runtimedir.Dirs() {
		info, err := os.Lstat(dir)
		if err != nil {
			continue // it is created when it is needed
		}
		if fault := notOurs(info, 0o077); fault != "" || !info.IsDir() {
			all = append(all, Socket{Path: dir, Fault: "other users can access the folder " + fault})
			continue
		}
		names, err := os.ReadDir(dir)
		if err != nil {
			all = append(all, Socket{Path: dir, Fault: err.Error()})
			continue
		}
		for _, entry := range names {
			info, err := entry.Info()
			ours := strings.HasPrefix(entry.Name(), "h-") || strings.HasPrefix(entry.Name(), "d-")
			if err != nil || !ours || info.Mode().Type() != os.ModeSocket {
				continue
			}
			s := Socket{Path: filepath.Join(dir, entry.Name()), seen: info}
			s.Fault = notOurs(info, 0)
			s.Stale = s.Fault == "" && time.Since(info.ModTime()) > staleAfter && refuses(s.Path)
			all = append(all, s)
		}
	}
	return all
}

// notOurs returns why other users can access a file; forbidden are mode bits that it must not have.
// The mode of a socket means little: its folder protects it.
func notOurs(info os.FileInfo, forbidden os.FileMode) string {
	sys, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(sys.Uid) != os.Getuid():
		return "(it belongs to another user)"
	case info.Mode().Perm()&forbidden != 0:
		return fmt.Sprintf("(its mode is %#o)", info.Mode().Perm())
	}
	return ""
}

// refuses reports whether the socket has no listener.
func refuses(path string) bool {
	c, err := socket.ConnectUnix(path)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	c.Close()
	return false
}

// Remove removes a stale socket if it is still the same one.
func (s Socket) Remove() error {
	now, err := os.Lstat(s.Path)
	if err != nil || !s.Stale || !os.SameFile(now, s.seen) || !now.ModTime().Equal(s.seen.ModTime()) {
		return nil //nolint:nilerr // it is gone, or the name is in use again
	}
	return os.Remove(s.Path)
}
