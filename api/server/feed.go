package server

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sort"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/loop"
)

const (
	// feedChangesMax is how far behind a watcher may fall before its stream is closed; it
	// then resumes from the journal. It costs memory once, not once a watcher.
	feedChangesMax = 4096
	feedBytesMax   = 16 << 20 // the same, where changes are big: one may have 1 MiB

	// gatherFor is how long a change waits for those that were made with it, so that a
	// storm is one write for each watcher in so long. The first after a silence waits for nobody.
	gatherFor = time.Millisecond
)

// frame is one change as it goes over the wire.
type frame struct {
	seq    uint64
	entity string
	wire   []byte
}

func frameOf(c journal.Change) frame {
	return frame{seq: c.Seq, entity: c.Entity, wire: message("change", fmt.Sprint(c.Seq), api.ChangeOf(c))}
}

// feed keeps the newest changes, encoded once for everybody. Watchers read it at their own
// pace and are never waited for.
type feed struct {
	ended chan struct{} // closed when run is over

	mu      sync.Mutex
	frames  []frame // in order; those after base, all of them
	base    uint64
	bytes   int
	bell    chan struct{} // closed when there is more
	ringing bool
	rang    time.Time // when it was last closed
	over    error     // why nothing more comes
}

// newFeed is empty, and begins after a sequence.
func newFeed(after uint64) *feed {
	return &feed{base: after, bell: make(chan struct{}), ended: make(chan struct{})}
}

// errLagged ends the stream of a watcher who reads too slowly.
var errLagged = fmt.Errorf("this watcher fell more than %d changes behind; ask again after the last sequence that it has", feedChangesMax)

// run takes changes until ctx ends or there are no more.
func (f *feed) run(ctx context.Context, changes func(context.Context, uint64, string) iter.Seq2[journal.Change, error]) {
	defer close(f.ended)
	last := f.base
	for {
		err := loop.ErrClosed // a source that ends without a word, or ctx
		for c, fault := range changes(ctx, last, "") {
			if fault != nil {
				err = fault
				break
			}
			f.add(frameOf(c))
			last = c.Seq
		}
		if errors.Is(err, loop.ErrLagged) && ctx.Err() == nil {
			continue // we were too slow ourselves: the journal has what we missed
		}
		if ctx.Err() != nil {
			err = loop.ErrClosed
		}
		f.end(err)
		return
	}
}

func (f *feed) add(fr frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frames = append(f.frames, fr) // behind what readers hold: they never see it change
	f.bytes += len(fr.wire)
	for len(f.frames) > feedChangesMax || f.bytes > feedBytesMax && len(f.frames) > 1 {
		f.base = f.frames[0].seq
		f.bytes -= len(f.frames[0].wire)
		f.frames = f.frames[1:]
	}
	switch {
	case f.ringing:
	case time.Since(f.rang) >= gatherFor:
		f.ringNow()
	default:
		f.ringing = true
		time.AfterFunc(gatherFor, f.ring)
	}
}

func (f *feed) ring() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ringNow()
}

// ringNow must be called with mu held.
func (f *feed) ringNow() {
	f.ringing, f.rang = false, time.Now()
	if f.over == nil {
		close(f.bell)
		f.bell = make(chan struct{})
	}
}

func (f *feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over != nil {
		return
	}
	f.over = err
	close(f.bell)
}

// failed says whether it ended for a reason that need not be there the next time.
func (f *feed) failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over != nil && !errors.Is(f.over, loop.ErrClosed)
}

// since gives the changes after a sequence, and a bell that rings when there are more. The
// error is errLagged where not all of them are kept any more; what has ended says why once
// everything was taken.
func (f *feed) since(seq uint64) ([]frame, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seq < f.base {
		return nil, nil, errLagged
	}
	first := sort.Search(len(f.frames), func(i int) bool { return f.frames[i].seq > seq })
	frames := f.frames[first:len(f.frames):len(f.frames)]
	if len(frames) == 0 && f.over != nil {
		return nil, nil, f.over
	}
	return frames, f.bell, nil
}

// holds says whether every change after a sequence is here.
func (f *feed) holds(seq uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return seq >= f.base
}
