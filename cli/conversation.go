package cli

import (
	"time"
	"unicode"
)

// Clock formats a time of day in the local time zone.
func Clock(at time.Time) string { return at.Local().Format(time.TimeOnly) }

// Columns is the approximate width of a text on a terminal: combining marks count 0, wide letters 2.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += Wide(r)
	}
	return n
}

// Wide returns how many columns a character takes on a terminal.
func Wide(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana), r >= 0x1F300 && r <= 0x1FAFF, r >= 0xFF01 && r <= 0xFF60:
		return 2
	default:
		return 1
	}
}
