package workspace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"

	"github.com/gofrs/flock"
)

// Workspace is the .fairlead folder of a repository: everything that Fairlead keeps there.
// Its lock is held by the one daemon, or the one run without a daemon, that may write.
type Workspace struct {
	Dir  string // the repository
	lock *flock.Flock
	held os.FileInfo // the file that the lock is on

	saying sync.Mutex
	said   []byte // what was announced
}

// Busy says that another daemon works on the workspace.
type Busy struct {
	Dir    string
	Daemon Daemon // zero where it has not said yet who it is
}

func (b *Busy) Error() string {
	if b.Daemon.PID == 0 {
		return "another fairlead is working on " + b.Dir + "; stop it with `fairlead down`"
	}
	page := ""
	if b.Daemon.Address != "" { // a host of a team has none
		page = " (" + b.Daemon.Address + ")"
	}
	return fmt.Sprintf("fairlead already runs on %s as process %d%s; use that one, or stop it with `fairlead down`", b.Dir, b.Daemon.PID,
		page)
}

// Daemon is what a running daemon leaves for its clients to find it by.
type Daemon struct {
	PID     int    `json:"pid"`
	Address string `json:"address"` // http://127.0.0.1:7466, without the token
	Socket  string `json:"socket"`
	Version string `json:"version"`

	Origins []string `json:"origins,omitempty"` // where the page is opened through a tunnel or a proxy
}

const (
	lockTry  = 15 * time.Millisecond // interval between two attempts to take the lock
	lockWait = 5 * time.Second       // how long OpenWorkspace tries while no daemon has recorded itself
)

// Free reports whether no process works on a repository: no daemon, and no run without one. It
// changes nothing.
func Free(dir string) (bool, error) {
	path := filepath.Join(dir, ".fairlead", "lock")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	ok, err := lock.TryRLock()
	if err != nil {
		return false, fmt.Errorf("check whether a process works on %s: %w", dir, err)
	}
	return ok, lock.Close()
}

// OpenWorkspace creates the folder if it is missing, and takes its lock. The error is a *Busy if
// another process has it. A folder of another format is refused.
func OpenWorkspace(dir string) (*Workspace, error) {
	w := &Workspace{Dir: dir}
	if info, err := os.Lstat(w.Path()); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder (Fairlead does not follow a symbolic link here, because it could point anywhere); remove it, and `fairlead up` creates a folder", w.Path())
	}
	if err := os.MkdirAll(w.Path(), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder in which fairlead keeps its state: %w; make %s writable", err, dir)
	}
	if err := w.refuseLinks(); err != nil {
		return nil, err
	}
	ignore := w.Path(".gitignore")
	if _, err := os.Stat(ignore); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(ignore, []byte("# fairlead's own state: nothing here belongs into the repository\n*\n"), 0o600); err != nil {
			return nil, fmt.Errorf("keep fairlead's state out of git: %w; make %s writable", err, w.Path())
		}
	}
	w.lock = flock.New(w.Path("lock"), flock.SetPermissions(0o600))
	if err := w.takeLock(); err != nil {
		return nil, err
	}
	if err := w.checkFormat(); err != nil {
		return nil, errors.Join(err, w.lock.Close())
	}
	var err error
	if w.held, err = os.Stat(w.Path("lock")); err != nil {
		return nil, errors.Join(fmt.Errorf("look at the lock just taken: %w", err), w.lock.Close())
	}
	return w, nil
}

// takeLock takes the lock. If no live daemon is recorded, another process has the lock only for a
// moment: Free, a process that was about to start when its daemon ended, a daemon that was killed and
// is not gone yet, or one that has not recorded itself. takeLock waits for these.
func (w *Workspace) takeLock() error {
	for late := time.Now().Add(lockWait); ; time.Sleep(lockTry) {
		ok, err := w.lock.TryLock()
		if err != nil {
			return fmt.Errorf("lock %s: %w", w.Path("lock"), err)
		}
		if ok {
			return nil
		}
		daemon, _ := FindDaemon(w.Dir) // without a record it stays zero
		if daemon.PID != 0 && exists(daemon.PID) && accepts(daemon.Socket) || time.Now().After(late) {
			return &Busy{Dir: w.Dir, Daemon: daemon}
		}
	}
}

// exists reports whether there is such a process. A process that a daemon was about to start when it was killed keeps the
// daemon's lock and socket for a moment.
func exists(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// accepts reports whether a process listens on a socket. A daemon that was killed a moment ago closes its socket before
// its lock, and its process can be seen for some time after both.
func accepts(socket string) bool {
	conn, err := net.Dial("unix", socket) //nolint:noctx // a local socket answers at once or never
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// Lost reports that the folder was removed or replaced while it was in use, as `git clean -x` does:
// then writes are lost, the lock protects nothing, and no client finds the daemon. It returns nil if
// all is well.
func (w *Workspace) Lost() error {
	now, err := os.Stat(w.Path("lock"))
	switch {
	case err == nil && os.SameFile(now, w.held): // its number is not given again while we have it open
		return nil
	case err == nil || errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s was taken away while fairlead worked in it, and its history with it (`git clean -x` does that; -e .fairlead spares it); put it back if you have a copy, then run `fairlead up` again; agents go on until they are done", w.Path())
	default:
		return nil // it cannot be looked at; that is no proof that it is gone
	}
}

// private are the parts of the folder that no other user may read, with their modes.
var private = map[string]os.FileMode{
	"": 0o700, "token": 0o600, "logins.json": 0o600, "journal.db": 0o600, "journal.db-archive": 0o600, "search.db": 0o600,
}

// Keep repairs what another program has done to the folder, and logs it: the folder, the token and the journal are made private again where
// they are open to other users, which an agent can do also from its sandbox; and the record of the daemon is written again where it was
// changed or removed.
func (w *Workspace) Keep(log *slog.Logger) {
	for path, mode := range openIn(w.Path()) {
		if os.Chmod(path, mode) == nil {
			log.Error("other users could read a private file of Fairlead; it is private again. If this machine has other users, run fairlead down, delete .fairlead/token and run fairlead up: then there is a new token", "path", path)
		}
	}
	if changed, err := w.announceAgain(); changed {
		log.Warn("another program has changed or removed .fairlead/daemon.json, with which commands find this daemon; it is written again",
			"error", err)
	}
}

// openIn returns the parts of a state folder that other users may read, with the modes that they should have.
func openIn(state string) map[string]os.FileMode {
	open := map[string]os.FileMode{}
	for name, mode := range private {
		path := filepath.Join(state, name)
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 && info.Mode().Perm()&0o077 != 0 {
			open[path] = mode
		}
	}
	return open
}

// OpenToOthers returns the parts of a workspace's state that other users may read.
func OpenToOthers(dir string) []string {
	return slices.Sorted(maps.Keys(openIn(filepath.Join(dir, ".fairlead"))))
}

// MakePrivate makes them private, as a daemon does.
func MakePrivate(dir string) error {
	var err error
	for path, mode := range openIn(filepath.Join(dir, ".fairlead")) {
		err = errors.Join(err, os.Chmod(path, mode))
	}
	return err
}

// refuseLinks keeps a repository that brings a .fairlead of its own from leading what we
// write elsewhere, and what we keep from being read by others.
func (w *Workspace) refuseLinks() error {
	if err := os.Chmod(w.Path(), 0o700); err != nil { //nolint:gosec // a folder is entered
		return fmt.Errorf("keep fairlead's state to ourselves: %w; the folder has to be yours, and writable", err)
	}
	for _, dir := range []string{w.Path(), w.Path("log")} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("look through fairlead's state: %w", err)
		}
		for _, entry := range entries {
			switch path := filepath.Join(dir, entry.Name()); {
			case entry.Type()&os.ModeSymlink != 0:
				return fmt.Errorf("%s is a symbolic link; Fairlead does not follow it, because it could point anywhere; remove it", path)
			case !entry.Type().IsRegular() && !entry.IsDir():
				return fmt.Errorf("%s is neither a file nor a folder (%s): opening it could block forever; remove it", path, entry.Type())
			}
		}
	}
	return nil
}

// Path is a path in the .fairlead folder.
func (w *Workspace) Path(parts ...string) string {
	return filepath.Join(append([]string{w.Dir, ".fairlead"}, parts...)...)
}

// Announce leaves who we are for clients, whole or not at all. It is one line without spaces, because scripts read it
// with sed.
func (w *Workspace) Announce(d Daemon) error {
	text, err := json.Marshal(d)
	if err == nil {
		w.saying.Lock()
		defer w.saying.Unlock()
		w.said = append(text, '\n')
		err = file.Replace(w.Path("daemon.json"), w.said, 0o600) // under a temporary name that no other program can predict
	}
	if err != nil {
		return fmt.Errorf("record the daemon's address: %w", err)
	}
	return nil
}

func (w *Workspace) announceAgain() (changed bool, err error) {
	w.saying.Lock()
	defer w.saying.Unlock()
	now, err := readPlain(w.Path("daemon.json"))
	if w.said == nil || err == nil && bytes.Equal(now, w.said) {
		return false, nil
	}
	return true, file.Replace(w.Path("daemon.json"), w.said, 0o600)
}

// Close gives the lock back, and takes the word back that we are here.
func (w *Workspace) Close() error {
	if w.Lost() != nil {
		return w.lock.Unlock() // the record there may be another daemon's
	}
	_ = os.Remove(w.Path("daemon.json")) // a client that still reads it finds no daemon and reports that
	return w.lock.Unlock()
}

// FindDaemon reads what the daemon of a repository left, if there is one. That it was left
// does not mean that it lives: a client finds that out by asking it.
func FindDaemon(dir string) (Daemon, error) {
	var d Daemon
	text, err := readPlain(filepath.Join(dir, ".fairlead", "daemon.json"))
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return Daemon{}, &Unreadable{Path: filepath.Join(dir, ".fairlead", "daemon.json"), Why: err}
	}
	return d, nil
}

// Unreadable says that another program has damaged the record of a daemon. A daemon that runs writes it again.
type Unreadable struct {
	Path string
	Why  error
}

func (u *Unreadable) Error() string { return "read " + u.Path + ": " + u.Why.Error() }

// wordBytesMax is more than a daemon says of itself.
const wordBytesMax = 64 << 10

// readPlain reads a small file, and neither follows a link nor waits at a pipe.
func readPlain(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: it is no plain file; remove it: %w", path, cmp.Or(err, fs.ErrInvalid))
	}
	return io.ReadAll(io.LimitReader(f, wordBytesMax))
}

// BootID names this start of the machine; empty where the system does not say.
func BootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
