package claudehook

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// commandBody is what the slash command says to the model. The hook has done the work by then; this
// only has it shown, and nothing pretended where no hook was asked.
const commandBody = `---
description: "Begin or end a session in which MAIN coordinates and agents do the work"
argument-hint: "[--session start|end] [--mode orchestrator|interactive|response] [--path directory]"
---

The user called ` + "`/" + CommandName + " $ARGUMENTS`" + `.

    --session  start (the default) or end
    --mode     orchestrator (the default): agents report back to MAIN
               interactive: an agent may call another one for help
               response: there is no MAIN; messages of a folder go to agents (from the command line alone)
    --path     the session's folder; by default ./.claude/agent-state-machine/YYYYMMDD_HHMMSS

The hook of Fairlead has carried this out already, and has told you what came of it beside this text.

- It began a session: show the user the status block that it gave you, as it is, and wait for the first input.
- It ended one: say so in a sentence.
- It told you nothing about a session: the hooks are not active, so nothing is recorded and nothing is enforced. Say that, and that ` + "`fairlead claude install`" + ` and a restart of the program mend it. Do not behave as if there were a session, and write none of its files.
`

// The slash command's file ends with a line that says who wrote it, and what: a file that was
// changed since is the user's.
const (
	sealBegin = "<!-- fairlead install claude "
	sealEnd   = " -->\n"
)

// sealed puts the line under a text.
func sealed(body string) string { return body + "\n" + sealBegin + digest(body) + sealEnd }

// untouched says whether a file is as some release of ours wrote it.
func untouched(text string) bool {
	i := strings.LastIndex(text, "\n"+sealBegin)
	return i >= 0 && sealed(text[:i]) == text
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
