package channels

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/marker"
)

const (
	TalkEvery    = time.Second // people read along: what an agent says is not kept back for longer
	PostBytesMax = 64 << 10    // of one post; who says more says several
	WordTries    = 5           // so often a word that may become a marker is waited for
	WhyShownMax  = 300         // of what an agent says before it waits

	AnswerBytesMax = 1 << 20   // posted of one answer: what is longer is a file, and the journal is kept for ever
	AgainAfter     = time.Hour // so long after its beginning what is said to no errand has room again: a lead's session stays
	AnswerWaitsMax = 16        // waits of one answer; a word that comes more often is text

	AskWords = "it asks for permission: " // why a turn waits that a question has stopped
)

var TurnWords = []string{"TURN_COMPLETE", "TURN_PASS", "TURN_WAIT"}

// wordAtEnd is the word with which a text ends, where it may be a marker.
func WordAtEnd(text []byte) string {
	text = bytes.TrimSpace(text[max(0, len(text)-2*driver.LineBytesMax):])
	for _, word := range TurnWords {
		if bytes.HasSuffix(text, []byte(word)) {
			return word
		}
	}
	return ""
}

// written is how many bytes of input are known to be written.
func (v *Voice) Written() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.input
}

// ending takes the marker off the end of what an agent has written so far: a word that nothing
// but white space follows. One in the middle is text like any other.
func Ending(text []byte, glued bool) (said string, word marker.Kind) {
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
	return strings.Trim(strings.TrimRight(string(text[:end]), " \t\r\n"), "\r\n"), word
}
