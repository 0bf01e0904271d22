package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/driver"
)

const (
	// spokenBytesMax is the longest text in one event: well below the longest line
	// that a reader takes whole, even where every byte needs six to be written.
	spokenBytesMax = 64 << 10

	// printedBytesMax is how much of one command's output is shown. A command that
	// prints for ever must not fill the spool.
	printedBytesMax = 1 << 20
)

// event is one line that the agent writes: a fact, in JSON. Type is a
// driver.FactKind; what else is filled depends on it.
type event struct {
	Type    driver.FactKind   `json:"type"`
	Text    string            `json:"text,omitempty"`
	Part    bool              `json:"part,omitempty"`
	Tool    string            `json:"tool,omitempty"`
	ID      string            `json:"id,omitempty"`
	Options []driver.Option   `json:"options,omitempty"`
	Args    map[string]string `json:"args,omitempty"` // what a tool is called with
	driver.Usage
	Input  int64  `json:"input,omitempty"`
	OK     *bool  `json:"ok,omitempty"`
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// voice writes events, each with one Write, and remembers that it failed: an agent
// that nobody can hear has no reason to go on.
type voice struct {
	mu     sync.Mutex
	out    io.Writer
	failed error
}

func (v *voice) tell(e event) {
	e.Text = cutText(e.Text)
	e.Detail = cutText(e.Detail)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // people read this too
	if err := enc.Encode(e); err != nil {
		panic(fmt.Sprintf("script: an event that is no JSON: %v", err))
	}
	v.raw(b.Bytes())
}

func (v *voice) raw(b []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failed != nil {
		return
	}
	_, v.failed = v.out.Write(b)
}

func (v *voice) broken() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failed
}

// say tells a text of one line or several, a fact each.
func (v *voice) say(kind driver.FactKind, tool, text string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		v.tell(event{Type: kind, Tool: tool, Text: line})
	}
}

func cutText(s string) string {
	if len(s) <= spokenBytesMax {
		return s
	}
	return strings.ToValidUTF8(s[:spokenBytesMax], "") + fmt.Sprintf(" … [cut: %d bytes]", len(s))
}

// printer turns what a command prints into facts, line by line as they come.
type printer struct {
	voice *voice
	tool  string
	quiet bool

	mu     sync.Mutex
	line   []byte
	length int // of the line, with what was not kept
	total  int
}

func (p *printer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for rest := b; len(rest) > 0; {
		head, tail, ended := bytes.Cut(rest, []byte{'\n'})
		p.length += len(head)
		if room := spokenBytesMax - len(p.line); room > 0 {
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

// end tells what had no line's end.
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
		p.voice.tell(event{Type: driver.Said, Tool: p.tool, Text: text})
	case before <= printedBytesMax:
		p.voice.tell(event{
			Type: driver.Said, Tool: p.tool,
			Text: fmt.Sprintf("… [the command prints more than %d bytes; the rest is not shown]", printedBytesMax),
		})
	}
}
