package script

import "strings"

// The names that are replaced in texts, as in {session}. There are no others and no expressions:
// other words in braces stay as they are, and so does a brace after a dollar sign, which belongs to
// the shell.
const (
	varName    = "name"    // the agent's name
	varSession = "session" // coder-17
	varN       = "n"       // the session's number: 17
	varKind    = "kind"    // session, cleanup, turn or lead
	varAttempt = "attempt" // number of the attempt, from 1
	varTime    = "time"    // now, UTC, RFC 3339 to the second
	varRound   = "i"       // round of the innermost repeat, from 1
	varPrompt  = "prompt"  // the last prompt; untrusted
	varAnswer  = "answer"  // the answer to the last question; untrusted
	varOutputs = "outputs" // the conversation's output folder; empty if there is none
)

// outputsPrefix begins the name of a file in the conversation's output folder.
const outputsPrefix = "{" + varOutputs + "}/"

// OutputsVariable names the environment variable with the absolute path of that folder.
const OutputsVariable = "FAIRLEAD_OUTPUTS"

// hasForeign reports whether a text contains a name that is replaced by untrusted text.
func hasForeign(s string) bool {
	const probe = "\x00"
	return strings.Contains(fill(s, map[string]string{varPrompt: probe, varAnswer: probe}), probe)
}

// fill replaces names by values, once: values are not searched again.
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

// pieces splits a line into words, or into pieces of chunk characters.
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
