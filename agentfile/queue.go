package agentfile

import (
	"sync"
	"time"
)

// queue holds observations until the consumer receives them. Reading stops at waitingSeenMax, and a Write
// adds at most two, so the queue needs no limit of its own.
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

func (q *queue) pop() (waiting, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return waiting{}, false
	}
	item := q.items[0]
	q.items[0] = waiting{} // lets the bytes be collected
	q.items = q.items[1:]
	return item, true
}

func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) >= waitingSeenMax
}

// handOut sends observations to the consumer.
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

// report queues an observation, with its number.
func (w *Files) report(f *stateFile, s Seen, now time.Time) Seen {
	q := &w.queue
	q.mu.Lock()
	q.seq++
	s.Name, s.At, s.Seq = f.name, now.UTC(), q.seq
	q.items = append(q.items, waiting{s, f})
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return s
}
