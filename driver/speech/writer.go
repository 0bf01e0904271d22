package speech

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/internal/encode"
)

const (
	// asideMax is how many lines are held back until the end of a message. More than that is a log,
	// which is written immediately.
	asideMax = 256

	// eventBytesMax is the longest event including its line ending: what a reader accepts as one line.
	eventBytesMax = driver.LineBytesMax
)

// Writer writes events, each with one Write. It remembers a failed Write: an agent whose output is
// not read should end. It is safe for concurrent use.
type Writer struct {
	mu     sync.Mutex
	out    io.Writer
	failed error

	open  driver.FactKind // kind of the current message; empty: none
	half  bool            // its last line is incomplete
	aside []Event         // events that are not part of the message, held back until it ends

	secret []byte // replaced by asterisks
}

// NewWriter returns a Writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Hide replaces a secret by asterisks in all events, because events go to disk. The secret must
// consist of characters that JSON does not escape; an empty secret hides nothing.
func (w *Writer) Hide(secret string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secret = []byte(secret)
}

// Tell writes one event. Overlong parts are cut, with a note. An event ends the current message,
// except for events outside of the conversation: usage, faults, and output of other programs. Those
// are held back until the message has ended, because markers are searched in the agent's text,
// which must not be interrupted by other text.
func (w *Writer) Tell(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.open == "", e.Type == driver.UsageReported, e.Type == driver.Faulted:
	case e.Type == driver.Said && e.Tool != "" && len(w.aside) < asideMax:
		w.aside = append(w.aside, e)
		return
	default:
		w.hush()
	}
	w.tell(e)
}

// Say writes a text of one or several lines, one fact for each line.
func (w *Writer) Say(kind driver.FactKind, tool, text string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		w.Tell(Event{Type: kind, Tool: tool, Text: line})
	}
}

// Speak writes the next piece of a message (Said or Thought) as it arrives: a complete line is a
// fact, an incomplete one a part. A message of the other kind ends here.
func (w *Writer) Speak(kind driver.FactKind, piece string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if piece == "" {
		return
	}
	if w.open != kind {
		w.hush()
		w.open = kind
	}
	for piece != "" {
		// An agent's text is never cut: a line that is too long for one event is split.
		head, ended := piece[:min(len(piece), TextBytesMax)], false
		if end := strings.IndexByte(head, '\n'); end >= 0 {
			head, ended, piece = strings.TrimSuffix(head[:end], "\r"), true, piece[end+1:]
		} else {
			head = head[:edge(piece, len(head))]
			piece = piece[len(head):]
		}
		w.tell(Event{Type: kind, Text: head, Part: !ended})
		w.half = !ended
	}
}

// Hush ends the current message.
func (w *Writer) Hush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hush()
}

func (w *Writer) hush() {
	if w.half {
		w.tell(Event{Type: w.open})
	}
	w.open, w.half = "", false
	aside := w.aside
	w.aside = nil
	for _, e := range aside {
		w.tell(e)
	}
}

// Print writes bytes that are not an event.
func (w *Writer) Print(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.print(b)
}

// Broken returns the error of a failed Write, or nil.
func (w *Writer) Broken() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

func (w *Writer) tell(e Event) { w.print(fitting(e)) }

func (w *Writer) print(b []byte) {
	if w.failed != nil {
		return
	}
	if len(w.secret) > 0 {
		b = bytes.ReplaceAll(b, w.secret, []byte("***"))
	}
	_, w.failed = w.out.Write(b)
}

// fitting encodes an event as a line within the length limit.
func fitting(e Event) []byte {
	e.Text, e.Detail = CutText(e.Text), cutTo(e.Detail, detailBytesMax)
	e.Tool, e.Reason, e.ID = cutTo(e.Tool, optionBytesMax), cutTo(e.Reason, optionBytesMax), cutTo(e.ID, optionBytesMax)
	e.Options = fewer(e.Options)
	e.Raw = CutRaw(e.Raw)
	e.Args, e.Cut = cutArgs(e.Args, slices.Clone(e.Cut))
	e.Paths, e.Cut = shorter(e.Paths, e.Cut)
	b := line(e)
	for _, shed := range []func(){ // bytes that need six each: drop the least important parts first
		func() { e.Raw = nil },
		func() { e.Args, e.Cut = nil, append(e.Cut, cutArguments) },
		func() { e.Paths, e.Cut = nil, append(e.Cut, cutPaths) },
		func() { e.Options = e.Options[:min(len(e.Options), optionsMax/8)] },
	} {
		if len(b) <= eventBytesMax {
			break
		}
		shed()
		b = line(e)
	}
	return b
}

func line(e Event) []byte { return append(encode.JSON(e), '\n') }
