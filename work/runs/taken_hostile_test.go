package runs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/files/runstate"
	"golang.org/x/sys/unix"
)

// TestTakenFromAnEnemy checks that nothing which a step leaves beside its artifacts keeps the daemon from taking them, from those of
// other steps, or for long; and that an artifact has no more rights than others.
func TestTakenFromAnEnemy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leave func(dir string) error
		left  string // a part of what is said; empty: nothing is left
	}{
		"a name that leaves no room for a second one": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, strings.Repeat("n", 255)), nil, 0o600)
		}, "too long"},
		"the longest name that is taken": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, strings.Repeat("n", 200)), nil, 0o600)
		}, ""},
		"a long path": {func(dir string) error {
			deep := filepath.Join(dir, strings.Repeat(strings.Repeat("d", 200)+"/", 8))
			return firstOf(os.MkdirAll(deep, 0o700), os.WriteFile(filepath.Join(deep, "file"), nil, 0o600))
		}, "too long"},
		"folders without end": {func(dir string) error {
			for i := range takenDirsMax + 1 {
				if err := os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o700); err != nil {
					return err
				}
			}
			return nil
		}, "folders"},
		"folders in folders": {
			func(dir string) error { return os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 100)), 0o700) },
			"in each other",
		},
		"a folder without rights": {func(dir string) error { return os.Mkdir(filepath.Join(dir, "closed"), 0) }, ""},
		"a file of 10 GB with nothing": {func(dir string) error {
			return firstOf(os.WriteFile(filepath.Join(dir, "hole"), nil, 0o600), os.Truncate(filepath.Join(dir, "hole"), 10<<30))
		}, "at most"},
		"a socket": {func(dir string) error {
			return syscall.Mknod(filepath.Join(dir, "socket"), syscall.S_IFSOCK|0o600, 0)
		}, "no regular file"},
		"a link to itself": {
			func(dir string) error { return os.Symlink("loop", filepath.Join(dir, "loop")) },
			"no regular file",
		},
		"a link upwards": {
			func(dir string) error { return os.Symlink("../reports", filepath.Join(dir, "up")) },
			"no regular file",
		},
		"a name of no text": {
			func(dir string) error { return os.WriteFile(filepath.Join(dir, "\xff\xfe"), nil, 0o600) },
			"cannot be that",
		},
		"a second name of the good one": {func(dir string) error {
			return os.Link(filepath.Join(dir, "good"), filepath.Join(dir, "twice"))
		}, ""},
		"a name that the daemon writes": {
			func(dir string) error { return os.WriteFile(filepath.Join(dir, ".good-new"), nil, 0o600) },
			"cannot be that",
		},
		"a folder with that name": {
			func(dir string) error { return os.MkdirAll(filepath.Join(dir, ".good-new", "x"), 0o700) },
			"cannot be that",
		},
		"rights of the owner": {func(dir string) error {
			return firstOf(os.WriteFile(filepath.Join(dir, "program"), []byte("#!"), 0o600),
				unix.Chmod(filepath.Join(dir, "program"), 0o6777))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own, run := t.TempDir(), t.TempDir()
			artifacts := filepath.Join(own, "artifacts")
			if err := firstOf(os.Mkdir(artifacts, 0o700), os.Mkdir(filepath.Join(own, "reports"), 0o700),
				os.WriteFile(filepath.Join(artifacts, "good"), []byte("good"), 0o600), c.leave(artifacts)); err != nil {
				t.Fatal(err)
			}
			f := StepFacts{
				Cmd: runstate.StepCommand{RunID: "r", StepID: "one"}, dir: run,
				Report: filepath.Join(run, "reports", "r__one.json"),
			}
			left, err := (&Controller{}).takeFiles(f, own)
			said := strings.Join(left, "; ")
			if unreadable := strings.Contains(said, "it cannot be read"); err != nil || !strings.Contains(said, c.left) ||
				c.left == "" && said != "" && !unreadable {
				t.Errorf("left are %q, %v", left, err)
			}
			if text, err := os.ReadFile(filepath.Join(run, "artifacts", "good")); err != nil || string(text) != "good" {
				t.Errorf("the good one is %q, %v", text, err)
			}
			if info, err := os.Stat(filepath.Join(run, "artifacts", "program")); err == nil && info.Mode() != executableMode {
				t.Errorf("a program has the mode %v", info.Mode())
			}
			_ = os.Chmod(filepath.Join(artifacts, "closed"), 0o700)
			other := StepFacts{
				Cmd: runstate.StepCommand{RunID: "r", StepID: "two"}, dir: run,
				Report: filepath.Join(run, "reports", "r__two.json"),
			}
			next := t.TempDir()
			if err := firstOf(os.MkdirAll(filepath.Join(next, "artifacts"), 0o700),
				os.WriteFile(filepath.Join(next, "artifacts", "mine"), []byte("mine"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if left, err := (&Controller{}).takeFiles(other, next); err != nil || len(left) > 0 {
				t.Errorf("of another step, left are %q, %v", left, err)
			}
			if _, err := os.Stat(filepath.Join(run, "artifacts", "mine")); err != nil {
				t.Errorf("of another step: %v", err)
			}
		})
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
