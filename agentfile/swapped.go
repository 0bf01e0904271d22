package agentfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
// writes there counts as a command.
type swapped struct {
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
func holdSwapped(handle *os.File, name string, known file.Sum) *swapped {
	_ = unix.Flock(int(handle.Fd()), unix.LOCK_EX|unix.LOCK_NB) // without the lock, a second process would only report it again
	return &swapped{file: handle, name: name, sum: known}
}

// swapDue returns when to look at the replaced files again. The watch of Linux reports writes into them, by their
// new names; elsewhere they are looked at often. So is one without a name, and one whose content is uncertain.
func (w *Files) swapDue(f *stateFile) time.Time {
	often := !f.watched || runtime.GOOS != "linux" || f.swapWritten.Load() ||
		slices.ContainsFunc(f.swapped, func(s *swapped) bool { return s.name == "" || s.doubt.what != nil })
	if often {
		return f.swapLooked.Add(file.LookAgainAfter)
	}
	return f.swapLooked.Add(w.swapLook)
}

// lookAtSwapped looks at all replaced files and returns those to keep. The caller holds f.mu.
func (w *Files) lookAtSwapped(f *stateFile, now time.Time) (stay []*swapped) {
	if len(f.swapped) == 0 {
		return nil
	}
	dir, _, err := file.OpenFolder(f.folder)
	if err != nil {
		dir = -1 // the folder was removed; the files are still open
	} else {
		defer file.CloseFolder(dir)
	}
	for _, s := range f.swapped {
		if w.lookSwapped(f, s, dir, now) {
			w.retire(f, s, dir, now)
			continue
		}
		stay = append(stay, s)
	}
	return stay
}

// makeRoom closes the oldest replaced files if there are too many. The caller holds f.mu.
func (w *Files) makeRoom(f *stateFile, dir int, now time.Time) {
	for len(f.swapped) > swappedMax {
		oldest := f.swapped[0]
		f.swapped = f.swapped[1:]
		if !w.lookSwapped(f, oldest, dir, now) {
			w.log.Warn("a swapped-out state file is given up early: too many at a time", "agent", f.name, "limit", swappedMax)
		}
		w.retire(f, oldest, dir, now)
	}
}

// lookSwapped reports new content of a replaced file, and whether the file can be closed.
func (w *Files) lookSwapped(f *stateFile, s *swapped, dir int, now time.Time) (over bool) {
	age := now.Sub(s.since)
	there, err := file.ReadOpen(s.file)
	if err != nil {
		w.log.Warn("a swapped-out state file cannot be read", "agent", f.name, "error", err)
		return true
	}
	sum := file.SumOf(there.Bytes)
	switch {
	case sum == s.sum && !there.Moved:
		s.doubt = doubt{}
	default:
		// nothing waits for this file, and a loaded machine may delay a writer for long
		seen, certain := w.judge(f, &s.doubt, dir, there, sum, now, file.SwappedFor)
		if !certain {
			return age > swappedForMax
		}
		seen.FromSwap = true
		s.doubt = doubt{}
		s.sum, s.told = sum, time.Time{}
		s.seq = w.report(f, seen, now).Seq
	}
	if s.seq == 0 {
		return age >= file.SwappedFor
	}
	// its last report may not be in the journal yet; after a crash the file must still exist
	if s.told.IsZero() && f.took.sheet(s.seq) {
		s.told = now
	}
	return age >= file.SwappedFor && !s.told.IsZero() && now.Sub(s.told) >= file.SwappedFor
}

// retire removes a replaced file, and reads it once more when no program can have it open. A file whose
// last report was not confirmed stays for the next start.
func (w *Files) retire(f *stateFile, s *swapped, dir int, now time.Time) {
	if s.name != "" && dir >= 0 && f.took.sheet(s.seq) {
		if held, err := file.Stat(s.file); err == nil {
			if there, err := file.IdentityAt(dir, s.name); err == nil && there.Dev == held.ID.Dev && there.Ino == held.ID.Ino {
				file.Remove(dir, s.name)
			}
		}
	}
	if there, err := file.ReadOpen(s.file); err == nil && file.SumOf(there.Bytes) != s.sum {
		if state, err := Parse(there.Bytes); err == nil {
			w.report(f, Seen{Kind: KindWritten, Bytes: there.Bytes, State: state, Sum: file.SumOf(there.Bytes), Ident: there.ID.String(), FromSwap: true}, now)
		}
	}
	f.took.forget(s.seq)
	_ = s.file.Close()
}

// letGo is for Close and Remove. It removes replaced files without new content and leaves the others for the
// next start. The caller holds f.mu.
func (w *Files) letGo(f *stateFile) {
	dir, _, err := file.OpenFolder(f.folder)
	if err == nil {
		defer file.CloseFolder(dir)
	}
	for _, s := range f.swapped {
		there, readErr := file.ReadOpen(s.file)
		known := readErr == nil && file.SumOf(there.Bytes) == s.sum && f.took.sheet(s.seq)
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
func (w *Files) adopt(f *stateFile, now time.Time) (done bool) {
	names, err := file.NamesIn(f.folder)
	if err != nil {
		return true // the folder was removed; sweep again when it is back
	}
	var left []string
	for _, name := range names {
		if strings.HasPrefix(name, newPrefix) || strings.HasPrefix(name, swapPrefix) {
			left = append(left, name)
		}
	}
	if len(left) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockGlance)
	defer cancel()
	unlock, err := f.lock(ctx)
	if err != nil {
		return !errors.Is(err, context.DeadlineExceeded)
	}
	defer unlock()
	dir, id, err := file.OpenFolder(f.folder)
	if err != nil {
		return true
	}
	defer file.CloseFolder(dir)
	if id != f.id {
		return false
	}
	current, _ := file.Read(dir, FileName, file.BytesMax)
	for _, name := range left {
		if strings.HasPrefix(name, newPrefix) {
			file.Remove(dir, name)
			continue
		}
		if len(f.swapped) >= swappedMax {
			w.log.Warn("more swapped-out state files than are taken over at a time; the next start takes more",
				"agent", f.name, "limit", swappedMax)
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
		f.swapped = append(f.swapped, &swapped{file: handle, name: name, sum: file.SumOf(current.Bytes), since: now})
	}
	return true
}

const (
	corruptPrefix = FileName + ".corrupt-"
	corruptMax    = 20 // copies in one folder, so that repeated malformed content does not fill the disk
)

// errCopiesMax says that content was not kept because there are too many copies.
var errCopiesMax = fmt.Errorf("%d copies are kept already, so these bytes are not; move some %s* files away", corruptMax, corruptPrefix)

// keepAside copies malformed content beside the file and returns the copy's name, which holds the file's
// modification time (SPEC C12, X5). Because the time is the file's, the same malformed file is kept once,
// also after a restart.
func keepAside(folder string, dir int, s file.Version) (name string, err error) {
	kept := s.Bytes[:min(len(s.Bytes), agentStateBytesMax)]
	base := corruptPrefix + file.TimeInName(s.ID.Mtime)
	for n := 1; n <= corruptMax; n++ {
		name = base
		if n > 1 {
			name = fmt.Sprintf("%s-%d", base, n) // another content with the same modification time
		}
		there, err := file.Read(dir, name, file.BytesMax)
		if err == nil && bytes.Equal(there.Bytes, kept) {
			return name, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	names, err := file.NamesIn(folder)
	if err != nil {
		return "", fmt.Errorf("look for copies in %s: %w", folder, err)
	}
	copies := 0
	for _, n := range names {
		if strings.HasPrefix(n, corruptPrefix) {
			copies++
		}
	}
	if copies >= corruptMax {
		return "", errCopiesMax
	}
	handle, err := file.Create(dir, name, kept, s.Mode|0o600)
	if err != nil {
		return "", fmt.Errorf("keep a copy as %s: %w", name, err)
	}
	defer func() { _ = handle.Close() }()
	if err := file.SyncFolder(dir); err != nil {
		return "", fmt.Errorf("sync the folder of %s: %w", name, err)
	}
	return name, nil
}
