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
               response: without MAIN; messages in a folder go to agents (only from the command line)
    --path     the session's folder; default: ./.claude/agent-state-machine/YYYYMMDD_HHMMSS

Fairlead's hook has already carried this out, and has given you the result beside this text.

- If it began a session: show the user its status block unchanged, and wait for the first input.
- If it ended one: say so in one sentence.
- If it gave you nothing about a session: the hooks are not active, so nothing is recorded and nothing is enforced. Say that, and that ` + "`fairlead claude install`" + ` and a restart of the program fix it. Do not behave as if there were a session, and do not write any of its files.
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
