package indexer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/exec"
	"github.com/fairlead-dev/fairlead/read/search"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// bench is a journal and some output.
type bench struct {
	t      *testing.T
	j      journal.Journal
	spools map[string][]byte
	log    bytes.Buffer
	path   string
	index  *search.Index
	x      *Indexer
	n      int // changes so far
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, j: memory.New(), spools: map[string][]byte{}, path: filepath.Join(t.TempDir(), "search.db")}
	b.start()
	t.Cleanup(func() { b.index.Close() })
	return b
}

// start is what a daemon does when it starts.
func (b *bench) start() {
	b.index = search.New(b.path, search.BytesMax)
	b.x = New(Options{
		Index: b.index, Journal: b.j, Drivers: map[string]driver.Driver{"exec": exec.Driver{}},
		Log:    slog.New(slog.NewTextHandler(&b.log, nil)),
		Driver: func(string) string { return "exec" },
		Output: func(_ context.Context, id string, offset int64) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(b.spools[id][offset:])), nil
		},
		Size: func(id string) (int64, error) {
			if text, ok := b.spools[id]; ok {
				return int64(len(text)), nil
			}
			return 0, fs.ErrNotExist
		},
	})
}

// settle runs rounds until there is nothing to add.
func (b *bench) settle() {
	b.t.Helper()
	for fresh := true; ; fresh = false {
		more, err := b.x.Round(b.t.Context(), fresh)
		if err != nil {
			b.t.Fatal(err)
		}
		if !more {
			return
		}
	}
}

// change appends a change. A minute passes with each.
func (b *bench) change(entity, from, to string, body change.Body) {
	b.t.Helper()
	b.n++
	name, _, _ := strings.Cut(entity, "/")
	records, err := loop.AppendRecords(nil, []change.Change{{
		Machine: name, Entity: entity, Row: "T1", From: from, To: to, Trigger: "happened", At: noon.Add(time.Duration(b.n) * time.Minute),
		Actor: change.Actor{Kind: "human", ID: "ann"}, Body: body,
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.j.Append(b.t.Context(), records); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) session(id string, phase session.Phase, ended bool) {
	s := &team.Session{ID: id, Phase: phase, OpenedAt: noon}
	if ended {
		s.EndedAt, s.Why = noon.Add(time.Hour), "it was done"
	}
	agent, _, _ := strings.Cut(id, "-")
	b.change("session/"+agent, "none", string(phase), s)
}

// found is what a search finds, one result a line.
func (b *bench) found(q string) string {
	b.t.Helper()
	page, err := b.index.Find(b.t.Context(), search.Query{Text: q, Limit: 100})
	if err != nil {
		b.t.Fatal(err)
	}
	var lines []string
	for _, f := range page.Found {
		lines = append(lines,
			strings.TrimSpace(fmt.Sprintf("%s %s %s at %d, %s: %s", f.Kind, f.Entity, f.Part, f.At, f.Time.Format("15:04:05"), f.Snippet)))
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), "  ", " ")
}

func (b *bench) want(q, want string) {
	b.t.Helper()
	if d := cmp.Diff(strings.TrimSpace(want), b.found(q)); d != "" {
		b.t.Errorf("%s: %s", q, d)
	}
}

// everything puts one of each kind into the journal, each with the word barnacle.
func (b *bench) everything() {
	b.change("channel/quay", "", "",
		&channel.Set{
			Agent: "coder", Text: "a barnacle in the channel",
			Body: channel.Body{Post: &channel.Post{N: 1, Kind: channel.OfHuman, By: "ann"}},
		})
	b.change("question/q1", "", "asked",
		&question.Body{Question: &question.Question{
			ID: "q1", Agent: "coder", State: "asked",
			What: "May I scrape the barnacle?", Tool: "Bash", Call: `{"command":"scrape"}`,
		}})
	b.change("run/r1", "", "running",
		&workflow.Body{Plan: &workflow.PlanPart{Name: "scrape", Description: "removes a barnacle"}})
	b.change("run/r1/build", "RUNNING", "FAILED",
		&workflow.Body{Step: &workflow.StepSet{
			Value: workflow.Value{LastError: "a barnacle is in the way"},
			Facts: &workflow.Facts{Logs: []string{"looked for each barnacle"}},
		}})
	at := noon.Add(time.Duration(b.n+1) * time.Minute)
	b.change("control/coder", "pause", "continuous",
		&control.Body{Value: control.Value{Desired: control.Desired{Note: "no barnacle today", At: at}}})
	b.change("control/coder", "continuous", "pause",
		&control.Body{Value: control.Value{Desired: control.Desired{Note: "no barnacle today", At: at}}})
	b.change("team/hold", "", "held", &team.TeamSet{Hold: team.Hold{On: true, Note: "barnacle break"}})
	b.session("coder-1", session.Open, false)
	b.spools["coder-1"] = []byte("hello\n\x1b[31mbarn\x1b[0macle seen\nbye\n")
	b.session("coder-1", session.None, true)
}

const barnacles = `
output coder-1 at 6, 12:09:00: barnacle seen bye
history team at 7, 12:07:00: barnacle break
history coder at 5, 12:05:00: no barnacle today
run r1 build at 4, 12:04:00: a barnacle is in the way looked for each barnacle
run r1 at 3, 12:03:00: removes a barnacle
question q1 at 2, 12:02:00: May I scrape the barnacle? Bash {"command":"scrape"}
channel quay at 1, 12:01:00: ann: a barnacle in the channel`

func TestEverythingIsFound(t *testing.T) {
	b := newBench(t)
	b.everything()
	b.settle()
	b.want("barnacle", strings.Replace(barnacles, "12:09:00", "12:00:00", 1))
}

// The output of a session that runs is found as it comes, whole lines only, and each line once, also
// after a restart and when the session ends.
func TestRunningOutput(t *testing.T) {
	b := newBench(t)
	b.session("coder-1", session.Running, false)
	b.settle()
	b.spools["coder-1"] = []byte("one barnacle\ntwo barn")
	b.settle()
	b.want("one", "output coder-1 at 0, "+lineTime(t, b, "one")+": one barnacle")
	b.want("two", "")
	b.spools["coder-1"] = append(b.spools["coder-1"], "acles\nthree barn"...)
	b.index.Close()
	b.start() // the next daemon
	b.settle()
	b.want("two barnacles", "output coder-1 at 13, "+lineTime(t, b, "two")+": two barnacles")
	b.session("coder-1", session.None, true)
	b.settle()
	if got := b.found("three"); !strings.Contains(got, "output coder-1 at 27") || !strings.Contains(got, ": three barn") {
		t.Errorf("the last line, which has no end: %s", got)
	}
	if got := strings.Count(b.found("barnacle"), "\n") + 1; got != 2 {
		t.Errorf("%d lines are found, want each once: %s", got, b.found("barnacle"))
	}
	b.spools["coder-1"] = append(b.spools["coder-1"], "a late barnacle\n"...)
	b.settle()
	b.want("late", "")
}

// lineTime is the time of a line of a running session: the time at which it was read.
func lineTime(t *testing.T, b *bench, q string) string {
	t.Helper()
	page, err := b.index.Find(t.Context(), search.Query{Text: q})
	if err != nil || len(page.Found) != 1 {
		t.Fatalf("%s: %v %+v", q, err, page.Found)
	}
	return page.Found[0].Time.Format("15:04:05")
}

// Reports of usage date the output between them.
func TestTimesOfOutput(t *testing.T) {
	b := newBench(t)
	line := strings.Repeat("x", search.PassageBytes-10) + "\n"
	b.spools["coder-1"] = []byte(strings.Repeat(line, 3) + "end barnacle\n")
	b.session("coder-1", session.Running, false) // 12:01, opened at 12:00
	b.n = 9
	b.change("session/coder", "running", "running", &team.Used{Session: "coder-1", Offset: int64(2 * len(line))}) // 12:10
	b.n = 19
	b.session("coder-1", session.None, true) // 12:20
	b.settle()
	var times []string
	page, err := b.index.Find(t.Context(), search.Query{Text: "xxx", Kinds: []string{search.Output}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range slices.Backward(page.Found) {
		times = append(times, f.Time.Format("15:04"))
	}
	if d := cmp.Diff([]string{"12:00", "12:05", "12:10"}, times); d != "" {
		t.Error(d)
	}
}

// An index that is built again finds the same as one that was kept all the time; a damaged one, one of
// another version and one of another journal are built again.
func TestBuiltAgain(t *testing.T) {
	for name, lose := range map[string]func(b *bench){
		"deleted": func(b *bench) { os.Remove(b.path) },
		"damaged": func(b *bench) { os.WriteFile(b.path, []byte("no database at all"), 0o600) },
		"of another journal": func(b *bench) {
			old := b.j
			b.j = memory.New()
			b.change("team/hold", "", "held", &team.TeamSet{})
			_ = old
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.everything()
			b.settle()
			before := b.found("barnacle")
			if err := b.index.Close(); err != nil {
				t.Fatal(err)
			}
			lose(b)
			b.start()
			b.settle()
			if name == "of another journal" {
				b.want("barnacle", "")
				if !strings.Contains(b.log.String(), "the search index is of another journal; it is built again") {
					t.Errorf("it was not reported: %s", b.log.String())
				}
				return
			}
			if d := cmp.Diff(before, b.found("barnacle")); d != "" {
				t.Error(d)
			}
		})
	}
}

// Much output is added in several batches, each of a bounded size, and none of it is lost or doubled.
func TestManyBatches(t *testing.T) {
	b := newBench(t)
	var text bytes.Buffer
	lines := 0
	for text.Len() < 3*batchBytes+500 {
		lines++
		fmt.Fprintf(&text, "line%dend of the output with some more words in it\n", lines)
	}
	b.spools["coder-1"] = text.Bytes()
	b.session("coder-1", session.None, true)
	b.change("channel/quay", "", "",
		&channel.Set{Text: "after it", Body: channel.Body{Post: &channel.Post{N: 1, By: "ann"}}})
	rounds := 0
	for more := true; more; rounds++ {
		var err error
		if more, err = b.x.Round(t.Context(), rounds == 0); err != nil {
			t.Fatal(err)
		}
	}
	if rounds < 3 {
		t.Errorf("%d rounds for %d bytes", rounds, text.Len())
	}
	for _, n := range []int{1, 2, lines / 3, lines / 2, lines - 1, lines} {
		if got := b.found(fmt.Sprintf("line%dend", n)); strings.Count(got, "\n") != 0 || !strings.HasPrefix(got, "output") {
			t.Errorf("line %d: %q", n, got)
		}
	}
	if got := b.found("after"); !strings.HasPrefix(got, "channel quay") {
		t.Errorf("what came after it: %q", got)
	}
}

// The texts of a task are read from its files, again when they change, and stay when the folder goes.
func TestTasks(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	put := func(name string, content any) {
		t.Helper()
		text, ok := content.(string)
		if !ok {
			b, err := json.Marshal(content)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(task.FileName, task.Task{ID: "T1", Text: "Scrape each barnacle", Agent: "coder", Repo: "/r", Tree: "/t", Base: "main", Run: dir})
	b.change("run/T1", "", "running",
		&workflow.Body{Head: &workflow.Head{ID: "T1", ReportsDir: filepath.Join(dir, "reports"), CreatedAt: noon}})
	b.settle()
	if got := b.found("barnacle"); got != "task T1 at -1, 12:00:00: Scrape each barnacle" {
		t.Errorf("the text: %s", got)
	}
	put(task.CommentsName, []task.Comment{{ID: 1, File: "hull.go", Line: 3, Text: "this barnacle stays"}})
	put(task.FindingsName,
		map[string]any{"open": []map[string]any{{
			"id": "F1", "file": "hull.go", "line": 9, "text": "a barnacle is left",
			"severity": "must",
		}}})
	b.settle()
	for q, want := range map[string]string{"barnacle stays": "task T1 comment-1 at -1", "barnacle left": "task T1 findings at -1"} {
		if got := b.found(q); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", q, got)
		}
	}
	put(task.RequestName(2), "hull.go:3: this barnacle stays, please\n") // round 1 has none
	os.Remove(filepath.Join(dir, task.CommentsName))
	b.settle()
	if got := b.found("barnacle stays"); !strings.HasPrefix(got, "task T1 request-2 at -1") || strings.Contains(got, "\n") {
		t.Errorf("after the request: %q", got)
	}
	b.change("run/T1", "running", "", &team.RunLeft{})
	os.RemoveAll(dir)
	b.settle()
	if got := b.found("barnacle each"); got == "" {
		t.Error("the text went with the folder")
	}
}

// A long message is found by its end, too.
func TestLongMessage(t *testing.T) {
	b := newBench(t)
	b.change("channel/quay", "", "",
		&channel.Set{
			Text: strings.Repeat("ballast ", 12_000) + "barnacle",
			Body: channel.Body{Post: &channel.Post{N: 1, By: "ann"}},
		})
	b.settle()
	if got := b.found("barnacle"); !strings.HasPrefix(got, "channel quay at 1") {
		t.Errorf("%q", got)
	}
}

// A folder in which nothing can be written stops nothing: it is reported once, and tried again.
func TestUnwritable(t *testing.T) {
	b := newBench(t)
	b.path = filepath.Join(t.TempDir(), "missing", "search.db")
	b.start()
	if _, err := b.x.Round(t.Context(), true); err == nil {
		t.Fatal("no error")
	}
	if err := os.MkdirAll(filepath.Dir(b.path), 0o700); err != nil {
		t.Fatal(err)
	}
	b.everything()
	b.settle()
	if b.found("barnacle") == "" {
		t.Error("nothing is found after the folder was made")
	}
}
