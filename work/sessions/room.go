package sessions

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/retry"
)

const (
	startMemory = 512e6           // what an agent's program takes until its first answer
	startDisk   = 256e6           // for its output, and for the journal
	startShare  = 16              // of a small memory or a small disk, one part in so many is enough
	lowShare    = 2               // of the disk that a start needs: below that part of it, a session that runs is ended
	roomEvery   = 2 * time.Second // a program has its memory by then, so the next session sees what is left
)

// Room looks at what this machine has left for a new session whose files are below a folder.
func Room(dir string) func() string {
	return func() string {
		free, all, known := freeMemory()
		if least := min(startMemory, all/startShare); known && free < least {
			return fmt.Sprintf("waits for memory: %s are free, and a session needs %s", file.Size(free), file.Size(least))
		}
		if free, all, err := file.DiskFree(dir); err == nil {
			return awaitedDisk(dir, free, all)
		}
		return ""
	}
}

// awaitedDisk is what a start waits for where a disk of so many bytes has so many free; empty: it has enough.
func awaitedDisk(dir string, free, all uint64) string {
	least := min(startDisk, all/startShare)
	if free >= least {
		return ""
	}
	return fmt.Sprintf("waits for disk: %s are free where %s is, and a session needs %s", file.Size(int64(free)), dir, //nolint:gosec // a disk's size
		file.Size(int64(least))) //nolint:gosec // less than that
}

// AwaitRoom waits until this machine has room for a session. Of those that wait, one starts each time. The error is ErrNotAsked if the
// session is not wanted any longer.
func (c *Controller) AwaitRoom(ctx context.Context, m *Slot, s team.Session) error {
	if c.opts.Room == nil {
		return nil
	}
	defer c.waitsFor(s.ID, "")
	for waited := false; ; waited = true {
		why := c.opts.Room()
		if why == "" && (!waited || c.mayFollow(time.Now())) {
			return nil
		}
		if why != "" && c.waitsFor(s.ID, why) {
			c.log.Warn("a session waits for its machine", "session", s.ID, "why", why)
		}
		if !retry.Rest(ctx, roomEvery) {
			return ErrNotAsked
		}
		wanted := false
		if err := c.loop.View(ctx, func(t *team.Team) { wanted, _ = m.MayStart(t, s.ID, c.loop.Now()) }); err != nil || !wanted {
			return ErrNotAsked
		}
	}
}

// mayFollow reports whether the last session that had waited has its memory by now.
func (c *Controller) mayFollow(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.followed) < roomEvery {
		return false
	}
	c.followed = now
	return true
}

// waitsFor notes why a session does not start yet; empty: nothing. It reports whether that is new.
func (c *Controller) waitsFor(session, why string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.waits[session]
	if delete(c.waits, session); why != "" {
		c.waits[session] = why
	}
	return before == ""
}

// Waits is why a session does not start yet; empty: it does not wait for its machine.
func (c *Controller) Waits(session string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waits[session]
}
