package claudehook

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

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
               response: there is no MAIN; messages of a folder go to agents (from the command line alone)
    --path     the session's folder; by default ./.claude/agent-state-machine/YYYYMMDD_HHMMSS

The hook of Fairlead has carried this out already, and has told you what came of it beside this text.

- It began a session: show the user the status block that it gave you, as it is, and wait for the first input.
- It ended one: say so in a sentence.
- It told you nothing about a session: the hooks are not active, so nothing is recorded and nothing is enforced. Say that, and that ` + "`fairlead claude install`" + ` and a restart of the program mend it. Do not behave as if there were a session, and write none of its files.
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
