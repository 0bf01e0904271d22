package exchange_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// What was observed is renamed, and nothing else: not what has replaced it since, in the file and in a replaced one.
func TestPutAside(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		d, f := newStillDesk(t, k, k.says("a"))
		seen, err := d.watchedFiles.Read(k.name)
		if err != nil {
			t.Fatal(err)
		}
		d.waiting()
		d.replace(k.says("b"))
		if name, err := d.PutAside(seen, "refused"); !errors.Is(err, exchange.ErrChanged) {
			t.Errorf("%q, %v", name, err)
		}
		d.lies(k.says("b"))
		if seen, err = d.watchedFiles.Read(k.name); err != nil {
			t.Fatal(err)
		}
		d.waiting()
		name, err := d.PutAside(seen, "refused")
		if err != nil || !strings.HasPrefix(name, k.base+".refused-2") || strings.Contains(name, ":") {
			t.Fatalf("%q, %v", name, err)
		}
		if b, err := os.ReadFile(filepath.Join(d.folder, name)); err != nil || string(b) != k.says("b") {
			t.Errorf("%s, %v", b, err)
		}
		d.LookAt(f, time.Now().Add(time.Hour))
		d.none() // it is no deletion by another program
		d.write(k.says("ours"))
		d.lies(k.says("ours"))

		pen, err := os.OpenFile(d.path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = pen.Close() }()
		d.write(k.says("ours again"))
		if _, err := pen.WriteAt([]byte(k.says("late")), 0); err != nil {
			t.Fatal(err)
		}
		d.LookAt(f, time.Now().Add(2*time.Hour))
		late, any := d.waiting()
		if !any || !late.FromSwap {
			t.Fatalf("%+v", late)
		}
		name, err = d.PutAside(late, "refused")
		if b, readErr := os.ReadFile(filepath.Join(d.folder, name)); err != nil || readErr != nil || string(b) != k.says("late") {
			t.Errorf("%q: %s, %v, %v", name, b, err, readErr)
		}
		d.lies(k.says("ours again"))
		d.LookAt(f, time.Now().Add(3*time.Hour))
		d.LookAt(f, time.Now().Add(4*time.Hour))
		if left := d.beside(k.swap); len(left) != 0 || f.Swapped() != 0 {
			t.Errorf("%q is left, and %d are watched", left, f.Swapped())
		}
	})
}

// A file of many is found when another program makes it, and forgotten when it is gone. The watch reports it: polls alone
// would take a minute for so many.
func TestFilesOfAFolderComeAndGo(t *testing.T) {
	k := document
	d := newDesk(t, k, "")
	const files = 12
	began := time.Now()
	for n := range files {
		name := fmt.Sprintf("a%d", n)
		d.putAs(name+k.content.Ending, k.says(name))
		if s := d.next(); s.Name != name || k.note(s.State) != name || s.Kind != exchange.KindWritten {
			t.Fatalf("%+v", s)
		}
	}
	if took := time.Since(began); took > (files-1)*file.PollEvery {
		t.Errorf("%d took %v", files, took)
	}
	for n := range files {
		if err := os.Remove(filepath.Join(d.folder, fmt.Sprintf("a%d.json", n))); err != nil {
			t.Fatal(err)
		}
	}
	for range files {
		if s := d.next(); s.Kind != exchange.KindDeleted {
			t.Fatalf("%+v", s)
		}
	}
	f := d.Folders()[0]
	wait.Value(t, "they are forgotten", func() (int, error) { d.LookAt(f, time.Now()); return d.Known(f), nil },
		func(known int) bool { return known == 0 })
	d.write(k.says("back"))
	d.lies(k.says("back"))
}

// Other names in the folder are none of its files: they are not read, and no name leads out of the folder.
func TestFilesOfAFolderAreNothingElse(t *testing.T) {
	k := document
	d, f := newStillDesk(t, k, "")
	for _, name := range []string{"readme.txt", ".hidden.json", ".json", "mira.json.corrupt-1"} {
		d.putAs(name, k.says(name))
	}
	if err := unix.Mkfifo(filepath.Join(d.folder, "pipe.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	d.LookAt(f, at)
	d.LookAt(f, at.Add(file.TornFor))
	if s, _ := d.waiting(); s.Name != "pipe" || s.Kind != exchange.KindUnreadable {
		t.Errorf("%+v", s)
	}
	d.none()
	for _, name := range []string{"../mira", "", ".mira", "a/b"} {
		if err := d.Write(t.Context(), name, []byte(k.says("x")), exchange.AnyLook, nil); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	for _, name := range []string{"mira", "an odd name"} {
		if err := d.Write(t.Context(), name, []byte(k.says("x")), exchange.AnyLook, nil); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A folder that is made later is found, and one that is missing is made for the first file.
func TestAFolderOfManyMayBeMadeLater(t *testing.T) {
	k := document
	w := exchange.NewFiles(k.content, nil)
	defer func() { _ = w.Close() }()
	folder := filepath.Join(t.TempDir(), "agents")
	arrived := make(chan seenFile, 16)
	w.Deliver(func(s seenFile) { arrived <- s })
	if err := w.Add("the crew", folder); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), "mira", []byte(k.says("ours")), exchange.AnyLook, nil); err != nil {
		t.Fatal(err)
	}
	if is, err := os.Stat(folder); err != nil || is.Mode().Perm() != exchange.FolderMode {
		t.Errorf("%v, %v", is, err)
	}
	if err := os.WriteFile(filepath.Join(folder, "noor.json"), []byte(k.says("theirs")), 0o600); err != nil {
		t.Fatal(err)
	}
	w.LookAt(w.Folders()[0], time.Now())
	if s := <-arrived; s.Name != "noor" || k.note(s.State) != "theirs" || len(arrived) != 0 {
		t.Errorf("%+v, and %d more", s, len(arrived))
	}
}

// No more is read than the consumer has room for, so that a folder full of large files takes little memory.
func TestUnconfirmedFilesHaveALimit(t *testing.T) {
	k := document
	d, f := newStillDesk(t, k, "")
	large := k.says(strings.Repeat("x", 40<<10))
	for n := range exchange.UnconfirmedMax/len(large) + 50 {
		d.putAs(fmt.Sprintf("a%04d.json", n), large)
	}
	var seen []seenFile
	collect := func() int {
		before := len(seen)
		for len(d.arrived) > 0 {
			seen = append(seen, <-d.arrived)
		}
		return len(seen) - before
	}
	if again := d.LookAt(f, time.Now()); again.IsZero() {
		t.Error("it is not looked at again")
	}
	if n, most := collect(), exchange.UnconfirmedMax/len(large)+1; n > most || n < most-1 {
		t.Errorf("%d were delivered, want %d", n, most)
	}
	d.LookAt(f, time.Now())
	if n := collect(); n != 0 {
		t.Errorf("%d more were delivered", n)
	}
	for _, s := range seen {
		d.Confirm(s)
	}
	d.LookAt(f, time.Now())
	if collect() == 0 {
		t.Error("the rest was not delivered")
	}
	names := make([]string, len(seen))
	for i, s := range seen {
		names[i] = s.Name
	}
	slices.Sort(names)
	if all := len(slices.Compact(names)); all != len(seen) {
		t.Errorf("%d of %d were delivered twice", len(seen)-all, len(seen))
	}
}
