package speech

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/driver"
)

const (
	// TextBytesMax is the longest text in one event: well below the longest line
	// that a reader takes whole, even where every byte needs six to be written.
	TextBytesMax = 64 << 10

	detailBytesMax  = 8 << 10   // of a terminal event: it is shown in one place, whole
	argsBytesMax    = 256 << 10 // a file's content is shown up to here; the file itself shows the rest
	argBytesMax     = 64 << 10  // one argument, where all of them are too long together
	rawBytesMax     = 64 << 10  // a program's own message
	optionsMax      = 64        // a person reads them
	optionBytesMax  = 1 << 10
	pathsMax        = 256
	pathBytesMax    = 4 << 10 // PATH_MAX of Linux
	asideMax        = 256     // lines that wait for the end of a message
	eventBytesMax   = driver.LineBytesMax - 1
	cutWords        = " … [cut: %d bytes]"
	withoutArgument = "…"
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
		line, rest, ended := strings.Cut(piece, "\n")
		head := line
		if len(head) > TextBytesMax { // nothing of an agent's words is cut away
			head = line[:edge(line, TextBytesMax)]
			rest, ended = piece[len(head):], false
		}
		if ended {
			head = strings.TrimSuffix(head, "\r")
		}
		w.tell(Event{Type: kind, Text: head, Part: !ended})
		w.half = !ended
		piece = rest
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
	e.Options, e.Paths = fewer(e.Options), shorter(e.Paths)
	e.Raw = CutRaw(e.Raw)
	e.Args, e.Cut = cutArgs(e.Args, e.Cut)
	b := line(e)
	for _, shed := range []func(){ // bytes that need six each: what is least is let go first
		func() { e.Raw = nil },
		func() { e.Args, e.Cut = nil, append(e.Cut, "args") },
		func() { e.Paths = nil },
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

// CutText is a text as it fits into one event.
func CutText(s string) string { return cutTo(s, TextBytesMax) }

func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + fmt.Sprintf(cutWords, len(s))
}

// CutRaw is a program's message as it fits into one event: itself, or a string with its beginning.
func CutRaw(raw []byte) json.RawMessage {
	switch {
	case len(raw) == 0:
		return nil
	case len(raw) <= rawBytesMax && json.Valid(raw):
		return bytes.ToValidUTF8(raw, []byte(string(utf8.RuneError)))
	}
	b, err := json.Marshal(cutTo(strings.ToValidUTF8(string(raw[:min(len(raw), rawBytesMax+1)]), string(utf8.RuneError)), rawBytesMax/2))
	if err != nil {
		panic("speech: a text that is no JSON: " + err.Error())
	}
	return b
}

// cutArgs shortens arguments that are too long, and names those that are not whole any more. A value
// that is no text goes altogether.
func cutArgs(args json.RawMessage, cut []string) (json.RawMessage, []string) {
	if len(args) == 0 {
		return nil, cut
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil || all == nil {
		return nil, append(cut, "args")
	}
	if len(args) <= argsBytesMax {
		return bytes.ToValidUTF8(args, []byte(string(utf8.RuneError))), cut
	}
	room := argsBytesMax
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		if most := min(room, argBytesMax); len(value) > most {
			var text string
			if json.Unmarshal(value, &text) != nil || most < optionBytesMax {
				text = withoutArgument
			}
			all[name], cut = quoted(cutTo(text, most/2)), append(cut, cutTo(name, optionBytesMax))
		}
		room -= len(all[name]) + len(name)
		if room < 0 { // its name alone was too long, or there are too many
			delete(all, name)
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic("speech: arguments that are no JSON: " + err.Error())
	}
	return b, cut
}

func quoted(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic("speech: a text that is no JSON: " + err.Error())
	}
	return b
}

func fewer(options []driver.Option) []driver.Option {
	if len(options) == 0 {
		return nil
	}
	few := slices.Clone(options[:min(len(options), optionsMax)])
	for i := range few {
		// An id that was cut answers nothing; it stays as it is, and too long ones go.
		few[i].Kind, few[i].Label = cutTo(few[i].Kind, optionBytesMax), cutTo(few[i].Label, optionBytesMax)
	}
	return slices.DeleteFunc(few, func(o driver.Option) bool { return len(o.ID) > optionBytesMax })
}

func shorter(paths []string) []string {
	if len(paths) == 0 {
		return nil
	}
	few := slices.Clone(paths[:min(len(paths), pathsMax)])
	return slices.DeleteFunc(few, func(p string) bool { return len(p) > pathBytesMax })
}

// edge is the greatest length up to n that does not cut a character in two.
func edge(s string, n int) int {
	for back := 0; back < utf8.UTFMax && back < n; back++ {
		if utf8.RuneStart(s[n-back]) {
			return n - back
		}
	}
	return n
}
