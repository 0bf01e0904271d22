package script

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

// printedBytesMax is how much of one command's output is shown. A command that prints forever must
// not fill the spool.
const printedBytesMax = 1 << 20

type event = speech.Event

// printer turns a command's output into facts, line by line.
type printer struct {
	out   *speech.Writer
	tool  string
	quiet bool

	mu     sync.Mutex
	line   []byte
	length int // length of the line, including what was dropped
	total  int
}

func (p *printer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for rest := b; len(rest) > 0; {
		head, tail, ended := bytes.Cut(rest, []byte{'\n'})
		p.length += len(head)
		if room := speech.TextBytesMax - len(p.line); room > 0 {
			p.line = append(p.line, head[:min(room, len(head))]...)
		}
		if !ended {
			break
		}
		p.flush()
		rest = tail
	}
	return len(b), nil
}

// end reports an incomplete last line.
func (p *printer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.length > 0 {
		p.flush()
	}
}

func (p *printer) flush() {
	text := strings.ToValidUTF8(strings.TrimSuffix(string(p.line), "\r"), string(utf8.RuneError))
	if p.length > len(p.line) {
		text += fmt.Sprintf(" … [cut: the line has %d bytes]", p.length)
	}
	before := p.total
	p.total += len(text) + 1
	p.line, p.length = p.line[:0], 0
	switch {
	case p.quiet:
	case p.total <= printedBytesMax:
		p.out.Tell(event{Type: driver.Said, Tool: p.tool, Text: text})
	case before <= printedBytesMax:
		p.out.Tell(event{
			Type: driver.Said, Tool: p.tool,
			Text: fmt.Sprintf("… [the command prints more than %d bytes; the rest is not shown]", printedBytesMax),
		})
	}
}

// Order is one line on the agent's standard input.
type Order = speech.Order

// Orders to an agent.
const (
	OrderStart  = speech.OrderStart
	OrderPrompt = speech.OrderPrompt
	OrderSteer  = speech.OrderSteer
	OrderAnswer = speech.OrderAnswer
	OrderCancel = speech.OrderCancel
)

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
