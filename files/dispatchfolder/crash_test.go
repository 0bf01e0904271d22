package dispatchfolder

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
)

// lightsOut is the panic that stops a write. Like a kill, it leaves what is on disk and releases the lock.
type lightsOut struct{ where string }

// stopAt stops call at its n-th write point, or, with tear, in the middle of its n-th write. It returns the
// number of points or writes.
func stopAt(n int, tear bool, call func()) (points int, stopped string) {
	defer func() {
		point, torn = func(string) {}, nil
		if r := recover(); r != nil {
			out, ok := r.(lightsOut)
			if !ok {
				panic(r)
			}
			stopped = out.where
		}
	}()
	if tear {
		at := 0
		torn = func(_ string, size int) int {
			if at++; at == n {
				return size / 2
			}
			return size
		}
		point = func(where string) {
			if strings.HasPrefix(where, "torn ") {
				panic(lightsOut{where})
			}
		}
		call()
		return at, ""
	}
	point = func(where string) {
		if points++; points == n {
			panic(lightsOut{where})
		}
	}
	call()
	return points, ""
}

// noSync leaves syncing to the system: a kill loses nothing that was written.
func noSync(t testing.TB) {
	t.Helper()
	real := fsync
	fsync = func(int) error { return nil }
	t.Cleanup(func() { fsync = real })
}

// shelf is the content of all files in a folder.
func shelf(t testing.TB, path string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == path {
			return err
		}
		rel, _ := filepath.Rel(path, p)
		if e.IsDir() {
			all[rel+"/"] = ""
			return nil
		}
		if strings.HasSuffix(rel, ".new") { // a temporary file that was never put in place; it is harmless
			return nil
		}
		b, err := os.ReadFile(p) //nolint:gosec // the test's own
		all[rel] = strings.ReplaceAll(string(b), path, "[directory_path]")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// crashStory is an event after some earlier ones.
type crashStory struct {
	name   string
	setup  dispatch.Setup
	before []dispatch.Input
	in     func(f *Folder) error
}

func say(in dispatch.Input) func(f *Folder) error {
	return func(f *Folder) error {
		_, _, err := f.Do(at.Add(time.Hour), change.Actor{Kind: "human"}, in)
		return err
	}
}

func crashStories() []crashStory {
	match := &dispatch.Match{Agent: "reviewer", Terms: []string{"review"}}
	open := []dispatch.Input{dispatch.UserInput{Text: "first"}, dispatch.UserInput{Text: "second, waits", Match: match}}
	response := dispatch.Setup{Mode: dispatch.Response}
	message := dispatch.Message{Name: "a.md", Text: "review it", Match: match}
	return []crashStory{
		{name: "input", in: say(dispatch.UserInput{Text: "hello", Match: match})},
		{name: "input over another", before: open[:1], in: say(dispatch.UserInput{Text: "hello", Over: true})},
		{name: "answer, and the next begins", before: open, in: say(dispatch.Respond{Text: "done"})},
		{name: "delegation", before: open[:1], in: say(dispatch.Delegate{Agent: "reviewer", Text: "look", Call: "c1"})},
		{name: "denial", before: open[:1], in: say(dispatch.Deny{Tool: "Bash", Call: "make", Reason: "MAIN runs nothing"})},
		{name: "waiting", before: open[:1], in: say(dispatch.UserInput{Text: "later"})},
		{name: "message", setup: response, in: say(message)},
		{
			name: "message done", setup: response, before: []dispatch.Input{message},
			in: say(dispatch.TaskEnded{Task: 1, OK: true, Result: "fine"}),
		},
		{name: "message that fits nobody", setup: response, in: say(dispatch.Message{Name: "a.md", Text: "?", Ranking: `{"best":""}`})},
		{name: "end in the middle", before: open, in: say(dispatch.End{})},
		{name: "logger", before: []dispatch.Input{open[0]}, in: func(f *Folder) error {
			_, err := f.Log([]byte(`{"conversation_id": "conv_001", "timestamp": "2024-12-18T14:30:22", "summary": "s"}`))
			return err
		}},
		{name: "note", before: open[:1], in: func(f *Folder) error {
			return f.Note(at.Add(time.Hour), 1, dispatch.Entry{Kind: dispatch.OfThought, Who: "MAIN", Text: "hm"})
		}},
	}
}

// stage creates a folder with the earlier events.
func (c crashStory) stage(t *testing.T) *Folder {
	t.Helper()
	c.setup.Agents = two()
	f, _, err := Create(filepath.Join(t.TempDir(), "session"), c.setup, Options{At: at})
	if err != nil {
		t.Fatal(err)
	}
	if c.setup.Mode == dispatch.Response {
		if err := os.WriteFile(filepath.Join(f.Path(), "inbox", "a.md"), []byte("review it"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, in := range c.before {
		do(t, f, in)
	}
	return f
}

// after does what the next start does: it closes conversations that nothing will end (D11), and continues.
func after(t *testing.T, f *Folder) map[string]string {
	t.Helper()
	later := at.Add(2 * time.Hour)
	s, err := f.Session()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // a waiting input starts when the conversation before it is closed
		if _, s, err = f.Do(later, change.Actor{Kind: "engine"}, dispatch.Interrupt{Why: "a crash"}); err != nil {
			t.Fatal(err)
		}
	}
	var next dispatch.Input = dispatch.UserInput{Text: "and now"}
	if s.Mode == dispatch.Response {
		next = dispatch.Message{Name: "b.md", Text: "and now", Match: &dispatch.Match{Agent: "reviewer"}}
	}
	if s.Phase != dispatch.Closed {
		if _, _, err := f.Do(later, change.Actor{Kind: "human"}, next); err != nil {
			t.Fatal(err)
		}
	}
	whole(t, f)
	return shelf(t, f.Path())
}

// whole checks the invariants of a folder's files.
func whole(t testing.TB, f *Folder) {
	t.Helper()
	numbers, made := uint64(0), 0
	for line := range strings.Lines(read(t, f, "state.jsonl")) {
		r, err := parseRecord([]byte(line))
		if err != nil || r.Ours == nil || !strings.HasSuffix(line, "}\n") {
			t.Fatalf("a line of state.jsonl is not whole: %v: %q", err, line)
		}
		if numbers++; r.Ours.Line != numbers {
			t.Fatalf("line %d says that it is line %d", numbers, r.Ours.Line)
		}
		if r.Type == "conversation_start" {
			if made++; r.Conversation != dispatch.ConversationID(made) {
				t.Fatalf("%s began, and the next number is %d", r.Conversation, made)
			}
			title, _, _ := strings.Cut(read(t, f, conversationPath(made)+"/dialogue.md"), "\n")
			if title != "# Conversation: "+r.Conversation {
				t.Fatalf("the dialogue of %s begins %q", r.Conversation, title)
			}
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(read(t, f, "conversations/messages.jsonl")) {
		m, ok := parseMessage([]byte(line))
		if !ok || !strings.HasSuffix(line, "}\n") || seen[line] {
			t.Fatalf("a line of messages.jsonl is incomplete, or present twice: %q", line)
		}
		seen[line] = true
		_ = m
	}
	names, err := os.ReadDir(filepath.Join(f.Path(), "conversations"))
	if err != nil || len(names) != made+1 {
		t.Fatalf("%d conversations began, and there are these folders: %v %v", made, names, err)
	}
	if left := read(t, f, ".commit"); left != "" {
		t.Fatalf("the redo file is not empty: %s", left)
	}
}

// D11: wherever a write is interrupted, between writes or in the middle of one, the files afterwards show the
// event completely or not at all.
func TestACrashBetweenAnyTwoWrites(t *testing.T) {
	noSync(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, story := range crashStories() {
		t.Run(story.name, func(t *testing.T) {
			never := story.stage(t)
			without := after(t, never)
			full := story.stage(t)
			if err := story.in(full); err != nil {
				t.Fatal(err)
			}
			with := after(t, full)
			for _, tear := range []bool{false, true} {
				for n := 1; ; n++ {
					f := story.stage(t)
					_, stopped := stopAt(n, tear, func() {
						if err := story.in(f); err != nil {
							t.Fatal(err)
						}
					})
					if stopped == "" {
						if n < 3 {
							t.Fatalf("there are only %d places to stop at", n)
						}
						break
					}
					got := after(t, f)
					if !cmp.Equal(got, with) && !cmp.Equal(got, without) {
						t.Errorf("stopped at %d (%s): the files differ both from those with the event\n%s\nand from those without it\n%s",
							n, stopped, cmp.Diff(with, got), cmp.Diff(without, got))
					}
				}
			}
		})
	}
}

// The repair is interrupted at every point too, twice.
func TestACrashWhileMending(t *testing.T) {
	noSync(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	story := crashStories()[2]
	full := story.stage(t)
	if err := story.in(full); err != nil {
		t.Fatal(err)
	}
	with := after(t, full)
	mended := 0
	for second := 1; ; second++ {
		f := story.stage(t)
		_, first := stopAt(0, false, func() {
			point = func(where string) {
				// everything is written, and the redo file still exists
				if strings.HasPrefix(where, "sync ") && !strings.HasSuffix(where, redoName) {
					panic(lightsOut{where})
				}
			}
			_ = story.in(f)
		})
		if err := os.WriteFile(filepath.Join(f.Path(), "state.jsonl"), halfOf(t, f), 0o600); err != nil {
			t.Fatal(err)
		}
		_, again := stopAt(second, second%2 == 0, func() {
			_, _, _ = f.Do(at, change.Actor{}, dispatch.Seen{Caller: "x", Agent: "nobody"})
		})
		if got := after(t, f); !cmp.Equal(got, with) {
			t.Errorf("stopped at %s, then at %s:\n%s", first, again, cmp.Diff(with, got))
		}
		if again == "" && second > 4 {
			break
		}
		mended++
	}
	if mended < 3 {
		t.Errorf("the repair was stopped only %d times", mended)
	}
}

// halfOf cuts the last line of state.jsonl in half, like an incomplete write.
func halfOf(t *testing.T, f *Folder) []byte {
	t.Helper()
	text := read(t, f, "state.jsonl")
	return []byte(text[:len(text)-100])
}

// Other programs write while Fairlead is down, before or after the interrupted text: both texts are present
// once.
func TestStrangersWriteWhileWeAreDown(t *testing.T) {
	noSync(t)
	for _, where := range []string{"write state.jsonl", "sync state.jsonl"} {
		f := begin(t, dispatch.Setup{})
		_, stopped := stopAt(0, false, func() {
			point = func(at string) {
				verb, file, _ := strings.Cut(at, " ")
				if verb+" "+filepath.Base(file) == where {
					panic(lightsOut{at})
				}
			}
			do(t, f, dispatch.UserInput{Text: "hello"})
		})
		if stopped == "" {
			t.Fatalf("no write was stopped at %s", where)
		}
		add(t, f, `{"type": "mood"}`+"\n"+`{"half`)
		do(t, f, dispatch.UserInput{Text: "again"})
		text := read(t, f, "state.jsonl")
		for _, once := range []string{`"type": "mood"`, `{"half` + "\n", `"type": "conversation_start"`, `"type": "input_waiting"`} {
			if n := strings.Count(text, once); n != 1 {
				t.Errorf("stopped at %s: %s is present %d times:\n%s", where, once, n, text)
			}
		}
	}
}

// A folder whose creation was interrupted is a complete dispatch folder or none.
func TestACrashAtTheStart(t *testing.T) {
	noSync(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	sessions := 0
	for n := 1; ; n++ {
		repo := t.TempDir()
		path := filepath.Join(repo, "elsewhere")
		_, stopped := stopAt(n, false, func() {
			if _, _, err := Create(path, dispatch.Setup{Agents: two(), Program: fmt.Sprint("p", n)},
				Options{At: at, Repo: repo}); err != nil {
				t.Fatal(err)
			}
		})
		f, err := Open(path)
		if err == nil {
			sessions++
			do(t, f, dispatch.UserInput{Text: "hello"})
			whole(t, f)
			if by, err := ByProgram(fmt.Sprint("p", n)); err != nil || by == nil || by.Path() != path {
				t.Errorf("stopped at %s: the program's session is %v, %v", stopped, by, err)
			}
		}
		if _, _, err := Create("", dispatch.Setup{Agents: two()}, Options{At: at, Repo: repo}); err != nil {
			t.Errorf("stopped at %s: the next session: %v", stopped, err)
		}
		if stopped == "" {
			break
		}
	}
	if sessions < 1 {
		t.Error("no run created a session")
	}
}

// The redo file is on disk before any file changes, and every part is on disk before the redo file is
// emptied. So the same holds for a power failure.
func TestTheOrderOfSyncing(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	do(t, f, dispatch.UserInput{Text: "hello"})
	var steps []string
	point = func(where string) {
		verb, file, _ := strings.Cut(where, " ")
		steps = append(steps, verb+" "+filepath.Base(file))
	}
	do(t, f, dispatch.Respond{Text: "hi"})
	point = func(string) {}
	want := []string{
		"write .commit", "sync .commit", "write dialogue.md", "write messages.jsonl", "write state.jsonl",
		"sync dialogue.md", "sync messages.jsonl", "sync state.jsonl", "truncate .commit",
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Error(diff)
	}
}
