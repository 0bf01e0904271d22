// Package spool keeps the output of one session in memory, for hosts of tests.
//
// A reader begins at any offset, gets what is there, and then waits for more, as the output of a shim does. It starts no
// goroutine, so it works inside a synctest bubble.
//
// The one promise: a reader gets every byte from its offset on, and io.EOF only after End.
package spool

import (
	"context"
	"io"
	"io/fs"
	"sync"
)

// Spool is the output of one session. The zero value is empty and open.
type Spool struct {
	mu    sync.Mutex
	bytes []byte
	ended bool
	grew  chan struct{} // closed and replaced when there is more output, and at the end; nil: no reader waits
}

// Write appends output.
func (s *Spool) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes = append(s.bytes, b...)
	s.ring()
	return len(b), nil
}

// End says that no more output comes. It may be called twice.
func (s *Spool) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.ring()
}

// Len is the number of bytes.
func (s *Spool) Len() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.bytes))
}

// ring wakes the readers that wait. The caller holds the lock.
func (s *Spool) ring() {
	if s.grew != nil {
		close(s.grew)
		s.grew = nil
	}
}

// Reader reads from an offset on and waits for more until the end, until Close, or until ctx ends.
func (s *Spool) Reader(ctx context.Context, offset int64) io.ReadCloser {
	return &reader{ctx: ctx, of: s, at: offset, closed: make(chan struct{})}
}

type reader struct {
	ctx    context.Context
	of     *Spool
	at     int64
	once   sync.Once
	closed chan struct{}
}

// take copies what is there; if there is nothing, it returns the channel to wait for.
func (r *reader) take(b []byte) (n int, ended bool, grew <-chan struct{}) {
	s := r.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.at < int64(len(s.bytes)) {
		n = copy(b, s.bytes[r.at:])
		r.at += int64(n)
	}
	if s.grew == nil {
		s.grew = make(chan struct{})
	}
	return n, s.ended, s.grew
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	for {
		n, ended, grew := r.take(b)
		switch {
		case n > 0:
			return n, nil
		case ended:
			return 0, io.EOF
		}
		select {
		case <-grew:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		case <-r.closed:
			return 0, fs.ErrClosed
		}
	}
}

// Close ends a Read that waits.
func (r *reader) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}
