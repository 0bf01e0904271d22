package runs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/files/runstate"
)

// TestTaken is the table of what a step may leave in its own folders, and what the run has then.
func TestTaken(t *testing.T) {
	t.Parallel()
	dir, own := t.TempDir(), t.TempDir()
	outside := filepath.Join(dir, "secret")
	write := func(p, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(outside, "secret")
	run := filepath.Join(dir, "run")
	of := func(step string) StepFacts {
		return StepFacts{
			Cmd: runstate.StepCommand{RunID: "r", StepID: step}, dir: run,
			Report: filepath.Join(run, "reports", "r__"+step+".json"),
		}
	}
	at := func(rest string) string { return filepath.Join(own, rest) }
	write(filepath.Join(run, "artifacts", "before"), "of a command")
	write(filepath.Join(run, "artifacts", "file"), "of a command")

	write(at("reports/r__one.json"), "report of one")
	write(at("reports/r__two.json"), "forged")
	write(at("artifacts/a"), "a of one")
	write(at("artifacts/deep/er/b"), "b of one")
	write(at("artifacts/before"), "mine now")
	write(at("artifacts/file/x"), "x")
	write(at("artifacts/.a-new"), "x")
	for _, err := range []error{
		os.Symlink(outside, at("artifacts/link")), os.Symlink(dir, at("artifacts/folder")), syscall.Mkfifo(at("artifacts/pipe"), 0o644),
		os.WriteFile(at("artifacts/bad\nname"), nil, 0o644), os.WriteFile(at("artifacts/program"), []byte("#!"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c := &Controller{}
	want := func(files string) {
		t.Helper()
		var got []string
		err := filepath.WalkDir(run, func(p string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || e.Name() == takenName {
				return err
			}
			text, err := os.ReadFile(p)
			got = append(got, fmt.Sprintf("%s=%s", strings.TrimPrefix(p, run+"/"), text))
			return err
		})
		if wanted := strings.Split(files, "; "); err != nil || !slices.Equal(got, wanted) {
			t.Errorf("the run has %q, want %q, %v", got, wanted, err)
		}
	}
	for range 2 { // a second time after a crash
		left, err := c.takeFiles(of("one"), own)
		if err != nil || len(left) != 7 {
			t.Errorf("left are %q, %v", left, err)
		}
		want("artifacts/a=a of one; artifacts/before=of a command; artifacts/deep/er/b=b of one; artifacts/file=of a command; artifacts/program=#!; reports/r__one.json=report of one")
	}
	if info, err := os.Stat(filepath.Join(run, "artifacts/program")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("a program is %v, %v", info, err)
	}

	if err := os.RemoveAll(own); err != nil {
		t.Fatal(err)
	}
	write(at("reports/r__one.json"), "second report")
	write(at("artifacts/a"), "a again")
	if left, err := c.takeFiles(of("one"), own); err != nil || len(left) > 0 {
		t.Errorf("of the next attempt, left are %q, %v", left, err)
	}
	write(at("artifacts/a"), "a of two!")
	write(at("artifacts/c"), "c")
	if left, err := c.takeFiles(of("two"), own); err != nil || len(left) != 1 || !strings.Contains(left[0], "step one has") {
		t.Errorf("of another step, left are %q, %v", left, err)
	}
	want("artifacts/a=a again; artifacts/before=of a command; artifacts/c=c; artifacts/deep/er/b=b of one; artifacts/file=of a command; artifacts/program=#!; reports/r__one.json=second report")
	if left, err := c.takeFiles(of("one"), filepath.Join(dir, "none")); err != nil || len(left) > 0 {
		t.Errorf("without folders of its own: %q, %v", left, err)
	}
}
