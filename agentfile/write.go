package agentfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// Names beside the file. The lock file is never removed, because that would allow two locks. A file with
// newPrefix was not put in place yet; one with swapPrefix holds either a new file or the replaced one.
const (
	lockName   = "." + FileName + ".lock"
	newPrefix  = "." + FileName + ".new-"
	swapPrefix = "." + FileName + ".swap-"
)

// AnyLook is for content that depends on nothing in the current file.
const AnyLook = math.MaxUint64

// Write replaces the file's content atomically and durably. It replaces only content that the caller
// confirmed with Took, or that isOurs (may be nil) knows by its sum. Otherwise the error is a *Changed
// (ErrChanged) and the file is unchanged; it is also unchanged after any error that does not say otherwise.
// newest is the last observation that content depends on: newer content is not replaced, except our own;
// AnyLook switches that off. Write waits for a write in progress until ctx ends.
//
// A lock on .agent_state.json.lock orders the writes of Fairlead's own processes. Against other programs, the
// new file is exchanged for the old one in one step. What the old file held by then, or receives within a
// second, is sent on Seen with FromSwap; then the old file is removed.
func (w *Files) Write(ctx context.Context, name string, content []byte, newest uint64, isOurs func(file.Sum) bool) error {
	f, err := w.file(name)
	var state State
	if err == nil {
		state, err = Parse(content) // content that cannot be read back is not written; also checks the size
	}
	if err == nil {
		err = w.write(ctx, f, content, state, newest, isOurs)
	}
	if changed := (*Changed)(nil); err == nil || errors.As(err, &changed) {
		return err
	}
	return fmt.Errorf("write %s of %s: %w", FileName, name, err)
}

func (w *Files) write(ctx context.Context, f *stateFile, content []byte, state State, newest uint64, isOurs func(file.Sum) bool) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for range writeRoundsMax {
		// The new file is written and synced before the last look, so that only microseconds pass between
		// that look and the exchange.
		p, err := f.prepare(content, state)
		if err != nil {
			return f.cannotWrite(err)
		}
		placed, err := w.placeOverKnown(ctx, f, p, newest, isOurs)
		p.drop(!placed)
		if placed || err != nil {
			return err
		}
	}
	return errors.New("the file comes and goes faster than it can be written; stop the program that does it")
}

// placeOverKnown puts p in place of content that the caller knows. placed is false without an error if that
// content disappeared before the exchange.
func (w *Files) placeOverKnown(ctx context.Context, f *stateFile, p *prepared, newest uint64, isOurs func(file.Sum) bool) (placed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, err := w.settle(ctx, f)
	if err != nil {
		return false, err
	}
	ours := seen.Own || seen.Kind == KindWritten && isOurs != nil && isOurs(seen.Sum)
	stale := !seen.Own && seen.Seq > newest
	if stale || !ours && !f.took.upTo(seen.Seq) {
		return false, &Changed{seen}
	}
	return w.place(f, seen, p)
}

// settle looks until the current content is certain. The caller holds f.mu, which is released while waiting.
func (w *Files) settle(ctx context.Context, f *stateFile) (Seen, error) {
	began := time.Now()
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for now := began; ; now = time.Now() {
		if w.isClosed() || f.removed {
			return Seen{}, ErrClosed
		}
		if w.look(f, now) {
			if f.now.Kind == KindUnreadable {
				return f.now, errors.New(f.now.Fault)
			}
			return f.now, nil
		}
		if now.Sub(began) > underWayMax {
			return Seen{}, fmt.Errorf("it was rewritten for %v without one whole content; stop the program that does it", underWayMax)
		}
		f.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
		case <-w.done:
		}
		f.mu.Lock()
		if err := ctx.Err(); err != nil {
			return Seen{}, fmt.Errorf("waiting for a write under way: %w", err)
		}
	}
}

// lock orders the writers of one file: first those of this process, then those of other Fairlead processes.
func (f *stateFile) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another write of this process: %w", ctx.Err())
	}
	side, err := f.lockSide(ctx)
	if err != nil {
		<-f.turn
		return nil, err
	}
	return func() {
		_ = side.Close() // closing releases the lock, whatever it returns
		<-f.turn
	}, nil
}

func (f *stateFile) lockSide(ctx context.Context) (*flock.Flock, error) {
	ctx, cancel := context.WithTimeout(ctx, foreignLockWait)
	defer cancel()
	for {
		side := flock.New(filepath.Join(f.folder, lockName),
			flock.SetFlag(os.O_CREATE|os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK), flock.SetPermissions(0o600))
		_, err := side.TryLockContext(ctx, lockRetryEvery)
		switch {
		case err == nil && f.isLock(side):
			return side, nil
		case err == nil: // the lock file was removed meanwhile: lock the new one
			_ = side.Close()
		case ctx.Err() != nil:
			_ = side.Close()
			return nil, fmt.Errorf("%s is held by another Fairlead: %w", lockName, ctx.Err())
		case errors.Is(err, unix.ELOOP):
			return nil, fmt.Errorf("%s is a symbolic link and is not followed; remove it: %w", lockName, err)
		default:
			return nil, f.cannotWrite(err)
		}
	}
}

// isLock reports whether the locked file is still the one that others would lock.
func (f *stateFile) isLock(side *flock.Flock) bool {
	held, err := side.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(side.Path())
	return err == nil && os.SameFile(held, there)
}

// cannotWrite adds advice to an error of creating a file.
func (f *stateFile) cannotWrite(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return fmt.Errorf("the folder %s is not writable; make it writable for this user, or give the agent another workspace: %w", f.folder, err)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("no space left for %s; free some, the file is as it was: %w", f.folder, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the folder %s is gone; make it again: %w", f.folder, err)
	}
	return err
}

// prepared is a complete new file beside the current one.
type prepared struct {
	dir     int // an open folder
	id      file.FolderID
	name    string
	content []byte
	state   State // what content says
}

// drop closes the folder, and removes the file if it was not put in place.
func (p *prepared) drop(sheet bool) {
	if sheet {
		file.Remove(p.dir, p.name)
	}
	file.CloseFolder(p.dir)
}

// prepare writes content into a new file, synced, with the mode and owner of the current one, so that the
// same programs can write it.
func (f *stateFile) prepare(content []byte, state State) (p *prepared, err error) {
	dir, id, err := file.OpenFolder(f.folder)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.CloseFolder(dir)
		}
	}()
	tail := fmt.Sprintf("%016x", rand.Uint64()) //nolint:gosec // a name, no secret; a clash is refused by the file system
	handle, err := file.CreateLike(dir, newPrefix+tail, FileName, content)
	if err != nil {
		return nil, err
	}
	_ = handle.Close()
	p = &prepared{dir: dir, id: id, name: swapPrefix + tail, content: content, state: state}
	if err = file.Uninterrupted(func() error { return unix.Renameat(dir, newPrefix+tail, dir, p.name) }); err != nil {
		file.Remove(dir, newPrefix+tail)
		return nil, err
	}
	return p, nil
}

// place puts p in place of seen. If that is no longer the current content, placed is false and nothing was
// done. The caller holds f.mu and the lock.
func (w *Files) place(f *stateFile, seen Seen, p *prepared) (placed bool, err error) {
	if p.id != f.id {
		return false, nil // the folder was replaced
	}
	var old *swapped
	if seen.Kind == KindDeleted {
		placed, err = placeNew(p.dir, p.name)
	} else {
		old, placed, err = w.swap(p.dir, p.name, seen)
	}
	if !placed {
		return false, err
	}
	now := time.Now()
	f.now = Seen{
		Name: f.name, Seq: w.queue.number(), Kind: KindWritten, State: p.state,
		Sum: file.SumOf(p.content), At: now.UTC(), Own: true,
	}
	f.doubt = doubt{}
	f.nowID, f.nowRead = file.Identity{}, now // makes the next look recognise it
	if old != nil {
		old.since = now
		f.swapped = append(f.swapped, old)
		_ = w.lookSwapped(f, old, p.dir, now) // another program may have written just before the exchange; the file stays open in any case
		w.makeRoom(f, p.dir, now)
		w.askToLook(f) // look at the replaced file for a second
	}
	if err != nil {
		return true, err
	}
	if err := file.SyncFolder(p.dir); err != nil {
		return true, fmt.Errorf("it is written, but may be lost with the power: sync the folder %s: %w", f.folder, err)
	}
	return true, nil
}

// placeNew puts a file in place only if there is none.
func placeNew(dir int, name string) (placed bool, err error) {
	err = file.RenameNew(dir, name, FileName)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOENT) {
		return false, nil // another program created the file first, or removed ours: look again
	}
	return err == nil, err
}

// swap exchanges the prepared file for the current one and returns the replaced one, open.
func (w *Files) swap(dir int, name string, seen Seen) (old *swapped, placed bool, err error) {
	err = w.exchange(dir, name, FileName)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, false, nil
	case file.Unsupported(err):
		return renameOver(dir, name, seen)
	case err != nil:
		return nil, false, err
	}
	handle, err := file.Open(dir, name)
	if err != nil {
		// a link or folder, created since we looked; swapping back could hide yet another change
		return nil, true, fmt.Errorf("it is written; what took its place meanwhile was put aside as %s: %w", name, err)
	}
	return holdSwapped(handle, name, seen.Sum), true, nil
}

// renameOver is for file systems without exchange. The old file stays open and watched, but a file that
// replaced it after the last look is lost.
func renameOver(dir int, name string, seen Seen) (old *swapped, placed bool, err error) {
	handle, err := file.Open(dir, FileName)
	if err != nil {
		return nil, false, nil //nolint:nilerr // the next look says what it is
	}
	s, err := file.ReadOpen(handle)
	there, statErr := file.IdentityAt(dir, FileName)
	if err != nil || statErr != nil || s.Moved || there != s.ID || file.SumOf(s.Bytes) != seen.Sum {
		_ = handle.Close()
		return nil, false, nil //nolint:nilerr // as above
	}
	if err := file.Uninterrupted(func() error { return unix.Renameat(dir, name, dir, FileName) }); err != nil {
		_ = handle.Close()
		return nil, false, err
	}
	return holdSwapped(handle, "", seen.Sum), true, nil
}
