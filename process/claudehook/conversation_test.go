package claudehook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0") // without this every program of the test would wait a second at its end
	playProcess()
	time.Local = time.UTC // the files hold local times
	code := m.Run()
	for _, dir := range removeAfter {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// removeAfter are folders that all tests share.
var removeAfter []string

// world is a repository, a home and a clock that advances a second for each hook.
type world struct {
	t       testing.TB
	root    string
	at      time.Time
	env     map[string]string
	inAgent bool
	exe     []string // Hook.Exe
	args    []string // of the program that calls the hook
}

func newWorld(t *testing.T) *world { t.Helper(); return worldFor(t) }

func worldFor(t testing.TB) *world {
	t.Helper()
	//nolint:usetesting // t.TempDir may be so long a name that what is said of a file is cut elsewhere
	short, err := os.MkdirTemp("/tmp", "fl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	root, err := filepath.EvalSymlinks(short)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, root: root, at: time.Date(2026, 11, 20, 14, 30, 0, 0, time.UTC), env: map[string]string{}}
	t.Setenv("HOME", w.path("home"))
	t.Setenv("XDG_STATE_HOME", w.path("home/.local/state"))
	w.write("repo/README.md", "# A repository\n")
	w.write("repo/.claude/agents/fullstack-engineer.md",
		"---\nname: fullstack-engineer\ndescription: Use to write and run programs: Python scripts, servers, pages\n---\nYou write code.\n")
	w.write("repo/.claude/agents/database-architect.md",
		"---\nname: database-architect\ndescription: Use for database design and query optimization\n---\nYou know databases.\n")
	return w
}

func (w *world) path(rel string) string { return filepath.Join(w.root, filepath.FromSlash(rel)) }

func (w *world) write(rel, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(rel)), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.path(rel), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// hook runs one hook.
func (w *world) hook(name, input string) Answer {
	h := Hook{
		Now:    func() time.Time { w.at = w.at.Add(time.Second); return w.at },
		Env:    func(name string) string { return w.env[name] },
		Home:   w.path("home"),
		Nested: func() bool { return w.inAgent },
		Args:   func() []string { return w.args },
		Exe:    w.exe,
	}
	return h.Answer(name, strings.NewReader(input))
}

// session returns the only dispatch folder of the repository.
func (w *world) session() string { return w.path("repo/.claude/agent-state-machine/20261120_143001") }

// told is one line of a recorded conversation: a hook's input, or another event.
type told struct {
	Remark string            `json:"#"`
	Write  map[string]string `json:"write"` // files that a tool creates
	Env    map[string]string `json:"env"`
	Nested *bool             `json:"nested"`
	Event  string            `json:"hook_event_name"`
}

// Recorded conversations of a program with its hooks, in the documented form. $REPO and $SESSION stand for
// the folders. The golden file holds each answer, and the files at the end.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			golden.Check(t, strings.TrimSuffix(file, ".jsonl")+".golden", w.play(string(text)))
		})
	}
}

func (w *world) play(text string) string {
	var page strings.Builder
	names := strings.NewReplacer("$REPO", w.path("repo"), "$SESSION", w.session(), "$HOME", w.path("home"))
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		var is told
		if err := json.Unmarshal([]byte(line), &is); err != nil {
			w.t.Fatalf("%v: %s", err, line)
		}
		input := names.Replace(line)
		switch {
		case is.Remark != "":
			fmt.Fprintf(&page, "# %s\n", is.Remark)
		case is.Env != nil:
			w.env = is.Env
		case is.Nested != nil:
			w.inAgent = *is.Nested
		case is.Write != nil:
			for name, text := range is.Write {
				w.write(strings.TrimPrefix(names.Replace(name), w.root+"/"), text)
			}
		default:
			fmt.Fprintf(&page, "%s\n", brief([]byte(line)))
			page.WriteString(answerText(w.hook(is.Event, input)))
		}
	}
	page.WriteString("\n==== the session's files\n")
	page.WriteString(w.files())
	return strings.NewReplacer(w.session(), "$SESSION", w.path("repo"), "$REPO", w.path("home"), "$HOME").Replace(page.String())
}

// brief shows a hook's input on one line.
func brief(line []byte) string {
	e, err := eventOf(line)
	if err != nil {
		return "> " + string(line)
	}
	text := "> " + e.Name
	for _, part := range []string{e.Agent, e.Tool, string(e.Input), e.Prompt, e.Last, e.Source, e.Reason} {
		if part != "" {
			text += " " + cut(strings.ReplaceAll(part, "\n", "⏎"), 200)
		}
	}
	return text
}

func answerText(a Answer) string {
	var out bytes.Buffer
	if len(a.Out) > 0 {
		if err := json.Indent(&out, a.Out, "  ", "  "); err != nil {
			return "  no JSON: " + string(a.Out) + "\n"
		}
	}
	text := ""
	if out.Len() > 0 {
		text = "  " + strings.NewReplacer(mainRules, "(MAIN's rules)", `\n`, "\n    ", `\"`, `"`).Replace(out.String()) + "\n"
	}
	if a.Err != "" {
		text += "  stderr: " + a.Err + "\n"
	}
	if a.Code != 0 {
		text += fmt.Sprintf("  exit %d\n", a.Code)
	}
	return text
}

// files returns the dispatch folder's files without the fields that every line has.
func (w *world) files() string {
	var page strings.Builder
	err := filepath.WalkDir(w.session(), func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(w.session(), path)
		if err != nil || d.IsDir() || strings.HasPrefix(rel, ".") {
			return nil //nolint:nilerr // there may be no session
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&page, "---- %s\n", rel)
		if rel != "state.jsonl" {
			page.Write(text)
			return nil
		}
		for line := range strings.Lines(string(text)) {
			var is struct {
				Time, Type, State, Trigger, Previous string
				Fairlead                             struct{ Row string }
			}
			if err := json.Unmarshal([]byte(line), &is); err != nil {
				return err
			}
			fmt.Fprintf(&page, "%-4s %-18s %-20s %s", is.Fairlead.Row, is.Type, is.State, is.Trigger)
			if is.Previous != "" {
				fmt.Fprintf(&page, " (from %s)", is.Previous)
			}
			page.WriteString("\n")
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if folder, err := dispatchfolder.Open(w.session()); err == nil {
		if _, err := folder.Session(); err != nil {
			w.t.Errorf("the folder cannot be read: %v", err)
		}
	}
	return page.String()
}

// shell runs a command line like the program.
func shell(t *testing.T, line string) (code int, out, errs string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}
