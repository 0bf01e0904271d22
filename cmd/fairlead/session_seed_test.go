package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	dispatchcli "github.com/fairlead-dev/fairlead/cli/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// desk is a repository in which a user runs the dispatch commands.
type desk struct {
	t   *testing.T
	dir string
}

// newDesk creates a repository with these files; the user's home is empty, and no daemon runs.
func newDesk(t *testing.T, files map[string]string) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &desk{t, dir}
}

// types types one verb.
func (d *desk) types(in string, words ...string) (out, errs string, code int) {
	d.t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(append([]string{"--dir", d.dir}, words...), strings.NewReader(in), &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}

// must is types, and wants that it is done.
func (d *desk) must(words ...string) string {
	d.t.Helper()
	out, errs, code := d.types("", words...)
	if code != cli.ExitDone {
		d.t.Fatalf("fairlead %q: exit code %d: %s%s", words, code, out, errs)
	}
	return out
}

// no types a verb that fails, and wants these words in what it says.
func (d *desk) no(code int, wants []string, words ...string) {
	d.t.Helper()
	out, errs, got := d.types("", words...)
	if got != code {
		d.t.Errorf("fairlead %q: exit code %d, not %d: %s%s", words, got, code, out, errs)
	}
	for _, want := range wants {
		if !strings.Contains(out+errs, want) {
			d.t.Errorf("fairlead %q does not say %q:\n%s%s", words, want, out, errs)
		}
	}
}

// started begins a session, and gives its folder.
func (d *desk) started(words ...string) string {
	d.t.Helper()
	var begun dispatchcli.SessionBegun
	if err := json.Unmarshal([]byte(d.must(append([]string{"dispatch", "start", "--json"}, words...)...)), &begun); err != nil {
		d.t.Fatal(err)
	}
	return begun.Path
}

var (
	timeInFile = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)
	oursInLine = regexp.MustCompile(`, "fairlead": \{.*\}\}`)
)

// asTheSeed is a text as the goldens have it: times, the folder and the permissions by their names, as
// the seed writes them, and of a line the seed's fields alone.
func asTheSeed(t *testing.T, folder, text string) string {
	t.Helper()
	text = oursInLine.ReplaceAllString(text, "}")
	for name, rules := range map[string]policy.Rules{"[MAIN_PERMISSIONS]": policy.MainRules(), "[AGENT_PERMISSIONS]": policy.AgentRules()} {
		compact, err := json.Marshal(rules)
		if err != nil {
			t.Fatal(err)
		}
		spaced := strings.NewReplacer(`":[`, `": [`, `","`, `", "`, `],"`, `], "`).Replace(string(compact))
		text = strings.ReplaceAll(text, spaced, name)
	}
	text = timeInFile.ReplaceAllString(text, "[time]")
	text = strings.ReplaceAll(text, folder, "[directory_path]")
	return strings.ReplaceAll(text, filepath.Base(folder), "[name]")
}

// sameFiles compares a session's files with what was written by hand from the seed before.
func sameFiles(t *testing.T, folder string, goldens map[string]string) {
	t.Helper()
	for file, want := range goldens {
		text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", "session", want), asTheSeed(t, folder, string(text)))
	}
}

// sample is a copy of the example, as a person makes it.
func sample(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "session")
	if out, err := exec.Command("sh", filepath.Join("..", "..", "examples", "session", "new.sh"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The seed's own example, with every command run by hand: the output, and every file that results.
func TestSessionSeedByHand(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.dir = sample(t)
	folder := d.started()
	if is, want := filepath.Dir(folder), filepath.Join(d.dir, ".claude", "agent-state-machine"); is != want {
		t.Errorf("it lies in %s, not %s", is, want)
	}
	var seen strings.Builder
	for _, words := range [][]string{
		{"input", "Hello, what can you help with?"},
		{"respond", "I can help with planning, coordination, and various technical tasks..."},
		{"input", "Write a hello world Python script"},
		{"done", "I wrote hello_world.py."},
		{"respond", "I wrote hello_world.py."},
		{"input", "Thanks!"},
		{"respond", "You're welcome!"},
		{"input", "Can you explain what you just did?"},
		{"respond", `I created a Python script that prints "Hello, World!"...`},
		{"end"},
	} {
		seen.WriteString(d.must(append([]string{"dispatch"}, words...)...))
		if words[0] == "done" {
			d.write(filepath.Join(folder, "conversations", "conv_002", "outputs", "hello_world.py"), "print('Hello, World!')\n")
		}
	}
	golden.Check(t, filepath.Join("testdata", "session", "seen.txt"), asTheSeed(t, folder, seen.String()))
	sameFiles(t, folder, map[string]string{
		"state.jsonl": "state.txt", "conversations/messages.jsonl": "messages.txt", "conversations/conv_002/dialogue.md": "dialogue.txt",
	})
	for _, conversation := range []string{"conv_001", "conv_002", "conv_003", "conv_004"} {
		if info, err := os.Stat(filepath.Join(folder, "conversations", conversation, "outputs")); err != nil || !info.IsDir() {
			t.Errorf("%s has no outputs: %v", conversation, err)
		}
	}
}

func (d *desk) write(path, text string) {
	d.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// The same example, and agents of fairlead.yaml do the work under a real daemon: the files are the
// same, and so is what is seen of who takes over.
func TestSessionSeedHosted(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	s := newRigIn(t, sample(t), nil)
	var begun dispatchcli.SessionBegun
	out, code := s.fairlead("dispatch", "start", "--json")
	if err := json.Unmarshal([]byte(out), &begun); err != nil || code != cli.ExitDone || begun.Host != dispatchcli.HostFairlead ||
		begun.State != "MAIN" || begun.Agents != 2 {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	var seen strings.Builder
	for _, words := range [][]string{
		{"input", "--wait", "Hello, what can you help with?"},
		{"input", "--wait", "Write a hello world Python script"},
		{"input", "--wait", "Thanks!"},
		{"input", "--wait", "Can you explain what you just did?"},
		{"end"},
	} {
		out, code := s.fairlead(append([]string{"dispatch"}, words...)...)
		if code != cli.ExitDone {
			t.Fatalf("fairlead session %q: exit code %d: %s", words, code, out)
		}
		seen.WriteString(out)
	}
	golden.Check(t, filepath.Join("testdata", "session", "hosted.txt"), asTheSeed(t, begun.Path, seen.String()))
	sameFiles(t, begun.Path, map[string]string{"state.jsonl": "state.txt", "conversations/messages.jsonl": "messages.txt"})
	made := filepath.Join(begun.Path, "conversations", "conv_002", "outputs", "hello_world.py")
	if out, err := exec.Command("python3", made).CombinedOutput(); err != nil || string(out) != "Hello, World!\n" {
		t.Errorf("%v: %s", err, out)
	}
	folder, err := dispatchfolder.Open(begun.Path)
	if err != nil {
		t.Fatal(err)
	}
	if is, err := folder.Session(); err != nil || is.Phase != "closed" || is.Made != 4 {
		t.Errorf("it stands at %+v, %v", is.Now, err)
	}
}
