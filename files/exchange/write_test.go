package exchange_test

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

	"github.com/fairlead-dev/fairlead/files/exchange"

	"github.com/fairlead-dev/fairlead/internal/file"
	"golang.org/x/sys/unix"
)

func noExchange(int, string, string) error { return unix.EINVAL }

func (d *desk) write(content string) {
	d.t.Helper()
	if err := d.Write(d.t.Context(), d.k.name, []byte(content), exchange.AnyLook, nil); err != nil {
		d.t.Fatal(err)
	}
}

func TestWriteIntoAnEmptyFolder(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, _ := newStillDesk(t, k, "")
		d.write(k.says("C1"))
		d.lies(k.says("C1"))
		st, err := os.Stat(d.path)
		if err != nil || st.Mode().Perm()&0o600 != 0o600 {
			t.Errorf("%v, %v", st, err)
		}
		if left := d.beside("."); !slices.Equal(left, []string{d.LockName()}) {
			t.Error(left)
		}
		d.write(k.says("again"))
		d.lies(k.says("again"))
		if s, err := d.Read(k.name); err != nil || !s.Own || s.Sum != file.SumOf([]byte(k.says("again"))) {
			t.Errorf("%+v, %v", s, err)
		}
		d.none()
	})
}

func TestWriteKeepsTheMode(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, _ := newStillDesk(t, k, k.says("a"))
		if err := os.Chmod(d.path, 0o666); err != nil { // more than the umask permits
			t.Fatal(err)
		}
		_, _ = d.Read(k.name)
		d.write(k.says("b"))
		if st, err := os.Stat(d.path); err != nil || st.Mode().Perm() != 0o666 {
			t.Errorf("%v, %v", st.Mode(), err)
		}
	})
}

// A sync of the folder takes as long as the disk does. What another program writes meanwhile is seen, write by write.
func TestWritesAreSeenDuringASync(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, f := newStillDesk(t, k, k.says("a"))
		if _, err := d.Read(k.name); err != nil {
			t.Fatal(err)
		}
		d.waiting()
		d.SetSync(func(int) error {
			for _, word := range []string{"begun", "done"} {
				d.put(k.says(word))
				d.LookAt(f, time.Now())
				if s, seen := d.waiting(); !seen || string(s.Bytes) != k.says(word) {
					t.Errorf("%q was not seen: %+v", word, s)
				}
			}
			return nil
		})
		d.write(k.says("ours"))
	})
}

func TestWriteOverWhatWasNotToldIsRefusedOnce(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		for name, arrive := range map[string]func(*desk, string){"in place": (*desk).put, "by rename": (*desk).replace} {
			t.Run(name, func(t *testing.T) {
				d, _ := newStillDesk(t, k, k.says("a"))
				if _, err := d.Read(k.name); err != nil {
					t.Fatal(err)
				}
				d.write(k.says("ours"))
				d.waiting()
				arrive(d, k.says("theirs"))
				err := d.Write(t.Context(), k.name, []byte(k.says("late")), exchange.AnyLook, nil)
				var changed *changedFile
				if !errors.Is(err, exchange.ErrChanged) || !errors.As(err, &changed) {
					t.Fatal(err)
				}
				d.check(changed.Seen, exchange.KindWritten, k.says("theirs"))
				d.lies(k.says("theirs"))
				if s, any := d.waiting(); !any || s.Seq != changed.Seen.Seq {
					t.Errorf("%+v, %v", s, any)
				}
				d.write(k.says("decided anew"))
				d.lies(k.says("decided anew"))
			})
		}
	})
}

func TestWriteKnowsOursBySum(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, _ := newStillDesk(t, k, k.says("of an earlier run"))
		ours := func(s file.Sum) bool { return s == file.SumOf([]byte(k.says("of an earlier run"))) }
		if err := d.Write(t.Context(), k.name, []byte(k.says("b")), exchange.AnyLook, ours); err != nil {
			t.Error(err)
		}
	})
}

// Content that depends on an observation does not replace a newer one, even if that was confirmed. Our own
// writes in between do not count.
func TestWriteOfWhatWasSeenGoesOverNothingNewer(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, _ := newStillDesk(t, k, k.says("a"))
		old, err := d.Read(k.name)
		if err != nil {
			t.Fatal(err)
		}
		d.Confirm(old)
		d.replace(k.says("theirs"))
		newer, err := d.Read(k.name)
		if err != nil {
			t.Fatal(err)
		}
		d.Confirm(newer)
		var changed *changedFile
		err = d.Write(t.Context(), k.name, []byte(k.says("keeps parts of a")), old.Seq, nil)
		if !errors.As(err, &changed) || changed.Seen.Seq != newer.Seq {
			t.Fatalf("%v, want the refusal that names look %d", err, newer.Seq)
		}
		d.lies(k.says("theirs"))
		for _, note := range []string{"keeps parts of theirs", "once more"} {
			if err := d.Write(t.Context(), k.name, []byte(k.says(note)), newer.Seq, nil); err != nil {
				t.Fatal(err)
			}
			d.lies(k.says(note))
		}
	})
}

func TestWriteOverADeletionIsRefusedOnce(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, _ := newStillDesk(t, k, k.says("a"))
		_, _ = d.Read(k.name)
		if err := os.Remove(d.path); err != nil {
			t.Fatal(err)
		}
		err := d.Write(t.Context(), k.name, []byte(k.says("b")), exchange.AnyLook, nil)
		var changed *changedFile
		if !errors.As(err, &changed) || changed.Seen.Kind != exchange.KindDeleted {
			t.Fatal(err)
		}
		d.Confirm(changed.Seen)
		d.write(k.says("b")) // C21
		d.lies(k.says("b"))
	})
}

func TestWriteRefusesWhatNobodyCouldRead(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, _ := newStillDesk(t, k, "")
		for _, content := range []string{"", "{}", strings.Repeat(" ", k.content.Most) + k.says("")} {
			var m *file.JSONFault
			if err := d.Write(t.Context(), k.name, []byte(content), exchange.AnyLook, nil); !errors.As(err, &m) &&
				(err == nil || !strings.Contains(err.Error(), "the most")) {
				t.Errorf("%.20q: %v", content, err)
			}
		}
	})
}

// What another program writes between the look and the exchange is reported.
func TestSwappedOutWriteIsSeen(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, f := newStillDesk(t, k, k.says("a"))
		_, _ = d.Read(k.name)
		d.waiting()
		d.SetExchange(func(dir int, a, b string) error {
			d.replace(k.says("in between"))
			return file.Exchange(dir, a, b)
		})
		d.write(k.says("ours"))
		d.lies(k.says("ours"))
		s, _ := d.waiting()
		if d.check(s, exchange.KindWritten, k.says("in between")); !s.FromSwap {
			t.Errorf("%+v", s)
		}
		own, err := d.Read(k.name)
		if err != nil || !own.Own {
			t.Errorf("%+v, %v", own, err)
		}

		// it stays until the report was confirmed for a while, so that a crash does not lose it
		began := time.Now()
		d.LookAt(f, began.Add(file.SwappedFor))
		if left := d.beside(k.swap); len(left) != 1 {
			t.Error(left)
		}
		d.LookAt(f, began.Add(3*file.SwappedFor))
		if left := d.beside(k.swap); len(left) != 0 {
			t.Error(left)
		}
		d.none()
	})
}

// A program that had the old file open before the exchange goes on writing: nothing, half, all.
func TestLateWriteIntoTheSwappedOutFileIsSeen(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		for name, swap := range map[string]func(int, string, string) error{"exchange": file.Exchange, "rename": noExchange} {
			t.Run(name, func(t *testing.T) {
				d, f := newStillDesk(t, k, k.says("a"))
				d.SetExchange(swap)
				_, _ = d.Read(k.name)
				d.waiting()
				pen, err := os.OpenFile(d.path, os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				d.write(k.says("ours"))
				at := time.Now()
				theirs := k.says("theirs")
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
					d.LookAt(f, at)
				}
				s, _ := d.waiting()
				if d.check(s, exchange.KindWritten, theirs); !s.FromSwap {
					t.Errorf("%+v", s)
				}
				d.lies(k.says("ours"))

				// content that stays incomplete is malformed
				if err := errors.Join(pen.Truncate(9), pen.Close()); err != nil {
					t.Fatal(err)
				}
				at = at.Add(file.LookAgainAfter)
				d.LookAt(f, at)
				d.LookAt(f, at.Add(file.SwappedFor-file.LookAgainAfter))
				d.none()
				d.LookAt(f, at.Add(file.SwappedFor))
				s, _ = d.waiting()
				d.check(s, exchange.KindMalformed, theirs[:9])
				if kept, err := os.ReadFile(filepath.Join(d.folder, s.KeptAs)); k.content.Copies &&
					(err != nil || string(kept) != theirs[:9]) || !s.FromSwap {
					t.Errorf("%+v, %v", s, err)
				}
				d.LookAt(f, at.Add(2*file.SwappedFor))
				d.LookAt(f, at.Add(4*file.SwappedFor))
				if left := d.beside(k.swap); len(left) != 0 || f.Swapped() != 0 {
					t.Error(left)
				}
			})
		}
	})
}

// The watch reports a late write into the replaced file, by its new name: it does not wait for a look that is due by time.
func TestTheWatchReportsALateWrite(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		if runtime.GOOS != "linux" {
			t.Skip("only the watch of Linux does")
		}
		w := exchange.NewFiles(k.content, nil)
		if err := w.UseWatch(); err != nil {
			t.Fatal(err)
		}
		w.SetSwapLook(time.Hour)
		w.Begin()
		d := layDesk(t, k, w, k.says("a"))
		d.expect(exchange.KindWritten, k.says("a"))
		pen, err := os.OpenFile(d.path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = pen.Close() }()
		d.write(k.says("b"))
		for _, note := range []string{"1", "2"} {
			if _, err := pen.WriteAt([]byte(k.says(note)), 0); err != nil {
				t.Fatal(err)
			}
			if s := d.next(); !s.FromSwap || string(s.Bytes) != k.says(note) {
				t.Errorf("%+v", s)
			}
		}
	})
}

// A replaced file whose writes the watch reports is looked at a few times until it is removed, not a hundred times a second.
func TestAReplacedFileIsLookedAtAFewTimes(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		if runtime.GOOS != "linux" {
			t.Skip("only the watch of Linux reports writes")
		}
		d, f := newStillDesk(t, k, k.says("a"))
		_, _ = d.Read(k.name)
		f.SetWatched(true)
		d.write(k.says("b"))
		began := time.Now()
		looks := 0
		for at := began; !at.IsZero(); looks++ {
			at = d.LookAt(f, at)
			if at.After(began.Add(time.Minute)) {
				t.Fatal("it is not removed")
			}
		}
		if left := d.beside(k.swap); len(left) != 0 || looks > int(file.SwappedFor/exchange.SwapLookEvery)+3 {
			t.Errorf("%d looks, and %q is left", looks, left)
		}
	})
}

func TestSwappedOutFilesHaveALimit(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, f := newStillDesk(t, k, "")
		for i := range exchange.SwappedMax + 10 {
			d.write(k.says(strconv.Itoa(i)))
		}
		if left := d.beside(k.swap); len(left) > exchange.SwappedMax || f.Swapped() != len(left) {
			t.Error(len(left), f.Swapped())
		}
		d.none()
	})
}

func TestWriteOntoAMissingFileClobbersNothing(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, _ := newStillDesk(t, k, "")
		d.put(k.says("appeared"))
		placed, err := d.PlaceNew(k.name, []byte(k.says("ours")))
		if placed || err != nil {
			t.Error(placed, err)
		}
		d.lies(k.says("appeared"))
		if left := d.beside("."); len(left) != 0 {
			t.Error(left)
		}
	})
}

// The process is killed between the exchange and the look at the replaced file.
func TestWhatAKilledRunLeftIsTakenIn(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, f := newStillDesk(t, k, k.says("ours"))
		d.putAs(k.swap+"1", k.says("theirs"))
		d.putAs(k.swap+"2", k.says("ours")) // the same as the current content
		d.putAs(k.fresh+"3", k.says("half a sh"))
		at := time.Now()
		d.LookAt(f, at)
		s, _ := d.waiting()
		d.check(s, exchange.KindWritten, k.says("ours"))
		s, _ = d.waiting()
		if d.check(s, exchange.KindWritten, k.says("theirs")); !s.FromSwap {
			t.Errorf("%+v", s)
		}
		d.none()
		d.LookAt(f, at.Add(file.SwappedFor))
		d.LookAt(f, at.Add(3*file.SwappedFor))
		if left := d.beside("."); !slices.Equal(left, []string{d.LockName()}) {
			t.Error(left)
		}
	})
}

func TestASecondFairleadLeavesTheFirstOnesSwapsAlone(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		first, f := newStillDesk(t, k, k.says("a"))
		_, _ = first.Read(k.name)
		first.write(k.says("b"))
		second := exchange.NewFiles(k.content, nil)
		defer func() { _ = second.Close() }()
		if err := second.Add(k.name, first.folder); err != nil {
			t.Fatal(err)
		}
		g := second.Folders()[0]
		second.LookAt(g, time.Now())
		if f.Swapped() != 1 || g.Swapped() != 0 {
			t.Error(f.Swapped(), g.Swapped())
		}
	})
}

func TestCloseLeavesNothingBesideThatIsKnown(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d := newDesk(t, k, k.says("a"))
		d.write(k.says("b"))
		pen, err := os.OpenFile(d.path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = pen.Close() }()
		d.write(k.says("c"))
		if err := errors.Join(pen.Truncate(3), d.Close()); err != nil {
			t.Fatal(err)
		}
		if left := d.beside(k.swap); len(left) != 1 { // another program has it open; the next start looks
			t.Error(left)
		}
	})
}

func TestUnwritableFolder(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		if os.Getuid() == 0 && runtime.GOOS != "linux" {
			t.Skip("root may write anywhere, and only Linux gives one thread another user")
		}
		d, _ := newStillDesk(t, k, k.says("a"))
		_, _ = d.Read(k.name)
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
			err = d.Write(context.Background(), k.name, []byte(k.says("b")), exchange.AnyLook, nil)
		})
		done.Wait()
		if err == nil || !strings.Contains(err.Error(), "is not writable; make it writable") || !errors.Is(err, os.ErrPermission) {
			t.Error(err)
		}
		d.lies(k.says("a"))
	})
}

func TestLockedByAnotherFairlead(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, f := newStillDesk(t, k, "")
		unlock, err := d.LockAside(t.Context(), d.folder)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // enough to reach the lock
		defer cancel()
		err = d.Write(ctx, k.name, []byte(k.says("a")), exchange.AnyLook, nil)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "held by another Fairlead") {
			t.Error(err)
		}
		unlock()
		d.write(k.says("a"))
		if f.Writers() != 0 {
			t.Error("the turn was not given back")
		}
	})
}

func TestALockFileThatWasRemovedIsNoLock(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, f := newStillDesk(t, k, "")
		side, err := d.LockSide(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if !d.IsLock(d.folder, side) {
			t.Error("the lock file in the folder does not count as the lock")
		}
		if err := os.Remove(filepath.Join(d.folder, d.LockName())); err != nil { // like git clean
			t.Fatal(err)
		}
		other, err := d.LockSide(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if d.IsLock(d.folder, side) || !d.IsLock(d.folder, other) {
			t.Error("two processes would hold two locks")
		}
		_, _ = side.Close(), other.Close()
	})
}

func TestALinkForTheLockIsNotFollowed(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, _ := newStillDesk(t, k, "")
		elsewhere := filepath.Join(t.TempDir(), "made")
		if err := os.Symlink(elsewhere, filepath.Join(d.folder, d.LockName())); err != nil {
			t.Fatal(err)
		}
		err := d.Write(t.Context(), k.name, []byte(k.says("a")), exchange.AnyLook, nil)
		if err == nil || !strings.Contains(err.Error(), "is a symbolic link and is not followed") {
			t.Error(err)
		}
		if _, err := os.Lstat(elsewhere); !errors.Is(err, os.ErrNotExist) {
			t.Error("a file was made outside of the workspace")
		}
	})
}

// Two Fairlead processes increment one counter; no increment is lost.
func TestTwoFairleadsDoNotLoseEachOthersWrites(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		const each = 25
		folder := t.TempDir()
		var done sync.WaitGroup
		for range 2 {
			w := exchange.Watch(k.content, nil)
			defer func() { _ = w.Close() }()
			if err := w.Add(k.name, folder); err != nil {
				t.Fatal(err)
			}
			done.Go(func() {
				for n := 0; n < each; {
					found, err := w.Read(k.name)
					if err != nil {
						t.Error(err)
						return
					}
					w.Confirm(found)
					count, _ := strconv.Atoi(k.note(found.State))
					err = w.Write(t.Context(), k.name, []byte(k.says(strconv.Itoa(count+1))), exchange.AnyLook, nil)
					switch {
					case err == nil:
						n++
					case !errors.Is(err, exchange.ErrChanged):
						t.Error(err)
						return
					}
				}
			})
		}
		done.Wait()
		b, err := os.ReadFile(filepath.Join(folder, k.base))
		if want := k.says(fmt.Sprint(2 * each)); err != nil || string(b) != want {
			t.Errorf("%s, %v", b, err)
		}
	})
}

// What Read returned or was delivered is not stored yet, and the consumer may be killed before it is. Only Confirm
// permits replacing it and removing a replaced file.
func TestNothingIsWrittenOverBeforeItIsTaken(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, f := newStillDesk(t, k, k.says("theirs"))
		now := time.Now()
		later := func() { now = now.Add(10 * file.SwappedFor); d.LookAt(f, now) }
		read, err := d.watchedFiles.Read(k.name)
		if err != nil {
			t.Fatal(err)
		}
		if s := <-d.arrived; s.Seq != read.Seq { // the consumer receives it
			t.Fatal("it is not delivered")
		}
		for range 2 {
			if err := d.Write(t.Context(), k.name, []byte(k.says("ours")), exchange.AnyLook, nil); !errors.Is(err, exchange.ErrChanged) {
				t.Fatalf("%v, want that it was changed", err)
			}
		}
		d.Confirm(read)
		d.write(k.says("ours"))

		held := d.beside(k.swap)
		if len(held) != 1 {
			t.Fatalf("beside it lie %q", held)
		}
		pen := filepath.Join(d.folder, held[0])
		if err := os.WriteFile(pen, []byte(k.says("late pen")), 0o644); err != nil {
			t.Fatal(err)
		}
		later()
		late := <-d.arrived
		if !late.FromSwap {
			t.Fatal("what the late pen wrote is not seen")
		}
		later()
		if len(d.beside(k.swap)) != 1 {
			t.Fatal("what the late pen wrote is let go of before it was taken")
		}
		d.Confirm(late)
		later()
		later()
		if held := d.beside(k.swap); len(held) != 0 {
			t.Errorf("beside it still lie %q", held)
		}
	})
}
