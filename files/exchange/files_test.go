package exchange_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/files/exchange"

	"github.com/fairlead-dev/fairlead/internal/file"
	"golang.org/x/sys/unix"
)

// desk is a folder with a watched file.
type desk struct {
	*watchedFiles
	t       *testing.T
	k       *kind
	folder  string
	path    string
	arrived chan seenFile
}

// newDesk watches: changes arrive at next.
func newDesk(t *testing.T, k *kind, content string) *desk {
	t.Helper()
	d := layDesk(t, k, exchange.Watch(k.content, nil), content)
	if content != "" {
		d.expect(exchange.KindWritten, content)
	}
	return d
}

// newStillDesk looks only when the test says so, at the time that the test says.
func newStillDesk(t *testing.T, k *kind, content string) (*desk, *watchedIn) {
	t.Helper()
	d := layDesk(t, k, exchange.NewFiles(k.content, nil), "")
	if content != "" {
		d.put(content)
	}
	return d, d.Folders()[0]
}

func layDesk(t *testing.T, k *kind, w *watchedFiles, content string) *desk {
	t.Helper()
	d := &desk{watchedFiles: w, t: t, k: k, folder: t.TempDir(), arrived: make(chan seenFile, 1<<16)}
	t.Cleanup(func() { // before the folder is removed
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	d.path = filepath.Join(d.folder, k.base)
	if content != "" {
		d.put(content)
	}
	w.Deliver(func(s seenFile) { d.arrived <- s })
	if err := w.Add(k.name, d.folder); err != nil {
		t.Fatal(err)
	}
	return d
}

// put writes in place, like the seed's writer.
func (d *desk) put(content string) { d.t.Helper(); d.putAs(d.k.base, content) }

func (d *desk) putAs(name, content string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.folder, name), []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// replace writes a new file and renames it, like a careful program.
func (d *desk) replace(content string) {
	d.t.Helper()
	d.putAs("theirs.tmp", content)
	if err := os.Rename(filepath.Join(d.folder, "theirs.tmp"), d.path); err != nil {
		d.t.Fatal(err)
	}
}

// lies checks the file's current content.
func (d *desk) lies(content string) {
	d.t.Helper()
	b, err := os.ReadFile(d.path)
	if err != nil || string(b) != content {
		d.t.Fatalf("there lies %q (%v), want %q", b, err, content)
	}
}

// beside lists the names in the folder that begin with prefix.
func (d *desk) beside(prefix string) (names []string) {
	d.t.Helper()
	all, err := file.NamesIn(d.folder)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, n := range all {
		if strings.HasPrefix(n, prefix) {
			names = append(names, n)
		}
	}
	return names
}

const longEnough = 2 * time.Minute // bound for a hanging test

func (d *desk) next() seenFile {
	d.t.Helper()
	select {
	case s := <-d.arrived:
		d.Confirm(s)
		return s
	case <-time.After(longEnough):
		d.t.Fatal("nothing was seen")
		return seenFile{}
	}
}

// Read is Files.Read followed by Confirm.
func (d *desk) Read(name string) (seenFile, error) {
	s, err := d.watchedFiles.Read(name)
	if err == nil {
		d.Confirm(s)
	}
	return s, err
}

func (d *desk) expect(kind exchange.Kind, content string) seenFile {
	d.t.Helper()
	return d.check(d.next(), kind, content)
}

func (d *desk) check(s seenFile, kind exchange.Kind, content string) seenFile {
	d.t.Helper()
	if s.Kind != kind || string(s.Bytes) != content || s.Name != d.k.name || s.Seq == 0 || s.At.IsZero() || s.Own {
		d.t.Fatalf("seen %+v, want %s %q", s, kind, content)
	}
	return s
}

// waiting returns the one observation that was made since the last call, if any.
func (d *desk) waiting() (s seenFile, any bool) {
	d.t.Helper()
	select {
	case s = <-d.arrived:
		d.Confirm(s)
		return s, true
	default:
		return s, false
	}
}

func (d *desk) none() {
	d.t.Helper()
	if s, any := d.waiting(); any {
		d.t.Fatalf("seen %+v, want nothing", s)
	}
}

func TestWhatOthersWriteIsSeenOnce(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d := newDesk(t, k, k.says("a"))
		d.put(k.says("b"))
		s := d.expect(exchange.KindWritten, k.says("b"))
		if k.note(s.State) != "b" || s.Sum != file.SumOf(s.Bytes) {
			t.Errorf("%+v", s)
		}
		d.put(k.says("b")) // the same content again is not reported
		d.replace(k.says("c"))
		d.expect(exchange.KindWritten, k.says("c"))
		again, err := d.Read(k.name)
		if err != nil || k.note(again.State) != "c" || again.Own {
			t.Fatalf("%+v, %v", again, err)
		}
		d.replace(k.says("b"))
		if s := d.expect(exchange.KindWritten, k.says("b")); s.Seq <= again.Seq {
			t.Errorf("%d after %d", s.Seq, again.Seq)
		}
	})
}

func TestReadFirstThenTheSameSeqArrives(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, _ := newStillDesk(t, k, k.says("x"))
		s, err := d.Read(k.name)
		if err != nil {
			t.Fatal(err)
		}
		d.check(s, exchange.KindWritten, k.says("x"))
		if came, any := d.waiting(); !any || came.Seq != s.Seq {
			t.Errorf("%+v, %v", came, any)
		}
	})
}

func TestNoFileIsNoNews(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d := newDesk(t, k, "")
		s, err := d.Read(k.name)
		if err != nil || s.Kind != exchange.KindDeleted || s.Seq != 0 {
			t.Fatalf("%+v, %v", s, err)
		}
		d.put(k.says("first"))
		d.expect(exchange.KindWritten, k.says("first"))
	})
}

func TestTornIsNotMalformedUntilItStaysSo(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, f := newStillDesk(t, k, k.says("a"))
		at := time.Now()
		d.LookAt(f, at)
		if _, any := d.waiting(); !any {
			t.Fatal("the first content was not seen")
		}
		for _, torn := range []string{"", "{", `{"desired_st`} { // each partial write restarts the wait
			d.put(torn)
			if again := d.LookAt(f, at); again.IsZero() {
				t.Fatal("in doubt, and not looked at again")
			}
			at = at.Add(file.TornFor - time.Nanosecond)
			d.LookAt(f, at)
			d.none()
		}
		d.put(k.says("b"))
		d.LookAt(f, at)
		if s, _ := d.waiting(); k.note(s.State) != "b" {
			t.Fatalf("%+v", s)
		}

		d.put("{")
		d.LookAt(f, at)
		d.LookAt(f, at.Add(file.TornFor))
		s, _ := d.waiting()
		d.check(s, exchange.KindMalformed, "{")
		if kept, err := os.ReadFile(filepath.Join(d.folder, s.KeptAs)); k.content.Copies && (err != nil || string(kept) != "{") ||
			s.Fault == "" {
			t.Errorf("%+v, %v", s, err)
		}
		d.LookAt(f, at.Add(time.Hour))
		d.none()
	})
}

func TestMalformedIsKeptOnceAlsoAcrossRestarts(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		k.copies(t)
		d := newDesk(t, k, "")
		d.put("[1, 2")
		s := d.expect(exchange.KindMalformed, "[1, 2")
		if !strings.HasPrefix(s.KeptAs, k.base+".corrupt-2") || strings.Contains(s.KeptAs, ":") {
			t.Error(s.KeptAs)
		}
		restarted := exchange.Watch(k.content, nil)
		defer func() { _ = restarted.Close() }()
		if err := restarted.Add(k.name, d.folder); err != nil {
			t.Fatal(err)
		}
		seen, err := restarted.Read(k.name)
		if err != nil || seen.Kind != exchange.KindMalformed || seen.KeptAs != s.KeptAs {
			t.Errorf("%+v, %v", seen, err)
		}
		if copies := d.beside(k.corrupt); len(copies) != 1 {
			t.Error(copies)
		}
		if err := d.Write(t.Context(), k.name, []byte(k.says("restored")), exchange.AnyLook, nil); err != nil { // C12
			t.Error(err)
		}
		d.lies(k.says("restored"))
	})
}

func TestCopiesAreCounted(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		k.copies(t)
		d := newDesk(t, k, "")
		for i := range exchange.CorruptMax {
			d.putAs(k.corrupt+string(rune('a'+i)), "old")
		}
		d.put("nonsense")
		s := d.expect(exchange.KindMalformed, "nonsense")
		if s.KeptAs != "" || !strings.Contains(s.Fault, "20 copies are kept already") {
			t.Errorf("%+v", s)
		}
	})
}

// SPEC C12: malformed content is put aside whole, at any size, and its name appears when it is complete.
func TestMalformedIsKeptWhole(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		k.copies(t)
		for _, size := range []int{1, k.content.Most - 1, k.content.Most, k.content.Most + 100, 32 << 20} {
			d := newDesk(t, k, "")
			over, watched := make(chan struct{}), make(chan error, 1)
			go func() { // any size but the whole one is a fault, whenever it is seen
				for {
					names, _ := filepath.Glob(filepath.Join(d.folder, k.corrupt+"*"))
					for _, name := range names {
						if is, err := os.Stat(name); err == nil && is.Size() != int64(size) {
							watched <- fmt.Errorf("%s has %d of %d bytes", filepath.Base(name), is.Size(), size)
							return
						}
					}
					select {
					case <-over:
						watched <- nil
						return
					default:
					}
				}
			}()
			content := strings.Repeat("x", size-1) + "y"
			d.put(content)
			s := d.next()
			close(over)
			kept, err := os.ReadFile(filepath.Join(d.folder, s.KeptAs))
			if s.Kind != exchange.KindMalformed || err != nil || string(kept) != content {
				t.Errorf("%s %s, %d of %d bytes, %v", s.Kind, s.Fault, len(kept), size, err)
			}
			if err := <-watched; err != nil {
				t.Error(err)
			}
			if left := d.beside(k.fresh); len(left) != 0 {
				t.Error(left)
			}
		}
	})
}

// A byte order mark is skipped: some editors write one.
func TestByteOrderMark(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d := newDesk(t, k, "")
		d.put("\xef\xbb\xbf" + k.says("from an editor"))
		if s := d.next(); s.Kind != exchange.KindWritten || k.note(s.State) != "from an editor" {
			t.Errorf("%+v", s)
		}
	})
}

func TestDeletedIsSeenOnce(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, f := newStillDesk(t, k, k.says("a"))
		at := time.Now()
		d.LookAt(f, at)
		_, _ = d.waiting()
		if err := os.Remove(d.path); err != nil {
			t.Fatal(err)
		}
		d.LookAt(f, at)
		d.LookAt(f, at.Add(exchange.GoneFor-1))
		d.none() // an unlink followed by a rename leaves the file absent for a moment
		d.LookAt(f, at.Add(exchange.GoneFor))
		s, _ := d.waiting()
		d.check(s, exchange.KindDeleted, "")
		d.LookAt(f, at.Add(time.Hour))
		d.none()
		d.put(k.says("a"))
		d.LookAt(f, at.Add(time.Hour))
		s, _ = d.waiting()
		d.check(s, exchange.KindWritten, k.says("a"))
	})
}

func TestFolderVanishesAndComesBack(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d := newDesk(t, k, k.says("a"))
		if err := os.RemoveAll(d.folder); err != nil {
			t.Fatal(err)
		}
		d.expect(exchange.KindDeleted, "")
		if k.content.Ending == "" { // a folder of many is made again
			err := d.Write(t.Context(), k.name, []byte(k.says("b")), exchange.AnyLook, nil)
			if err == nil || !strings.Contains(err.Error(), "is gone; make it again") {
				t.Error(err)
			}
		}
		if err := os.Mkdir(d.folder, 0o755); err != nil {
			t.Fatal(err)
		}
		d.put(k.says("b"))
		d.expect(exchange.KindWritten, k.says("b"))

		aside := d.folder + ".aside"
		if err := errors.Join(os.Rename(d.folder, aside), os.Mkdir(d.folder, 0o755)); err != nil {
			t.Fatal(err)
		}
		d.put(k.says("c"))
		for s := d.next(); k.note(s.State) != "c"; s = d.next() {
			if s.Kind != exchange.KindDeleted {
				t.Fatalf("%+v", s)
			}
		}
		d.put(k.says("d"))
		d.expect(exchange.KindWritten, k.says("d"))
		_ = os.RemoveAll(aside)
	})
}

func TestPollFindsWhatTheWatchMissed(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		k.alone(t)
		d, f := newStillDesk(t, k, k.says("a"))
		f.SetWatched(true)
		d.LookAt(f, time.Now())
		d.waiting()
		if !d.Stale(f) {
			t.Error("a file written this moment may be written again without its time changing")
		}
		d.LookAt(f, time.Now().Add(2*time.Second))
		if d.Stale(f) {
			t.Error("nothing happened")
		}
		d.put(k.says("bb"))
		if !d.Stale(f) {
			t.Error("another content was not noticed")
		}
		d.LookAt(f, time.Now().Add(2*time.Second))
		if err := os.Remove(d.path); err != nil {
			t.Fatal(err)
		}
		if !d.Stale(f) {
			t.Error("a deletion was not noticed")
		}
	})
}

func TestWithoutAWatchItIsPolled(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		w := exchange.NewFiles(k.content, nil) // like a system without watches
		w.SetPoll(50 * time.Millisecond)
		w.Begin()
		d := layDesk(t, k, w, k.says("a"))
		d.expect(exchange.KindWritten, k.says("a"))
		d.put(k.says("b"))
		d.expect(exchange.KindWritten, k.says("b"))
	})
}

func TestLinksAndOddThingsAreRefusedInWords(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		secret := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(secret, []byte(k.says("outside")), 0o600); err != nil {
			t.Fatal(err)
		}
		for word, lay := range map[string]func(path string) error{
			"is a symbolic link": func(path string) error { return os.Symlink(secret, path) },
			"is no plain file":   func(path string) error { return os.Mkdir(path, 0o755) },
			"is no plain file; ": func(path string) error { return unix.Mkfifo(path, 0o644) },
		} {
			t.Run(word, func(t *testing.T) {
				d := newDesk(t, k, k.says("a"))
				if err := errors.Join(os.Remove(d.path), lay(d.path)); err != nil {
					t.Fatal(err)
				}
				s := d.next()
				if s.Kind == exchange.KindDeleted { // on a loaded machine, between the two
					s = d.next()
				}
				if d.check(s, exchange.KindUnreadable, ""); !strings.Contains(s.Fault, word) {
					t.Errorf("%+v", s)
				}
				if _, err := d.Read(k.name); err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("read: %v", err)
				}
				if err := d.Write(t.Context(), k.name, []byte(k.says("b")), exchange.AnyLook, nil); err == nil ||
					!strings.Contains(err.Error(), word) {
					t.Errorf("write: %v", err)
				}
				if b, err := os.ReadFile(secret); err != nil || string(b) != k.says("outside") {
					t.Errorf("what the link names was touched: %s, %v", b, err)
				}
				if err := os.Remove(d.path); err != nil {
					t.Fatal(err)
				}
				d.put(k.says("b"))
				for s := d.next(); k.note(s.State) != "b"; s = d.next() {
					if s.Kind != exchange.KindDeleted {
						t.Fatalf("%+v", s)
					}
				}
			})
		}
	})
}

func TestALinkForTheFolderIsNotFollowed(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, _ := newStillDesk(t, k, k.says("a"))
		elsewhere := t.TempDir()
		if err := os.WriteFile(filepath.Join(elsewhere, k.base), []byte(k.says("outside")), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.RemoveAll(d.folder), os.Symlink(elsewhere, d.folder)); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Read(k.name); err == nil || !strings.Contains(err.Error(), "a symbolic link is not followed") {
			t.Error(err)
		}
		if now := d.Now(k.name); now.Kind != exchange.KindUnreadable {
			t.Errorf("%+v", now)
		}
	})
}

func TestAddRefuses(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		k.alone(t)
		d := newDesk(t, k, k.says("a"))
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(d.folder, link); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ name, folder, words string }{
			{"reviewer", d.folder, "is the workspace of " + k.name + " already"},
			{"reviewer", d.folder + "/../" + filepath.Base(d.folder), "is the workspace of " + k.name + " already"},
			{"reviewer", link, "is the workspace of " + k.name + " already"},
			{k.name, t.TempDir(), "watched already"},
			{"reviewer", d.folder + "/none", "make it"},
			{"reviewer", d.path, "is not a folder"},
		} {
			if err := d.Add(c.name, c.folder); err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%s in %s: %v", c.name, c.folder, err)
			}
		}
		if err := errors.Join(d.Remove(k.name), d.Add("reviewer", link)); err != nil {
			t.Error(err)
		}
		if s := d.next(); s.Name != "reviewer" || k.note(s.State) != "a" {
			t.Errorf("%+v", s)
		}
		if _, err := d.Read(k.name); err == nil || !strings.Contains(err.Error(), "Add it first") {
			t.Error(err)
		}
	})
}

// Adding an agent looks at no other one, so that the cost of one does not grow with the team: here another file is busy all the time.
func TestAddLooksAtNoOther(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		k.alone(t)
		d := newDesk(t, k, k.says("a"))
		defer d.Folders()[0].Lock()()
		if err := d.Add("reviewer", t.TempDir()); err != nil {
			t.Error(err)
		}
	})
}

// A folder that took the place of another one is known as the workspace of its agent.
func TestAddRefusesTheFolderThatIsThereNow(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		k.alone(t)
		d := newDesk(t, k, k.says("a"))
		spare := t.TempDir()
		if err := errors.Join(os.Rename(d.folder, d.folder+".old"), os.Rename(spare, d.folder)); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Read(k.name); err != nil {
			t.Fatal(err)
		}
		if err := d.Add("reviewer", d.folder+".old"); err != nil {
			t.Errorf("the folder that was moved away: %v", err)
		}
		if err := errors.Join(os.Rename(d.folder, spare), d.Add("third", spare)); err == nil ||
			!strings.Contains(err.Error(), "is the workspace of "+k.name+" already") {
			t.Errorf("the folder that took its place: %v", err)
		}
	})
}

func TestAfterCloseNothingWorksAndNothingHangs(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d := newDesk(t, k, k.says("a"))
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Fatal(err)
		}
		_, err := d.Read(k.name)
		if !errors.Is(err, exchange.ErrClosed) {
			t.Error(err)
		}
		if err := d.Write(t.Context(), k.name, []byte(k.says("b")), exchange.AnyLook, nil); !errors.Is(err, exchange.ErrClosed) {
			t.Error(err)
		}
		if err := d.Add("reviewer", t.TempDir()); !errors.Is(err, exchange.ErrClosed) {
			t.Error(err)
		}
		d.lies(k.says("a"))
	})
}
