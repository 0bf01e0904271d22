package agentfile

import (
	"sync"
	"time"
)

// queue is what waits to be handed out. It has no limit of its own: the looking stops at
// waitingSeenMax, and a Write adds two at most.
type queue struct {
	mu    sync.Mutex
	seq   uint64
	items []waiting
	wake  chan struct{}
}

type waiting struct {
	seen Seen
	file *stateFile
}

func (q *queue) number() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seq++
	return q.seq
}

func (q *queue) push(f *stateFile, s Seen) Seen {
	q.mu.Lock()
	q.seq++
	s.Seq = q.seq
	q.items = append(q.items, waiting{s, f})
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return s
}

func (q *queue) pop() (waiting, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return waiting{}, false
	}
	item := q.items[0]
	q.items[0] = waiting{} // or the bytes stay for as long as the array does
	q.items = q.items[1:]
	return item, true
}

func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) >= waitingSeenMax
}

// handOut feeds the consumer at his own pace.
func (w *Files) handOut() {
	for {
		item, ok := w.queue.pop()
		if !ok {
			select {
			case <-w.queue.wake:
				continue
			case <-w.done:
				return
			}
		}
		select {
		case w.seen <- item.seen:
		case <-w.done:
			return
		}
	}
}

func (w *Files) report(f *stateFile, s Seen, now time.Time) Seen {
	s.Name, s.At = f.name, now.UTC()
	return w.queue.push(f, s)
}
