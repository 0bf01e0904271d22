package notify

import (
	"path/filepath"
	"strings"
	"unicode"
)

const (
	wordsMax = 300  // characters of a name or a reason; nobody reads more in a corner of a screen
	idMax    = 256  // bytes of an id; the engine takes none that is longer
	pathMax  = 4096 // bytes; what is longer is no path on any system of ours
)

// clean makes a notice fit to be sent and shown. A path that was cut would name another file,
// so one that is too long is left out.
func clean(n Notice) Notice {
	n.Kind, n.Run, n.Step = harmless(n.Kind, idMax), harmless(n.Run, idMax), harmless(n.Step, idMax)
	n.Agent = harmless(n.Agent, idMax)
	n.Workflow, n.Why = harmless(n.Workflow, wordsMax), harmless(n.Why, wordsMax)
	n.Since = n.Since.UTC().Round(0)
	if len(n.ManualInputPath) > pathMax || !filepath.IsAbs(n.ManualInputPath) {
		n.ManualInputPath = ""
	}
	return n
}

// harmless makes one line of a text, without what could move a cursor or turn text round,
// and at most so many characters long.
func harmless(text string, most int) string {
	if len(text) > most*utf8Max {
		text = text[:most*utf8Max] // the rest is not even looked at
	}
	var b strings.Builder
	count := 0
	for _, c := range strings.ToValidUTF8(text, "\ufffd") {
		switch {
		case unicode.IsSpace(c):
			c = ' '
		case !unicode.IsPrint(c):
			c = unicode.ReplacementChar
		}
		if count++; count > most {
			return b.String() + "…"
		}
		b.WriteRune(c)
	}
	return b.String()
}

const utf8Max = 4 // bytes of a character

// unmarked keeps text from being taken for markup: many desktops read a notice as a little HTML.
var unmarked = strings.NewReplacer("<", "‹", ">", "›", "&", "+")
