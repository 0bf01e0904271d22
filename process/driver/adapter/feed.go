package adapter

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/fairlead-dev/fairlead/process/driver/speech"
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

// promptsMax is how many prompts may be queued during an answer; further ones stay in the pipe.
const promptsMax = 1000

// PromptQueue queues the prompts for an agent and counts how much of its input has been answered.
// Its zero value is ready to use.
type PromptQueue struct {
	waiting []waiting
	images  []string // of the newest prompt that was removed
	taken   int64    // bytes of all orders received
	closed  bool
}

type waiting struct {
	text   string
	images []string
	before int64 // bytes of input before it
}

// Take adds an order. A start or a prompt is queued; of other orders only the length is counted. ok
// is false if the channel of orders is closed.
func (t *PromptQueue) Take(o speech.Order, ok bool) {
	if !ok {
		t.closed = true
		return
	}
	if o.Type == speech.OrderPrompt || o.Type == speech.OrderStart && o.Text != "" {
		t.waiting = append(t.waiting, waiting{text: o.Text, images: o.Images, before: t.taken})
	}
	t.taken = max(t.taken, o.End)
}

// Next removes and returns the oldest queued prompt.
func (t *PromptQueue) Next() (text string, ok bool) {
	if len(t.waiting) == 0 {
		return "", false
	}
	text, t.images, t.waiting = t.waiting[0].text, t.waiting[0].images, t.waiting[1:]
	return text, true
}

// Images returns the paths of the images of the prompt that Next returned last.
func (t *PromptQueue) Images() []string { return t.images }

// Answered returns how many bytes of input are answered if no answer is in progress: the value for a
// listening event.
func (t *PromptQueue) Answered() int64 {
	if len(t.waiting) > 0 {
		return t.waiting[0].before
	}
	return t.taken
}

// Full reports whether the queue is full. Do not receive more orders then.
func (t *PromptQueue) Full() bool { return len(t.waiting) >= promptsMax }

// Closed reports whether no more orders will come.
func (t *PromptQueue) Closed() bool { return t.closed }

// Over reports whether the queue is empty and no more orders will come.
func (t *PromptQueue) Over() bool { return t.closed && len(t.waiting) == 0 }
