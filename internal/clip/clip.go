// Package clip cuts texts to a length, as scissors that cut only between characters.
//
// Everything that others write has a limit before it is kept or shown: in the journal, in errors, in
// prompts, on the page. The limits are in bytes, and their numbers are where they are used.
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
