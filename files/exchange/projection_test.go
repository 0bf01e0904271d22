package exchange_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// projection is an exchange of run_state.json, which holds one content of Fairlead's.
func projection(t *testing.T) (f *runstate.Files, path string, reports *[]runstate.Seen) {
	t.Helper()
	dir := t.TempDir()
	f, reports = exchange.NewFiles(runstate.Content, nil), new([]runstate.Seen)
	f.Deliver(func(seen runstate.Seen) { *reports = append(*reports, seen) })
	if err := errors.Join(f.Add("r", dir), f.Write(t.Context(), "r", []byte(runState.says("ours")), exchange.AnyLook, nil)); err != nil {
		t.Fatal(err)
	}
	return f, filepath.Join(dir, runstate.RunStateName), reports
}

// TestProjection leaves nothing beside the file but what another program wrote, however often it is written.
func TestProjection(t *testing.T) {
	t.Parallel()
	f, path, reports := projection(t)
	for range 3 {
		if err := f.Write(t.Context(), "r", []byte(runState.says("ours again")), exchange.AnyLook, nil); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := file.NamesIn(filepath.Dir(path)); err != nil || len(names) != 1 || len(*reports) != 0 {
		t.Errorf("%q, %v; reported is %+v", names, err, *reports)
	}
	theirs := runState.says("theirs")
	if err := os.WriteFile(path, []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it waits for the caller
		err := f.Write(t.Context(), "r", []byte(runState.says("ours")), exchange.AnyLook, nil)
		if found, is := errors.AsType[*runstate.Changed](err); !is || string(found.Seen.Bytes) != theirs {
			t.Fatalf("the error is %v", err)
		}
	}
	seen, err := f.Read("r")
	if err != nil || runState.note(seen.State) != "theirs" || seen.Own {
		t.Fatalf("%+v, %v", seen, err)
	}
	f.Confirm(seen)
	if err := f.Write(t.Context(), "r", []byte(runState.says("ours")), exchange.AnyLook, nil); err != nil {
		t.Fatal(err)
	}
	if names, _ := file.NamesIn(filepath.Dir(path)); len(names) != 1 {
		t.Errorf("there are %q", names)
	}
}

// TestProjectionKeepsAnEdit writes the file while another program edits it, after the last look: the edit is kept aside.
func TestProjectionKeepsAnEdit(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]string{"whole": runState.says("theirs"), "malformed": "{"} {
		f, path, reports := projection(t)
		f.SetExchange(func(dir int, a, b string) error {
			return errors.Join(os.WriteFile(path, []byte(edit), 0o600), file.Exchange(dir, a, b))
		})
		ours := runState.says("ours again")
		if err := f.Write(t.Context(), "r", []byte(ours), exchange.AnyLook, nil); err != nil {
			t.Fatal(err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != ours {
			t.Errorf("%s: the file is %q, %v", name, now, err)
		}
		names, err := filepath.Glob(path + ".foreign-*")
		if err != nil || len(names) != 1 || len(*reports) != 1 {
			t.Fatalf("%s: %q, %v; reported is %+v", name, names, err, *reports)
		}
		kept, err := os.ReadFile(names[0])
		if seen := (*reports)[0]; err != nil || string(kept) != edit || !seen.FromSwap || seen.KeptAs != filepath.Base(names[0]) {
			t.Errorf("%s: kept is %q, %v; reported is %+v", name, kept, err, seen)
		}
	}
}

// TestProjectionInOneTick edits the file in the same tick of the file system's clock in which it was written, with as many bytes.
func TestProjectionInOneTick(t *testing.T) {
	t.Parallel()
	f, path, _ := projection(t)
	written, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	theirs := runState.says("mine")
	if err := errors.Join(os.WriteFile(path, []byte(theirs), 0o600), os.Chtimes(path, time.Time{}, written.ModTime())); err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(path); err != nil || now.Size() != written.Size() {
		t.Fatalf("the edit has another size: %v", err)
	}
	err = f.Write(t.Context(), "r", []byte(runState.says("ours again")), exchange.AnyLook, nil)
	if found, is := errors.AsType[*runstate.Changed](err); !is || string(found.Seen.Bytes) != theirs {
		t.Errorf("the error is %v", err)
	}
}

// TestProjectionMakesRoom puts aside what cannot be read.
func TestProjectionMakesRoom(t *testing.T) {
	t.Parallel()
	f, path, _ := projection(t)
	if err := errors.Join(os.Remove(path), os.Symlink("elsewhere", path)); err != nil {
		t.Fatal(err)
	}
	err := f.Write(t.Context(), "r", []byte(runState.says("ours")), exchange.AnyLook, nil)
	found, is := errors.AsType[*runstate.Changed](err)
	if !is || found.Seen.Kind != exchange.KindUnreadable {
		t.Fatalf("the error is %v", err)
	}
	name, err := f.PutAside(found.Seen, exchange.Foreign)
	if err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(filepath.Join(filepath.Dir(path), name)); err != nil || to != "elsewhere" {
		t.Errorf("kept is %q, %v", to, err)
	}
	if err := f.Write(t.Context(), "r", []byte(runState.says("ours")), exchange.AnyLook, nil); err != nil {
		t.Error(err)
	}
}
