package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/peer"
	"github.com/fairlead-dev/fairlead/internal/runtimedir"
)

const (
	socketBytes = 100 // of a path: sun_path has 104 on macOS, 108 on Linux
	socketAsk   = time.Second
)

// SocketTaken says that a daemon already answers on the socket of this repository.
type SocketTaken struct{ Path string }

func (s *SocketTaken) Error() string {
	return "another fairlead answers on " + s.Path + "; use that one, or stop it with `fairlead down`"
}

// SocketPath returns the path of a repository's socket, in the first suitable runtime folder:
// $XDG_RUNTIME_DIR/fairlead, else /tmp/fairlead-UID. The folder is created if necessary, and only
// this user can access it.
func SocketPath(dir string) (string, error) {
	real, err := realDir(dir)
	if err != nil {
		return "", err
	}
	name := runtimedir.SocketName("d", real)
	var faults []error
	for _, folder := range runtimedir.Dirs() {
		path := filepath.Join(folder, name)
		if len(path) > socketBytes {
			faults = append(faults, fmt.Errorf("%s is too long for a socket", path))
			continue
		}
		if err := runtimedir.Private(folder); err != nil {
			faults = append(faults, err)
			continue
		}
		return path, nil
	}
	return "", fmt.Errorf("no folder for the daemon's socket: %w", errors.Join(faults...))
}

func realDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("find the repository %s: %w", dir, err)
	}
	return abs, nil
}

// ListenSocket opens the socket of a repository. Connections of other users are closed before a byte
// is read. The socket of a dead daemon is replaced; if a daemon answers on it, the error is
// *SocketTaken. The caller holds the workspace's lock, so no other process does the same at the same
// time.
func ListenSocket(dir string) (net.Listener, error) {
	path, err := SocketPath(dir)
	if err != nil {
		return nil, err
	}
	l, err := listenSocket(path)
	if err != nil {
		return nil, err
	}
	l.dir, err = realDir(dir)
	return l, err
}

func listenSocket(path string) (*ownSocket, error) {
	if answers(path) {
		return nil, &SocketTaken{Path: path}
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("listen on %s: the path exists and is not a socket; remove it", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket of a daemon that no longer runs: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // only if it is still the same socket: see Close
	bound, err := os.Lstat(path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return &ownSocket{UnixListener: l, path: path, bound: bound}, nil
}

// answers reports whether a process accepts connections there.
func answers(path string) bool {
	c, err := net.DialTimeout("unix", path, socketAsk)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// ownSocket accepts connections of this process's user only.
type ownSocket struct {
	*net.UnixListener
	dir   string // the repository, whose agents must be identified
	path  string
	bound os.FileInfo
	once  sync.Once
}

// Accept returns the next connection of our own user. Those of others are closed.
func (s *ownSocket) Accept() (net.Conn, error) {
	for {
		c, err := s.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if err := peer.SameUser(c); err == nil {
			return caller.Inspect(c, s.dir), nil
		}
		c.Close() // neither answered nor recorded: the caller is another user, and the journal is for facts about the team
	}
}

// Close stops listening, and removes the socket if it is still the same one.
func (s *ownSocket) Close() error {
	s.once.Do(func() {
		// inode numbers are reused
		if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.bound) && now.ModTime().Equal(s.bound.ModTime()) {
			os.Remove(s.path)
		}
	})
	return s.UnixListener.Close()
}
