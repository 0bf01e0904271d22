// Package termtext shows text of others on a terminal, which obeys what it prints.
//
// Show replaces what a terminal would obey, or what a person would not see: control characters (all of C0 except line end and
// tab, DEL, C1), bytes that are not UTF-8, characters that change the direction of text, and those without a width. A control
// character becomes its picture (␛), another one its number (<U+202E>). U+200C and U+200D stay between letters and emoji,
// where they belong to the writing. A variation selector stays after a character that can have one.
//
// A Writer does the same with everything that is written through it, also of what a command forgot to show. Only what Own returned passes:
// it carries a mark that is drawn at random when the program starts, so no text of others can have it.
//
// The one promise: what Show returns, and what a Writer passes on apart from Own, holds nothing that a terminal obeys.
package termtext

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	nonJoiner = '\u200C'
	joiner    = '\u200D'
	pictures  = 0x2400 // of U+0000; those of the other C0 characters follow
	deleted   = 0x2421 // the picture of DEL
)

// mark stands before each sequence of this program. The byte after it passes a Writer.
var mark = []byte("\x00" + rand.Text())

// Own returns a control sequence of this program, which passes a Writer. Only its first byte may be a control character.
func Own(sequence string) string { return string(mark) + sequence }

// Show returns a text as a terminal may print it.
func Show(text string) string {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' || c > '~' {
			out, _, _ := show(make([]byte, 0, len(text)+16), []byte(text), 0, true, false)
			return string(out)
		}
	}
	return text // the common case
}

// show appends a text as Show returns it. before is the character before it. Unless the text is the last, rest is its end
// that cannot be judged yet. With own, sequences of Own pass.
func show(out, text []byte, before rune, last, own bool) (shown, rest []byte, end rune) {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case own && bytes.HasPrefix(text, mark) && len(text) > len(mark):
			out, n, r = append(out, text[len(mark)]), len(mark)+1, 0
		case !last && (own && bytes.HasPrefix(mark, text) || !utf8.FullRune(text) || joins(r) && !utf8.FullRune(text[n:])):
			return out, text, before
		case r == utf8.RuneError && n == 1:
			out = fmt.Appendf(out, "<%02X>", text[0])
		case joins(r):
			if next, _ := utf8.DecodeRune(text[n:]); joined(before) && joined(next) {
				out = utf8.AppendRune(out, r)
			} else {
				out = fmt.Appendf(out, "<U+%04X>", r)
			}
		case unicode.Is(unicode.Variation_Selector, r) && !varies(before):
			out = fmt.Appendf(out, "<U+%04X>", r)
		case r < ' ' && r != '\n' && r != '\t':
			out = utf8.AppendRune(out, pictures+r)
		case r == 0x7f:
			out = utf8.AppendRune(out, deleted)
		case Hidden(r):
			out = fmt.Appendf(out, "<U+%04X>", r)
		default:
			out = append(out, text[:n]...)
		}
		before, text = r, text[n:]
	}
	return out, nil, before
}

// Hidden reports whether a terminal obeys a character, or shows nothing for it. Line end and tab are not hidden.
func Hidden(r rune) bool {
	switch {
	case r < 0x7f:
		return r < ' ' && r != '\n' && r != '\t'
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false // visible signs of Arabic numbers
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Bidi_Control, unicode.Other_Default_Ignorable_Code_Point)
}

func joins(r rune) bool { return r == nonJoiner || r == joiner }

// joined reports whether a joiner beside a character can belong to the writing: a letter with its marks, or an emoji.
func joined(r rune) bool {
	const arrows = '\u2194' // the one emoji that counts as a sign of mathematics
	return r != utf8.RuneError && !Hidden(r) &&
		(unicode.In(r, unicode.L, unicode.M, unicode.So) || r >= 0x1F3FB && r <= 0x1F3FF || r == arrows)
}

// varies reports whether a selector of a variant can belong to the character before it: an emoji, also of a digit, or a letter
// beyond ASCII. A second selector belongs to none.
func varies(before rune) bool {
	switch {
	case before <= '~':
		return before >= '0' && before <= '9' || before == '#' || before == '*'
	case before == utf8.RuneError || Hidden(before) || unicode.Is(unicode.Variation_Selector, before):
		return false
	}
	return unicode.In(before, unicode.L, unicode.M, unicode.S, unicode.P)
}

// Writer writes to a terminal what others and this program wrote. It may be used concurrently.
type Writer struct {
	To io.Writer

	mu     sync.Mutex
	rest   []byte // the end of the last text, which cannot be judged without the next one
	before rune
}

// Write writes a text. The end of a text can wait for the next one, or for Flush.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(text), w.write(text, false)
}

// Flush writes what waits.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(nil, true)
}

func (w *Writer) write(text []byte, last bool) error {
	whole := append(w.rest, text...)
	out, rest, before := show(make([]byte, 0, len(whole)+16), whole, w.before, last, true)
	w.rest, w.before = bytes.Clone(rest), before
	if len(out) == 0 {
		return nil
	}
	_, err := w.To.Write(out)
	return err
}

// Fd is the descriptor of the terminal; ^0: it has none.
func (w *Writer) Fd() uintptr {
	if file, ok := w.To.(interface{ Fd() uintptr }); ok {
		return file.Fd()
	}
	return ^uintptr(0)
}
