package server

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

const socketLook = time.Second // how soon a socket that vanished is made again; a look is one call of the kernel

// KeepSocket listens as ListenSocket does, and listens anew where the socket vanished: a
// logout takes the runtime folder away, and whoever comes back finds the daemon again. Each
// new place is told to moved before anybody is let in there; connections that are open stay.
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

// keptSocket is the daemon's socket, wherever it is at the moment.
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
	told bool // that it cannot be made again
}

// take lets callers in at a new place.
func (k *keptSocket) take(at *ownSocket) {
	k.mu.Lock()
	k.now, k.told = at, false
	k.mu.Unlock()
	k.work.Go(func() {
		for {
			c, err := at.Accept()
			if err != nil {
				return // it was closed: the folder is gone, or we go
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

// watch looks after the place until we go.
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
			k.log.Warn("the daemon's socket is gone and cannot be made again; verbs find no daemon until it can, and it is tried every second", "error", err)
		}
	}
}

// firstTime says whether this is the first time since it last stood.
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

// again opens the socket where it is to be now.
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
	_ = old.Close() // nobody can reach it any more
	select {
	case <-k.closed: // meanwhile, and perhaps before the new one was seen
		return next.Close()
	default:
	}
	k.log.Info("the daemon's socket had vanished; it was made again", "path", next.path)
	return nil
}

// stands says whether the socket is still there, and ours.
func (s *ownSocket) stands() bool {
	now, err := os.Lstat(s.path)
	return err == nil && os.SameFile(now, s.bound)
}

// Accept gives the next connection, at whatever place.
func (k *keptSocket) Accept() (net.Conn, error) {
	select {
	case c := <-k.came:
		return c, nil
	case <-k.closed:
		return nil, net.ErrClosed
	}
}

// Addr is where it listens now.
func (k *keptSocket) Addr() net.Addr { return k.at().Addr() }

// Close stops listening, and returns when nothing of it runs any more.
func (k *keptSocket) Close() error {
	var err error
	k.once.Do(func() {
		close(k.closed)
		err = k.at().Close()
		k.work.Wait()
	})
	return err
}
