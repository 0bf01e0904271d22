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
	voice *speech.Writer
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
		p.voice.Tell(event{Type: driver.Said, Tool: p.tool, Text: text})
	case before <= printedBytesMax:
		p.voice.Tell(event{
			Type: driver.Said, Tool: p.tool,
			Text: fmt.Sprintf("… [the command prints more than %d bytes; the rest is not shown]", printedBytesMax),
		})
	}
}
