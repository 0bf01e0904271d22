package notify

import (
	"path/filepath"
	"strings"
	"unicode"
)

const (
	wordsMax = 300  // characters of a name or a reason, because a notification is small
	idMax    = 256  // bytes of an id; the engine's own limit
	pathMax  = 4096 // bytes; longer paths are not valid
)

// clean makes a notice safe to send and show. A path that is too long is left out, because a shortened one
// would name another file.
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

// harmless returns one line without control characters or characters that change the writing direction, of at
// most most characters.
func harmless(text string, most int) string {
	if len(text) > most*utf8Max {
		text = text[:most*utf8Max] // bounds the work
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

// unmarked keeps text from being read as markup: many desktops render notifications as simple HTML.
var unmarked = strings.NewReplacer("<", "‹", ">", "›", "&", "+")
