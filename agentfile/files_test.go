package agentfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"golang.org/x/sys/unix"
)

// desk is a folder with a watched agent_state.json.
type desk struct {
	*Files
	t      *testing.T
	folder string
	path   string
}

// newDesk watches: changes arrive at next.
func newDesk(t *testing.T, content string) *desk {
	t.Helper()
	w, err := Watch(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := layDesk(t, w, content)
	if content != "" {
		d.expect(KindWritten, content)
	}
	return d
}

// newStillDesk looks only when the test says so, at the time that the test says.
func newStillDesk(t *testing.T, content string) (*desk, *stateFile) {
	t.Helper()
	d := layDesk(t, newFiles(nil), content)
	f, err := d.file("coder")
	if err != nil {
		t.Fatal(err)
	}
	return d, f
}

func layDesk(t *testing.T, w *Files, content string) *desk {
	t.Helper()
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &desk{Files: w, t: t, folder: t.TempDir()}
	d.path = filepath.Join(d.folder, FileName)
	if content != "" {
		d.put(content)
	}
	if err := w.Add("coder", d.folder); err != nil {
		t.Fatal(err)
	}
	return d
}

// put writes in place, like the seed's writer.
func (d *desk) put(content string) { d.t.Helper(); d.putAs(FileName, content) }

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

func (d *desk) next() Seen {
	d.t.Helper()
	select {
	case s := <-d.Seen():
		d.Took(s)
		return s
	case <-time.After(longEnough):
		d.t.Fatal("nothing was seen")
		return Seen{}
	}
}

// Read is Files.Read followed by Took.
func (d *desk) Read(name string) (Seen, error) {
	s, err := d.Files.Read(name)
	if err == nil {
		d.Took(s)
	}
	return s, err
}

func (d *desk) expect(kind Kind, content string) Seen {
	d.t.Helper()
	return d.check(d.next(), kind, content)
}

func (d *desk) check(s Seen, kind Kind, content string) Seen {
	d.t.Helper()
	if s.Kind != kind || string(s.Bytes) != content || s.Name != "coder" || s.Seq == 0 || s.At.IsZero() || s.Own {
		d.t.Fatalf("seen %+v, want %s %q", s, kind, content)
	}
	return s
}

// waiting returns the one observation that was made since the last call, if any.
func (d *desk) waiting() (s Seen, any bool) {
	d.t.Helper()
	item, any := d.queue.pop()
	if any {
		d.Took(item.seen)
	}
	return item.seen, any
}

func (d *desk) none() {
	d.t.Helper()
	if s, any := d.waiting(); any {
		d.t.Fatalf("seen %+v, want nothing", s)
	}
}

func wish(desired, note string) string {
	return string(State{DesiredState: desired, CurrentState: Pause, Note: note}.Render())
}

func TestWhatOthersWriteIsSeenOnce(t *testing.T) {
	d := newDesk(t, wish(Pause, "a"))
	d.put(wish(RunOnce, "b"))
	s := d.expect(KindWritten, wish(RunOnce, "b"))
	if s.State.DesiredState != RunOnce || s.Sum != file.SumOf(s.Bytes) {
		t.Errorf("%+v", s)
	}
	d.put(wish(RunOnce, "b")) // the same content again is not reported
	d.replace(wish(RunOnce, "c"))
	d.expect(KindWritten, wish(RunOnce, "c"))
	again, err := d.Read("coder")
	if err != nil || again.State.Note != "c" || again.Own {
		t.Fatalf("%+v, %v", again, err)
	}
	d.replace(wish(Pause, "b"))
	if s := d.expect(KindWritten, wish(Pause, "b")); s.Seq <= again.Seq {
		t.Errorf("%d after %d", s.Seq, again.Seq)
	}
}

func TestReadFirstThenTheSameSeqArrives(t *testing.T) {
	d, _ := newStillDesk(t, wish(RunCleanup, "x"))
	s, err := d.Read("coder")
	if err != nil {
		t.Fatal(err)
	}
	d.check(s, KindWritten, wish(RunCleanup, "x"))
	if came, any := d.waiting(); !any || came.Seq != s.Seq {
		t.Errorf("%+v, %v", came, any)
	}
}

func TestNoFileIsNoNews(t *testing.T) {
	d := newDesk(t, "")
	s, err := d.Read("coder")
	if err != nil || s.Kind != KindDeleted || s.Seq != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	d.put(wish(Pause, "first"))
	d.expect(KindWritten, wish(Pause, "first"))
}

func TestTornIsNotMalformedUntilItStaysSo(t *testing.T) {
	d, f := newStillDesk(t, wish(Pause, "a"))
	at := time.Now()
	d.lookAt(f, at)
	if _, any := d.waiting(); !any {
		t.Fatal("the first content was not seen")
	}
	for _, torn := range []string{"", "{", `{"desired_st`} { // each partial write restarts the wait
		d.put(torn)
		if again := d.lookAt(f, at); again.IsZero() {
			t.Fatal("in doubt, and not looked at again")
		}
		at = at.Add(file.TornFor - time.Nanosecond)
		d.lookAt(f, at)
		d.none()
	}
	d.put(wish(RunOnce, "b"))
	d.lookAt(f, at)
	if s, _ := d.waiting(); s.State.Note != "b" {
		t.Fatalf("%+v", s)
	}

	d.put("{")
	d.lookAt(f, at)
	d.lookAt(f, at.Add(file.TornFor))
	s, _ := d.waiting()
	d.check(s, KindMalformed, "{")
	if kept, err := os.ReadFile(filepath.Join(d.folder, s.KeptAs)); err != nil || string(kept) != "{" || s.Fault == "" {
		t.Errorf("%+v, %v", s, err)
	}
	d.lookAt(f, at.Add(time.Hour))
	d.none()
}

func TestMalformedIsKeptOnceAlsoAcrossRestarts(t *testing.T) {
	d := newDesk(t, "")
	d.put("[1, 2")
	s := d.expect(KindMalformed, "[1, 2")
	if !strings.HasPrefix(s.KeptAs, FileName+".corrupt-2") || strings.Contains(s.KeptAs, ":") {
		t.Error(s.KeptAs)
	}
	restarted, err := Watch(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = restarted.Close() }()
	if err := restarted.Add("coder", d.folder); err != nil {
		t.Fatal(err)
	}
	seen, err := restarted.Read("coder")
	if err != nil || seen.Kind != KindMalformed || seen.KeptAs != s.KeptAs {
		t.Errorf("%+v, %v", seen, err)
	}
	if copies := d.beside(corruptPrefix); len(copies) != 1 {
		t.Error(copies)
	}
	if err := d.Write(t.Context(), "coder", []byte(wish(Pause, "restored")), AnyLook, nil); err != nil { // C12
		t.Error(err)
	}
	d.lies(wish(Pause, "restored"))
}

func TestCopiesAreCounted(t *testing.T) {
	d := newDesk(t, "")
	for i := range corruptMax {
		d.putAs(corruptPrefix+string(rune('a'+i)), "old")
	}
	d.put("nonsense")
	s := d.expect(KindMalformed, "nonsense")
	if s.KeptAs != "" || !strings.Contains(s.Fault, "20 copies are kept already") {
		t.Errorf("%+v", s)
	}
}

func TestTooLargeIsMalformedAndItsBeginningKept(t *testing.T) {
	d := newDesk(t, "")
	d.put(strings.Repeat("x", agentStateBytesMax+100))
	s := d.next()
	kept, err := os.ReadFile(filepath.Join(d.folder, s.KeptAs))
	if s.Kind != KindMalformed || err != nil || len(kept) != agentStateBytesMax || !strings.Contains(s.Fault, "bytes are kept") {
		t.Errorf("%s %s, %d, %v", s.Kind, s.Fault, len(kept), err)
	}
}

func TestDeletedIsSeenOnce(t *testing.T) {
	d, f := newStillDesk(t, wish(Pause, "a"))
	at := time.Now()
	d.lookAt(f, at)
	_, _ = d.waiting()
	if err := os.Remove(d.path); err != nil {
		t.Fatal(err)
	}
	d.lookAt(f, at)
	d.lookAt(f, at.Add(goneFor-1))
	d.none() // an unlink followed by a rename leaves the file absent for a moment
	d.lookAt(f, at.Add(goneFor))
	s, _ := d.waiting()
	d.check(s, KindDeleted, "")
	d.lookAt(f, at.Add(time.Hour))
	d.none()
	d.put(wish(Pause, "a"))
	d.lookAt(f, at.Add(time.Hour))
	s, _ = d.waiting()
	d.check(s, KindWritten, wish(Pause, "a"))
}

func TestFolderVanishesAndComesBack(t *testing.T) {
	d := newDesk(t, wish(Pause, "a"))
	if err := os.RemoveAll(d.folder); err != nil {
		t.Fatal(err)
	}
	d.expect(KindDeleted, "")
	err := d.Write(t.Context(), "coder", []byte(wish(Pause, "b")), AnyLook, nil)
	if err == nil || !strings.Contains(err.Error(), "is gone; make it again") {
		t.Error(err)
	}
	if err := os.Mkdir(d.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	d.put(wish(RunOnce, "b"))
	d.expect(KindWritten, wish(RunOnce, "b"))

	aside := d.folder + ".aside"
	if err := errors.Join(os.Rename(d.folder, aside), os.Mkdir(d.folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	d.put(wish(RunOnce, "c"))
	for s := d.next(); s.State.Note != "c"; s = d.next() {
		if s.Kind != KindDeleted {
			t.Fatalf("%+v", s)
		}
	}
	d.put(wish(RunOnce, "d"))
	d.expect(KindWritten, wish(RunOnce, "d"))
	_ = os.RemoveAll(aside)
}

func TestPollFindsWhatTheWatchMissed(t *testing.T) {
	d, f := newStillDesk(t, wish(Pause, "a"))
	f.mu.Lock()
	f.watched = true
	f.mu.Unlock()
	d.lookAt(f, time.Now())
	d.waiting()
	if !f.stale() {
		t.Error("a file written this moment may be written again without its time changing")
	}
	d.lookAt(f, time.Now().Add(2*time.Second))
	if f.stale() {
		t.Error("nothing happened")
	}
	d.put(wish(Pause, "bb"))
	if !f.stale() {
		t.Error("another content was not noticed")
	}
	d.lookAt(f, time.Now().Add(2*time.Second))
	if err := os.Remove(d.path); err != nil {
		t.Fatal(err)
	}
	if !f.stale() {
		t.Error("a deletion was not noticed")
	}
}

func TestWithoutAWatchItIsPolled(t *testing.T) {
	w := newFiles(nil) // like a system without watches
	w.begin()
	d := layDesk(t, w, wish(Pause, "a"))
	d.expect(KindWritten, wish(Pause, "a"))
	d.put(wish(Pause, "b"))
	d.expect(KindWritten, wish(Pause, "b"))
}

func TestLinksAndOddThingsAreRefusedInWords(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(wish(Continuous, "outside")), 0o600); err != nil {
		t.Fatal(err)
	}
	for word, lay := range map[string]func(path string) error{
		"is a symbolic link": func(path string) error { return os.Symlink(secret, path) },
		"is no plain file":   func(path string) error { return os.Mkdir(path, 0o755) },
		"is no plain file; ": func(path string) error { return unix.Mkfifo(path, 0o644) },
	} {
		t.Run(word, func(t *testing.T) {
			d := newDesk(t, wish(Pause, "a"))
			if err := errors.Join(os.Remove(d.path), lay(d.path)); err != nil {
				t.Fatal(err)
			}
			if s := d.expect(KindUnreadable, ""); !strings.Contains(s.Fault, word) {
				t.Errorf("%+v", s)
			}
			if _, err := d.Read("coder"); err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("read: %v", err)
			}
			if err := d.Write(t.Context(), "coder", []byte(wish(Pause, "b")), AnyLook, nil); err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("write: %v", err)
			}
			if b, err := os.ReadFile(secret); err != nil || string(b) != wish(Continuous, "outside") {
				t.Errorf("what the link names was touched: %s, %v", b, err)
			}
			if err := os.Remove(d.path); err != nil {
				t.Fatal(err)
			}
			d.put(wish(Pause, "b"))
			for s := d.next(); s.State.Note != "b"; s = d.next() {
				if s.Kind != KindDeleted {
					t.Fatalf("%+v", s)
				}
			}
		})
	}
}

func TestALinkForTheFolderIsNotFollowed(t *testing.T) {
	d, f := newStillDesk(t, wish(Pause, "a"))
	elsewhere := t.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, FileName), []byte(wish(Continuous, "outside")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(d.folder), os.Symlink(elsewhere, d.folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read("coder"); err == nil || !strings.Contains(err.Error(), "a symbolic link is not followed") {
		t.Error(err)
	}
	if f.now.Kind != KindUnreadable {
		t.Errorf("%+v", f.now)
	}
}

func TestAddRefuses(t *testing.T) {
	d := newDesk(t, wish(Pause, "a"))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(d.folder, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, folder, words string }{
		{"reviewer", d.folder, "is the workspace of coder already"},
		{"reviewer", d.folder + "/../" + filepath.Base(d.folder), "is the workspace of coder already"},
		{"reviewer", link, "is the workspace of coder already"},
		{"coder", t.TempDir(), "watched already"},
		{"reviewer", d.folder + "/none", "make it"},
		{"reviewer", d.path, "is not a folder"},
	} {
		if err := d.Add(c.name, c.folder); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s in %s: %v", c.name, c.folder, err)
		}
	}
	if err := errors.Join(d.Remove("coder"), d.Add("reviewer", link)); err != nil {
		t.Error(err)
	}
	if s := d.next(); s.Name != "reviewer" || s.State.Note != "a" {
		t.Errorf("%+v", s)
	}
	if _, err := d.Read("coder"); err == nil || !strings.Contains(err.Error(), "Add it first") {
		t.Error(err)
	}
}

// Adding an agent looks at no other one, so that the cost of one does not grow with the team: here another file is busy all the time.
func TestAddLooksAtNoOther(t *testing.T) {
	d := newDesk(t, wish(Pause, "a"))
	busy, err := d.file("coder")
	if err != nil {
		t.Fatal(err)
	}
	busy.mu.Lock()
	defer busy.mu.Unlock()
	if err := d.Add("reviewer", t.TempDir()); err != nil {
		t.Error(err)
	}
}

// A folder that took the place of another one is known as the workspace of its agent.
func TestAddRefusesTheFolderThatIsThereNow(t *testing.T) {
	d := newDesk(t, wish(Pause, "a"))
	spare := t.TempDir()
	if err := errors.Join(os.Rename(d.folder, d.folder+".old"), os.Rename(spare, d.folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read("coder"); err != nil {
		t.Fatal(err)
	}
	if err := d.Add("reviewer", d.folder+".old"); err != nil {
		t.Errorf("the folder that was moved away: %v", err)
	}
	if err := errors.Join(os.Rename(d.folder, spare), d.Add("third", spare)); err == nil || !strings.Contains(err.Error(), "is the workspace of coder already") {
		t.Errorf("the folder that took its place: %v", err)
	}
}

func TestAfterCloseNothingWorksAndNothingHangs(t *testing.T) {
	d := newDesk(t, wish(Pause, "a"))
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	if _, open := <-d.Seen(); open {
		t.Error("Seen is open")
	}
	_, err := d.Read("coder")
	if !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := d.Write(t.Context(), "coder", []byte(wish(Pause, "b")), AnyLook, nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := d.Add("reviewer", t.TempDir()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	d.lies(wish(Pause, "a"))
}
