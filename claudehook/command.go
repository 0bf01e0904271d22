package claudehook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// CommandName is the slash command's name (seed 002).
const CommandName = "agent-state-machine"

// command is `/agent-state-machine [--session start|end] [--mode MODE] [--path DIR]`.
type command struct {
	end  bool
	mode dispatch.Mode
	path string // as given; empty: the default
}

// isCommand reports whether a prompt is the slash command: alone, or as a plugin's
// (`/fairlead:agent-state-machine`). The rest of the prompt is its arguments.
func isCommand(prompt string) (args string, is bool) {
	line := strings.TrimSpace(prompt)
	if !strings.HasPrefix(line, "/") {
		return "", false
	}
	name, args := line[1:], ""
	if i := strings.IndexAny(name, " \t\r\n"); i >= 0 {
		name, args = name[:i], name[i:]
	}
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	}
	return strings.TrimSpace(args), name == CommandName
}

const commandUsage = "/" + CommandName + " [--session start|end] [--mode orchestrator|interactive|response] [--path DIRECTORY]"

// parseCommand parses the arguments. Its errors show the syntax.
func parseCommand(args string) (command, error) {
	cmd := command{mode: dispatch.Orchestrator}
	wrong := func(format string, a ...any) (command, error) {
		return command{}, fmt.Errorf(format+"; the syntax is %s", append(a, commandUsage)...)
	}
	words, err := split(args)
	if err != nil {
		return wrong("%v", err)
	}
	seen := map[string]bool{}
	for i := 0; i < len(words); i++ {
		name, value, inline := strings.Cut(words[i], "=")
		if !slices.Contains([]string{"--session", "--mode", "--path"}, name) {
			return wrong("unknown argument %q", words[i])
		}
		if seen[name] {
			return wrong("%s is given twice", name)
		}
		seen[name] = true
		if !inline {
			if i++; i >= len(words) {
				return wrong("%s has no value", name)
			}
			value = words[i]
		}
		switch {
		case value == "":
			return wrong("%s has no value", name)
		case name == "--path":
			cmd.path = value
		case name == "--mode":
			cmd.mode = dispatch.Mode(value)
			if !slices.Contains(dispatch.Modes(), cmd.mode) {
				return wrong("unknown mode %q", value)
			}
		case value == "end":
			cmd.end = true
		case value != "start":
			return wrong("--session must be start or end, not %q", value)
		}
	}
	return cmd, nil
}

// split separates words at blanks, except inside quotes.
func split(text string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	in := false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, in = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			word.WriteRune(r)
			in = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}
