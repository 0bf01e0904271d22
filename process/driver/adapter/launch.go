package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// Launch describes how an adapter is started for a session of an agent. The prompt is passed in the
// first bytes of input, and the token of the team's tools in the environment, because every user of
// the machine can read the command line. needs are the further variables that the program gets.
func Launch(kind string, a driver.Agent, s driver.Session, needs ...string) (spawn.Launch, error) {
	if s.Kind == driver.Foreign {
		return spawn.Launch{},
			fmt.Errorf("agent %s: programs of the driver %s run single sessions, not the loop; use `loop: fairlead`", a.Name, kind)
	}
	if err := speech.CheckPrompt(s.Prompt); err != nil {
		return spawn.Launch{}, fmt.Errorf("agent %s: %w", a.Name, err)
	}
	if setting := map[driver.Kind]string{driver.Work: "session_prompt", driver.Cleanup: "cleanup_prompt"}[s.Kind]; setting != "" &&
		strings.TrimSpace(s.Prompt) == "" {
		// Without a prompt, the session would wait forever and occupy a slot.
		return spawn.Launch{},
			fmt.Errorf("agent %s has no prompt for this kind of session; set one, as in `%s: Read TASKS.md and do the next task.`", a.Name,
				setting)
	}
	env := driver.Environment(a, s, needs...)
	program, err := driver.FindProgram(a, env)
	if err != nil {
		return spawn.Launch{}, err
	}
	exe, err := os.Executable()
	if err != nil {
		return spawn.Launch{}, fmt.Errorf("find this program's own file, to start the adapter of agent %s: %w", a.Name, err)
	}
	argv := []string{
		exe, Verb, kind, "--name", a.Name, "--session", s.ID, "--for", string(s.Kind), "--attempt",
		strconv.Itoa(max(s.Attempt, 1)),
	}
	for _, given := range []struct{ flag, value string }{{"--resume", s.Resume}, {"--model", a.Model}, {"--mode", a.Mode}} {
		if given.value != "" {
			argv = append(argv, given.flag+"="+given.value)
		}
	}
	argv = append(append(argv, "--", program), a.Command[1:]...)
	return spawn.Launch{
		Argv: argv, Dir: a.Workspace, Env: env,
		Input: speech.Order{Type: speech.OrderStart, Text: s.Prompt, Images: s.Images}.Encode(), KeepStdin: true,
	}, nil
}

// Check returns an error if an agent cannot be started. It starts nothing.
func Check(a driver.Agent, needs ...string) error {
	if err := driver.CheckWorkspace(a); err != nil {
		return err
	}
	_, err := driver.FindProgram(a, driver.Environment(a, driver.Session{}, needs...))
	return err
}

// mcpFrom reads the address of the team's tools from the variables that driver.Environment has set.
func mcpFrom(getenv func(string) string) driver.MCP {
	m := driver.MCP{URL: getenv(VariableMCPURL), Token: getenv(VariableMCPToken)}
	if json.Unmarshal([]byte(getenv(VariableMCPStdio)), &m.Stdio) != nil {
		m.Stdio = nil
	}
	return m
}

// VariablesOf returns the variables with which a program or its bridge reaches the team's tools.
func VariablesOf(m driver.MCP) (vars []string) {
	if m.URL != "" {
		vars = append(vars, VariableMCPURL+"="+m.URL)
	}
	if m.Token != "" { // without one, a session's own socket says who it is
		vars = append(vars, VariableMCPToken+"="+m.Token)
	}
	return vars
}

// Behind holds what all drivers behind an adapter have in common on the daemon's side; a driver
// embeds it. Each driver adds how its program is started and probed, and its protocol.
type Behind struct{}

// Converse returns the conversation of one session.
func (Behind) Converse(_ driver.Agent, _ driver.Session, w driver.Wire) driver.Conversation {
	return speech.Conversation{Wire: w}
}

// Outcome is decided by the terminal event alone.
func (Behind) Outcome(s driver.Session, exit session.Exit, stop *driver.Stop) driver.Outcome {
	return speech.Outcome(s, exit, stop)
}

// Capabilities are those of a program behind an adapter. The adapter keeps a prompt until the current
// answer is over, because a program that mixed it into the answer could not say which words answer
// which prompt. All protocols can resume a conversation; a session that fails to resume reports it.
func (Behind) Capabilities(driver.Agent, driver.Kind) driver.Capabilities {
	return driver.Capabilities{Input: true, Prompts: true, Resumes: true, Asks: true, Answers: true, Probes: true}
}

const (
	printPatience = 20 * time.Second // time limit of one start; some programs load for seconds on a busy machine
	printBytesMax = 256 << 10        // size limit, for a help text
)

// Printed starts a program that prints something and ends, and returns the output.
func (s *Stage) Printed(ctx context.Context, argv []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, printPatience)
	defer cancel()
	child, err := s.Start(Command{Argv: argv})
	if err != nil {
		return "", err
	}
	child.CloseInput()
	var b strings.Builder
	for {
		select {
		case l, ok := <-child.Lines():
			if !ok {
				if ended := child.End(); ended.Exit.Code != 0 && b.Len() == 0 {
					return "", fmt.Errorf("%s", ended)
				}
				return b.String(), nil
			}
			if b.Len() < printBytesMax {
				b.Write(l.Bytes)
				b.WriteByte('\n')
			}
		case <-ctx.Done():
			child.End()
			return "", fmt.Errorf("its output did not end within %s", printPatience)
		}
	}
}

var versionNumber = regexp.MustCompile(`\d+\.\d+\.\d+[\w.+-]*`)

// VersionIn returns the version in a program's output; empty if there is none.
func VersionIn(text string) string { return versionNumber.FindString(text) }
