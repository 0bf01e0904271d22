package script

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// Driver starts this same program again, as a script agent. Its zero value is ready if main calls
// Intercept.
type Driver struct {
	// Exe is the program to start; empty: this one.
	Exe string
}

// Name is the word that fairlead.yaml uses.
func (Driver) Name() string { return "script" }

// Check reads the script. A faulty script returns an error that wraps Faults.
func (Driver) Check(a driver.Agent) error {
	if a.Script == "" {
		return fmt.Errorf("agent %s has no script; give it one, as in `script: %s.script.yaml`", a.Name, a.Name)
	}
	if err := driver.CheckWorkspace(a); err != nil {
		return err
	}
	if _, err := Load(a.Script); err != nil {
		return fmt.Errorf("agent %s: %w", a.Name, err)
	}
	return nil
}

// Launch plays the script in the agent's workspace. The prompt is passed in the first bytes of input
// and not on the command line, which every user of the machine can read.
func (d Driver) Launch(a driver.Agent, s driver.Session) (spawn.Launch, error) {
	if s.Kind == driver.Foreign {
		return spawn.Launch{}, fmt.Errorf("agent %s: a script plays single sessions, not the loop; use `loop: fairlead`", a.Name)
	}
	if a.Script == "" {
		return spawn.Launch{}, fmt.Errorf("agent %s has no script; give it one, as in `script: %s.script.yaml`", a.Name, a.Name)
	}
	if err := speech.CheckPrompt(s.Prompt); err != nil {
		return spawn.Launch{}, fmt.Errorf("agent %s: %w", a.Name, err)
	}
	exe, err := d.exe()
	if err != nil {
		return spawn.Launch{}, err
	}
	file, err := filepath.Abs(a.Script)
	if err != nil {
		return spawn.Launch{}, fmt.Errorf("agent %s: script %s: %w", a.Name, a.Script, err)
	}
	argv := []string{exe, Verb, file, "--name", a.Name, "--session", s.ID, "--attempt", strconv.Itoa(max(s.Attempt, 1)), "--told"}
	switch s.Kind {
	case driver.Cleanup:
		argv = append(argv, "--cleanup-session") // SPEC C4
	case driver.Turn:
		argv = append(argv, "--turn-session")
	case driver.Lead:
		argv = append(argv, "--lead-session")
	}
	return spawn.Launch{
		Argv: argv, Dir: a.Workspace, Env: driver.Environment(a, s),
		Input: speech.Order{Type: speech.OrderStart, Text: s.Prompt}.Encode(), KeepStdin: true,
	}, nil
}

// exe is the program to start. If this one was replaced by a newer version while it ran, the newer
// one is used: its path is the same.
func (d Driver) exe() (string, error) {
	if d.Exe != "" {
		return d.Exe, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's own file, to play a script: %w", err)
	}
	return exe, nil
}

// Converse returns the conversation of one session.
func (Driver) Converse(_ driver.Agent, _ driver.Session, w driver.Wire) driver.Conversation {
	return speech.Conversation{Wire: w, Steers: true}
}

// Outcome is decided by the terminal event alone.
func (Driver) Outcome(s driver.Session, exit session.Exit, stop *driver.Stop) driver.Outcome {
	return speech.Outcome(s, exit, stop)
}

// Capabilities reads the script: it reads further prompts if it expects more than one prompt in a
// session of this kind.
func (Driver) Capabilities(a driver.Agent, kind driver.Kind) driver.Capabilities {
	return driver.Capabilities{Input: true, Prompts: readsPrompts(a, kind), Steers: true, Asks: true, Answers: true}
}

// Probe is refused: a script is not a program.
func (Driver) Probe(context.Context, driver.Agent) (driver.Probed, error) {
	return driver.Probed{}, driver.ErrNoProbe
}

func readsPrompts(a driver.Agent, kind driver.Kind) bool {
	p, err := Load(a.Script)
	if err != nil {
		return false
	}
	if steps := p.prompted(kind); len(steps) > 0 {
		return expects(steps) > 1
	}
	return !slices.ContainsFunc(p.Sessions, func(s Session) bool { return expects(s.Steps) < 2 })
}

// expects counts the prompts that steps read; again reads more.
func expects(steps []Step) (n int) {
	for i := range steps {
		switch steps[i].Verb {
		case "expect_prompt":
			n++
		case "again":
			return 2 * n
		}
	}
	return n
}
