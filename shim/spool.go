package shim

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// spool takes what the agent writes to a file, and says which bytes are safe.
//
// Two goroutines: pump reads and writes, sync makes it durable. While one sync
// runs the next bytes gather, so a chatty agent shares syncs and a quiet one does
// not wait for one.
type spool struct {
	file    *os.File
	publish func(size int64) // called after a sync, never by two at once
	dirty   chan struct{}    // of one: there is something to sync
	hurry   chan struct{}    // closed when the agent has ended: no more waiting to gather
	pumped  chan struct{}    // closed when the pump is done
	flushed chan struct{}    // closed when the sync is done

	mu      sync.Mutex
	max     int64
	written int64
	synced  int64
	cut     int64 // bytes that found no place
	full    bool
	failed  string // why the disk takes nothing
	lastAt  time.Time
}

const (
	drainBytesMax = 4 << 20                // more than any pipe holds: somebody outside the tree writes on
	diskPause     = 500 * time.Millisecond // a full disk is asked again this often
	diskPatience  = 2 * time.Second        // and this long after the agent has ended
)

func newSpool(file *os.File, max int64, publish func(int64)) *spool {
	return &spool{
		file: file, max: max, publish: publish,
		dirty: make(chan struct{}, 1), hurry: make(chan struct{}),
		pumped: make(chan struct{}), flushed: make(chan struct{}),
	}
}

// start begins to read. The agent's end must be announced by finish.
func (s *spool) start(from *os.File) {
	go s.pump(from)
	go s.sync()
}

func (s *spool) pump(from *os.File) {
	defer close(s.pumped)
	defer from.Close()
	buf := make([]byte, readBytes)
	for {
		n := s.waitRoom(len(buf))
		if n == 0 {
			break // it ended while the spool was full
		}
		n, err := from.Read(buf[:n])
		s.take(buf[:n])
		if err != nil {
			break
		}
	}
	s.drain(from, buf)
}

// drain takes what is still in the pipe after the tree is gone. It does not wait
// for the end of the file: somebody outside the tree may have been handed the other side.
func (s *spool) drain(from *os.File, buf []byte) {
	raw, err := from.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		for left := drainBytesMax; left > 0; {
			n, err := syscall.Read(int(fd), buf)
			if err == syscall.EINTR {
				continue
			}
			if n <= 0 || err != nil {
				return
			}
			left -= n
			s.mu.Lock()
			fits := min(int64(n), max(0, s.max-s.written))
			s.cut += int64(n) - fits
			s.mu.Unlock()
			s.take(buf[:fits])
		}
	})
}

// waitRoom waits while the spool is full and says how many of want bytes fit; 0 when it is over.
func (s *spool) waitRoom(want int) int {
	s.mu.Lock()
	left := s.max - s.written
	s.full = left <= 0
	s.mu.Unlock()
	if left > 0 {
		return int(min(left, int64(want)))
	}
	<-s.hurry
	return 0
}

// take writes b; while the disk is full it waits, and so does the agent.
func (s *spool) take(b []byte) {
	if len(b) == 0 {
		return
	}
	s.mu.Lock()
	s.lastAt = time.Now()
	at := s.written
	s.mu.Unlock()
	var over <-chan time.Time
	for len(b) > 0 {
		n, err := s.file.WriteAt(b, at)
		at, b = at+int64(n), b[n:]
		s.mu.Lock()
		s.written, s.failed = at, ""
		if err != nil {
			s.failed = fmt.Sprintf("the spool cannot be written: %v; make room, the agent waits", errors.Unwrap(err))
		}
		s.full = s.written >= s.max
		s.mu.Unlock()
		wake(s.dirty)
		if err == nil {
			continue
		}
		select {
		case <-time.After(diskPause):
		case <-s.hurry:
			if over == nil {
				over = time.After(diskPatience)
			}
			select {
			case <-time.After(diskPause):
			case <-over:
				s.mu.Lock()
				s.cut += int64(len(b))
				s.mu.Unlock()
				return
			}
		}
	}
}

func (s *spool) sync() {
	defer close(s.flushed)
	for {
		select {
		case <-s.dirty:
			if !s.flush() {
				return
			}
		case <-s.pumped:
			s.flush()
			return
		}
		select {
		case <-time.After(syncEvery):
		case <-s.hurry:
		}
	}
}

// flush makes what was written readable. After a failed sync nothing further is
// promised: the kernel may have dropped the bytes, and a second try would lie.
func (s *spool) flush() bool {
	s.mu.Lock()
	written, synced := s.written, s.synced
	s.mu.Unlock()
	if written == synced {
		return true
	}
	err := dataSync(s.file)
	s.mu.Lock()
	if err != nil {
		s.failed = fmt.Sprintf("the spool cannot be synced: %v; nothing after byte %d is safe, end this session", err, synced)
		s.max = 0 // reading stops
		s.mu.Unlock()
		return false
	}
	s.synced = written
	s.mu.Unlock()
	s.publish(written)
	return true
}

// finish takes what is left, syncs it, and returns how many bytes are readable and how many were lost.
func (s *spool) finish(from *os.File) (size, cut int64) {
	close(s.hurry)
	_ = from.SetReadDeadline(time.Unix(1, 0)) // the pump stops waiting and drains
	<-s.pumped
	<-s.flushed
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced, s.cut + s.written - s.synced
}

// safe is how many bytes are on disk for sure.
func (s *spool) safe() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

func (s *spool) fill(st *Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.SpoolBytes, st.SpoolFull, st.SpoolError, st.LastByteAt = s.synced, s.full, s.failed, s.lastAt
}

// wake puts a token into a channel of one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
