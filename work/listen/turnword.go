package listen

import (
	"bytes"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/work/turns"
)

// waitWord ends no turn, so it has its effect anywhere in the text.
const waitWord = "TURN_WAIT"

// fence begins and ends a block of code in Markdown.
var fence = []byte("```")

// oddFences reports whether a code fence that begins in a text is open at its end, or the reverse.
func oddFences(text []byte) (odd bool) {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(bytes.TrimLeft(line, " "), fence) {
			odd = !odd
		}
	}
	return odd
}

// turnWord returns the word at the end of the text that ends or passes the turn if the message ends there.
func (t *channelListener) turnWord() string {
	if word := turns.WordAtEnd(t.text); word != waitWord {
		return word
	}
	return ""
}

// takeTail prepares the text for a flush. A word at its end that does not count yet is taken off,
// together with what follows it, and returned: it counts if the message ends there, and is text if
// more text follows.
func (t *channelListener) takeTail(ended bool) (held []byte) {
	if key := t.v.Answers().Key; len(t.tail) > 0 && t.tailOf == key {
		t.text = append(t.tail, t.text...)
	}
	t.tail = nil
	word := t.turnWord()
	if word != "" {
		if _, is := turns.Ending(t.text, t.glued); is == "" {
			word = "" // it is the end of another word
		}
	}
	if word == "" || t.counts(ended) || t.answering().done {
		return nil
	}
	at := bytes.LastIndex(t.text, []byte(word))
	held, t.text = slices.Clone(t.text[at:]), t.text[:at]
	t.tailOf = t.v.Answers().Key
	return held
}

// heldWord is the turn word that takeTail holds back, with a line end behind it if anything followed it.
func (t *channelListener) heldWord() string {
	word := bytes.TrimSpace(t.tail)
	if len(word) == 0 || t.tailOf != t.v.Answers().Key {
		return ""
	}
	if len(word) < len(t.tail) {
		return string(word) + "\n"
	}
	return string(word)
}

// counts reports whether the message ends with the text, so that a word at its end has its effect.
func (t *channelListener) counts(ended bool) bool {
	switch {
	case ended:
		return true
	case t.ends.Answers:
		return false // the end of the answer or of the message is reported
	case t.final:
		return true
	default:
		return !t.part && t.fenced == oddFences(t.text) && time.Since(t.heardAt) >= turns.WordQuiet
	}
}

// holds is how long a report waits for the end of a message that may end with a word; 0: not at all.
func (t *channelListener) holds() time.Duration {
	if t == nil || t.over || len(t.events) > 0 || t.turnWord() == "" || t.final || t.answering().done {
		return 0
	}
	most := turns.WordQuiet
	if t.ends.Answers {
		most = turns.TalkEvery
	}
	return max(0, most-time.Since(t.heardAt))
}

// messageOver handles the end of a message within an answer.
func (t *channelListener) messageOver() {
	if word := turns.WordAtEnd(append(slices.Clone(t.tail), t.text...)); word == "" || word == waitWord || t.answering().done {
		return
	}
	ends, final := t.ends.Answers, t.final
	t.ends.Answers, t.part, t.final = false, false, true // this much is complete
	t.flush(false)
	t.ends.Answers, t.final = ends, final
}
