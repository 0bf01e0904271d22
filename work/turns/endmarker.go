package turns

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/fairlead-dev/fairlead/core/marker"
	"github.com/fairlead-dev/fairlead/process/driver"
)

const (
	TalkEvery    = time.Second            // how long an agent's output may be held back from people who read along
	PostBytesMax = 64 << 10               // per post; longer output becomes several posts
	WordTries    = 5                      // how often a word that may become a marker is waited for
	WordQuiet    = 500 * time.Millisecond // silence after which a word ends a message whose end is not reported
	WhyShownMax  = 300                    // shown of an agent's output before it waits

	AnswerBytesMax = 1 << 20   // posted per answer: the journal keeps it permanently, so longer output belongs into a file
	AgainAfter     = time.Hour // when output that answers no action gets a new quota, since a lead's session stays open
	AnswerWaitsMax = 16        // waits per answer; further wait markers are treated as text

	AskWords = "it asks for permission: " // why a turn waits that a permission question has stopped
)

// TurnWords are the words that end, pass or pause a turn (seed 003).
var TurnWords = []string{"TURN_COMPLETE", "TURN_PASS", "TURN_WAIT"}

// WordAtEnd returns the marker word at the end of a text; empty if there is none.
func WordAtEnd(text []byte) string {
	text = bytes.TrimSpace(text[max(0, len(text)-2*driver.LineBytesMax):])
	for _, word := range TurnWords {
		if bytes.HasSuffix(text, []byte(word)) {
			return word
		}
	}
	return ""
}

// Written returns how many bytes of input are known to be written.
func (v *SessionWriter) Written() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.input
}

// Ending removes a marker from the end of an agent's output: a marker word that only white space
// follows. A marker word in the middle is ordinary text.
func Ending(text []byte, glued bool) (said string, word marker.Kind) {
	text = bytes.TrimRightFunc(text, unicode.IsSpace)
	end := len(text)
	if WordAtEnd(text) != "" {
		var s marker.Scanner
		front := 0
		if glued {
			front = 1
			s.Write([]byte("x"))
		}
		for _, piece := range slices.Concat(s.Write(text), s.Flush()) {
			switch m := piece.Marker; {
			case m != nil && slices.Contains(TurnWords, m.Text):
				end, word = int(m.Offset)-front, m.Kind
			case m != nil || len(bytes.TrimSpace(piece.Text)) > 0:
				end, word = len(text), ""
			}
		}
	}
	return Trim(text[:end]), word
}

// Trim removes white space from the end of an agent's output, and empty lines from its beginning.
func Trim(text []byte) string {
	return strings.TrimLeft(strings.TrimRightFunc(string(text), unicode.IsSpace), "\r\n")
}
