package sqlite

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// watchEvery is how often a watched journal checks whether another process has appended. A check
// costs some ten microseconds; this process's own appends wake watchers immediately.
const watchEvery = 25 * time.Millisecond

// watching runs one lookout for all watchers of a handle, and none without them.
type watching struct {
	mu    sync.Mutex
	count int
	stop  chan struct{}
	ended chan struct{}
}

// Watch reads on as changes come, also those of other processes; see [journal.Journal].
func (j *Journal) Watch(ctx context.Context, q journal.Query) iter.Seq2[journal.Change, error] {
	follow := journal.Follow(ctx, q, j.Read, &j.notifier, j.closed)
	return func(yield func(journal.Change, error) bool) {
		j.watch.enter(j.lookOut)
		defer j.watch.leave()
		follow(yield)
	}
}

func (w *watching) enter(run func(stop <-chan struct{})) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count++; w.count == 1 {
		stop, ended := make(chan struct{}), make(chan struct{})
		w.stop, w.ended = stop, ended
		go func() {
			defer close(ended)
			run(stop)
		}()
	}
}

func (w *watching) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count--; w.count == 0 {
		close(w.stop)
		<-w.ended
	}
}

// lookOut rings the notifier whenever the file has changed. It rings once at first, because another
// process may have appended before. It also rings if it cannot check the file: the watchers' own
// reads then report the error.
func (j *Journal) lookOut(stop <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	seen := int64(-1)
	for {
		select {
		case <-stop:
			return
		case <-j.closed:
			return
		case <-tick.C:
		}
		head, _, err := j.Head(context.Background())
		now := int64(head)
		if err != nil {
			now = -2
		}
		if now != seen {
			seen = now
			j.notifier.Notify()
		}
	}
}
