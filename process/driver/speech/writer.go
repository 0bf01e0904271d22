package speech

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/driver"
)

const (
	// asideMax is how many lines are held back until the end of a message. More than that is a log,
	// which is written immediately.
	asideMax = 256

	// What is gathered is written when it is this long or this old.
	gatheredBytesMax = 32 << 10
	gatheredMax      = 2 * time.Millisecond

	// eventBytesMax is the longest event including its line ending: what a reader accepts as one line.
	eventBytesMax = driver.LineBytesMax
)

// Writer writes events, each with one Write; see Gather for pieces of a message. It remembers a failed
// Write: an agent whose output is not read should end. It is safe for concurrent use.
type Writer struct {
	mu     sync.Mutex
	out    io.Writer
	failed error

	gathers  bool
	gathered []byte      // pieces of a message that are not written yet
	late     *time.Timer // writes them if nothing else does; nil: nothing was gathered so far

	open  driver.FactKind // kind of the current message; empty: none
	half  bool            // its last line is incomplete
	aside []driver.Fact   // events that are not part of the message, held back until it ends

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

// Gather with true says that more of the agent's output has already been read. Pieces of a message may
// then be written together, up to gatheredMax later, and at the latest before the next other event.
func (w *Writer) Gather(more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gathers = more; !more {
		w.flush()
	}
}

// Tell writes one event. Overlong parts are cut, with a note. An event ends the current message,
// except for events outside of the conversation: usage, faults, and output of other programs. Those
// are held back until the message has ended, because markers are searched in the agent's text,
// which must not be interrupted by other text.
func (w *Writer) Tell(e driver.Fact) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.open == "", e.Kind == driver.UsageReported, e.Kind == driver.Faulted:
	case e.Kind == driver.Said && e.Tool != "" && len(w.aside) < asideMax:
		w.aside = append(w.aside, e)
		return
	default:
		w.endMessage()
	}
	w.tell(e)
}

// Say writes a text of one or several lines, one fact for each line.
func (w *Writer) Say(kind driver.FactKind, tool, text string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		w.Tell(driver.Fact{Kind: kind, Tool: tool, Text: line})
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
		w.endMessage()
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
		w.piece(kind, head, !ended)
		w.half = !ended
	}
}

// EndMessage ends the current message.
func (w *Writer) EndMessage() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endMessage()
}

func (w *Writer) endMessage() {
	if w.half {
		w.tell(driver.Fact{Kind: w.open})
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

func (w *Writer) tell(e driver.Fact) { w.print(fitting(e)) }

// piece writes a piece of a message, or gathers it.
func (w *Writer) piece(kind driver.FactKind, text string, part bool) {
	before := len(w.gathered)
	w.gathered = appendPiece(w.gathered, kind, text, part)
	if own := w.gathered[before:]; len(w.secret) > 0 && bytes.Contains(own, w.secret) {
		w.gathered = append(w.gathered[:before], w.hide(own)...)
	}
	switch {
	case !w.gathers || len(w.gathered) > gatheredBytesMax:
		w.flush()
	case before > 0:
	case w.late == nil:
		w.late = time.AfterFunc(gatheredMax, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.flush()
		})
	default:
		w.late.Reset(gatheredMax)
	}
}

// print writes bytes after what was gathered.
func (w *Writer) print(b []byte) {
	w.gathered = append(w.gathered, w.hide(b)...)
	w.flush()
}

func (w *Writer) hide(b []byte) []byte {
	if len(w.secret) == 0 {
		return b
	}
	return bytes.ReplaceAll(b, w.secret, []byte("***"))
}

// flush writes what was gathered.
func (w *Writer) flush() {
	if len(w.gathered) == 0 {
		return
	}
	if w.late != nil {
		w.late.Stop()
	}
	if w.failed == nil {
		_, w.failed = w.out.Write(w.gathered)
	}
	if w.gathered = w.gathered[:0]; cap(w.gathered) > 2*gatheredBytesMax {
		w.gathered = nil // a long event is rare
	}
}

// appendPiece appends the event for a piece of a message, as line encodes it.
func appendPiece(b []byte, kind driver.FactKind, text string, part bool) []byte {
	if strings.ContainsFunc(text, escaped) || !utf8.ValidString(text) {
		return append(b, line(driver.Fact{Kind: kind, Text: text, Part: part})...)
	}
	b = append(append(append(b, `{"type":"`...), kind...), '"')
	if text != "" {
		b = append(append(append(b, `,"text":"`...), text...), '"')
	}
	if part {
		b = append(b, `,"part":true`...)
	}
	return append(b, "}\n"...)
}

// escaped reports whether JSON, as line writes it, has another form of a character.
func escaped(r rune) bool {
	return r < ' ' || r == '"' || r == '\\' || r == '\u2028' || r == '\u2029'
}

// fitting encodes an event as a line within the length limit.
func fitting(e driver.Fact) []byte {
	e.Text, e.Tool, e.ID = CutText(e.Text), cutTo(e.Tool, optionBytesMax), cutTo(e.ID, optionBytesMax)
	if e.Stop != nil {
		stop := *e.Stop
		stop.Reason, stop.Detail = cutTo(stop.Reason, optionBytesMax), cutTo(stop.Detail, detailBytesMax)
		if len(stop.Alone) > aloneBytesMax {
			stop.Alone = "" // a part of a text is not the text
		}
		e.Stop = &stop
	}
	e.Options = fewer(e.Options)
	e.Raw = CutRaw(e.Raw)
	e.Args, e.Cut = cutArgs(e.Args, slices.Clone(e.Cut))
	e.Paths, e.Cut = shorter(e.Paths, e.Cut)
	b := line(e)
	for _, shed := range []func(){ // JSON escapes may have made it six times as long: drop the least important parts first
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

func line(e driver.Fact) []byte { return append(encode.JSON(e), '\n') }
