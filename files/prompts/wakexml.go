package prompts

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible returns a text that XML can hold and people can see. Line ends become \n. Other control characters
// below the space become their symbols (␛ for an escape). Characters without a symbol, and those that change
// the reading order or are invisible, become �.
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

// hides reports whether a character is not shown as itself.
func hides(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u2028', '\u2029', '\ufffe', '\uffff':
		return true
	}
	return unicode.IsControl(r) || turnsText(r) || 0xe0000 <= r && r <= 0xe007f // tag characters are invisible
}

// turnsText reports whether a character changes the writing direction.
func turnsText(r rune) bool { return '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069' }

// BreaksLine reports whether a character ends a line, is a control character, or changes the writing
// direction.
func BreaksLine(r rune) bool { return unicode.IsControl(r) || endsLine(r) || turnsText(r) }

var (
	// inText also escapes the first letter of markers for the marker scanner, so that a lead that repeats its
	// prompt emits no marker. An XML parser sees no difference.
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

// escapeText escapes a text between two tags.
func escapeText(s string) string { return inText.Replace(s) }
