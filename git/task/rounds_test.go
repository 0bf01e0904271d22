package task

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// request is what a person asks in the round that is shown.
func (w *world) request(t Task) int {
	w.Helper()
	round, err := (Review{t}).Round(w.Context())
	w.must(err)
	w.must(os.WriteFile(filepath.Join(t.Run, RequestName(round)), []byte("more\n"), 0o600))
	return round
}

// The first time a task is shown is round 1. A request in it is request 1, and the work after it is round 2, even if nothing was changed;
// then the review says so. If the task is shown again without a request, it is the same round. If its content is another one after a
// landing that failed, it is the next round.
func TestRounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := Review{w.task}
	show := func(when string, round int, unchanged bool, told ...string) {
		t.Helper()
		s, err := w.task.Show(t.Context(), w.task.Run)
		w.must(err)
		if s.Round != round || s.Unchanged != unchanged || !slices.Equal(s.Told, told) {
			t.Fatalf("%s: round %d, unchanged %t, told %q; want %d, %t, %q", when, s.Round, s.Unchanged, s.Told, round, unchanged, told)
		}
		if now, err := r.Round(t.Context()); err != nil || now != round {
			t.Fatalf("%s: the task is in round %d, %v", when, now, err)
		}
	}
	const none = "0 files changed: there is nothing to land"
	if now, err := r.Round(t.Context()); err != nil || now != 1 {
		t.Fatalf("at first it is in round %d, %v", now, err)
	}
	show("nothing is done", 1, false, none)
	if got := w.request(w.task); got != 1 {
		t.Fatalf("the first request is in round %d", got)
	}
	if got, err := r.Requested(t.Context()); err != nil || got != 1 {
		t.Fatalf("the agent works on request %d, %v", got, err)
	}
	show("nothing is done again", 2, true, "nothing changed since your request in round 1", none)
	if got, err := r.Requested(t.Context()); err != nil || got != 0 {
		t.Fatalf("after it was shown, the agent works on request %d, %v", got, err)
	}
	show("its step is done twice", 2, true, "nothing changed since your request in round 1", none)
	w.request(w.task)
	w.put(w.task.Tree, "a.txt", "one\nTWO\nthree\n")
	show("it is changed", 3, false)
	show("the base has moved", 3, false)
	w.put(w.task.Tree, "b.txt", "merged\n")
	show("a landing failed", 4, false)
	w.request(w.task)
	show("nothing is changed", 5, true, "nothing changed since your request in round 4")
	all, err := Requests(w.task.Run)
	w.must(err)
	if !slices.Equal(all, []int{1, 2, 4}) {
		t.Errorf("there are requests %v", all)
	}
	rounds, err := r.Rounds(t.Context())
	w.must(err)
	if len(rounds) != 5 || rounds[4].Number != 5 || rounds[4].Commit != rounds[3].Commit {
		t.Errorf("there are rounds %v", rounds)
	}
}

// A check that failed before a round is shown stands in that round, and in no later one.
func TestFailedChecksAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.task.ChecksIn = ChecksInTask
	w.task.Checks = []string{"test -e done"}
	check := func(fails bool) {
		t.Helper()
		if err := w.task.Check(t.Context(), &bytes.Buffer{}); (err != nil) != fails {
			t.Fatal(err)
		}
	}
	told := func() string {
		t.Helper()
		s, err := w.task.Show(t.Context(), w.task.Run)
		w.must(err)
		return strings.Join(s.Told, "\n")
	}
	w.put(w.task.Tree, "b.txt", "1\n")
	check(true)
	check(true)
	w.put(w.task.Tree, "done", "")
	check(false)
	if got := told(); !strings.Contains(got, "check `test -e done` failed 2 times in this round, and its agent went on") {
		t.Errorf("the first round says %q", got)
	}
	w.request(w.task)
	w.put(w.task.Tree, "b.txt", "2\n")
	check(false)
	if got := told(); strings.Contains(got, "failed") {
		t.Errorf("the second round says %q", got)
	}
	w.request(w.task)
	w.must(os.Remove(filepath.Join(w.task.Tree, "done")))
	check(true)
	w.put(w.task.Tree, "done", "")
	w.put(w.task.Tree, "b.txt", "3\n")
	check(false)
	if got := told(); !strings.Contains(got, "failed once in this round") {
		t.Errorf("the third round says %q", got)
	}
}

// loader is a file with a comment on its line `for i := range 5 {`.
const loader = `package upload

func Load(name string) error {
	file := open(name)
	for i := range 5 {
		if err := send(file); err == nil {
			return nil
		}
	}
	return errGiveUp
}
`

// A comment stays at its text: in the file where it was said, moved, renamed, changed or gone.
func TestThreads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put := func(name, text string) { w.put(w.task.Tree, name, text) }
	long := strings.Repeat("a line of its own that git can see again\n", 20)
	put("up.go", loader)
	put("name.go", long+"the name\n"+long)
	put("gone.go", loader)
	w.git(w.task.Tree, "rm", "--quiet", "a.txt")
	s, err := w.task.Show(t.Context(), w.task.Run)
	w.must(err)
	r := Review{w.task}
	var all []Comment
	for i, c := range []Comment{
		{File: "up.go", Line: 5, Text: "moves"},
		{File: "up.go", Line: 10, Text: "changes"},
		{File: "name.go", Line: 21, Text: "is renamed"},
		{File: "gone.go", Line: 5, Quote: "for i := range 5 {", Text: "goes"},
		{File: "a.txt", Line: 2, Old: true, Text: "stays deleted"},
		{File: "name.go", Text: "on the file"},
		{Text: "on all of it"},
		{File: "up.go", Line: 5, Text: "is resolved", Resolved: true},
	} {
		c.ID, c.Round = i+1, 1
		c, err := r.Anchored(t.Context(), c, s.From, s.Commit)
		w.must(err)
		all = append(all, c)
	}
	if got := all[3].About(); len(got) != 7 || got[3] != "> \tfor i := range 5 {" {
		t.Errorf("it is about %q", got)
	}
	w.must(r.SetComments(all))
	if all, err = r.Comments(); err != nil {
		t.Fatal(err)
	}
	check := func(when, from, to string, want []Thread) {
		t.Helper()
		got, err := r.Threads(t.Context(), all, from, to)
		w.must(err)
		for i, c := range got {
			if c.Now != want[i].Now || c.State != want[i].State || c.Gone != want[i].Gone {
				t.Errorf("%s: %q is at %+v, %s, gone %t; want %+v, %s, %t", when, c.Text, c.Now, c.State, c.Gone, want[i].Now, want[i].State,
					want[i].Gone)
			}
		}
	}
	at := func(file string, line int, state string) Thread {
		return Thread{Now: At{file, line, false}, State: state}
	}
	deleted := Thread{Now: At{"a.txt", 2, true}, State: ThreadOpen}
	check("in the same content", s.From, s.Commit, []Thread{
		at("up.go", 5, "open"), at("up.go", 10, "open"), at("name.go", 21, "open"), at("gone.go", 5, "open"), deleted,
		at("name.go", 0, "open"), at("", 0, "open"), at("up.go", 5, "resolved"),
	})
	put("up.go", "// Copyright\n\n"+strings.Replace(loader, "errGiveUp", "errNo", 1))
	put("dir/other.go", "new\n"+long+"the name\n"+long)
	w.must(os.Remove(filepath.Join(w.task.Tree, "name.go")))
	w.must(os.Remove(filepath.Join(w.task.Tree, "gone.go")))
	s, err = w.task.Show(t.Context(), w.task.Run)
	w.must(err)
	check("in the next round", s.From, s.Commit, []Thread{
		at("up.go", 7, "open"), at("up.go", 12, "changed"), at("dir/other.go", 22, "open"),
		{Gone: true, State: "changed"},
		deleted,
		at("dir/other.go", 0, "changed"), at("", 0, "open"), at("up.go", 7, "resolved"),
	})
	put("a.txt", "one\ntwo\nthree\n")
	s, err = w.task.Show(t.Context(), w.task.Run)
	w.must(err)
	if got, err := r.Threads(t.Context(), all[4:5], s.From, s.Commit); err != nil || got[0].State != ThreadChanged ||
		got[0].Now != (At{"a.txt", 2, false}) {
		t.Errorf("the deleted line is there again: %+v, %v", got, err)
	}
}

// Only what is new is sent as new; what is open from before is named, and what has changed or is resolved is not.
func TestRequestText(t *testing.T) {
	t.Parallel()
	thread := func(c Comment, state string, line int) Thread {
		return Thread{Comment: c, State: state, Now: At{c.File, line, c.Old}}
	}
	all := []Thread{
		thread(Comment{ID: 1, File: "a.go", Line: 3, Quote: "x := 1", Text: "first\nmore of it", Round: 1, Sent: 1}, ThreadOpen, 7),
		thread(Comment{ID: 2, File: "a.go", Line: 9, Text: "done", Round: 1, Sent: 1}, ThreadChanged, 9),
		thread(Comment{ID: 3, File: "b.go", Line: 4, Quote: "y := 2", Text: "second", Round: 2}, ThreadOpen, 4),
		thread(Comment{ID: 4, File: "b.go", Line: 5, Text: "no", Round: 2, Resolved: true}, ThreadResolved, 5),
		thread(Comment{ID: 5, File: "c.go", Line: 6, Text: "keep it", Round: 2, Old: true}, ThreadOpen, 6),
	}
	for name, c := range map[string]struct {
		text        string
		all         []Thread
		words, note string
	}{
		"all":          {"also the docs", all, "also the docs\n\nb.go:4: second\n    the line: y := 2\n\nc.go:6 (a line that you deleted): keep it\n\nSaid in earlier rounds, and still open:\n- a.go:7 (round 1): first\n", "also the docs"},
		"two comments": {"", all[1:], "\nb.go:4: second\n    the line: y := 2\n\nc.go:6 (a line that you deleted): keep it\n", "2 comments"},
		"nothing new":  {"", all[:2], "", ""},
		"a text":       {"again", nil, "again\n", "again"},
		"one comment":  {"", all[2:4], "\nb.go:4: second\n    the line: y := 2\n", "1 comment"},
	} {
		if words, note := RequestText(c.text, c.all); words != c.words || note != c.note {
			t.Errorf("%s: %q, %q; want %q, %q", name, words, note, c.words, c.note)
		}
	}
}

// The file of comments is read strictly, and says what to do.
func TestCommentsAreStrict(t *testing.T) {
	t.Parallel()
	r := Review{Task{Run: t.TempDir()}}
	for text, ok := range map[string]bool{
		`[]`: true,
		`[{"id":1,"file":"a.go","line":3,"text":"x","round":1,"sent":1,"hunk":["a","b"],"hunk_at":1}]`: true,
		`[{"id":1,"text":"x","by":"someone"}]`:                                                         false,
		`[{"id":0,"text":"x"}]`:                                                                        false,
		`[{"id":1,"text":"x","file":"../a"}]`:                                                          false,
		`[{"id":1,"text":"x","hunk":["a"],"hunk_at":1}]`:                                               false,
		`[{"id":1,"text":"x","commit":"--output=x"}]`:                                                  false,
		`[{"id":1,"text":"x","round":-1}]`:                                                             false,
		`[{"id":1`:                                                                                     false,
	} {
		if err := os.WriteFile(filepath.Join(r.Run, CommentsName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Comments(); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "repair the file") {
			t.Errorf("%s: %v", text, err)
		}
	}
	full := make([]Comment, commentsMax)
	if got := MakeRoom(full); len(got) != commentsMax {
		t.Errorf("%d comments are left without one that is resolved", len(got))
	}
	full[7].Resolved, full[7].ID = true, 8
	if got := MakeRoom(full); len(got) != commentsMax-1 || slices.ContainsFunc(got, func(c Comment) bool { return c.ID == 8 }) {
		t.Errorf("the resolved one is still among %d", len(got))
	}
}
