package app

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
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// TestLogOfAGigabyte checks that a step that writes a gigabyte (FAIRLEAD_LONG=1; with
// FAIRLEAD_LONG=ci 64 MiB; otherwise, and with the race detector, 8 MiB), in lines and in one
// endless line, needs little memory, is stored completely, and completes normally.
func TestLogOfAGigabyte(t *testing.T) {
	if testing.Short() {
		t.Skip("writes much")
	}
	size := testsize.Pick[int64](4<<20, 32<<20, 512<<20)
	if testsize.Race && !testsize.Long() {
		size = 4 << 20
	}
	const heapMax = 64 << 20 // more than the engine needs with all its buffers, and far less than a log
	y := newRunWorld(t)
	list := []oddStep{
		{id: "lines", does: fmt.Sprintf(`yes 0123456789abcde | head -c %d; say COMPLETED > "$REPORT_PATH"`, size), status: "COMPLETED"},
		{
			id: "one_line", more: "needs: [lines]",
			does: fmt.Sprintf(`yes 0123456789abcdef | tr -d '\n' | head -c %d; say COMPLETED > "$REPORT_PATH"`, size), status: "COMPLETED",
		},
		{
			id: "marked", more: "needs: [one_line]",
			does: fmt.Sprintf(`yes '<<<RUN_REPORT_JSON' | head -c %d; echo; echo '<<<RUN_REPORT_JSON'; say COMPLETED; echo; echo 'RUN_REPORT_JSON>>>'`, size/8), status: "COMPLETED",
		},
	}
	y.start(view.RunFlags{Workflow: y.oddWorkflow(list), RunID: "big"})
	var most uint64
	looked := time.Now()
	late := time.After(10 * time.Minute)
	for {
		view, err := y.Runs.RunByID(t.Context(), "big")
		if err != nil {
			t.Fatal(err)
		}
		if time.Since(looked) > 20*time.Millisecond {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most, looked = max(most, m.HeapInuse), time.Now()
		}
		if over(view) {
			y.compareSteps(view, list)
			break
		}
		select {
		case <-late:
			t.Fatalf("it takes too long: %+v", view)
		case <-wait.After(2 * time.Millisecond): // a pause between two measurements of the heap
		}
	}
	t.Logf("two logs of %d MiB: %d MiB of memory at most", size>>20, most>>20)
	if most > heapMax {
		t.Errorf("%d MiB of memory", most>>20)
	}
	y.repeats("lines", "0123456789abcde\n", size)
	y.repeats("one_line", "0123456789abcdef", size)
}

// repeats checks that a step's log consists of a repeated text of this size.
func (y *runWorld) repeats(step, text string, size int64) {
	y.t.Helper()
	file, err := os.Open(filepath.Join(y.dir, ".agents", "runs", "big", "logs", "big__"+step+"__attempt1.log"))
	if err != nil {
		y.t.Fatal(err)
	}
	defer file.Close()
	want := bytes.Repeat([]byte(text), 1<<16)
	buf := make([]byte, len(want))
	var read int64
	for {
		n, err := io.ReadFull(file, buf)
		if !bytes.Equal(buf[:n], want[:n]) {
			y.t.Fatalf("the log of %s is wrong near byte %d", step, read)
		}
		if read += int64(n); err != nil {
			break
		}
	}
	if read != size {
		y.t.Errorf("the log of %s has %d bytes of %d", step, read, size)
	}
}

// TestStateFileUnderLoad checks that while steps end at full speed, in a run with a long state
// file, every reader finds the file complete and close to the journal.
func TestStateFileUnderLoad(t *testing.T) {
	t.Parallel()
	quick, idle := 60, 1500
	if testsize.Race || !testsize.CI() {
		quick, idle = 20, 300
	}
	y := newRunWorld(t)
	script := y.file("step.sh", "#!/bin/sh\n"+saying+`say COMPLETED > "$REPORT_PATH"`)
	var flow strings.Builder
	flow.WriteString("name: load\nsteps:\n")
	for n := range quick {
		fmt.Fprintf(&flow, "  - {id: q%d, command: [%q], needs: [%s]}\n", n, script, strings.Repeat(fmt.Sprintf("q%d", n-2), min(1, n/2)))
	}
	fmt.Fprintf(&flow, "  - {id: last, command: [sleep, \"1000\"], needs: [q%d, q%d]}\n", quick-1, quick-2)
	for n := range idle {
		fmt.Fprintf(&flow, "  - {id: idle%d, command: [%q], needs: [last]}\n", n, script)
	}
	two := 2
	shown := y.start(view.RunFlags{Workflow: y.file("flow.yaml", flow.String()), RunID: "load", SideBySide: &two})
	y.until("load", "its file is there", func(view.RunView) bool { _, err := os.Lstat(shown.StateFile); return err == nil })
	var lags []time.Duration
	reads := 0
	late := time.Now().Add(waitMax)
	for done := false; !done; {
		all, err := y.Runs.Runs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done = all[0].Counts.Completed == quick && !all[0].FileBehind
		asked := time.Now()
		want := runstate.FormatRunTime(all[0].UpdatedAt)
		text := y.readWhole(shown.StateFile)
		for reads++; updated(text) < want; reads++ { // the times of the format are ordered as texts
			if time.Now().After(late) {
				t.Fatalf("the file says %s, the journal %s", updated(text), want)
			}
			text = y.readWhole(shown.StateFile)
		}
		lags = append(lags, time.Since(asked))
		if _, err := runstate.ParseRunState(text); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now() // what one write takes here and now
	if err := file.ReplaceUnsynced(filepath.Join(y.dir, "scratch"), y.readWhole(shown.StateFile), workspace.StateMode); err != nil {
		t.Fatal(err)
	}
	write := time.Since(began)
	slices.Sort(lags)
	t.Logf("%d looks, %d reads, all whole; behind by %s in the middle, %s at most; a write takes %s", len(lags), reads, lags[len(lags)/2],
		lags[len(lags)-1], write)
	if _, err := y.Runs.CancelRun(t.Context(), human, "load", "", "seen enough"); err != nil {
		t.Fatal(err)
	}
}

// readWhole reads a state file, which must never be torn, and checks its beginning and end.
func (y *runWorld) readWhole(path string) []byte {
	y.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		y.t.Fatal(err)
	}
	if !bytes.HasPrefix(text, []byte("{\n  \"run_id\"")) || !bytes.HasSuffix(text, []byte("\n  }\n}")) {
		y.t.Fatalf("it is torn: %d bytes, %.80q … %.80q", len(text), text, text[max(0, len(text)-80):])
	}
	return text
}

// updated returns updated_at of a state file without parsing all of it.
func updated(text []byte) string {
	_, rest, _ := bytes.Cut(text, []byte(`"updated_at": "`))
	at, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(at)
}

// SPEC Workflow: if another program edits the state file of an active run, the edit is kept aside
// byte for byte, and Fairlead's content is written again. If the file is removed, it is written
// again, too.
func TestStateFileEdited(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	for name, edit := range map[string]func(path string, was []byte) (kept string, err error){
		"edited": func(path string, was []byte) (string, error) {
			text := strings.Replace(string(was), "RUNNING", "COMPLETED", 1)
			return text, os.WriteFile(path, []byte(text), 0o600)
		},
		"torn": func(path string, was []byte) (string, error) {
			return string(was[:len(was)/2]), os.WriteFile(path, was[:len(was)/2], 0o600)
		},
		"replaced": func(path string, _ []byte) (string, error) {
			return "mine", errors.Join(os.WriteFile(path+".new", []byte("mine"), 0o600), os.Rename(path+".new", path))
		},
		"same_size": func(path string, was []byte) (string, error) {
			text := strings.ToUpper(string(was))
			return text, os.WriteFile(path, []byte(text), 0o600)
		},
		"link": func(path string, _ []byte) (string, error) {
			text := "another program's field"
			return text, errors.Join(os.WriteFile(path+".own", []byte(text), 0o600), os.Remove(path), os.Symlink(path+".own", path))
		},
		"gone": func(path string, _ []byte) (string, error) { return "", os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			flow := y.oddWorkflow([]oddStep{{
				id:   "one",
				does: `until [ -e go.$RUN_ID ]; do sleep 0.01; done; say COMPLETED > "$REPORT_PATH"`,
			}})
			y.start(view.RunFlags{Workflow: flow, RunID: name})
			view := y.until(name, "it works, and its file says so",
				func(v view.RunView) bool { return !v.FileBehind && v.Steps[0].Session != "" })
			was := y.wholeState(view.StateFile, "RUNNING")
			kept, err := edit(view.StateFile, was)
			if err != nil {
				t.Fatal(err)
			}
			y.file("go."+name, "")
			y.until(name, "it completes", over)
			y.wholeState(view.StateFile, "COMPLETED")
			aside, _ := filepath.Glob(view.StateFile + ".foreign-*")
			if kept == "" {
				if len(aside) != 0 {
					t.Errorf("kept %v, want nothing", aside)
				}
				return
			}
			if len(aside) != 1 {
				t.Fatalf("kept %v", aside)
			}
			if text, err := os.ReadFile(aside[0]); err != nil || string(text) != kept {
				t.Errorf("kept %q, %v", text, err)
			}
			if info, err := os.Lstat(view.StateFile); err != nil || !info.Mode().IsRegular() {
				t.Errorf("Fairlead's file: %v, %v", info, err)
			}
		})
	}
}

// wholeState reads a state file that parses and whose first step has a status.
func (y *runWorld) wholeState(path, status string) []byte {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), waitMax)
	defer cancel()
	for {
		text, err := os.ReadFile(path)
		if err == nil {
			state, err := runstate.ParseRunState(text)
			if err != nil {
				y.t.Fatal(err)
			}
			if state.Steps[0].Status == status {
				return text
			}
		}
		if !retry.Rest(ctx, 2*time.Millisecond) {
			y.t.Fatalf("%s never said %s: %s, %v", path, status, text, err)
		}
	}
}

// TestStateFileEditedBetweenLives checks that an edit while no engine ran is kept aside by the next
// one, also if updated_at is unchanged, and that the file of the last engine is not.
func TestStateFileEditedBetweenLives(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(was string) string{
		"nobody": func(was string) string { return was },
		"older":  func(was string) string { return "" },
		"edited": func(was string) string { return strings.Replace(was, `"attempts": 1`, `"attempts": 0`, 1) },
		"torn":   func(was string) string { return was[:len(was)/2] },
	} {
		t.Run(name, func(t *testing.T) {
			b := &crashingEngine{t: t, dir: t.TempDir(), slate: memory.New()}
			y := &runWorld{t: t, dir: b.dir}
			y.file("fairlead.yaml", "version: 1\nagents: {}\n")
			y.oddWorkflow([]oddStep{
				{id: "one", does: `until [ -e go ]; do sleep 0.01; done; say COMPLETED > "$REPORT_PATH"`},
			})
			var end func() int
			y.App, end = b.life(0, false)
			<-y.Loop.Ready()
			path := y.start(view.RunFlags{Workflow: "flow.yaml", RunID: "r"}).StateFile
			y.until("r", "it works, and its file says so", func(v view.RunView) bool { return !v.FileBehind && v.Steps[0].Session != "" })
			was := y.wholeState(path, "RUNNING")
			end()
			want := edit(string(was))
			switch {
			case want == "": // the last engine ended before it wrote this state over the one before
				state, err := runstate.ParseRunState(was)
				if err != nil {
					t.Fatal(err)
				}
				want = strings.Replace(string(was), "RUNNING", "PENDING", 1)
				want = strings.Replace(want, `"updated_at": "`+state.UpdatedAt, `"updated_at": "`+earlier(t, state.UpdatedAt), 1)
				if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
					t.Fatal(err)
				}
				want = ""
			case want != string(was):
				minute := time.Now().Add(time.Minute) // a person takes some time
				if err := errors.Join(os.WriteFile(path, []byte(want), 0o600), os.Chtimes(path, minute, minute)); err != nil {
					t.Fatal(err)
				}
			default:
				want = ""
			}
			y.file("go", "")
			y.App, end = b.life(0, false)
			<-y.Loop.Ready()
			if view := awaitRun(t, y.App); view.Status != "completed" {
				t.Errorf("%+v", view)
			}
			y.wholeState(path, "COMPLETED")
			end()
			kept := ""
			aside, _ := filepath.Glob(path + ".foreign-*")
			for _, one := range aside {
				text, err := os.ReadFile(one)
				if err != nil {
					t.Fatal(err)
				}
				kept += string(text)
			}
			if kept != want {
				t.Errorf("kept aside: %q, want %q", kept, want)
			}
		})
	}
}

// earlier returns a time of a run_state.json a millisecond before another.
func earlier(t *testing.T, at string) string {
	t.Helper()
	then, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		t.Fatal(err)
	}
	return then.Add(-time.Millisecond).Format("2006-01-02T15:04:05.000000Z07:00")
}

// TestStateFileThatIsBroken checks that a truncated or invalid file is refused with its line number
// on resume, and is not changed.
func TestStateFileThatIsBroken(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	whole, err := os.ReadFile(filepath.Join("..", "files", "runstate", "testdata", "run_state_3.json"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(whole)
	flow := y.oddWorkflow([]oddStep{{id: "planning", does: "true"}, {id: "coding", does: "true"}})
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"torn":     {text[:len(text)/2], 1 + strings.Count(text[:len(text)/2], "\n")},
		"empty":    {"", 1},
		"binary":   {"\x00\xff\x00", 1},
		"list":     {"[]", 1},
		"status":   {strings.Replace(text, "FAILED", "MAYBE", 1), 25},
		"time":     {strings.Replace(text, `"2025-01-15T10:02:35.000000Z"`, `"yesterday"`, 1), 0},
		"number":   {strings.Replace(text, `"attempts": 2`, `"attempts": "two"`, 1), 26},
		"trailing": {text + "{}", 1 + strings.Count(text, "\n")},
		"other_id": {strings.Replace(text, `"xyz789"`, `"abc"`, 1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := y.file(filepath.Join(".agents", "runs", "xyz789", runstate.RunStateName), c.text)
			_, err := y.Runs.ResumeRun(t.Context(), human, "xyz789", view.RunFlags{Workflow: flow})
			var fault *file.JSONFault
			if err == nil || c.line > 0 && (!errors.As(err, &fault) || fault.Line != c.line) {
				t.Errorf("%v (line %d)", err, c.line)
			}
			if now, err := os.ReadFile(path); err != nil || string(now) != c.text {
				t.Errorf("it is %q now, %v", now, err)
			}
			if aside, _ := filepath.Glob(path + ".*"); len(aside) > 0 {
				t.Errorf("files beside it: %v", aside)
			}
			if all, err := y.Runs.Runs(t.Context()); err != nil || len(all) > 0 {
				t.Errorf("the file was imported: %+v, %v", all, err)
			}
		})
	}
}
