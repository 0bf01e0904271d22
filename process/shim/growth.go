package shim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	growthEvery  = time.Second      // the daemon asks so often while little disk is free
	growthRecent = 30 * time.Second // what has changed in that time is the first figure
)

// growth measures how fast a session fills the disk of its own folder. It begins when the daemon asks for the first time, which it does
// only while little disk is free.
type growth struct {
	begin sync.Once
	asked chan struct{} // capacity 1

	mu   sync.Mutex
	rate int64 // bytes a second
}

// Growth is by how many bytes a second a session has filled the disk of its folder, at the last look. It asks for the next look and does
// not wait for it, so the first answer is 0.
func (h *Handle) Growth(ctx context.Context) (int64, error) {
	a, err := h.ask(ctx, order{Op: "growth"})
	if err != nil {
		return 0, fmt.Errorf("ask for the growth: %w", err)
	}
	return a.Size, nil
}

// now returns the last rate, and has another look taken.
func (g *growth) now(k *keeper) int64 {
	g.begin.Do(func() { go g.watch(k) })
	wake(g.asked)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rate
}

// watch looks when it is asked, and takes no larger part of the time for it than watchDisk does. Without a disk that has become fuller,
// it walks through no folder. The session's output counts, too. Sessions may share folders, so none has grown by more than its own
// processes have written.
func (g *growth) watch(k *keeper) {
	stop := func() bool { return closed(k.alone) }
	d := newDisk(slices.DeleteFunc(slices.Clone(k.guard.disk.folders), func(dir string) bool { return !sameDisk(dir, k.folder) }))
	last := later(k.record.StartedAt, time.Now().Add(-growthRecent))
	d.begin(last, stop)
	before, wroteBefore := k.guard.deleted()+k.spool.safe(), int64(0)
	for {
		grown, now := d.walk(stop)+k.guard.deleted()+k.spool.safe(), time.Now()
		more := grown - before
		wrote, known := k.guard.written()
		if known {
			more = min(more, wrote-wroteBefore)
		}
		g.set(int64(float64(max(0, more)) / now.Sub(last).Seconds()))
		before, wroteBefore, last = grown, wrote, now
		for fuller := false; !fuller; {
			select {
			case <-k.alone:
				return
			case <-g.asked:
			}
			if time.Since(last) < max(growthEvery, diskShare*d.took) {
				continue
			}
			filled := d.filled()
			if fuller = filled > d.used; !fuller {
				g.set(0)
				d.used, last = filled, time.Now()
			}
		}
	}
}

func (g *growth) set(rate int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rate = rate
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sameDisk reports whether two folders are in the same file system.
func sameDisk(a, b string) bool {
	var one, other unix.Statfs_t
	return unix.Statfs(a, &one) == nil && unix.Statfs(b, &other) == nil && one.Fsid == other.Fsid
}
