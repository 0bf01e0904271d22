package claudehook

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/dispatch"
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

// commandBody is the slash command's text for the model. The hook has done the work by then; the text only
// has the result shown, and says so if no hook ran.
const commandBody = `---
description: "Begin or end a session in which MAIN coordinates and agents do the work"
argument-hint: "[--session start|end] [--mode orchestrator|interactive|response] [--path directory]"
---

The user called ` + "`/" + CommandName + " $ARGUMENTS`" + `.

    --session  start (the default) or end
    --mode     orchestrator (the default): agents report back to MAIN
               interactive: an agent may call another one for help
               response: without MAIN; the daemon gives messages in the folder's inbox to agents
    --path     the session's folder; default: ./.claude/agent-state-machine/YYYYMMDD_HHMMSS

Fairlead's hook has already carried this out, and has given you the result beside this text.

- If it began a session: show the user its status block unchanged, and wait for the first input.
- If it ended one: say so in one sentence.
- If it gave you nothing about a session: the hooks are not active, so nothing is recorded and nothing is enforced. Say that, and that ` +
	"`fairlead claude install`" +
	` and a restart of the program fix it. Do not behave as if there were a session, and do not write any of its files.
`

// The slash command's file ends with a line that names its author and a checksum: a file that was changed
// since belongs to the user.
const (
	sealBegin = "<!-- fairlead install claude "
	sealEnd   = " -->\n"
)

// sealed adds that line to a text.
func sealed(body string) string { return body + "\n" + sealBegin + digest(body) + sealEnd }

// untouched reports whether a file is as a release of Fairlead wrote it.
func untouched(text string) bool {
	i := strings.LastIndex(text, "\n"+sealBegin)
	return i >= 0 && sealed(text[:i]) == text
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
