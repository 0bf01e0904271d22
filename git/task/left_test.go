package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A command is over when it ends, whatever it has left in the background: that is ended and named, the exit code decides, and
// the limit of its time is for the command itself.
func TestCommandLeavesAProcess(t *testing.T) {
	t.Parallel()
	var number atomic.Int32
	for name, c := range map[string]struct {
		check  string
		failed string // a part of the error; empty: it passes
		limit  time.Duration
	}{
		"none":                        {"echo done", "", time.Hour},
		"in its group":                {"sleep 600 & echo done", "", time.Hour},
		"its output is not inherited": {"sleep 600 > /dev/null 2>&1 & echo done", "", time.Hour},
		"and fails":                   {"sleep 600 & echo done; exit 3", "exit status 3", time.Hour},
		"and is too slow":             {"sleep 600 & echo done; wait", "longer than 2s, the limit", 2 * time.Second},
	} {
		for _, mode := range []string{wallOff, wallAuto} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				seconds := fmt.Sprintf("600.%d%d", os.Getpid(), number.Add(1)) // no other process has such a word
				w.task.Checks, w.task.Timeout, w.task.Wall.Mode = []string{strings.ReplaceAll(c.check, "600", seconds)}, c.limit, mode
				asked := 0
				w.task.EndLeft = func(context.Context, int) ([]string, error) { asked++; return []string{"one", "two"}, nil }
				var out bytes.Buffer
				err := w.task.Check(t.Context(), &out)
				if (err == nil) != (c.failed == "") ||
					err != nil && (!strings.Contains(err.Error(), c.failed) || !errors.As(err, new(*CheckFailed))) {
					t.Fatalf("%v\n%s", err, &out)
				}
				if asked != 1 || !strings.Contains(out.String(), "\ndone\n") ||
					!strings.Contains(out.String(), "ended what the command has left in the background: one, two\n") {
					t.Errorf("asked %d times, said: %s", asked, &out)
				}
				for begun := time.Now(); runs(seconds); runtime.Gosched() {
					if time.Since(begun) > time.Minute {
						t.Fatal("what it has left runs")
					}
				}
			})
		}
	}
}

// runs reports whether a process has a word among its arguments. A zombie has none.
func runs(word string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline") // none where there is no such folder
	return slices.ContainsFunc(all, func(file string) bool {
		text, _ := os.ReadFile(file)
		return bytes.Contains(text, []byte(word))
	})
}

// A signal that ends a command from outside is no verdict on the files. A fault of the command's own is.
func TestCheckEndedByASignal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for check, failed := range map[string]bool{"kill -KILL $$": false, "kill -TERM $$": false, "kill -SEGV $$": true, "exit 137": true} {
		for _, mode := range []string{wallOff, wallAuto} {
			w.task.Checks, w.task.Wall.Mode = []string{check}, mode
			if err := w.task.Check(t.Context(), io.Discard); err == nil || errors.As(err, new(*CheckFailed)) != failed {
				t.Errorf("%s, %s: %v", check, mode, err)
			}
		}
	}
}

// A git that was killed while it brought an untouched folder to the newest commit leaves locks there, and the next one removes them.
func TestPrepareKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.repo, "a.txt", "newer\n")
	w.git(w.repo, "commit", "--quiet", "-a", "-m", "newer")
	for _, name := range []string{"index.lock", "HEAD.lock", "refs/heads/" + w.task.Branch + ".lock"} {
		w.put(w.task.Tree, filepath.Join(".git", name), "")
		w.must(os.RemoveAll(filepath.Join(w.task.Run, preparedName)))
		w.must(w.task.Prepare(t.Context(), io.Discard))
		if got := w.git(w.task.Tree, "log", "-1", "--format=%s %D"); got != "newer HEAD -> "+w.task.Branch {
			t.Errorf("%s: it is at %q", name, got)
		}
	}
}
