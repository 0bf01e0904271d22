package encode

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Shown escapes in JSON what a terminal obeys and JSON need not escape: DEL, C1 and characters that change the direction of
// text (C0 is escaped in all JSON). They occur in strings only, so the value stays the same.
func Shown(json []byte) []byte {
	var out []byte
	done := 0
	for at := 0; at < len(json); {
		if c := json[at]; c < 0x7f {
			at++
			continue
		}
		r, n := utf8.DecodeRune(json[at:])
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			out = fmt.Appendf(append(out, json[done:at]...), `\u%04x`, r)
			done = at + n
		}
		at += n
	}
	if done == 0 {
		return json // the common case
	}
	return append(out, json[done:]...)
}
