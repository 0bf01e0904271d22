package script

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/driver"
)

// Driver starts this same program again, as a script agent. Its zero value is
// ready where main calls Intercept.
type Driver struct {
	// Exe is the program that plays; empty: this one.
	Exe string
}

// Name is the word that fairlead.yaml uses.
func (Driver) Name() string { return "script" }

// Check reads the script; its faults are a Faults, inside.
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

// Launch plays the script in the agent's workspace. The prompt goes with the first
// bytes of input and not on the command line, where every user of the machine
// could read it.
func (d Driver) Launch(a driver.Agent, s driver.Session) (driver.Launch, error) {
	if s.Kind == driver.Foreign {
		return driver.Launch{}, fmt.Errorf("agent %s: a script plays sessions, it does not run the loop itself; use `loop: fairlead`", a.Name)
	}
	if a.Script == "" {
		return driver.Launch{}, fmt.Errorf("agent %s has no script; give it one, as in `script: %s.script.yaml`", a.Name, a.Name)
	}
	if len(s.Prompt) > driver.PromptBytesMax {
		return driver.Launch{}, fmt.Errorf("agent %s: the prompt has %d bytes, %d is the most; put it in a file and name the file", a.Name, len(s.Prompt), driver.PromptBytesMax)
	}
	exe, err := d.exe()
	if err != nil {
		return driver.Launch{}, err
	}
	file, err := filepath.Abs(a.Script)
	if err != nil {
		return driver.Launch{}, fmt.Errorf("agent %s: script %s: %w", a.Name, a.Script, err)
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
	return driver.Launch{
		Argv: argv, Dir: a.Workspace, Env: driver.Environment(a, s),
		Input: Order{Type: OrderStart, Text: s.Prompt}.encode(), KeepStdin: true,
	}, nil
}

// exe is the program to start. Where this one was replaced by a newer version
// while it ran, the newer one plays.
func (d Driver) exe() (string, error) {
	if d.Exe != "" {
		return d.Exe, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's own file, to play a script: %w", err)
	}
	return strings.TrimSuffix(exe, " (deleted)"), nil // as Linux says it
}

// Converse listens to one session and tells it things.
func (Driver) Converse(_ driver.Agent, _ driver.Session, w driver.Wire) driver.Conversation {
	return conversation{w}
}

// Outcome believes the terminal event, and nothing else: an exit code says too little.
func (Driver) Outcome(_ driver.Session, exit driver.Exit, stop *driver.Stop) driver.Outcome {
	switch {
	case stop != nil && stop.OK:
		return driver.Outcome{OK: true, Why: stop.Detail}
	case stop != nil && stop.Detail != "":
		return driver.Outcome{Why: stop.Reason + ": " + stop.Detail}
	case stop != nil:
		return driver.Outcome{Why: stop.Reason}
	case exit.Signal != "":
		return driver.Outcome{Why: "ended by " + exit.Signal + " before it had finished"}
	case exit.Code < 0:
		return driver.Outcome{Why: "ended before it had finished; how is not known"}
	}
	return driver.Outcome{Why: fmt.Sprintf("ended with exit code %d and did not say that it had finished", exit.Code)}
}

// TakesInput is true: a script hears orders whatever it plays.
func (Driver) TakesInput() bool { return true }

// HearsAs is for a script that expects more than the prompt of its start in what it plays in such
// a session: any other would leave what it is told unread.
func (Driver) HearsAs(a driver.Agent, kind driver.Kind) bool {
	p, err := Load(a.Script)
	if err != nil {
		return false
	}
	if steps := p.talk(kind); len(steps) > 0 {
		return expects(steps) > 1
	}
	for i := range p.Sessions {
		if expects(p.Sessions[i].Steps) < 2 {
			return false
		}
	}
	return true
}

// expects counts the prompts that steps read at most; more than 2 count as 2.
func expects(steps []Step) (n int) {
	for i := range steps {
		s := &steps[i]
		switch most := max(expects(s.Steps), expects(s.Else)); s.Verb {
		case "expect_prompt":
			n++
		case "repeat":
			n += most * min(s.N, 2)
		default:
			for _, choice := range s.Choices {
				most = max(most, expects(choice))
			}
			for i := range s.Cases {
				most = max(most, expects(s.Cases[i].Steps))
			}
			n += most
		}
	}
	return min(n, 2)
}

type conversation struct{ wire driver.Wire }

var (
	_ driver.Talker   = Driver{}
	_ driver.Answerer = conversation{}
)

// Facts makes one fact of every line.
func (c conversation) Facts(ctx context.Context, from int64) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		for line, err := range driver.ReadLines(ctx, c.wire, from) {
			if err != nil {
				yield(driver.Fact{}, err)
				return
			}
			if !yield(fact(line), nil) {
				return
			}
		}
	}
}

// Prompt tells the agent something; a step expect_prompt reads it.
func (c conversation) Prompt(ctx context.Context, text string) error {
	if len(text) > driver.PromptBytesMax {
		return fmt.Errorf("the prompt has %d bytes, %d is the most; put it in a file and name the file", len(text), driver.PromptBytesMax)
	}
	return c.send(ctx, Order{Type: OrderPrompt, Text: text})
}

// Answer answers a question that the step ask asked.
func (c conversation) Answer(ctx context.Context, ask, option string) error {
	return c.send(ctx, Order{Type: OrderAnswer, ID: ask, Option: option})
}

// Cancel ends the step that is under way and then the session.
func (c conversation) Cancel(ctx context.Context) error {
	return c.send(ctx, Order{Type: OrderCancel})
}

func (c conversation) send(ctx context.Context, o Order) error {
	if err := c.wire.Send(ctx, o.encode()); err != nil {
		return fmt.Errorf("send %s to the agent: %w", o.Type, err)
	}
	return nil
}
