package script

import "strings"

// The names that stand for something in a text, as in {session}. There are no
// others, and no expressions: what is in braces and not here stays as it is, and
// so does a brace after a dollar, which is the shell's.
const (
	varName    = "name"    // the agent's name
	varSession = "session" // coder-17
	varN       = "n"       // the session's number: 17
	varKind    = "kind"    // session, cleanup, turn or lead
	varAttempt = "attempt" // which try this is, from 1
	varTime    = "time"    // now, UTC, RFC 3339 to the second
	varRound   = "i"       // which round of the innermost repeat, from 1
	varPrompt  = "prompt"  // what the agent was last told; foreign
	varAnswer  = "answer"  // what its last question was answered with; foreign
	varOutputs = "outputs" // the folder for what is made in a conversation; empty where there is none
)

// outputsPrefix begins the name of a file that is not in the workspace, but in the conversation's
// folder of outputs.
const outputsPrefix = "{" + varOutputs + "}/"

// OutputsVariable names the environment variable that says where that is: absolute.
const OutputsVariable = "FAIRLEAD_OUTPUTS"

// hasForeign says whether a text has a name in it whose words come from outside.
func hasForeign(s string) bool {
	const probe = "\x00"
	return strings.Contains(fill(s, map[string]string{varPrompt: probe, varAnswer: probe}), probe)
}

// fill puts values in the place of names, once: a value is not looked through again.
func fill(s string, vars map[string]string) string {
	if !strings.Contains(s, "{") {
		return s
	}
	var b strings.Builder
	for {
		open := strings.IndexByte(s, '{')
		if open < 0 {
			break
		}
		length := strings.IndexByte(s[open:], '}')
		if length < 0 {
			break
		}
		value, known := vars[s[open+1:open+length]]
		if !known || open > 0 && s[open-1] == '$' {
			b.WriteString(s[:open+1])
			s = s[open+1:]
			continue
		}
		b.WriteString(s[:open])
		b.WriteString(value)
		s = s[open+length+1:]
	}
	b.WriteString(s)
	return b.String()
}

// pieces cuts a line for a text that appears bit by bit: by words, or every so
// many characters.
func pieces(line string, chunk int) []string {
	if chunk == 0 {
		return strings.SplitAfter(line, " ")
	}
	var all []string
	runes := []rune(line)
	for len(runes) > chunk {
		all = append(all, string(runes[:chunk]))
		runes = runes[chunk:]
	}
	return append(all, string(runes))
}
