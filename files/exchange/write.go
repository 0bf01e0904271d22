package exchange

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"golang.org/x/sys/unix"
)

// Parts of names beside the file: .NAME.new-TAIL and .NAME.swap-TAIL. A new file was not put in place yet; one to swap
// holds either a new file or the replaced one. The lock file is never removed, because that would allow two locks.
const (
	newMark    = ".new-"
	swapMark   = ".swap-"
	lockEnding = ".lock"
)

// unusedTail makes a name unique. It is no secret, and the file system refuses a clash.
func unusedTail() string { return fmt.Sprintf("%016x", rand.Uint64()) } //nolint:gosec // as above

// AnyLook is for content that depends on nothing in the current file.
const AnyLook = math.MaxUint64

// Write replaces the file's content atomically and durably. It replaces only content that the caller
// confirmed with Confirm, or that isOurs (may be nil) knows by its sum. Otherwise the error is a *Changed
// (ErrChanged) and the file is unchanged; it is also unchanged after any error that does not say otherwise.
// newest is the last observation that content depends on: newer content is not replaced, except our own;
// AnyLook switches that off. Write waits for a write in progress until ctx ends.
//
// A lock on .NAME.lock orders the writes of Fairlead's own processes. Against other programs, the
// new file is exchanged for the old one in one step. What the old file held by then, or receives within a
// second, is delivered with FromSwap; then the old file is removed.
func (w *Files[T]) Write(ctx context.Context, name string, content []byte, newest uint64, isOurs func(file.Sum) bool) error {
	o, err := w.file(name)
	var state T
	if err == nil && !w.content.Projection {
		state, err = w.content.parse(content) // content that cannot be read back is not written; also checks the size
	}
	if err == nil {
		err = w.write(ctx, o, content, state, newest, isOurs)
	}
	if err == nil || errors.Is(err, ErrChanged) {
		return err
	}
	return fmt.Errorf("write %s of %s: %w", w.content.Name, name, err)
}

func (w *Files[T]) write(ctx context.Context, o *watched[T], content []byte, state T, newest uint64, isOurs func(file.Sum) bool) error {
	if w.content.Ending != "" {
		if err := os.MkdirAll(o.in.path, FolderMode); err != nil {
			return o.in.cannotWrite(err)
		}
	}
	unlock, err := w.lock(ctx, o.in)
	if err != nil {
		return err
	}
	defer unlock()
	for range writeRoundsMax {
		// The new file is written and synced before the last look, so that only microseconds pass between
		// that look and the exchange.
		p, err := w.prepare(o, content, state)
		if err != nil {
			return o.in.cannotWrite(err)
		}
		placed, err := w.placeOverKnown(ctx, o, p, newest, isOurs)
		if placed && err == nil && !w.content.Projection {
			// f.mu is free: a disk may need seconds, and what another program writes meanwhile has to be seen write by write.
			if err = w.sync(p.dir); err != nil {
				err = fmt.Errorf("it is written, but may be lost with the power: sync the folder %s: %w", o.in.path, err)
			}
		}
		p.drop(!placed)
		if placed || err != nil {
			return err
		}
	}
	return errors.New("the file comes and goes faster than it can be written; stop the program that does it")
}

// placeOverKnown puts p in place of content that the caller knows. placed is false without an error if that
// content disappeared before the exchange.
func (w *Files[T]) placeOverKnown(
	ctx context.Context, o *watched[T], p *prepared[T], newest uint64, isOurs func(file.Sum) bool,
) (placed bool, err error) {
	o.in.mu.Lock()
	defer o.in.mu.Unlock()
	o = w.oneOf(o.in, o.base) // the entry may have been dropped while the lock was waited for
	seen, err := w.settle(ctx, o)
	if err != nil {
		return false, err
	}
	ours := seen.Own || seen.Kind == KindWritten && isOurs != nil && isOurs(seen.Sum)
	stale := !seen.Own && seen.Seq > newest
	if stale || !ours && !o.confirms.upTo(seen.Seq) {
		return false, &Changed[T]{seen, w.content.Name}
	}
	return w.place(o, seen, p)
}

// settle looks until the current content is certain. The caller holds f.mu, which is released while waiting.
func (w *Files[T]) settle(ctx context.Context, o *watched[T]) (Seen[T], error) {
	f := o.in
	began := time.Now()
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for now := began; ; now = time.Now() {
		if w.isClosed() || f.removed {
			return Seen[T]{}, ErrClosed
		}
		if w.look(o, now) {
			if o.now.Kind == KindUnreadable && !w.content.Projection {
				return o.now, errors.New(o.now.Fault)
			}
			return o.now, nil
		}
		if now.Sub(began) > underWayMax {
			return Seen[T]{}, fmt.Errorf("it was rewritten for %v without one whole content; stop the program that does it", underWayMax)
		}
		f.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
		case <-w.done:
		}
		f.mu.Lock()
		if err := ctx.Err(); err != nil {
			return Seen[T]{}, fmt.Errorf("waiting for a write under way: %w", err)
		}
	}
}

// lock orders the writers of one file: first those of this process, then those of other Fairlead processes.
func (w *Files[T]) lock(ctx context.Context, f *folder[T]) (unlock func(), err error) {
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another write of this process: %w", ctx.Err())
	}
	if w.content.Projection {
		return func() { <-f.turn }, nil
	}
	side, err := w.lockSide(ctx, f)
	if err != nil {
		<-f.turn
		return nil, err
	}
	return func() {
		_ = side.Close() // closing releases the lock, whatever it returns
		<-f.turn
	}, nil
}

// lockSide waits for the lock file beside the content, which is made if it is missing. A folder that is a link is not followed.
func (w *Files[T]) lockSide(ctx context.Context, f *folder[T]) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, foreignLockWait)
	defer cancel()
	dir, _, err := file.OpenFolder(f.path)
	if err != nil {
		return nil, f.cannotWrite(err)
	}
	defer file.CloseFolder(dir)
	name := "." + w.content.Name + lockEnding
	for {
		side, err := openLock(dir, name)
		switch {
		case errors.Is(err, unix.ELOOP):
			return nil, fmt.Errorf("%s is a symbolic link and is not followed; remove it: %w", name, err)
		case err != nil:
			return nil, f.cannotWrite(err)
		}
		err = tryLock(ctx, side)
		switch {
		case err == nil && isLock(dir, name, side):
			return side, nil
		case err == nil: // the lock file was removed meanwhile: lock the new one
			_ = side.Close()
		case ctx.Err() != nil:
			_ = side.Close()
			return nil, fmt.Errorf("%s is held by another Fairlead: %w", name, ctx.Err())
		default:
			_ = side.Close()
			return nil, f.cannotWrite(err)
		}
	}
}

func openLock(dir int, name string) (*os.File, error) {
	fd := -1
	err := file.Uninterrupted(func() (err error) {
		fd, err = unix.Openat(dir, name, unix.O_CREAT|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open lock", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// tryLock asks for the lock until it has it, or the context ends: a lock that is waited for cannot be interrupted.
func tryLock(ctx context.Context, side *os.File) error {
	for {
		err := file.Uninterrupted(func() error { return unix.Flock(int(side.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
		if !errors.Is(err, unix.EWOULDBLOCK) || !retry.Rest(ctx, lockRetryEvery) {
			return err
		}
	}
}

// isLock reports whether the locked file is still the one that others would lock.
func isLock(dir int, name string, side *os.File) bool {
	var held, there unix.Stat_t
	return unix.Fstat(int(side.Fd()), &held) == nil && unix.Fstatat(dir, name, &there, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		held.Dev == there.Dev && held.Ino == there.Ino
}

// cannotWrite adds advice to an error of creating a file.
func (f *folder[T]) cannotWrite(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return fmt.Errorf("the folder %s is not writable; make it writable for this user, or give the agent another workspace: %w", f.path,
			err)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("no space left for %s; free some, the file is as it was: %w", f.path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the folder %s is gone; make it again: %w", f.path, err)
	}
	return err
}

// prepared is a complete new file beside the current one.
type prepared[T any] struct {
	dir     int // an open folder
	id      file.FolderID
	name    string
	is      file.Identity
	content []byte
	state   T // what content says
}

// drop closes the folder, and removes the file if it was not put in place.
func (p *prepared[T]) drop(unused bool) {
	if unused {
		file.Remove(p.dir, p.name)
	}
	file.CloseFolder(p.dir)
}

// prepare writes content into a new file with the mode and owner of the current one, so that the
// same programs can write it.
func (w *Files[T]) prepare(o *watched[T], content []byte, state T) (p *prepared[T], err error) {
	dir, id, err := file.OpenFolder(o.in.path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.CloseFolder(dir)
		}
	}()
	tail := unusedTail()
	name := "." + o.base + newMark + tail
	handle, err := file.CreateLike(dir, name, o.base, content, !w.content.Projection)
	if err != nil {
		return nil, err
	}
	made, err := file.Stat(handle)
	_ = handle.Close()
	if err != nil {
		return nil, err
	}
	p = &prepared[T]{dir: dir, id: id, name: "." + o.base + swapMark + tail, is: made.ID, content: content, state: state}
	if err = file.Uninterrupted(func() error { return unix.Renameat(dir, name, dir, p.name) }); err != nil {
		file.Remove(dir, name)
		return nil, err
	}
	return p, nil
}

// place puts p in place of seen. If that is no longer the current content, placed is false and nothing was
// done. The caller holds f.mu and the lock, and syncs the folder.
func (w *Files[T]) place(o *watched[T], seen Seen[T], p *prepared[T]) (placed bool, err error) {
	f := o.in
	if p.id != f.id {
		return false, nil // the folder was replaced
	}
	var old *swapped[T]
	if seen.Kind == KindDeleted {
		placed, err = placeNew(p.dir, p.name, o.base)
	} else {
		old, placed, err = w.swap(o, p.dir, p.name, seen)
	}
	if !placed {
		return false, err
	}
	now := time.Now()
	o.now = Seen[T]{
		Name: seen.Name, Seq: w.seq.Add(1), Kind: KindWritten, State: p.state,
		Sum: file.SumOf(p.content), At: now.UTC(), Own: true,
	}
	o.doubt = doubt{}
	known := file.Identity{} // the replaced file needs no look if it is this one
	if o.atRest(o.nowID) {
		known = o.nowID
	}
	o.nowID, o.nowRead = p.is, now
	switch {
	case old == nil:
	case w.content.Projection:
		w.keepReplaced(old, p.dir, known, seen.Sum, now)
	default:
		old.since = now
		f.swapped = append(f.swapped, old)
		_ = w.lookSwapped(old, p.dir, now) // another program may have written just before the exchange; the file stays open in any case
		w.makeRoom(f, p.dir, now)
		w.askToLook(f) // look at the replaced file for a second
	}
	return true, err
}

// placeNew puts a file in place only if there is none.
func placeNew(dir int, name, base string) (placed bool, err error) {
	err = file.RenameNew(dir, name, base)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOENT) {
		return false, nil // another program created the file first, or removed ours: look again
	}
	return err == nil, err
}

// swap exchanges the prepared file for the current one and returns the replaced one, open.
func (w *Files[T]) swap(o *watched[T], dir int, name string, seen Seen[T]) (old *swapped[T], placed bool, err error) {
	err = w.exchange(dir, name, o.base)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, false, nil
	case file.Unsupported(err):
		return w.renameOver(o, dir, name, seen)
	case err != nil:
		return nil, false, err
	}
	handle, err := file.Open(dir, name)
	if err != nil {
		// a link or folder, created since we looked; swapping back could hide yet another change
		return nil, true, fmt.Errorf("it is written; what took its place meanwhile was put aside as %s: %w", name, err)
	}
	return o.holdSwapped(handle, name, seen.Sum), true, nil
}

// renameOver is for file systems without exchange. The old file stays open and watched, but a file that
// replaced it after the last look is lost.
func (w *Files[T]) renameOver(o *watched[T], dir int, name string, seen Seen[T]) (old *swapped[T], placed bool, err error) {
	handle, err := file.Open(dir, o.base)
	if err != nil {
		return nil, false, nil //nolint:nilerr // the next look says what it is
	}
	s, err := file.ReadOpen(handle, int64(w.content.Most))
	there, statErr := file.IdentityAt(dir, o.base)
	if err != nil || statErr != nil || s.Moved || there != s.ID || file.SumOf(s.Bytes) != seen.Sum {
		_ = handle.Close()
		return nil, false, nil //nolint:nilerr // as above
	}
	if err := file.Uninterrupted(func() error { return unix.Renameat(dir, name, dir, o.base) }); err != nil {
		_ = handle.Close()
		return nil, false, err
	}
	return o.holdSwapped(handle, "", seen.Sum), true, nil
}
