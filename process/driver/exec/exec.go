// Package exec drives any command that knows nothing of Fairlead.
//
// Each line of its output is a fact, unchanged, and exit code 0 means success. The command takes no
// input while it runs. Its input is fixed at the start: a cleanup session gets --cleanup-session as
// its last argument (SPEC C4), and a turn in a channel gets its prompt on standard input, which then
// ends.
//
// The one promise: every line that the command writes is exactly one fact, in order and without
// interpretation.
package exec

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// CleanupFlag is added to the command of a cleanup session (seed 000, SPEC C4).
const CleanupFlag = "--cleanup-session"

// Driver starts a command. Its zero value is ready to use.
type Driver struct{}

// Name is the word that fairlead.yaml uses.
func (Driver) Name() string { return "exec" }

// Check returns an error for a command that cannot be started, or an unusable workspace.
func (Driver) Check(a driver.Agent) error {
	if len(a.Command) == 0 || a.Command[0] == "" {
		return fmt.Errorf("agent %s has no command; give it one, as in `command: [python3, agent.py]`", a.Name)
	}
	if err := driver.CheckWorkspace(a); err != nil {
		return err
	}
	if _, err := driver.FindProgram(a, driver.Environment(a, driver.Session{})); err != nil {
		return err
	}
	return driver.CheckScript(a)
}

// Launch returns the command itself. The program is looked up here, in the agent's own PATH, so that
// the result does not depend on where the process is started.
func (Driver) Launch(a driver.Agent, s driver.Session) (spawn.Launch, error) {
	if len(a.Command) == 0 || a.Command[0] == "" {
		return spawn.Launch{}, fmt.Errorf("agent %s has no command; give it one, as in `command: [python3, agent.py]`", a.Name)
	}
	env := driver.Environment(a, s)
	program, err := driver.FindProgram(a, env)
	if err != nil {
		return spawn.Launch{}, err
	}
	argv := append([]string{program}, a.Command[1:]...)
	if s.Kind == driver.Cleanup {
		argv = append(argv, CleanupFlag)
	}
	launch := spawn.Launch{Argv: argv, Dir: a.Workspace, Env: env}
	if s.Kind == driver.Turn || s.PromptIsTask {
		if len(s.Prompt) > driver.PromptBytesMax {
			return spawn.Launch{},
				fmt.Errorf("agent %s: the prompt has %d bytes, the limit is %d; put it in a file and name the file", a.Name, len(s.Prompt),
					driver.PromptBytesMax)
		}
		launch.Input = []byte(strings.TrimSuffix(s.Prompt, "\n") + "\n") // a shell's read command needs complete lines
	}
	return launch, nil
}

// Converse returns the conversation of one session.
func (Driver) Converse(_ driver.Agent, _ driver.Session, w driver.Wire) driver.Conversation {
	return listener{w}
}

// Outcome is OK if the command ended with exit code 0.
func (Driver) Outcome(_ driver.Session, exit session.Exit, _ *driver.Stop) driver.Outcome {
	switch {
	case exit.Signal != "":
		return driver.Outcome{Why: "ended by " + exit.Signal}
	case exit.Code < 0:
		return driver.Outcome{Why: "ended; the exit status is unknown"}
	case exit.Code != 0:
		return driver.Outcome{Why: fmt.Sprintf("exit code %d", exit.Code), Quote: true}
	}
	return driver.Outcome{OK: true}
}

// Capabilities is the zero value: a command gets everything at its start.
func (Driver) Capabilities(driver.Agent, driver.Kind) (c driver.Capabilities) { return c }

// Probe is refused: nothing is known about a command in advance.
func (Driver) Probe(context.Context, driver.Agent) (driver.Probed, error) {
	return driver.Probed{}, driver.ErrNoProbe
}

type listener struct{ wire driver.Wire }

// Facts yields one Said for every line.
func (l listener) Facts(ctx context.Context, from int64) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		for line, err := range driver.ReadLines(ctx, l.wire, from) {
			if err != nil {
				yield(driver.Fact{}, err)
				return
			}
			if !yield(driver.Fact{Kind: driver.Said, Offset: line.End, Text: line.Text()}, nil) {
				return
			}
		}
	}
}

// Prompt always fails: the command takes no input.
func (listener) Prompt(context.Context, string) error { return driver.ErrNoInput }

// Steer always fails, as Prompt does.
func (listener) Steer(context.Context, string, string) error { return driver.ErrNoSteer }

// Cancel always fails: end the process instead.
func (listener) Cancel(context.Context) error { return driver.ErrNoInput }

// Answer is refused: a command asks nothing.
func (listener) Answer(context.Context, string, string) error { return driver.ErrNoAnswer }
