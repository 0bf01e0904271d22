package notify

import (
	"path/filepath"
	"strings"
	"unicode"
)

const (
	wordsMax = 300  // characters of a name or a reason, because a notification is small
	titleMax = 100  // characters of a task's title; ten of them fit into the smallest message of a service (Discord: 2,000)
	idMax    = 256  // bytes of an id; the engine's own limit
	pathMax  = 4096 // bytes; longer paths are not valid
)

// safePath leaves a path out that is too long, because a shortened one would name another file.
func safePath(path string) string {
	if len(path) > pathMax || !filepath.IsAbs(path) {
		return ""
	}
	return path
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

// plain is harmless text without markup. Every service has markup of its own (mentions such as @everyone and <!here>,
// links, bold, HTML), and some cannot be told to leave it alone. So the characters that begin it are replaced by
// characters that look like them. The marks of a link in running text are replaced too: the only links are ours.
func plain(text string, most int) string { return unmarked.Replace(harmless(text, most)) }

var unmarked = strings.NewReplacer(
	"<", "‹", ">", "›", "&", "＆", "@", "＠", "#", "＃", "*", "∗", "_", "ˍ", "~", "∼", "`", "'", "|", "¦", "[", "⟦", "]", "⟧", "\\", "⧵", "://", ":∕∕",
)
