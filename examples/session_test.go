package examples_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/drivertest"
	"github.com/fairlead-dev/fairlead/driver/script"
)

// task lets an agent of the session do one thing, and gives its own words.
func task(t *testing.T, dir, agent, prompt string) string {
	t.Helper()
	cfg, err := config.Load(dir, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	a, ok := cfg.Agent(agent)
	if !ok {
		t.Fatalf("there is no %s", agent)
	}
	a.SessionPrompt = prompt
	p := play(t, a, 1, driver.Work)
	if p.end.Stop == nil || !p.end.Stop.OK {
		t.Fatalf("%s: %+v\n%s", agent, p.end.Stop, p.out)
	}
	var words []string
	for _, f := range drivertest.Facts(t, script.Driver{}, &drivertest.Recording{Bytes: p.out}, 0) {
		if f.Kind == driver.Said && f.Tool == "" {
			words = append(words, strings.TrimSuffix(f.Text, "\n"))
		}
	}
	return strings.Join(words, "\n")
}

// The three agents of the session each do their part: who writes, writes where it is told to, and
// who coordinates, only speaks.
func TestSessionPlays(t *testing.T) {
	dir := copyOf(t, "session")
	conversations := filepath.Join(t.TempDir(), "a folder", "conversations")
	prompt := func(n int, text string) string {
		outputs := filepath.Join(conversations, fmt.Sprintf("conv_%03d", n), "outputs") + "/"
		if err := os.MkdirAll(outputs, 0o755); err != nil {
			t.Fatal(err)
		}
		return text + "\n\n**WORKSPACE REQUIREMENTS:**\n- All generated files MUST be placed in: " + outputs + "\n- Record …\n\n**TASK DETAILS:**\n" + text + "\n"
	}
	says := func(agent string, n int, text, want string) {
		t.Helper()
		if got := task(t, dir, agent, prompt(n, text)); !strings.Contains(got, want) {
			t.Errorf("%s answers %q, which is not %q", agent, got, want)
		}
	}
	says("coordinator", 1, "Hello, what can you help with?", "I can help with planning, coordination, and various technical tasks.")
	says("fullstack-engineer", 2, "Write a hello world Python script", "I wrote hello_world.py")
	made := filepath.Join(conversations, "conv_002", "outputs", "hello_world.py")
	if text, err := os.ReadFile(made); err != nil || !strings.Contains(string(text), `print("Hello, World!")`) {
		t.Errorf("%q, %v", text, err)
	}
	if python, err := exec.LookPath("python3"); err == nil {
		if out, err := exec.Command(python, made).CombinedOutput(); err != nil || string(out) != "Hello, World!\n" {
			t.Errorf("%v: %s", err, out)
		}
	}
	says("coordinator", 3, "Thanks!", "You're welcome!")
	says("coordinator", 4, "Can you explain what you just did?", `I created a Python script that prints "Hello, World!".`)
	says("coordinator", 5, "Sing", "I keep this: nobody's description fits it")
	says("database-architect", 6, "Design a database", "I wrote schema.sql")
	p := play(t, config.Agent{Name: "database-architect", Script: filepath.Join(dir, "architect.script.yaml"), Workspace: filepath.Join(dir, "database-architect"), SessionPrompt: "Design"}, 2, driver.Work)
	if p.end.Stop == nil || p.end.Stop.OK || !strings.Contains(string(p.out), "I was not told where") {
		t.Errorf("it writes somewhere: %+v\n%s", p.end.Stop, p.out)
	}
}
