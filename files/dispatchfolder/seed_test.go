package dispatchfolder

import (
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

// The seed's own example gives the files that the seed describes, byte for byte. The pages in testdata/seed
// were written by hand from the seed, with [directory_path] and the permissions as in the seed. Rows D1, D2,
// D3, D4, D7, D9, D10.
func TestTheSeedsExample(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "20241218_143022")
	var f *Folder
	for line := range strings.Lines(page(t, "script.txt", "")) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		clock, rest, _ := strings.Cut(line, " ")
		verb, words, _ := strings.Cut(rest, " ")
		now, err := time.ParseInLocation(seedTime, "2024-12-18T"+clock, time.Local)
		if err != nil {
			t.Fatal(err)
		}
		if verb == "start" {
			f = startOfTheSeed(t, path, now, words)
			continue
		}
		if _, _, err := f.Do(now, change.Actor{Kind: "human", ID: "test"}, inputOf(t, f, verb, words)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	var state strings.Builder
	for line := range strings.Lines(read(t, f, "state.jsonl")) {
		seeds, _, ok := strings.Cut(line, `, "fairlead": {`)
		if !ok {
			t.Errorf("a line without the field fairlead: %s", line)
		}
		state.WriteString(seeds + "}\n")
	}
	same(t, "state.jsonl", page(t, "state.jsonl", path), state.String())
	same(t, "messages.jsonl", page(t, "messages.jsonl", path), read(t, f, "conversations/messages.jsonl"))
	same(t, "dialogue 1", page(t, "dialogue_001.md", path), read(t, f, "conversations/conv_001/dialogue.md"))
	same(t, "dialogue 2", page(t, "dialogue_002.md", path), read(t, f, "conversations/conv_002/dialogue.md"))
	same(t, "agent-list.txt", page(t, "agent-list.txt", path), read(t, f, "agent-list.txt"))
	same(t, "AGENT_DIRECTORY.md", page(t, "AGENT_DIRECTORY.md", path), read(t, f, "AGENT_DIRECTORY.md"))
	same(t, "the tree", page(t, "tree.txt", path), tree(t, path))
}

func startOfTheSeed(t *testing.T, path string, now time.Time, mode string) *Folder {
	t.Helper()
	f, s, err := Create(path, dispatch.Setup{Mode: dispatch.Mode(mode), Agents: []dispatch.Description{
		{
			Name: "fullstack-engineer", Text: "Use to write code: Python, JavaScript, whole applications",
			File: "/repo/.claude/agents/fullstack-engineer.md",
		},
		{Name: "database-architect", Text: "Use for database design, query optimization"},
	}}, Options{At: now})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the status", page(t, "status.txt", path), Status(s, len(s.Agents)))
	want := ".commit\n.lock\nAGENT_DIRECTORY.md\nagent-list.txt\nconversations/\nconversations/messages.jsonl\nstate.jsonl\n"
	same(t, "the tree at the start", want, tree(t, path))
	return f
}

func inputOf(t *testing.T, f *Folder, verb, words string) dispatch.Input {
	t.Helper()
	switch verb {
	case "input":
		return dispatch.UserInput{Text: words}
	case "input*":
		agent, rest, _ := strings.Cut(words, " ")
		terms, text, _ := strings.Cut(rest, " ")
		return dispatch.UserInput{Text: text, Match: &dispatch.Match{Agent: agent, Terms: strings.Split(terms, ",")}}
	case "wrote":
		name, what, _ := strings.Cut(words, " ")
		s, err := f.Session()
		if err != nil {
			t.Fatal(err)
		}
		file := f.Workspace(s.Open.N) + name
		if err := os.WriteFile(file, []byte("print('Hello, World!')\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return dispatch.Wrote{Task: 1, File: dispatch.File{Path: file, Summary: what}}
	case "done":
		return dispatch.TaskEnded{Task: 1, OK: true, Result: words}
	case "respond":
		return dispatch.Respond{Text: words}
	case "end":
		return dispatch.End{}
	}
	t.Fatalf("no such verb: %s", verb)
	return nil
}

func TestTheSeedsDelegation(t *testing.T) {
	dir := "/root/.claude/agent-state-machine/20241218_143022"
	request := "Create a hello_world.py file with print('Hello, World!')\n\nCreate Python file and execute it to verify functionality."
	got := DelegationPrompt(request, dir+"/conversations/conv_001/outputs/", dir+"/conversations/conv_001/dialogue.md")
	same(t, "the prompt", page(t, "prompt.txt", dir), got)
	if !strings.Contains(got, WorkspaceHeading) {
		t.Error("the prompt is not known by its heading")
	}
}

// page is one of the pages with its placeholders filled in.
func page(t *testing.T, name, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "seed", name))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if name == "state.jsonl" {
		for line := range strings.Lines(page(t, "permissions.txt", "")) {
			mark, object, _ := strings.Cut(strings.TrimSpace(line), " ")
			text = strings.ReplaceAll(text, mark, object)
		}
	}
	return strings.ReplaceAll(text, "[directory_path]", path)
}

func read(t testing.TB, f *Folder, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(f.Path(), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func same(t *testing.T, what, want, got string) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs from the seed (- seed, + Fairlead):\n%s", what, diff)
	}
}

// tree lists a folder.
func tree(t testing.TB, path string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(path, p)
		if err != nil || rel == "." {
			return err
		}
		b.WriteString(filepath.ToSlash(rel))
		if e.IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
