package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTrialIsNotDeceived checks that nothing which an earlier session can have left in a protected folder makes the trial of the next
// one say what is not so: where Landlock stands alone, the folder is open, and in a view it is not.
func TestTrialIsNotDeceived(t *testing.T) {
	need(t)
	for name, leave := range map[string]func(dir string) error{
		"nothing":                   func(string) error { return nil },
		"the file of the trial":     func(dir string) error { return os.WriteFile(filepath.Join(dir, ".fairlead-wall"), nil, 0o600) },
		"a folder at its name":      func(dir string) error { return os.Mkdir(filepath.Join(dir, ".fairlead-wall"), 0o700) },
		"a link at its name":        func(dir string) error { return os.Symlink("/nowhere", filepath.Join(dir, ".fairlead-wall")) },
		"a folder without a right":  func(dir string) error { return os.Chmod(dir, 0o500) }, //nolint:gosec // it is a folder
		"a folder that is immobile": func(dir string) error { return setFlags(dir, immutable) },
	} {
		for _, by := range []Mechanism{ByNamespaces, ByLandlock} {
			t.Run(name+" by "+string(by), func(t *testing.T) {
				s := newScratch(t)
				closed := filepath.Join(s.in, "closed")
				if err := os.Mkdir(closed, 0o700); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = setFlags(closed, 0) })
				if err := leave(closed); err != nil {
					t.Skip("it cannot be left here: ", err)
				}
				a := Abilities()
				if by == ByLandlock {
					a = Ability{By: ByLandlock}
				} else if a.By != ByNamespaces {
					t.Skipf("there is no view here: %v", a.Why)
				}
				view := a.Apply(View{Dir: s.in, Places: []Place{{Path: s.in, Access: Write}, {Path: closed, Access: Read}}})
				unheld, err := trial(t.Context(), view)
				if err != nil {
					t.Fatal(err)
				}
				if is := slices.Contains(unheld, RowInside); is != (by == ByLandlock) {
					t.Errorf("not held: %v", unheld)
				}
				view.Places[1].Must = true
				if unheld, err = trial(t.Context(), view); err != nil || slices.Contains(unheld, RowWrite) != (by == ByLandlock) {
					t.Errorf("with a place that must be held, not held: %v, %v", unheld, err)
				}
				left, err := os.ReadDir(closed)
				if err != nil || len(left) > 1 || len(left) == 1 && !strings.HasPrefix(left[0].Name(), ".fairlead-wall") {
					t.Errorf("the trial left %v, %v", left, err)
				}
			})
		}
	}
}

const immutable = 0x10 // FS_IMMUTABLE_FL

// setFlags sets the flags of a file system's folder, which root may, and some file systems have.
func setFlags(dir string, flags int) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags)
}
