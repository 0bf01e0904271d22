package server

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

const socketLook = time.Second // how often the socket is checked; a check is one system call

// KeepSocket listens like ListenSocket, and listens again if the socket vanishes: a logout removes
// the runtime folder, and the next login finds the daemon again. moved is called with each new path
// before connections are accepted there. Open connections are not affected.
func KeepSocket(dir string, log *slog.Logger, moved func(path string) error) (net.Listener, error) {
	first, err := ListenSocket(dir)
	if err != nil {
		return nil, err
	}
	k := &keptSocket{dir: dir, log: log, moved: moved, came: make(chan net.Conn), closed: make(chan struct{})}
	k.take(first.(*ownSocket))
	k.work.Go(k.watch)
	return k, nil
}

// keptSocket is the daemon's socket at its current path.
type keptSocket struct {
	dir   string
	log   *slog.Logger
	moved func(string) error
	came  chan net.Conn

	once   sync.Once
	closed chan struct{}
	work   sync.WaitGroup

	mu   sync.Mutex
	now  *ownSocket
	told bool // the failure to make it again was logged
}

// take accepts connections at a new path.
func (k *keptSocket) take(at *ownSocket) {
	k.mu.Lock()
	k.now, k.told = at, false
	k.mu.Unlock()
	k.work.Go(func() {
		for {
			c, err := at.Accept()
			if err != nil {
				return // closed: the socket was replaced, or the server stops
			}
			select {
			case k.came <- c:
			case <-k.closed:
				c.Close()
				return
			}
		}
	})
}

// watch checks the socket until it is closed.
func (k *keptSocket) watch() {
	tick := time.NewTicker(socketLook)
	defer tick.Stop()
	for {
		select {
		case <-k.closed:
			return
		case <-tick.C:
		}
		if at := k.at(); at.stands() {
			continue
		}
		if err := k.again(); err != nil && k.firstTime() {
			k.log.Warn("the daemon's socket is gone and cannot be created again; commands find no daemon until it can; retrying every second", "error", err)
		}
	}
}

// firstTime reports whether this is the first failure since the socket last existed.
func (k *keptSocket) firstTime() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := !k.told
	k.told = true
	return first
}

func (k *keptSocket) at() *ownSocket {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

// again opens the socket at its current path.
func (k *keptSocket) again() error {
	l, err := ListenSocket(k.dir)
	if err != nil {
		return err
	}
	next := l.(*ownSocket)
	if err := k.moved(next.path); err != nil {
		return errors.Join(err, next.Close())
	}
	old := k.at()
	k.take(next)
	_ = old.Close() // its path no longer exists
	select {
	case <-k.closed: // Close was called meanwhile and may not have seen the new one
		return next.Close()
	default:
	}
	k.log.Info("the daemon's socket had vanished and was created again", "path", next.path)
	return nil
}

// stands reports whether the socket still exists and is the one that was opened.
func (s *ownSocket) stands() bool {
	now, err := os.Lstat(s.path)
	return err == nil && os.SameFile(now, s.bound)
}

// Accept returns the next connection at the current path.
func (k *keptSocket) Accept() (net.Conn, error) {
	select {
	case c := <-k.came:
		return c, nil
	case <-k.closed:
		return nil, net.ErrClosed
	}
}

// Addr is the current path.
func (k *keptSocket) Addr() net.Addr { return k.at().Addr() }

// Close stops listening, and returns when all goroutines have ended.
func (k *keptSocket) Close() error {
	var err error
	k.once.Do(func() {
		close(k.closed)
		err = k.at().Close()
		k.work.Wait()
	})
	return err
}
