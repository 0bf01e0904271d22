package dispatchfolder

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/table"
)

// The default place, what is refused, and how a folder is found again (D1).
func TestWhereSessionsLie(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	repo, other := t.TempDir(), t.TempDir()
	start := func(path string, at time.Time, setup dispatch.Setup) *Folder {
		t.Helper()
		setup.Agents = two()
		f, s, err := Create(path, setup, Options{Repo: repo, At: at})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := f.Session(); err != nil || !sameNow(again.Now, s.Now) || again.Path != s.Path || !again.Began.Equal(s.Began) ||
			len(again.Agents) != 2 {
			t.Errorf("it was %+v, and is %+v, %v", s, again, err)
		}
		return f
	}
	first := start("", at, dispatch.Setup{})
	twin := start("", at, dispatch.Setup{})
	apart := start(filepath.Join(other, "s"), at.Add(time.Hour), dispatch.Setup{Path: "../other/s", Program: "claude-1"})
	home := filepath.Join(repo, ".claude", "agent-state-machine")
	if first.Path() != filepath.Join(home, "20241218_143022") || twin.Path() != first.Path()+"_2" {
		t.Errorf("they are in %s and %s", first.Path(), twin.Path())
	}
	if s := session(t, apart); s.Path != "../other/s" ||
		!strings.Contains(read(t, apart, "state.jsonl"), `"parameters": {"mode": "orchestrator", "path": "../other/s"}`) {
		t.Errorf("the path as it was given is %q", s.Path)
	}
	var refusal *table.Refusal
	for _, path := range []string{first.Path(), other, filepath.Join(other, "file")} {
		if filepath.Base(path) == "file" {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before := shelf(t, filepath.Dir(path))
		if _, _, err := Create(path, dispatch.Setup{Agents: two()}, Options{Repo: repo, At: at}); !errors.As(err, &refusal) ||
			refusal.Row != "D1" {
			t.Errorf("a session in the existing path %s: %v", path, err)
		}
		if len(shelf(t, filepath.Dir(path))) != len(before) {
			t.Errorf("a refused session left files behind")
		}
	}
	if _, _, err := Create("", dispatch.Setup{Mode: "solo", Agents: two()}, Options{Repo: repo, At: at}); !errors.As(err, &refusal) {
		t.Errorf("an unknown mode: %v", err)
	}

	all, err := List(repo)
	if err != nil || len(all) != 3 || all[0].Folder.Path() != first.Path() || all[2].Folder.Path() != apart.Path() || !all[2].Open() {
		t.Fatalf("%+v, %v", all, err)
	}
	if f, err := Current(repo); err != nil || f.Path() != apart.Path() {
		t.Errorf("the current one is %v, %v", f, err)
	}
	if f, err := ByProgram("claude-1"); err != nil || f == nil || f.Path() != apart.Path() {
		t.Errorf("the program's is %v, %v", f, err)
	}
	do(t, apart, dispatch.End{})
	if f, err := Current(repo); err != nil || f.Path() != twin.Path() {
		t.Errorf("when it has ended, the current one is %v, %v", f, err)
	}
	if f, err := ByProgram("claude-1"); err != nil || f != nil {
		t.Errorf("when it has ended, the program's is %v, %v", f, err)
	}
	do(t, first, dispatch.End{})
	do(t, twin, dispatch.End{})
	if f, err := Current(repo); err != nil || f != nil {
		t.Errorf("when all have ended, the current one is %v, %v", f, err)
	}
	if all, err := List(t.TempDir()); err != nil || len(all) != 0 {
		t.Errorf("of a repository without sessions: %v, %v", all, err)
	}
}

// A program whose dispatch folder cannot be read stays enforced; otherwise damaging the folder would end
// enforcement.
func TestAProgramsSessionThatIsGone(t *testing.T) {
	f := begin(t, dispatch.Setup{Program: "p"})
	if err := os.RemoveAll(f.Path()); err != nil {
		t.Fatal(err)
	}
	if got, err := ByProgram("p"); err == nil || got != nil || !strings.Contains(err.Error(), "remove") {
		t.Errorf("%v, %v", got, err)
	}
	file, err := programFile("p")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ByProgram("p"); err == nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
	for _, id := range []string{"", "q", "../p"} {
		if got, err := ByProgram(id); err != nil || got != nil {
			t.Errorf("%q: %v, %v", id, got, err)
		}
	}
}

// A folder that cannot be read is listed with its fault; one that is not a dispatch folder is not listed.
func TestAListWithFaults(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	repo := t.TempDir()
	f, _, err := Create("", dispatch.Setup{Agents: two()}, Options{Repo: repo, At: at})
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Dir(f.Path())
	for _, err := range []error{
		os.MkdirAll(filepath.Join(home, "no session"), 0o700),
		os.MkdirAll(filepath.Join(home, "broken"), 0o700),
		os.WriteFile(filepath.Join(home, "broken", "state.jsonl"), []byte("\xff\n"), 0o600),
		os.Symlink(f.Path(), filepath.Join(home, "link")),
		os.MkdirAll(filepath.Join(home, ".elsewhere"), 0o700),
		os.WriteFile(filepath.Join(home, ".elsewhere", "0123456789abcdef"), []byte("relative\n"), 0o600),
		os.WriteFile(filepath.Join(home, ".elsewhere", "0123456789abcde0"), []byte("/nowhere/at/all\n"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := List(repo)
	if err != nil || len(all) != 2 || all[0].Fault == "" || all[0].Open() || all[1].Folder.Path() != f.Path() {
		t.Errorf("%+v, %v", all, err)
	}
}

// Every event of the machine has a line type.
func TestEveryEventHasAType(t *testing.T) {
	seen := map[string]bool{}
	for _, event := range dispatch.Table.Events() {
		seen[TypeOf(event)] = true
	}
	if len(seen) != 11 {
		t.Errorf("%d types: %v", len(seen), seen)
	}
}

// A dispatch that could not be created leaves no program enforced.
func TestASessionThatWasNotBegunHoldsNobody(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	agents := make([]dispatch.Description, 2000)
	for i := range agents {
		agents[i] = dispatch.Description{Name: fmt.Sprint("a", i), File: strings.Repeat("\x01", 4<<10)}
	}
	start := dispatch.Setup{Host: dispatch.Claude, Program: "s1", Agents: agents}
	if _, _, err := Create(filepath.Join(t.TempDir(), "session"), start, Options{At: at}); err == nil ||
		!strings.Contains(err.Error(), "first line") {
		t.Fatalf("it was begun: %v", err)
	}
	if f, err := ByProgram("s1"); f != nil || err != nil {
		t.Errorf("%v, %v", f, err)
	}
}

// The end of a dispatch removes its own entry and no other's: neither that of the same program's next dispatch, nor one that is
// written at the same moment.
func TestTheEndOfADispatchLeavesAnothersEntry(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	repo := t.TempDir()
	begin := func(name string) *Folder {
		t.Helper()
		f, _, err := Create(filepath.Join(repo, name), dispatch.Setup{Host: dispatch.Claude, Program: "p", Agents: two()},
			Options{Repo: repo, At: at})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := begin("a"), begin("b")
	do(t, first, dispatch.End{})
	if f, err := ByProgram("p"); err != nil || f == nil || f.Path() != second.Path() {
		t.Fatalf("after the end of the first one, the program's is %v, %v", f, err)
	}
	for n := range 50 { // an entry of an ended dispatch is found and removed while another one registers
		if err := first.register(repo, "p"); err != nil {
			t.Fatal(err)
		}
		begun := make(chan error)
		go func() { begun <- second.register(repo, "p") }()
		_, err := ByProgram("p")
		if err := errors.Join(err, <-begun); err != nil {
			t.Fatal(err)
		}
		if f, err := ByProgram("p"); err != nil || f == nil || f.Path() != second.Path() {
			t.Fatalf("try %d: the entry of the open dispatch is gone: %v, %v", n, f, err)
		}
	}
	do(t, second, dispatch.End{})
	if f, err := ByProgram("p"); err != nil || f != nil {
		t.Errorf("when both have ended, the program's is %v, %v", f, err)
	}
	if file, err := programFile("p"); err != nil {
		t.Error(err)
	} else if _, err := os.Lstat(file); err == nil {
		t.Error("the entry of the ended dispatch stays")
	}
}

// An open dispatch is found in its repository without its entry, and what is wrong with the entry is said.
func TestAnOpenDispatchWithoutItsEntry(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	repo := t.TempDir()
	f, _, err := Create("", dispatch.Setup{Host: dispatch.Claude, Program: "p", Agents: two()}, Options{Repo: repo, At: at})
	if err != nil {
		t.Fatal(err)
	}
	if wrong, err := Untied(repo); err != nil || len(wrong) > 0 {
		t.Errorf("%v, %v", wrong, err)
	}
	file, err := programFile("p")
	if err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func() error{
		"it is missing": func() error { return os.RemoveAll(filepath.Dir(file)) },
		"does not contain": func() error {
			return errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("x\n"), 0o600))
		},
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		got, tie, err := ByProgramIn(repo, "p")
		if err != nil || got == nil || got.Path() != f.Path() || tie == nil || !strings.Contains(tie.Error(), what) {
			t.Errorf("%s: %v, %v, %v", what, got, tie, err)
		}
		if wrong, err := Untied(repo); err != nil || len(wrong) != 1 || !strings.Contains(wrong[0].Error(), what) {
			t.Errorf("%s: %v, %v", what, wrong, err)
		}
	}
	if got, _, err := ByProgramIn(repo, "q"); err != nil || got != nil {
		t.Errorf("another program's: %v, %v", got, err)
	}
	do(t, f, dispatch.End{})
	if wrong, err := Untied(repo); err != nil || len(wrong) > 0 {
		t.Errorf("after the end: %v, %v", wrong, err)
	}
}

// A path that begins with ~ is below the home folder; other names with ~ are names.
func TestAPathInTheHome(t *testing.T) {
	for path, want := range map[string]string{
		"~": "/home/x", "~/asm": "/home/x/asm", "~/": "/home/x", "~asm": "~asm", "a/~/b": "a/~/b",
		"": "", "/~": "/~",
	} {
		if got := InHome(path, "/home/x"); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := InHome("~/asm", ""); got != "~/asm" {
		t.Errorf("without a home: %s", got)
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	repo, home := t.TempDir(), t.TempDir()
	f, _, err := Create("~/asm", dispatch.Setup{Agents: two()}, Options{Repo: repo, Home: home, At: at})
	if err != nil || f.Path() != filepath.Join(home, "asm") {
		t.Errorf("%v, %v", f, err)
	}
}

// Lines keep U+2028 and U+2029, as the seed's programs write them, and a text that only looks like their escape.
func TestLinesKeepSeparators(t *testing.T) {
	for _, text := range []string{"a\u2028b\u2029", `a\u2028b`, `\\u2029`, "\\\u2028", "\"\u2029:,\""} {
		line := jsonLine(map[string]string{"a": text})
		var is map[string]string
		if err := json.Unmarshal(line, &is); err != nil || is["a"] != text ||
			strings.Contains(text, "\u2028") && !strings.Contains(string(line), "\u2028") {
			t.Errorf("%q becomes %q: %q, %v", text, line, is["a"], err)
		}
	}
}
