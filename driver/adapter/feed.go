package adapter

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// fedBytesMax is the size of the queue for a program's input: several prompts of maximum size. A
// program that leaves so much unread does not read at all.
const fedBytesMax = 32 << 20

// errInputClosed is returned for writes after the program's input was closed.
var errInputClosed = errors.New("the program's input is closed")

// feed writes queued data to a program's standard input. Writing directly could deadlock with a
// program that does not read while it writes.
type feed struct {
	to io.WriteCloser

	mu      sync.Mutex
	queue   [][]byte
	size    int
	closed  bool // no more data is accepted
	failed  error
	changed chan struct{} // capacity 1
	gone    chan struct{} // closed when the program has ended
	once    sync.Once
}

func newFeed(to io.WriteCloser) *feed {
	return &feed{to: to, changed: make(chan struct{}, 1), gone: make(chan struct{})}
}

func (f *feed) add(b []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.failed != nil:
		return fmt.Errorf("write to the program: %w", f.failed)
	case f.closed:
		return errInputClosed
	case f.size+len(b) > fedBytesMax:
		return fmt.Errorf("the program does not read its input: %d bytes are queued", f.size)
	}
	f.queue = append(f.queue, b)
	f.size += len(b)
	f.wake()
	return nil
}

// close ends the input after the queued data.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.wake()
}

// stop closes the input immediately.
func (f *feed) stop() {
	f.once.Do(func() {
		close(f.gone)
		f.to.Close() // unblocks a pending write
	})
}

func (f *feed) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// run writes until the input is closed and the queue is empty, writing fails, or stop is called.
func (f *feed) run() {
	defer f.to.Close()
	for {
		b, last := f.next()
		if b != nil {
			_, err := f.to.Write(b)
			f.written(len(b), err)
			if err != nil {
				return
			}
			continue
		}
		if last {
			return
		}
		select {
		case <-f.changed:
		case <-f.gone:
			return
		}
	}
}

func (f *feed) next() (b []byte, last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		return nil, f.closed
	}
	b, f.queue = f.queue[0], f.queue[1:]
	return b, false
}

func (f *feed) written(n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size -= n
	if err != nil {
		f.failed, f.queue = err, nil
	}
}
