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
	// feedChangesMax is how far a watcher may fall behind before its stream is closed; it then resumes
	// from the journal. The memory is shared by all watchers.
	feedChangesMax = 4096
	feedBytesMax   = 16 << 20 // the same limit in bytes: one change may have 1 MiB

	// gatherFor is how long a change waits for others, so that a burst is one write for each watcher and
	// millisecond. The first change after a pause is sent at once.
	gatherFor = time.Millisecond
)

// frame is one change in the form in which it is sent.
type frame struct {
	seq    uint64
	entity string
	wire   []byte
}

func frameOf(c journal.Change) frame {
	return frame{seq: c.Seq, entity: c.Entity, wire: message("change", fmt.Sprint(c.Seq), api.ChangeOf(c))}
}

// feed keeps the newest changes, each encoded once for all watchers. Watchers read at their own
// pace; the feed never waits for them.
type feed struct {
	ended chan struct{} // closed when run has ended

	mu      sync.Mutex
	frames  []frame // all changes after base, in order
	base    uint64
	bytes   int
	bell    chan struct{} // closed when there are new frames
	ringing bool
	rang    time.Time // when bell was last closed
	over    error     // why the feed has ended

	parking sync.Mutex // taken before mu
	parked  []parked   // in no order; a watcher knows its place
	closed  bool       // the feed has ended: nothing is parked any longer
	wrote   uint64     // the last sequence that parked watchers have
}

// newFeed returns an empty feed that begins after a sequence.
func newFeed(after uint64) *feed {
	return &feed{base: after, wrote: after, bell: make(chan struct{}), ended: make(chan struct{})}
}

// errLagged ends the stream of a watcher that reads too slowly.
var errLagged = fmt.Errorf("this watcher fell more than %d changes behind; reconnect with the last sequence that it has", feedChangesMax)

// run takes changes until ctx ends or the source ends.
func (f *feed) run(ctx context.Context, changes func(context.Context, uint64, string) iter.Seq2[journal.Change, error]) {
	defer close(f.ended)
	var writing sync.WaitGroup
	writing.Go(f.write)
	defer writing.Wait()
	last := f.base
	for {
		err := loop.ErrClosed // the source ended without an error, or ctx ended
		for c, fault := range changes(ctx, last, "") {
			if fault != nil {
				err = fault
				break
			}
			f.add(frameOf(c))
			last = c.Seq
		}
		if errors.Is(err, loop.ErrLagged) && ctx.Err() == nil {
			continue // the feed itself was too slow; the missed changes are in the journal
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
	f.frames = append(f.frames, fr) // appends after the frames that readers have; those never change
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

// ringNow wakes the readers. mu must be held.
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

// failed reports whether the feed ended for a reason that may not recur.
func (f *feed) failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over != nil && !errors.Is(f.over, loop.ErrClosed)
}

// since returns the changes after a sequence, and a channel that is closed when there are more. The
// error is errLagged if some of them are no longer kept. A feed that has ended returns its reason
// after the last change.
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

// newest returns the last sequence that the feed has.
func (f *feed) newest() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.frames); n > 0 {
		return f.frames[n-1].seq
	}
	return f.base
}

// holds reports whether the feed has every change after a sequence.
func (f *feed) holds(seq uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return seq >= f.base
}
