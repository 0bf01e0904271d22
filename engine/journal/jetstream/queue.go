package jetstream

import (
	"bytes"
	"crypto/rand"
	"runtime"
	"slices"
	"sync"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

const gatherLooks = 16 // some microseconds, where a message takes milliseconds

// request is one call of Append.
type request struct {
	batch  []journal.Change // a copy: its caller may have left
	expect []journal.Expect
	bytes  int
	done   chan answer // has room for the answer
}

type answer struct {
	last uint64
	err  error
}

func newRequest(batch []journal.Change, expect []journal.Expect) *request {
	r := &request{batch: slices.Clone(batch), expect: slices.Clone(expect), done: make(chan answer, 1)}
	for i := range r.batch {
		r.batch[i].Data = bytes.Clone(r.batch[i].Data)
		r.bytes += len(r.batch[i].Data)
	}
	return r
}

func answerAll(requests []*request, err error) {
	for _, r := range requests {
		r.done <- answer{err: err}
	}
}

func newID() (n id) {
	_, _ = rand.Read(n[:]) // it never fails
	return n
}

// queue holds the requests that no message has yet. Each is waited for by a caller, so it is not bounded here.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	closed  bool
	more    chan struct{} // has room for one
}

func (q *queue) put(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.waiting = append(q.waiting, r)
	q.ring()
	return true
}

func (q *queue) ring() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// putBack puts requests before all others.
func (q *queue) putBack(requests []*request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(requests) > 0 {
		q.waiting = slices.Insert(q.waiting, 0, requests...)
		q.ring()
	}
}

// gather lets the callers that were just answered come again, as many as they were. They run already, so it waits for no time.
func (q *queue) gather(callers int) {
	for n := 0; n < gatherLooks; n++ {
		q.mu.Lock()
		have := len(q.waiting)
		q.mu.Unlock()
		if have >= callers {
			return
		}
		runtime.Gosched()
	}
}

// take gives as many requests as one message holds, and one at least.
func (q *queue) take(bytesMax int) []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, changes, size := 0, 0, 0
	for _, r := range q.waiting {
		changes, size = changes+len(r.batch), size+r.bytes
		if n > 0 && (changes > journal.BatchChangesMax || size > bytesMax) {
			break
		}
		n++
	}
	taken := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return taken
}

// withdraw takes a request back, if it is in no message yet.
func (q *queue) withdraw(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.waiting, r)
	if at < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, at, at+1)
	return true
}

// close answers all that wait, and whatever comes later.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	answerAll(q.waiting, journal.ErrClosed)
	q.waiting = nil
}
