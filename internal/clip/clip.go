// Package clip cuts texts to a length, as scissors that cut only between characters.
//
// Everything that others write has a limit before it is kept or shown: in the journal, in errors, in
// prompts, on the page. Most limits are in bytes; their numbers are where they are used.
//
// The one promise: a text that fits stays as it is, and a text that was valid UTF-8 still is.
package clip

import (
	"strings"
	"unicode/utf8"
)

// To returns the beginning of a text: as many whole characters as fit into most bytes.
func To(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:max(most, 0)]
}

// Within returns a text in at most most bytes: if it is longer, its beginning and an ellipsis.
func Within(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "…"
	return To(s, most-len(mark)) + mark
}

// Text returns the beginning of a text as To does, with an ellipsis after it if there was more. Bytes that are not
// UTF-8 become U+FFFD: the journal stores no others, and a replay would differ.
func Text(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	return To(s, most) + "…"
}

// Runes returns a text of at most most characters; if it is longer, so many from its beginning and an ellipsis.
func Runes(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// Whole returns how many bytes of b can be shown: an incomplete character at the end waits for its
// other bytes.
func Whole(b []byte) int {
	for back := 1; back <= min(len(b), utf8.UTFMax-1); back++ {
		if at := len(b) - back; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return at
			}
			break
		}
	}
	return len(b)
}

// Torn returns how many bytes at the start of b are the end of a character that begins before
// it. It is for a place in a text that was chosen by counting bytes.
func Torn(b []byte) int {
	for i := range min(len(b), utf8.UTFMax) {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return 0 // this is not UTF-8: there is no character to complete
}
