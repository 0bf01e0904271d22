package exchange

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// swapped is a file that one of our writes replaced. Another program may still have it open, and what it
// writes there counts too.
type swapped[T any] struct {
	of    *watched[T]
	file  *os.File
	name  string   // name beside the current file; empty if it has none
	sum   file.Sum // of the known content
	since time.Time
	doubt doubt
	seq   uint64    // of its last report; 0: none
	told  time.Time // when the confirmation of that report was noticed
}

// holdSwapped keeps a replaced file open. The lock tells a Fairlead process that starts meanwhile to leave it
// alone.
func (o *watched[T]) holdSwapped(handle *os.File, name string, known file.Sum) *swapped[T] {
	_ = unix.Flock(int(handle.Fd()), unix.LOCK_EX|unix.LOCK_NB) // without the lock, a second process would only report it again
	return &swapped[T]{of: o, file: handle, name: name, sum: known}
}

// swapDue returns when to look at the replaced files again. The watch of Linux reports writes into them, by their
// new names; elsewhere they are looked at often. So is one without a name, and one whose content is uncertain.
func (w *Files[T]) swapDue(f *folder[T]) time.Time {
	often := !f.watched || runtime.GOOS != "linux" || f.swapWritten.Load() ||
		slices.ContainsFunc(f.swapped, func(s *swapped[T]) bool { return s.name == "" || s.doubt.what != nil })
	if often {
		return f.swapLooked.Add(file.LookAgainAfter)
	}
	return f.swapLooked.Add(w.swapLook)
}

// lookAtSwapped looks at all replaced files and returns those to keep. The caller holds f.mu.
func (w *Files[T]) lookAtSwapped(f *folder[T], now time.Time) (stay []*swapped[T]) {
	if len(f.swapped) == 0 {
		return nil
	}
	dir, _, err := file.OpenFolder(f.path)
	if err != nil {
		dir = -1 // the folder was removed; the files are still open
	} else {
		defer file.CloseFolder(dir)
	}
	for _, s := range f.swapped {
		if w.lookSwapped(s, dir, now) {
			w.retire(s, dir, now)
			continue
		}
		stay = append(stay, s)
	}
	return stay
}

// makeRoom closes the oldest replaced files if there are too many. The caller holds f.mu.
func (w *Files[T]) makeRoom(f *folder[T], dir int, now time.Time) {
	for len(f.swapped) > swappedMax {
		oldest := f.swapped[0]
		f.swapped = f.swapped[1:]
		if !w.lookSwapped(oldest, dir, now) {
			w.log.Warn("a replaced file is given up early: too many at a time", "file", oldest.of.base, "of", f.name, "limit", swappedMax)
		}
		w.retire(oldest, dir, now)
	}
}

// lookSwapped reports new content of a replaced file, and whether the file can be closed.
func (w *Files[T]) lookSwapped(s *swapped[T], dir int, now time.Time) (over bool) {
	age := now.Sub(s.since)
	there, err := w.reread(s)
	if err != nil {
		w.log.Warn("a replaced file cannot be read", "file", s.of.base, "of", s.of.in.name, "error", err)
		return true
	}
	sum := file.SumOf(there.Bytes)
	switch {
	case sum == s.sum && !there.Moved:
		s.doubt = doubt{}
	default:
		// nothing waits for this file, and a loaded machine may delay a writer for long
		seen, certain := w.judge(s.of, &s.doubt, source{dir, s.file}, there, now, file.SwappedFor)
		if !certain {
			return age > swappedForMax
		}
		seen.FromSwap = true
		s.doubt = doubt{}
		s.sum, s.told = sum, time.Time{}
		s.seq = w.report(s.of, seen, now).Seq
	}
	if s.seq == 0 {
		return age >= file.SwappedFor
	}
	// its last report may not be in the journal yet; after a crash the file must still exist
	if s.told.IsZero() && s.of.confirms.replaced(s.seq) {
		s.told = now
	}
	return age >= file.SwappedFor && !s.told.IsZero() && now.Sub(s.told) >= file.SwappedFor
}

// retire removes a replaced file, and reads it once more when no program can have it open. A file whose
// last report was not confirmed stays for the next start.
func (w *Files[T]) retire(s *swapped[T], dir int, now time.Time) {
	if s.name != "" && dir >= 0 && s.of.confirms.replaced(s.seq) {
		if held, err := file.Stat(s.file); err == nil {
			if there, err := file.IdentityAt(dir, s.name); err == nil && there.Dev == held.ID.Dev && there.Ino == held.ID.Ino {
				file.Remove(dir, s.name)
			}
		}
	}
	if there, err := w.reread(s); err == nil && file.SumOf(there.Bytes) != s.sum {
		if seen, err := w.seenOf(there); err == nil {
			seen.FromSwap = true
			w.report(s.of, seen, now)
		}
	}
	s.of.confirms.forget(s.seq)
	_ = s.file.Close()
}

// letGo is for Close and Remove. It removes replaced files without new content and leaves the others for the
// next start. The caller holds f.mu.
func (w *Files[T]) letGo(f *folder[T]) {
	dir, _, err := file.OpenFolder(f.path)
	if err == nil {
		defer file.CloseFolder(dir)
	}
	for _, s := range f.swapped {
		there, readErr := w.reread(s)
		known := readErr == nil && file.SumOf(there.Bytes) == s.sum && s.of.confirms.replaced(s.seq)
		if err == nil && known && s.name != "" {
			file.Remove(dir, s.name)
		}
		_ = s.file.Close()
	}
	f.swapped = nil
}

// adopt takes over what an earlier Fairlead process left beside the file when it was killed. Replaced files
// are watched like our own; new files that were never put in place are removed. A file that is locked belongs
// to a running Fairlead process and is left alone. done is false if adopt must be called again. The caller
// holds f.mu.
func (w *Files[T]) adopt(f *folder[T], now time.Time) (done bool) {
	names, err := file.NamesIn(f.path)
	if err != nil {
		return true // the folder was removed; sweep again when it is back
	}
	left := slices.DeleteFunc(names, func(name string) bool { _, mark := w.content.beside(name); return mark == "" })
	if len(left) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockGlance)
	defer cancel()
	unlock, err := w.lock(ctx, f)
	if err != nil {
		return !errors.Is(err, context.DeadlineExceeded)
	}
	defer unlock()
	dir, id, err := file.OpenFolder(f.path)
	if err != nil {
		return true
	}
	defer file.CloseFolder(dir)
	if id != f.id {
		return false
	}
	for _, name := range left {
		base, mark := w.content.beside(name)
		if mark == newMark || w.content.Projection {
			file.Remove(dir, name)
			continue
		}
		if len(f.swapped) >= swappedMax {
			w.log.Warn("more replaced files than are taken over at a time; the next start takes more",
				"file", w.content.Name, "of", f.name, "limit", swappedMax)
			return true
		}
		handle, err := file.Open(dir, name)
		if err != nil {
			continue
		}
		if unix.Flock(int(handle.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			_ = handle.Close() // a running process holds it
			continue
		}
		current, _ := file.Read(dir, base, int64(w.content.Most))
		f.swapped = append(f.swapped,
			&swapped[T]{of: w.oneOf(f, base), file: handle, name: name, sum: file.SumOf(current.Bytes), since: now})
	}
	return true
}

const (
	corruptMark = ".corrupt-"
	corruptMax  = 20 // copies of one file, so that repeated malformed content does not fill the disk
)

// errMoved says that content changed while it was copied.
var errMoved = errors.New("it was changed while it was copied")

// source is where malformed content is copied from: an open file, or without one the current file of a folder.
type source struct {
	dir  int
	open *os.File
}

// reread reads a replaced file again.
func (w *Files[T]) reread(s *swapped[T]) (file.Version, error) {
	return file.ReadOpen(s.file, int64(w.content.Most))
}

// keepAside copies malformed content beside the file, whole at any size, and returns the copy's name, which holds the file's
// modification time (SPEC C12, X5). Because the time is the file's, the same malformed file is kept once, also after a restart. The
// name appears when the copy is complete.
func (w *Files[T]) keepAside(o *watched[T], from source, s file.Version) (name string, err error) {
	prefix := o.base + corruptMark
	for n := 1; n <= corruptMax; n++ {
		name = numbered(prefix+file.TimeInName(s.ID.Mtime), n)
		there, err := file.Read(from.dir, name, int64(w.content.Most))
		if err == nil && there.ID.Size == s.ID.Size && bytes.Equal(there.Bytes, s.Bytes) {
			return name, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	names, err := file.NamesIn(o.in.path)
	if err != nil {
		return "", fmt.Errorf("look for copies in %s: %w", o.in.path, err)
	}
	copies := 0
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			copies++
		}
	}
	if copies >= corruptMax {
		return "", fmt.Errorf("%d copies are kept already, so these bytes are not; move some %s* files away", corruptMax, prefix)
	}
	part := "." + o.base + newMark + unusedTail()
	if err := from.copyTo(part, o.base, s); err != nil {
		file.Remove(from.dir, part)
		return "", fmt.Errorf("keep a copy as %s: %w", name, err)
	}
	if err := file.RenameNew(from.dir, part, name); err != nil {
		file.Remove(from.dir, part)
		return "", fmt.Errorf("keep a copy as %s: %w", name, err)
	}
	if err := file.SyncFolder(from.dir); err != nil {
		return "", fmt.Errorf("sync the folder of %s: %w", name, err)
	}
	return name, nil
}

// numbered is the name of the n-th file that is kept with one name and time.
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, n)
}

// PutAside renames observed content, so that its name says why and when it was written (SPEC X5):
// agent-7.json.corrupt-TIME. The error is ErrChanged if another program has replaced it since. It confirms the observation.
func (w *Files[T]) PutAside(seen Seen[T], why string) (name string, err error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("put %s of %s aside: %w", w.content.Name, seen.Name, err)
	}
	o, err := w.file(seen.Name)
	if err != nil {
		return fail(err)
	}
	f, at := o.in, o.base
	f.mu.Lock()
	defer f.mu.Unlock()
	o = w.oneOf(f, o.base)
	dir, err := w.open(f, time.Now())
	if err != nil {
		return fail(err)
	}
	defer file.CloseFolder(dir)
	var old *swapped[T]
	if seen.FromSwap {
		i := slices.IndexFunc(f.swapped, func(s *swapped[T]) bool { return s.of == o && s.seq == seen.Seq && s.name != "" })
		if i < 0 {
			return fail(ErrChanged)
		}
		old = f.swapped[i]
		at = old.name
	}
	there, err := file.IdentityAt(dir, at)
	if err != nil || there.String() != seen.Ident {
		return fail(cmp.Or(notGone(err), ErrChanged))
	}
	if name, err = setAside(dir, at, o.base, why, there); err != nil {
		return fail(err)
	}
	if now, err := file.IdentityAt(dir, name); err != nil || now != there {
		_ = file.RenameNew(dir, name, at) // another program replaced it: this is not the content that was judged
		return fail(ErrChanged)
	}
	if old != nil {
		old.name = ""
		o.confirms.note(seen.Seq, true)
	} else {
		o.now, o.nowID = Seen[T]{Name: seen.Name, Seq: w.seq.Add(1), Kind: KindDeleted, At: time.Now().UTC(), Own: true}, file.Identity{}
	}
	return name, file.SyncFolder(dir)
}

const asideMax = 100 // files with one name, reason and time

// setAside renames a file, so that its name says why and when it was written.
func setAside(dir int, at, base, why string, is file.Identity) (name string, err error) {
	for n := 1; n <= asideMax; n++ {
		name = numbered(base+"."+why+"-"+file.TimeInName(is.Mtime), n)
		if err = file.RenameNew(dir, at, name); !errors.Is(err, unix.EEXIST) {
			break
		}
	}
	return name, err
}

// Foreign is the reason in the names of files that another program wrote, and that Fairlead has replaced.
const Foreign = "foreign"

// keepReplaced removes the file that a projection has replaced: the one that is known, or one with the known content. If another
// program wrote it after the last look, it is kept.
func (w *Files[T]) keepReplaced(s *swapped[T], dir int, known file.Identity, content file.Sum, now time.Time) {
	defer func() { _ = s.file.Close() }()
	there, err := file.Stat(s.file)
	if s.name == "" || err == nil && there.ID == known {
		file.Remove(dir, s.name)
		return
	}
	there, err = w.reread(s)
	seen, _ := w.seenOf(there) // it is kept whatever it says
	if err == nil && !there.Moved && seen.Sum == content {
		file.Remove(dir, s.name)
		return
	}
	seen.FromSwap = true
	if seen.KeptAs, err = setAside(dir, s.name, s.of.base, Foreign, there.ID); err != nil {
		seen.KeptAs = s.name
	}
	w.report(s.of, seen, now)
}

// notGone is an error, unless it says that there is no file.
func notGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// copyTo copies the content that s describes, and syncs it.
func (c source) copyTo(name, base string, s file.Version) error {
	from := c.open
	if from == nil {
		opened, err := file.Open(c.dir, base)
		if err != nil {
			return errMoved //nolint:nilerr // the next look says what it is
		}
		defer func() { _ = opened.Close() }()
		from = opened
	}
	to, err := file.Create(c.dir, name, nil, s.Mode|0o600, false)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	err = copyData(to, from, s.ID.Size)
	if err == nil {
		err = to.Sync()
	}
	if err != nil {
		return err
	}
	if after, err := file.Stat(from); err != nil || after.ID != s.ID {
		return errMoved //nolint:nilerr // as above
	}
	return nil
}

// copyData copies so many bytes to an empty file. The holes of a sparse file stay holes, because a file of a few blocks can have any size.
func copyData(to, from *os.File, size int64) error {
	for at := int64(0); at < size; {
		if data, err := unix.Seek(int(from.Fd()), at, unix.SEEK_DATA); err == nil {
			at = data
		} else if errors.Is(err, unix.ENXIO) {
			break // only a hole is left
		} // a file system without holes
		end := size
		if hole, err := unix.Seek(int(from.Fd()), at, unix.SEEK_HOLE); err == nil {
			end = min(end, hole)
		}
		if n, err := io.Copy(io.NewOffsetWriter(to, at), io.NewSectionReader(from, at, end-at)); err != nil || n != end-at {
			return cmp.Or(err, errMoved)
		}
		at = end
	}
	return to.Truncate(size)
}
