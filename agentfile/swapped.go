package agentfile

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"golang.org/x/sys/unix"
)

// swapped is a file that one of our writes took out of its place. Somebody may have had
// it open, and what he writes into it is a command like any other.
type swapped struct {
	file  *os.File
	name  string   // beside the state file; empty where it has none
	sum   file.Sum // what is known to be in it
	since time.Time
	doubt doubt
	seq   uint64    // of the last report from it; 0: none
	told  time.Time // when the consumer was seen to have taken that report
}

// holdSwapped keeps an old file. Its lock says to a Fairlead that starts meanwhile that
// it is being seen to.
func holdSwapped(handle *os.File, name string, known file.Sum) *swapped {
	_ = unix.Flock(int(handle.Fd()), unix.LOCK_EX|unix.LOCK_NB) // without it a second start reports it again, no more
	return &swapped{file: handle, name: name, sum: known}
}

// lookAtSwapped looks at all that was swapped out and gives those that stay. The caller
// holds f.mu.
func (w *Files) lookAtSwapped(f *stateFile, now time.Time) (stay []*swapped) {
	if len(f.swapped) == 0 {
		return nil
	}
	dir, _, err := file.OpenFolder(f.folder)
	if err != nil {
		dir = -1 // the folder is gone; the open files are not
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

// makeRoom gives up the oldest where there are too many. The caller holds f.mu.
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

// lookSwapped reports what is new in one of them, and says whether that was all.
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
		s.doubt.clear()
	default:
		// nothing waits for this one, and a loaded machine can hold a writer up for long
		seen, certain := w.judge(f, &s.doubt, dir, there, sum, now, file.SwappedFor)
		if !certain {
			return age > swappedForMax
		}
		seen.FromSwap = true
		s.doubt.clear()
		s.sum, s.told = sum, time.Time{}
		s.seq = w.report(f, seen, now).Seq
	}
	if s.seq == 0 {
		return age >= file.SwappedFor
	}
	// its last report may be in nobody's journal yet, and then a crash must find the file
	if s.told.IsZero() && f.took.sheet(s.seq) {
		s.told = now
	}
	return age >= file.SwappedFor && !s.told.IsZero() && now.Sub(s.told) >= file.SwappedFor
}

// retire removes a swapped-out file, and looks into it once more when nobody can open it
// any longer. One whose last report nobody has taken stays for the next start.
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

// letGo is for Close and Remove: what holds nothing new is removed, the rest is left for
// the next start, which finds it. The caller holds f.mu.
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

// adopt takes over what an earlier Fairlead left beside the file when it was killed:
// swapped-out files are looked at as if they were ours, new ones that were never put in
// place are removed. Where another Fairlead is at work it has the lock, and sees to it.
// done is false where it was not seen to. The caller holds f.mu.
func (w *Files) adopt(f *stateFile, now time.Time) (done bool) {
	names, err := file.NamesIn(f.folder)
	if err != nil {
		return true // the folder is gone again; it is swept when it is back
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
	current, _ := file.Read(dir, FileName)
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
			_ = handle.Close() // somebody alive holds it
			continue
		}
		f.swapped = append(f.swapped, &swapped{file: handle, name: name, sum: file.SumOf(current.Bytes), since: now})
	}
	return true
}
