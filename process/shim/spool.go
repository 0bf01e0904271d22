package shim

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// spool writes the agent's output to a file, and reports which bytes are safe.
//
// There are two goroutines: pump reads and writes, sync syncs to disk. During a sync the next bytes
// accumulate, so an agent with much output shares syncs, and one with little does not wait.
type spool struct {
	file    *os.File
	publish func(size int64) // called after a sync, never concurrently
	dirty   chan struct{}    // capacity 1: there is something to sync
	hurry   chan struct{}    // closed when the agent has ended: stop accumulating
	pumped  chan struct{}    // closed when the pump is done
	flushed chan struct{}    // closed when the sync is done
	reached chan struct{}    // closed when it has its most bytes

	mu      sync.Mutex
	max     int64
	written int64
	synced  int64
	cut     int64 // bytes that were dropped
	full    bool
	failed  string // why the disk accepts nothing
	lastAt  time.Time
}

const (
	drainBytesMax = 4 << 20                // more than any pipe holds: a process outside of the tree keeps writing
	diskPause     = 500 * time.Millisecond // a full disk is asked again this often
	diskPatience  = 2 * time.Second        // and this long after the agent has ended
)

func newSpool(file *os.File, max int64, publish func(int64)) *spool {
	return &spool{
		file: file, max: max, publish: publish,
		dirty: make(chan struct{}, 1), hurry: make(chan struct{}),
		pumped: make(chan struct{}), flushed: make(chan struct{}), reached: make(chan struct{}),
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

// drain reads what is still in the pipe after the tree has ended. It does not wait for the end of
// the file: a process outside of the tree may hold the other end.
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

// waitRoom waits while the spool is full and returns how many of want bytes fit; 0 at the end.
func (s *spool) waitRoom(want int) int {
	s.mu.Lock()
	left, most := s.max-s.written, s.max
	s.full = left <= 0
	s.mu.Unlock()
	if left > 0 {
		return int(min(left, int64(want)))
	}
	if most > 0 { // else the disk has failed
		close(s.reached)
	}
	<-s.hurry
	return 0
}

// take writes b; while the disk is full, it waits, and so does the agent.
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

// flush makes written bytes readable. After a failed sync no further bytes are announced: the kernel
// may have dropped them, and a second sync could succeed wrongly.
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

// finish reads the rest, syncs it, and returns how many bytes are readable and how many were lost.
func (s *spool) finish(from *os.File) (size, cut int64) {
	close(s.hurry)
	_ = from.SetReadDeadline(time.Unix(1, 0)) // the pump stops waiting and drains
	<-s.pumped
	<-s.flushed
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced, s.cut + s.written - s.synced
}

// safe returns how many bytes are synced to disk.
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

// wake puts a token into a channel of capacity 1.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
