package speech

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/driver"
)

const (
	// asideMax is how many lines wait for the end of a message: more is a log, and is told at once.
	asideMax = 256

	// eventBytesMax is the longest event, its line's end included: what a reader takes whole.
	eventBytesMax = driver.LineBytesMax
)

// Writer tells events, each with one Write. It remembers that a Write failed: an agent that nobody
// can hear has no reason to go on. It may be used by several goroutines.
type Writer struct {
	mu     sync.Mutex
	out    io.Writer
	failed error

	open  driver.FactKind // of the message that is under way; empty: none is
	half  bool            // its last line has no end yet
	aside []Event         // what was told meanwhile and is no word of it

	secret []byte // told as stars
}

// NewWriter tells to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Hide lets a secret be told as stars wherever it occurs: an event goes to disk. The secret must be of
// letters that JSON writes as they are; an empty one hides nothing.
func (w *Writer) Hide(secret string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secret = []byte(secret)
}

// Tell tells one event. What is too long in it is cut, and says so. It ends the message that is under
// way, except where it says nothing of the conversation itself: numbers, faults, what somebody else
// printed. The last waits until the message has ended: whoever looks for markers in the agent's
// words is not to find other words in their midst.
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

// Say tells a text of one line or several, a fact each.
func (w *Writer) Say(kind driver.FactKind, tool, text string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		w.Tell(Event{Type: kind, Tool: tool, Text: line})
	}
}

// Speak tells the next piece of a message (Said or Thought), as it comes: a line that has ended is a
// fact, the beginning of one is a part. A message of the other kind ends where this one begins.
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
		// Nothing of an agent's words is cut away: a line that is too long for one event comes in several.
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

// Hush ends the message that is under way.
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

// Print writes bytes that are no event.
func (w *Writer) Print(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.print(b)
}

// Broken is why nobody can hear any more, or nil.
func (w *Writer) Broken() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

func (w *Writer) tell(e Event) { w.print(encode(e)) }

func (w *Writer) print(b []byte) {
	if w.failed != nil {
		return
	}
	if len(w.secret) > 0 {
		b = bytes.ReplaceAll(b, w.secret, []byte("***"))
	}
	_, w.failed = w.out.Write(b)
}

// encode is an event as a line that is short enough.
func encode(e Event) []byte {
	e.Text, e.Detail = CutText(e.Text), cutTo(e.Detail, detailBytesMax)
	e.Tool, e.Reason, e.ID = cutTo(e.Tool, optionBytesMax), cutTo(e.Reason, optionBytesMax), cutTo(e.ID, optionBytesMax)
	e.Options = fewer(e.Options)
	e.Raw = CutRaw(e.Raw)
	e.Args, e.Cut = cutArgs(e.Args, slices.Clone(e.Cut))
	e.Paths, e.Cut = shorter(e.Paths, e.Cut)
	b := line(e)
	for _, shed := range []func(){ // bytes that need six each: what is least is let go first
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

func line(e Event) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // people read this too
	if err := enc.Encode(e); err != nil {
		panic(fmt.Sprintf("speech: an event that is no JSON: %v", err))
	}
	return b.Bytes()
}
