package dispatchfolder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
)

// The seed's own three lines (seed 002, State Persistence), as a model writes them: the permissions are a
// text, and there is no conversation_start.
const seedsLines = `{"timestamp": "2024-12-18T14:30:22", "type": "session_init", "state": "MAIN", "parameters": {"mode": "orchestrator", "path": "/s"}, "agent_descriptions": "/s/AGENT_DIRECTORY.md", "agent_list": "/s/agent-list.txt", "workspace": "/s/conversations/conv_001/outputs/", "permissions": "[MAIN_PERMISSIONS - see Permission Definitions section]"}
{"timestamp": "2024-12-18T14:30:30", "type": "transition", "state": "fullstack-engineer", "trigger": "write Python", "previous": "MAIN", "workspace": "/s/conversations/conv_001/outputs/", "permissions": "[AGENT_PERMISSIONS - see Permission Definitions section]"}
{"timestamp": "2024-12-18T14:30:40", "type": "transition", "state": "MAIN", "trigger": "task completed", "previous": "fullstack-engineer", "workspace": "/s/conversations/conv_001/outputs/", "permissions": "[MAIN_PERMISSIONS - see Permission Definitions section]"}
`

// others creates a folder like another program.
func others(t *testing.T, state string) *Folder {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "state.jsonl"), []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// add appends to state.jsonl like another program: without a lock.
func add(t testing.TB, f *Folder, text string) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(f.Path(), "state.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func session(t *testing.T, f *Folder) dispatch.Dispatch {
	t.Helper()
	s, err := f.Session()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lines(t *testing.T, f *Folder, from int64) []Line {
	t.Helper()
	all, _, err := f.Lines(from)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheSeedsOwnLines(t *testing.T) {
	for name, edit := range map[string]func(string) string{
		"as they are":      func(s string) string { return s },
		"with CRLF":        func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"with a BOM":       func(s string) string { return "\xef\xbb\xbf" + s },
		"with empty lines": func(s string) string { return strings.ReplaceAll(s, "\n", "\n\n \n") },
		"unknown fields":   func(s string) string { return strings.ReplaceAll(s, `"type"`, `"mood": {"a": [1]}, "type"`) },
		"odd types":        func(s string) string { return strings.ReplaceAll(s, `"type"`, `"conversation_id": 7, "type"`) },
	} {
		t.Run(name, func(t *testing.T) {
			f := others(t, edit(seedsLines))
			all := lines(t, f, 0)
			want := []string{" MAIN D1", "MAIN fullstack-engineer D3", "fullstack-engineer MAIN D4"}
			if len(all) != len(want) {
				t.Fatalf("%d lines", len(all))
			}
			for i, line := range all {
				if got := line.Change.From + " " + line.Change.To + " " + line.Change.Row; got != want[i] || !line.Foreign ||
					line.Fault != "" {
					t.Errorf("line %d: %s (%s), want %s", i, got, line.Fault, want[i])
				}
			}
			if change.As[dispatch.Body](all[1].Change.Body).Trigger != "write Python" ||
				all[1].Change.At.Format(seedTime) != "2024-12-18T14:30:30" {
				t.Errorf("the second line says %+v", all[1].Change)
			}
			s := session(t, f)
			if s.State() != dispatch.Main || s.Made != 1 || s.Open == nil || s.Mode != dispatch.Orchestrator {
				t.Errorf("the session is %+v", s)
			}
			before := read(t, f, "state.jsonl")
			do(t, f, dispatch.UserInput{Text: "hello", Over: true})
			if now := read(t, f, "state.jsonl"); !strings.HasPrefix(now, before) {
				t.Error("lines of other programs were not kept (X7)")
			}
			if s := session(t, f); s.Made != 2 || s.Open.N != 2 {
				t.Errorf("the next conversation is %+v", s.Open)
			}
		})
	}
}

// Lines of other programs after ours are applied where they do not weaken enforcement.
func TestLinesOfOthersBehindOurs(t *testing.T) {
	noSync(t)
	for _, c := range []struct {
		name, line string
		host       dispatch.Host
		state, row string
		phase      dispatch.Phase
		fault      string
	}{
		{"a conversation", `{"type": "conversation_start", "conversation_id": "conv_007"}`, "", "MAIN", "D2", dispatch.Talking, ""},
		{"an agent", `{"type": "transition", "state": "reviewer"}`, "", "reviewer", "D3", dispatch.Working, ""},
		{"nobody's name", `{"type": "transition", "state": "stranger"}`, "", "MAIN", "", dispatch.Ready, "no description"},
		{"an end", `{"type": "session_end"}`, "", "MAIN", "D10", dispatch.Closed, ""},
		{"an end where hooks enforce", `{"type": "session_end"}`, dispatch.Claude, "MAIN", "", dispatch.Ready, "a person ends it"},
		{"an end of nothing", `{"type": "conversation_end"}`, "", "MAIN", "", dispatch.Ready, "no conversation"},
		{"a second beginning", `{"type": "session_init", "parameters": {"mode": "response"}}`, "", "MAIN", "", dispatch.Ready, "second"},
		{"something else", `{"type": "mood", "state": "fine"}`, "", "MAIN", "", dispatch.Ready, "type"},
		{"no JSON", `hello there`, "", "MAIN", "", dispatch.Ready, "not a JSON"},
		{"a list", `[1, 2]`, "", "MAIN", "", dispatch.Ready, "not a JSON object"},
		{"half of one", `{"type": "session_e`, "", "MAIN", "", dispatch.Ready, "not JSON"},
		{
			"ours, forged", `{"fairlead": {"event": "end_asked", "line": 9, "now": {"phase": "nonsense", "line": 9}}}`, "", "MAIN", "",
			dispatch.Ready, "fairlead",
		},
		{
			"too long", `{"type": "session_end", "x": "` + strings.Repeat("x", foreignBytesMax) + `"}`, "", "MAIN", "", dispatch.Ready,
			"bytes",
		},
		{"much too long", strings.Repeat("x", 9<<20), "", "MAIN", "", dispatch.Ready, "bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := begin(t, dispatch.Setup{Host: c.host})
			from := lines(t, f, 0)[0].End
			add(t, f, c.line+"\n")
			all := lines(t, f, from)
			if len(all) != 1 || !all[0].Foreign || all[0].Offset != from || all[0].Change.Row != c.row ||
				!strings.Contains(all[0].Fault, c.fault) || (c.fault == "") != (all[0].Fault == "") {
				t.Fatalf("the line is read as %+v", all)
			}
			s := session(t, f)
			if s.State() != c.state || s.Phase != c.phase || !s.Knows("reviewer") {
				t.Errorf("the state is %s, %s", s.State(), s.Phase)
			}
			if c.phase == dispatch.Closed || len(c.line) > lineBytesMax { // such a long line takes time
				return
			}
			before := read(t, f, "state.jsonl")
			do(t, f, dispatch.UserInput{Text: "hello", Over: true})
			again := lines(t, f, all[0].End)
			if last := again[len(again)-1]; last.Foreign || last.Change.Trigger != string(dispatch.InputCame) {
				t.Errorf("the line behind it is %+v", last)
			}
			if !strings.HasPrefix(read(t, f, "state.jsonl"), before) {
				t.Error("it did not survive (X7)")
			}
			one, err := f.Session()
			if err != nil || one.Open == nil || one.Open.Input != "hello" {
				t.Errorf("the session is %+v, %v", one, err)
			}
		})
	}
}

// A line without a line end does not count until our next line ends it.
func TestALineThatIsNotEnded(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	add(t, f, `{"type": "conversation_start", "conversation_id": "conv_004"}`)
	if s := session(t, f); s.Phase != dispatch.Ready || len(lines(t, f, 0)) != 1 {
		t.Fatalf("an incomplete line is applied: %+v", s)
	}
	do(t, f, dispatch.UserInput{Text: "hello", Over: true})
	if s := session(t, f); s.Made != 5 {
		t.Errorf("the conversation of the other program was lost: %+v", s)
	}
	if got := len(lines(t, f, 0)); got != 4 { // ours, theirs, the end as interrupted, ours
		t.Errorf("%d lines", got)
	}
}

// A file that is corrupt in the middle is kept, and read where it is valid.
func TestCorruptInTheMiddle(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	do(t, f, dispatch.UserInput{Text: "hello"})
	add(t, f, "\x00\xff\xfe garbage\n\n{\"half\": \n")
	do(t, f, dispatch.Respond{Text: "hi"})
	all := lines(t, f, 0)
	faults := 0
	for i, line := range all {
		if line.Fault != "" {
			faults++
		}
		if i > 0 && line.Offset < all[i-1].End {
			t.Errorf("line %d begins at %d, and the one before ends at %d", i, line.Offset, all[i-1].End)
		}
	}
	if len(all) != 5 || faults != 2 || all[4].Change.Trigger != string(dispatch.Responded) {
		t.Errorf("%d lines, of which %d cannot be read", len(all), faults)
	}
}

func TestLinesInPortions(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	add(t, f, strings.Repeat("{\"type\": \"mood\"}\n", 2*linesAtOnceMax))
	from, got := int64(0), 0
	for {
		all, next, err := f.Lines(from)
		if err != nil {
			t.Fatal(err)
		}
		if next == from {
			break
		}
		from, got = next, got+len(all)
	}
	if got != 2*linesAtOnceMax+1 || session(t, f).Line != uint64(got) {
		t.Errorf("%d lines, and the session counts %d", got, session(t, f).Line)
	}
	if err := os.Truncate(filepath.Join(f.Path(), "state.jsonl"), 10); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Lines(from); !errors.Is(err, ErrShorter) {
		t.Errorf("a file that got shorter: %v", err)
	}
}

// No link is followed, for writing or reading (D9's outputs, X10).
func TestLinksAreNotFollowed(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"state.jsonl", ".commit", ".lock", "conversations", "conversations/messages.jsonl",
		"conversations/conv_001/dialogue.md", "conversations/conv_001",
	} {
		t.Run(name, func(t *testing.T) {
			f := begin(t, dispatch.Setup{})
			do(t, f, dispatch.UserInput{Text: "hello"})
			there := filepath.Join(f.Path(), filepath.FromSlash(name))
			target := outside
			if info, err := os.Stat(there); err == nil && info.IsDir() {
				target = t.TempDir()
			}
			if err := os.RemoveAll(there); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, there); err != nil {
				t.Fatal(err)
			}
			_, _, err := f.Do(at, change.Actor{}, dispatch.Respond{Text: "hi"})
			if err == nil || !strings.Contains(err.Error(), "link") {
				t.Errorf("%s is a link: %v", name, err)
			}
			if b, err := os.ReadFile(outside); err != nil || string(b) != "keep" {
				t.Errorf("the file outside is now %q, %v", b, err)
			}
		})
	}
}

// A folder without write permission gives a clear error.
func TestAFolderWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	f := begin(t, dispatch.Setup{})
	if err := os.Chmod(filepath.Join(f.Path(), "state.jsonl"), 0o400); err != nil {
		t.Fatal(err)
	}
	_, _, err := f.Do(at, change.Actor{}, dispatch.UserInput{Text: "hello"})
	if err == nil || !strings.Contains(err.Error(), "mode") {
		t.Errorf("without permission: %v", err)
	}
}

func TestWhatIsNoSession(t *testing.T) {
	dir := t.TempDir()
	var no *NotASession
	for _, path := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := Open(path); !errors.As(err, &no) || !strings.Contains(err.Error(), "fairlead dispatch start") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "state.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Session(); !errors.As(err, &no) {
		t.Errorf("an empty state.jsonl: %v", err)
	}
	if _, _, err := f.Do(at, change.Actor{}, dispatch.UserInput{Text: "x"}); !errors.As(err, &no) {
		t.Errorf("an empty state.jsonl: %v", err)
	}
}
