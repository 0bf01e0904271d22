package caller

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// ownConnsMax bounds the open connections of one session: twice the calls of tools that it may have at once. More are closed,
	// so that a session takes no place from the others.
	ownConnsMax = 32

	ownSocketName = "socket"
)

// SessionSockets are the sockets of sessions, one for each: what comes through it is that session's, and no process is looked up,
// because the folder of the socket is private, and is in the view of this session alone. It is a listener with the connections of
// all of them.
type SessionSockets struct {
	came   chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	open map[string]*sessionSocket
}

// NewSessionSockets returns a listener without sockets.
func NewSessionSockets() *SessionSockets {
	return &SessionSockets{came: make(chan net.Conn), closed: make(chan struct{}), open: map[string]*sessionSocket{}}
}

// sessionSocket is the socket of one session.
type sessionSocket struct {
	*net.UnixListener
	path string

	mu    sync.Mutex
	conns map[*Conn]bool
	over  bool
}

// Open listens for a session in a folder of its own, which is made if it is missing. The file of an earlier daemon is replaced.
func (s *SessionSockets) Open(session, folder string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return net.ErrClosed
	default:
	}
	if s.open[session] != nil {
		return nil
	}
	l, err := listenIn(folder)
	if err != nil {
		return fmt.Errorf("listen on the socket of session %s: %w", session, err)
	}
	own := &sessionSocket{UnixListener: l, path: filepath.Join(folder, ownSocketName), conns: map[*Conn]bool{}}
	s.open[session] = own
	go s.accept(session, own)
	return nil
}

// socketPathMax is the longest path of a socket.
const socketPathMax = 107

// listenIn listens at a socket in a folder. A path that is too long goes through the descriptor of the folder. The others are as
// they are, so that the kernel's list of sockets says where each is.
func listenIn(folder string) (*net.UnixListener, error) {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: folder, Err: err}
	}
	defer unix.Close(dir)
	at := filepath.Join(folder, ownSocketName)
	if len(at) > socketPathMax {
		at = filepath.Join("/proc/self/fd", strconv.Itoa(dir), ownSocketName)
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the descriptor is another folder's then
	if err := os.Chmod(at, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// accept passes on the connections of one session until its socket is closed.
func (s *SessionSockets) accept(session string, own *sessionSocket) {
	for {
		c, err := own.AcceptUnix()
		if err != nil {
			return
		}
		conn := &Conn{Conn: c, Caller: Caller{Session: session}, own: true}
		conn.left = func() { own.left(conn) }
		if !own.enters(conn) {
			c.Close()
			continue
		}
		select {
		case s.came <- conn:
		case <-s.closed:
			_ = conn.Close() // no request was read
			return
		}
	}
}

func (o *sessionSocket) enters(c *Conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || len(o.conns) >= ownConnsMax {
		return false
	}
	o.conns[c] = true
	return true
}

func (o *sessionSocket) left(c *Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.conns, c)
}

// end closes the socket with its connections.
func (o *sessionSocket) end() {
	_ = o.Close() // it fails only if it is closed
	_ = os.Remove(o.path)
	o.mu.Lock()
	o.over = true
	all := o.conns
	o.conns = map[*Conn]bool{}
	o.mu.Unlock()
	for c := range all {
		_ = c.Conn.Close()
	}
}

// End closes the socket of a session, if it has one, with its connections.
func (s *SessionSockets) End(session string) {
	s.mu.Lock()
	own := s.open[session]
	delete(s.open, session)
	s.mu.Unlock()
	if own != nil {
		own.end()
	}
}

// Accept returns the next connection of any session.
func (s *SessionSockets) Accept() (net.Conn, error) {
	select {
	case c := <-s.came:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Addr is no address: each session has its own.
func (s *SessionSockets) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// Close stops listening for all sessions. Open connections stay: their requests may finish.
func (s *SessionSockets) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, own := range s.open {
			_ = own.Close()
			_ = os.Remove(own.path)
		}
	})
	return nil
}
