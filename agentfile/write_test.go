package agentfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

func noExchange(int, string, string) error { return unix.EINVAL }

func (d *desk) write(content string) {
	d.t.Helper()
	if err := d.Write(d.t.Context(), "coder", []byte(content), AnyLook, nil); err != nil {
		d.t.Fatal(err)
	}
}

func TestWriteIntoAnEmptyFolder(t *testing.T) {
	d, _ := newStillDesk(t, "")
	d.write(wish(Pause, "C1"))
	d.lies(wish(Pause, "C1"))
	st, err := os.Stat(d.path)
	if err != nil || st.Mode().Perm()&0o600 != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if left := d.beside("."); !slices.Equal(left, []string{lockName}) {
		t.Error(left)
	}
	d.write(wish(RunOnce, "again"))
	d.lies(wish(RunOnce, "again"))
	if s, err := d.Read("coder"); err != nil || !s.Own || s.Sum != file.SumOf([]byte(wish(RunOnce, "again"))) || s.State.DesiredState != RunOnce {
		t.Errorf("%+v, %v", s, err)
	}
	d.none()
}

func TestWriteKeepsTheMode(t *testing.T) {
	d, _ := newStillDesk(t, wish(Pause, "a"))
	if err := os.Chmod(d.path, 0o666); err != nil { // more than the umask permits
		t.Fatal(err)
	}
	_, _ = d.Read("coder")
	d.write(wish(Pause, "b"))
	if st, err := os.Stat(d.path); err != nil || st.Mode().Perm() != 0o666 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

func TestWriteOverWhatWasNotToldIsRefusedOnce(t *testing.T) {
	for name, arrive := range map[string]func(*desk, string){"in place": (*desk).put, "by rename": (*desk).replace} {
		t.Run(name, func(t *testing.T) {
			d, _ := newStillDesk(t, wish(Pause, "a"))
			if _, err := d.Read("coder"); err != nil {
				t.Fatal(err)
			}
			d.write(wish(Pause, "ours"))
			d.waiting()
			arrive(d, wish(RunOnce, "theirs"))
			err := d.Write(t.Context(), "coder", []byte(wish(Pause, "late")), AnyLook, nil)
			var changed *Changed
			if !errors.Is(err, ErrChanged) || !errors.As(err, &changed) {
				t.Fatal(err)
			}
			d.check(changed.Seen, KindWritten, wish(RunOnce, "theirs"))
			d.lies(wish(RunOnce, "theirs"))
			if s, any := d.waiting(); !any || s.Seq != changed.Seen.Seq {
				t.Errorf("%+v, %v", s, any)
			}
			d.write(wish(RunOnce, "decided anew"))
			d.lies(wish(RunOnce, "decided anew"))
		})
	}
}

func TestWriteKnowsOursBySum(t *testing.T) {
	d, _ := newStillDesk(t, wish(Pause, "of an earlier run"))
	ours := func(s file.Sum) bool { return s == file.SumOf([]byte(wish(Pause, "of an earlier run"))) }
	if err := d.Write(t.Context(), "coder", []byte(wish(Pause, "b")), AnyLook, ours); err != nil {
		t.Error(err)
	}
}

// Content that depends on an observation does not replace a newer one, even if that was confirmed. Our own
// writes in between do not count.
func TestWriteOfWhatWasSeenGoesOverNothingNewer(t *testing.T) {
	d, _ := newStillDesk(t, wish(Pause, "a"))
	old, err := d.Read("coder")
	if err != nil {
		t.Fatal(err)
	}
	d.Took(old)
	d.replace(wish(RunOnce, "theirs"))
	newer, err := d.Read("coder")
	if err != nil {
		t.Fatal(err)
	}
	d.Took(newer)
	var changed *Changed
	err = d.Write(t.Context(), "coder", []byte(wish(Pause, "keeps parts of a")), old.Seq, nil)
	if !errors.As(err, &changed) || changed.Seen.Seq != newer.Seq {
		t.Fatalf("%v, want that look %d stands in the way", err, newer.Seq)
	}
	d.lies(wish(RunOnce, "theirs"))
	for _, note := range []string{"keeps parts of theirs", "once more"} {
		if err := d.Write(t.Context(), "coder", []byte(wish(Pause, note)), newer.Seq, nil); err != nil {
			t.Fatal(err)
		}
		d.lies(wish(Pause, note))
	}
}

func TestWriteOverADeletionIsRefusedOnce(t *testing.T) {
	d, _ := newStillDesk(t, wish(Pause, "a"))
	_, _ = d.Read("coder")
	if err := os.Remove(d.path); err != nil {
		t.Fatal(err)
	}
	err := d.Write(t.Context(), "coder", []byte(wish(Pause, "b")), AnyLook, nil)
	var changed *Changed
	if !errors.As(err, &changed) || changed.Seen.Kind != KindDeleted {
		t.Fatal(err)
	}
	d.Took(changed.Seen)
	d.write(wish(Pause, "b")) // C21
	d.lies(wish(Pause, "b"))
}

func TestWriteRefusesWhatNobodyCouldRead(t *testing.T) {
	d, _ := newStillDesk(t, "")
	for _, content := range []string{"", "{}", strings.Repeat(" ", agentStateBytesMax) + wish(Pause, "")} {
		var m *Malformed
		if err := d.Write(t.Context(), "coder", []byte(content), AnyLook, nil); !errors.As(err, &m) {
			t.Errorf("%.20q: %v", content, err)
		}
	}
}

// What another program writes between the look and the exchange is reported.
func TestSwappedOutWriteIsSeen(t *testing.T) {
	d, f := newStillDesk(t, wish(Pause, "a"))
	_, _ = d.Read("coder")
	d.waiting()
	d.exchange = func(dir int, a, b string) error {
		d.replace(wish(RunOnce, "in between"))
		return file.Exchange(dir, a, b)
	}
	d.write(wish(Pause, "ours"))
	d.lies(wish(Pause, "ours"))
	s, _ := d.waiting()
	if d.check(s, KindWritten, wish(RunOnce, "in between")); !s.FromSwap {
		t.Errorf("%+v", s)
	}
	own, err := d.Read("coder")
	if err != nil || !own.Own {
		t.Errorf("%+v, %v", own, err)
	}

	// it stays until the report was confirmed for a while, so that a crash does not lose it
	began := time.Now()
	d.lookAt(f, began.Add(file.SwappedFor))
	if left := d.beside(swapPrefix); len(left) != 1 {
		t.Error(left)
	}
	d.lookAt(f, began.Add(3*file.SwappedFor))
	if left := d.beside(swapPrefix); len(left) != 0 {
		t.Error(left)
	}
	d.none()
}

// A program that had the old file open before the exchange goes on writing: nothing, half, all.
func TestLateWriteIntoTheSwappedOutFileIsSeen(t *testing.T) {
	for name, swap := range map[string]func(int, string, string) error{"exchange": file.Exchange, "rename": noExchange} {
		t.Run(name, func(t *testing.T) {
			d, f := newStillDesk(t, wish(Pause, "a"))
			d.exchange = swap
			_, _ = d.Read("coder")
			d.waiting()
			pen, err := os.OpenFile(d.path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			d.write(wish(Pause, "ours"))
			at := time.Now()
			theirs := wish(RunOnce, "theirs")
			for i, step := range []func() error{
				func() error { return pen.Truncate(0) },
				func() error { _, err := pen.WriteString(theirs[:10]); return err },
				func() error { _, err := pen.WriteString(theirs[10:]); return err },
			} {
				d.none()
				if err := step(); err != nil {
					t.Fatal(i, err)
				}
				at = at.Add(file.TornFor)
				d.lookAt(f, at)
			}
			s, _ := d.waiting()
			if d.check(s, KindWritten, theirs); !s.FromSwap {
				t.Errorf("%+v", s)
			}
			d.lies(wish(Pause, "ours"))

			// content that stays incomplete is malformed
			if err := errors.Join(pen.Truncate(9), pen.Close()); err != nil {
				t.Fatal(err)
			}
			at = at.Add(file.LookAgainAfter)
			d.lookAt(f, at)
			d.lookAt(f, at.Add(file.SwappedFor-file.LookAgainAfter))
			d.none()
			d.lookAt(f, at.Add(file.SwappedFor))
			s, _ = d.waiting()
			d.check(s, KindMalformed, theirs[:9])
			if kept, err := os.ReadFile(filepath.Join(d.folder, s.KeptAs)); err != nil || string(kept) != theirs[:9] || !s.FromSwap {
				t.Errorf("%+v, %v", s, err)
			}
			d.lookAt(f, at.Add(2*file.SwappedFor))
			d.lookAt(f, at.Add(4*file.SwappedFor))
			if left := d.beside(swapPrefix); len(left) != 0 || len(f.swapped) != 0 {
				t.Error(left)
			}
		})
	}
}

// The watch reports a late write into the replaced file, by its new name: it does not wait for a look that is due by time.
func TestTheWatchReportsALateWrite(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only the watch of Linux does")
	}
	w := newFiles(nil)
	var err error
	if w.notify, err = fsnotify.NewBufferedWatcher(eventsBuffer); err != nil {
		t.Fatal(err)
	}
	w.swapLook = time.Hour
	w.begin()
	d := layDesk(t, w, wish(Pause, "a"))
	d.expect(KindWritten, wish(Pause, "a"))
	pen, err := os.OpenFile(d.path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pen.Close() }()
	d.write(wish(Pause, "b"))
	for _, note := range []string{"1", "2"} {
		if _, err := pen.WriteAt([]byte(wish(RunOnce, note)), 0); err != nil {
			t.Fatal(err)
		}
		if s := d.next(); !s.FromSwap || string(s.Bytes) != wish(RunOnce, note) {
			t.Errorf("%+v", s)
		}
	}
}

// A replaced file whose writes the watch reports is looked at a few times until it is removed, not a hundred times a second.
func TestAReplacedFileIsLookedAtAFewTimes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only the watch of Linux reports writes")
	}
	d, f := newStillDesk(t, wish(Pause, "a"))
	_, _ = d.Read("coder")
	f.watched = true
	d.write(wish(Pause, "b"))
	began := time.Now()
	looks := 0
	for at := began; !at.IsZero(); looks++ {
		at = d.lookAt(f, at)
		if at.After(began.Add(time.Minute)) {
			t.Fatal("it is not removed")
		}
	}
	if left := d.beside(swapPrefix); len(left) != 0 || looks > int(file.SwappedFor/swapLookEvery)+3 {
		t.Errorf("%d looks, and %q is left", looks, left)
	}
}

func TestSwappedOutFilesHaveALimit(t *testing.T) {
	d, f := newStillDesk(t, "")
	for i := range swappedMax + 10 {
		d.write(wish(Pause, strconv.Itoa(i)))
	}
	if left := d.beside(swapPrefix); len(left) > swappedMax || len(f.swapped) != len(left) {
		t.Error(len(left), len(f.swapped))
	}
	d.none()
}

func TestWriteOntoAMissingFileClobbersNothing(t *testing.T) {
	d, f := newStillDesk(t, "")
	d.put(wish(RunOnce, "appeared"))
	f.mu.Lock()
	p, err := f.prepare([]byte(wish(Pause, "ours")), State{})
	if err != nil {
		t.Fatal(err)
	}
	placed, err := d.place(f, Seen{Kind: KindDeleted}, p)
	f.mu.Unlock()
	if placed || err != nil {
		t.Error(placed, err)
	}
	p.drop(true)
	d.lies(wish(RunOnce, "appeared"))
	if left := d.beside("."); len(left) != 0 {
		t.Error(left)
	}
}

// The process is killed between the exchange and the look at the replaced file.
func TestWhatAKilledRunLeftIsTakenIn(t *testing.T) {
	d, _ := newStillDesk(t, wish(Pause, "ours"))
	d.putAs(swapPrefix+"1", wish(RunOnce, "theirs"))
	d.putAs(swapPrefix+"2", wish(Pause, "ours")) // the same as the current content
	d.putAs(newPrefix+"3", wish(Pause, "half a sh"))
	f, _ := d.file("coder")
	at := time.Now()
	d.lookAt(f, at)
	s, _ := d.waiting()
	d.check(s, KindWritten, wish(Pause, "ours"))
	s, _ = d.waiting()
	if d.check(s, KindWritten, wish(RunOnce, "theirs")); !s.FromSwap {
		t.Errorf("%+v", s)
	}
	d.none()
	d.lookAt(f, at.Add(file.SwappedFor))
	d.lookAt(f, at.Add(3*file.SwappedFor))
	if left := d.beside("."); !slices.Equal(left, []string{lockName}) {
		t.Error(left)
	}
}

func TestASecondFairleadLeavesTheFirstOnesSwapsAlone(t *testing.T) {
	first, f := newStillDesk(t, wish(Pause, "a"))
	_, _ = first.Read("coder")
	first.write(wish(Pause, "b"))
	second := newFiles(nil)
	defer func() { _ = second.Close() }()
	if err := second.Add("coder", first.folder); err != nil {
		t.Fatal(err)
	}
	g, _ := second.file("coder")
	second.lookAt(g, time.Now())
	if len(f.swapped) != 1 || len(g.swapped) != 0 {
		t.Error(len(f.swapped), len(g.swapped))
	}
}

func TestCloseLeavesNothingBesideThatIsKnown(t *testing.T) {
	d := newDesk(t, wish(Pause, "a"))
	d.write(wish(Pause, "b"))
	pen, err := os.OpenFile(d.path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pen.Close() }()
	d.write(wish(Pause, "c"))
	if err := errors.Join(pen.Truncate(3), d.Close()); err != nil {
		t.Fatal(err)
	}
	if left := d.beside(swapPrefix); len(left) != 1 { // another program has it open; the next start looks
		t.Error(left)
	}
}

func TestUnwritableFolder(t *testing.T) {
	if os.Getuid() == 0 && runtime.GOOS != "linux" {
		t.Skip("root may write anywhere, and only Linux lets one thread be somebody else")
	}
	d, _ := newStillDesk(t, wish(Pause, "a"))
	_, _ = d.Read("coder")
	if err := os.Chmod(d.folder, 0o555); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(d.folder, 0o755) }()
	var err error
	var done sync.WaitGroup
	done.Go(func() {
		if os.Getuid() == 0 { // root may write anywhere, so this thread drops its privileges and ends with the test
			runtime.LockOSThread()
			becomeNobody(t)
		}
		err = d.Write(context.Background(), "coder", []byte(wish(Pause, "b")), AnyLook, nil)
	})
	done.Wait()
	if err == nil || !strings.Contains(err.Error(), "is not writable; make it writable") || !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
	d.lies(wish(Pause, "a"))
}

func TestLockedByAnotherFairlead(t *testing.T) {
	d, f := newStillDesk(t, "")
	other := &stateFile{folder: d.folder, turn: make(chan struct{}, 1)} // like another process
	unlock, err := other.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // enough to reach the lock
	defer cancel()
	err = d.Write(ctx, "coder", []byte(wish(Pause, "a")), AnyLook, nil)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "held by another Fairlead") {
		t.Error(err)
	}
	unlock()
	d.write(wish(Pause, "a"))
	if len(f.turn) != 0 {
		t.Error("the turn was not given back")
	}
}

func TestALockFileThatWasRemovedIsNoLock(t *testing.T) {
	_, f := newStillDesk(t, "")
	side, err := f.lockSide(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !f.isLock(side) {
		t.Error("the lock that lies there is no lock")
	}
	if err := os.Remove(side.Path()); err != nil { // like git clean
		t.Fatal(err)
	}
	other, err := f.lockSide(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f.isLock(side) || !f.isLock(other) {
		t.Error("two processes would hold two locks")
	}
	_, _ = side.Close(), other.Close()
}

func TestALinkForTheLockIsNotFollowed(t *testing.T) {
	d, _ := newStillDesk(t, "")
	elsewhere := filepath.Join(t.TempDir(), "made")
	if err := os.Symlink(elsewhere, filepath.Join(d.folder, lockName)); err != nil {
		t.Fatal(err)
	}
	err := d.Write(t.Context(), "coder", []byte(wish(Pause, "a")), AnyLook, nil)
	if err == nil || !strings.Contains(err.Error(), "is a symbolic link and is not followed") {
		t.Error(err)
	}
	if _, err := os.Lstat(elsewhere); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file was made outside of the workspace")
	}
}

// Two Fairlead processes increment one counter; no increment is lost.
func TestTwoFairleadsDoNotLoseEachOthersWrites(t *testing.T) {
	const each = 25
	folder := t.TempDir()
	var done sync.WaitGroup
	for range 2 {
		w, err := Watch(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = w.Close() }()
		if err := w.Add("coder", folder); err != nil {
			t.Fatal(err)
		}
		done.Go(func() {
			for n := 0; n < each; {
				found, err := w.Read("coder")
				if err != nil {
					t.Error(err)
					return
				}
				w.Took(found)
				count, _ := strconv.Atoi(found.State.Note)
				err = w.Write(t.Context(), "coder", []byte(wish(Pause, strconv.Itoa(count+1))), AnyLook, nil)
				switch {
				case err == nil:
					n++
				case !errors.Is(err, ErrChanged):
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	b, err := os.ReadFile(filepath.Join(folder, FileName))
	if want := wish(Pause, fmt.Sprint(2*each)); err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
}

// What Read returned or Seen sent is not stored yet, and the consumer may be killed before it is. Only Took
// permits replacing it and removing a replaced file.
func TestNothingIsWrittenOverBeforeItIsTaken(t *testing.T) {
	d, f := newStillDesk(t, wish(RunOnce, "theirs"))
	now := time.Now()
	later := func() { now = now.Add(10 * file.SwappedFor); d.lookAt(f, now) }
	read, err := d.Files.Read("coder")
	if err != nil {
		t.Fatal(err)
	}
	if item, any := d.queue.pop(); !any || item.seen.Seq != read.Seq { // the consumer receives it
		t.Fatal("it does not come over Seen")
	}
	for range 2 {
		if err := d.Write(t.Context(), "coder", []byte(wish(Pause, "ours")), AnyLook, nil); !errors.Is(err, ErrChanged) {
			t.Fatalf("%v, want that it was changed", err)
		}
	}
	d.Took(read)
	d.write(wish(Pause, "ours"))

	held := d.beside(swapPrefix)
	if len(held) != 1 {
		t.Fatalf("beside it lie %q", held)
	}
	pen := filepath.Join(d.folder, held[0])
	if err := os.WriteFile(pen, []byte(wish(RunCleanup, "late pen")), 0o644); err != nil {
		t.Fatal(err)
	}
	later()
	item, any := d.queue.pop()
	if !any || !item.seen.FromSwap {
		t.Fatal("what the late pen wrote is not seen")
	}
	later()
	if len(d.beside(swapPrefix)) != 1 {
		t.Fatal("what the late pen wrote is let go of before it was taken")
	}
	d.Took(item.seen)
	later()
	later()
	if held := d.beside(swapPrefix); len(held) != 0 {
		t.Errorf("beside it still lie %q", held)
	}
}
