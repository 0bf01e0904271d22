package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"testing"
	"testing/synctest"
)

// spool keeps the output of one session in memory. A reader begins at any offset, gets what is there, and then waits for
// more, as with the output of a shim. It starts no goroutine, so it works inside a synctest bubble. The zero value is
// empty and open.
type spool struct {
	mu    sync.Mutex
	bytes []byte
	ended bool
	grew  chan struct{} // closed and replaced when there is more output, and at the end; nil: no reader waits
}

// Write appends output.
func (s *spool) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes = append(s.bytes, b...)
	s.ring()
	return len(b), nil
}

// End says that no more output comes. It may be called twice.
func (s *spool) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.ring()
}

// Len is the number of bytes.
func (s *spool) Len() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.bytes))
}

// ring wakes the readers that wait. The caller holds the lock.
func (s *spool) ring() {
	if s.grew != nil {
		close(s.grew)
		s.grew = nil
	}
}

// Reader reads from an offset on and waits for more until the end, until Close, or until ctx ends.
func (s *spool) Reader(ctx context.Context, offset int64) io.ReadCloser {
	return &spoolReader{ctx: ctx, of: s, at: offset, closed: make(chan struct{})}
}

type spoolReader struct {
	ctx    context.Context
	of     *spool
	at     int64
	once   sync.Once
	closed chan struct{}
}

// take copies what is there; if there is nothing, it returns the channel to wait for.
func (r *spoolReader) take(b []byte) (n int, ended bool, grew <-chan struct{}) {
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
func (r *spoolReader) Read(b []byte) (int, error) {
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
func (r *spoolReader) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// A reader gets what is there, waits for more, and ends with the output, or when it is closed.
func TestSpool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s spool
		if _, err := s.Write([]byte("hello ")); err != nil {
			t.Fatal(err)
		}
		text := make(chan string, 1)
		go func() {
			all, err := io.ReadAll(s.Reader(t.Context(), 3))
			if err != nil {
				t.Error(err)
			}
			text <- string(all)
		}()
		closed, ended := s.Reader(t.Context(), 99), make(chan error, 1)
		go func() {
			_, err := closed.Read(make([]byte, 8))
			ended <- err
		}()
		synctest.Wait()
		closed.Close()
		if err := <-ended; !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
		_, _ = s.Write([]byte("world"))
		synctest.Wait()
		select {
		case got := <-text:
			t.Fatalf("it ended before the output: %q", got)
		default:
		}
		s.End()
		s.End()
		if got := <-text; got != "lo world" || s.Len() != 11 {
			t.Errorf("%q, %d", got, s.Len())
		}
	})
}
