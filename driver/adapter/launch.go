package adapter

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

// Launch describes how an adapter is started for a session of an agent. The prompt is passed in the
// first bytes of input, and the token of the team's tools in the environment, because every user of
// the machine can read the command line. needs are the further variables that the program gets.
func Launch(kind string, a driver.Agent, s driver.Session, needs ...string) (driver.Launch, error) {
	if s.Kind == driver.Foreign {
		return driver.Launch{}, fmt.Errorf("agent %s: programs of the driver %s run single sessions, not the loop; use `loop: fairlead`", a.Name, kind)
	}
	if err := speech.CheckPrompt(s.Prompt); err != nil {
		return driver.Launch{}, fmt.Errorf("agent %s: %w", a.Name, err)
	}
	if setting := map[driver.Kind]string{driver.Work: "session_prompt", driver.Cleanup: "cleanup_prompt"}[s.Kind]; setting != "" && strings.TrimSpace(s.Prompt) == "" {
		// Without a prompt, the session would wait forever and occupy a slot.
		return driver.Launch{}, fmt.Errorf("agent %s has no prompt for this kind of session; set one, as in `%s: Read TASKS.md and do the next task.`", a.Name, setting)
	}
	env := driver.Environment(a, s, needs...)
	program, err := driver.FindProgram(a, env)
	if err != nil {
		return driver.Launch{}, err
	}
	exe, err := os.Executable()
	if err != nil {
		return driver.Launch{}, fmt.Errorf("find this program's own file, to start the adapter of agent %s: %w", a.Name, err)
	}
	exe = strings.TrimSuffix(exe, " (deleted)") // Linux adds this suffix if the file was replaced by a newer version
	argv := []string{exe, Verb, kind, "--name", a.Name, "--session", s.ID, "--for", string(s.Kind), "--attempt", strconv.Itoa(max(s.Attempt, 1))}
	for _, given := range []struct{ flag, value string }{{"--resume", s.Resume}, {"--model", a.Model}, {"--mode", a.Mode}} {
		if given.value != "" {
			argv = append(argv, given.flag+"="+given.value)
		}
	}
	argv = append(append(argv, "--", program), a.Command[1:]...)
	return driver.Launch{
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

// Converse returns the conversation of one session.
func Converse(w driver.Wire) driver.Conversation { return speech.Conversation{Wire: w} }

// Outcome is decided by the terminal event alone.
func Outcome(s driver.Session, exit driver.Exit, stop *driver.Stop) driver.Outcome {
	return speech.Outcome(s, exit, stop)
}

// mcpFrom reads the address of the team's tools from the variables that driver.Environment has set.
func mcpFrom(getenv func(string) string) driver.MCP {
	m := driver.MCP{URL: getenv(VariableMCPURL), Token: getenv(VariableMCPToken)}
	if json.Unmarshal([]byte(getenv(VariableMCPStdio)), &m.Stdio) != nil {
		m.Stdio = nil
	}
	return m
}
