package adapter

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// fedBytesMax is how much waits to be read by a program: many prompts at their limit. Who reads
// nothing while that is written does not read at all.
const fedBytesMax = 32 << 20

// errInputClosed says that a program is told nothing any more.
var errInputClosed = errors.New("the program's input is closed")

// feed writes to a program's standard input what was queued: a program that writes, and reads only
// then, must not wait for one who writes, and reads only then.
type feed struct {
	to io.WriteCloser

	mu      sync.Mutex
	queue   [][]byte
	size    int
	closed  bool // nothing more is added
	failed  error
	changed chan struct{} // has room for one
	gone    chan struct{} // closed: the program has ended
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
		return fmt.Errorf("the program reads nothing: %d bytes wait for it", f.size)
	}
	f.queue = append(f.queue, b)
	f.size += len(b)
	f.wake()
	return nil
}

// close ends the input after what is queued.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.wake()
}

// stop ends it at once.
func (f *feed) stop() {
	f.once.Do(func() {
		close(f.gone)
		f.to.Close() // wakes a write that is under way
	})
}

func (f *feed) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// run writes until the input is closed and all is written, or writing fails, or stop.
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
