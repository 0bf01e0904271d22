package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/script"
)

// task lets an agent of the session do one thing, and gives how it ended and its own words.
func task(t *testing.T, dir, agent, outputs, prompt string) (script.End, string) {
	t.Helper()
	cfg, err := config.Load(dir, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	a, ok := cfg.Agent(agent)
	if !ok {
		t.Fatalf("there is no %s", agent)
	}
	program, err := script.Load(a.Script)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	stage := script.Stage{Out: &out, Dir: a.Workspace}
	t.Setenv("FAIRLEAD_OUTPUTS", outputs)
	end := script.Play(t.Context(), program, script.Part{Name: agent, Session: agent + "-1", Kind: driver.Work, Attempt: 1, Prompt: prompt},
		stage)
	var words []string
	for _, f := range drivertest.Facts(t, script.Driver{}, &drivertest.Recording{Bytes: out.Bytes()}, 0) {
		if f.Kind == driver.Said && f.Tool == "" {
			words = append(words, strings.TrimSuffix(f.Text, "\n"))
		}
	}
	return end, strings.Join(words, "\n")
}

// The three agents of the session each do their part: who writes, writes where the files belong
// and nowhere else; who coordinates, only speaks.
func TestSessionPlays(t *testing.T) {
	dir := copyOf(t, "session")
	outputs := t.TempDir()
	says := func(agent, text, want string) {
		t.Helper()
		if end, got := task(t, dir, agent, outputs, text); end.Stop == nil || !end.Stop.OK || !strings.Contains(got, want) {
			t.Errorf("%s answers %q, which is not %q: %+v", agent, got, want, end.Stop)
		}
	}
	says("coordinator", "Hello, what can you help with?", "I can help with planning, coordination, and various technical tasks.")
	says("coordinator", "Thanks!", "You're welcome!")
	says("coordinator", "Can you explain what you just did?", `I created a Python script that prints "Hello, World!".`)
	says("coordinator", "Sing", "I keep this: no description matches it")
	if made, err := os.ReadDir(outputs); err != nil || len(made) > 0 {
		t.Errorf("the coordinator wrote %v, %v", made, err)
	}
	says("database-architect", "Design a database", "I wrote schema.sql")
	says("fullstack-engineer", "Write a hello world Python script", "I wrote hello_world.py")
	made := filepath.Join(outputs, "hello_world.py")
	if text, err := os.ReadFile(made); err != nil || !strings.Contains(string(text), `print("Hello, World!")`) {
		t.Errorf("%q, %v", text, err)
	}
	if python, err := exec.LookPath("python3"); err == nil {
		if out, err := exec.Command(python, made).CombinedOutput(); err != nil || string(out) != "Hello, World!\n" {
			t.Errorf("%v: %s", err, out)
		}
		says("fullstack-engineer", "Write a hello world Python script", "It runs, and says 'Hello, World!'.")
	}
	if end, _ := task(t, dir, "database-architect", "", "Design"); end.Stop == nil || end.Stop.OK {
		t.Errorf("without a conversation it writes somewhere: %+v", end.Stop)
	}
	for _, agent := range []string{"coordinator", "fullstack-engineer", "database-architect"} {
		if files, err := os.ReadDir(filepath.Join(dir, agent)); err != nil || len(files) != 1 {
			t.Errorf("in the folder of %s: %v, %v", agent, files, err)
		}
	}
}
