package prompt

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible is a text as XML can hold it and people can see it: lines end with \n whatever ended
// them; other control characters below the space are shown by their signs (␛ for an escape), and
// all that has none, or makes people read another order or another text than programs do, is �.
func visible(s string) string {
	s = plainUTF8(s)
	if !strings.ContainsFunc(s, hides) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i, r := range s {
		switch {
		case !hides(r):
			b.WriteRune(r)
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"): // the \n ends the line
		case r == '\r', r == '\u0085', r == '\u2028', r == '\u2029':
			b.WriteByte('\n')
		case r < ' ':
			b.WriteRune('\u2400' + r)
		case r == 0x7f:
			b.WriteRune('\u2421')
		default:
			b.WriteRune(utf8.RuneError)
		}
	}
	return b.String()
}

// hides says whether a character is not shown as itself.
func hides(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u2028', '\u2029', '\ufffe', '\uffff':
		return true
	}
	return unicode.IsControl(r) || turnsText(r) || 0xe0000 <= r && r <= 0xe007f // tags: letters that nobody sees
}

// turnsText are the characters that turn the direction of writing for what follows.
func turnsText(r rune) bool { return '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069' }

// BreaksLine are the characters that end a line, move a cursor, or make people read another
// order than programs do.
func BreaksLine(r rune) bool { return unicode.IsControl(r) || endsLine(r) || turnsText(r) }

var (
	// inText also takes the markers their first letter, for a reader of the stream: a lead that
	// repeats what it was told has not said it. An XML reader sees no difference.
	inText = strings.NewReplacer(
		"&", "&amp;", "<", "&lt;", ">", "&gt;",
		"[AGENT_STATUS]", "&#91;AGENT_STATUS]", "[AGENT_REGISTERED]", "&#91;AGENT_REGISTERED]",
		"TURN_COMPLETE", "&#84;URN_COMPLETE", "TURN_PASS", "&#84;URN_PASS", "TURN_WAIT", "&#84;URN_WAIT",
	)
	inAttribute = strings.NewReplacer(
		"&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\n", "&#10;", "\t", "&#9;",
		"[AGENT_STATUS]", "&#91;AGENT_STATUS]", "[AGENT_REGISTERED]", "&#91;AGENT_REGISTERED]",
	)
)

// escapeText is a text between two tags. No text opens or closes an element in it.
func escapeText(s string) string { return inText.Replace(s) }

// escapeAttribute is a text between the quotes of an attribute.
func escapeAttribute(s string) string { return inAttribute.Replace(s) }
