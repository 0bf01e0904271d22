package cli

import (
	"time"
	"unicode"
)

// Clock is a time of day in the local zone.
func Clock(at time.Time) string { return at.Local().Format(time.TimeOnly) }

// Columns is how wide a text is on a terminal, near enough: marks that stand on others need
// none, and wide letters two.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += Wide(r)
	}
	return n
}

// Wide is how many columns a character takes on a terminal.
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
