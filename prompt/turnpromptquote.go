package prompt

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// nameRunesMax is of a name in a prompt. Agents' are at most 64; people's come from anywhere.
const nameRunesMax = 80

// name is somebody's name in a line of ours: as it is where it could be nothing else, in
// quotation marks where it could be taken for more than a name.
func name(s string) string {
	s = shortLine(s)
	plain := s != ""
	for _, r := range s {
		plain = plain && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._@+-…", r))
	}
	if plain {
		return s
	}
	return strconv.QuoteToGraphic(s)
}

// shortLine is a name without what would end a line or move a cursor, and not longer than
// names are.
func shortLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || endsLine(r) {
			return utf8.RuneError
		}
		return r
	}, plainUTF8(s))
	if runes := []rune(s); len(runes) > nameRunesMax {
		s = string(runes[:nameRunesMax]) + "…"
	}
	return s
}

func nameOr(s, nobody string) string {
	if s == "" {
		return nobody
	}
	return name(s)
}

// quote writes a text with "> " before each of its lines, whatever it takes for a line's
// end, and without anything that a terminal would obey. It stops once it has written more
// than most bytes.
func quote(b *strings.Builder, text string, most int) {
	b.Grow(max(0, min(len(text)+len(text)/16, most)) + utf8.UTFMax)
	from, done := b.Len(), 0 // text[:done] is written
	bare, bad := true, false // nothing stands in this line yet; the last byte was no text
	b.WriteString(">")
	put := func(upto int) {
		if done < upto {
			if bare {
				b.WriteByte(' ')
			}
			b.WriteString(text[done:upto])
			bare, bad = false, false
		}
	}
	i := 0
	for i < len(text) && b.Len()-from+i-done <= most {
		if c := text[i]; c >= ' ' && c < 0x7f || c == '\t' {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case endsLine(r):
			put(i)
			if strings.HasPrefix(text[i:], "\r\n") {
				size = 2
			}
			if i+size < len(text) { // the last line's end begins no line
				b.WriteString("\n>")
			}
			bare, bad, done = true, false, i+size
		case r == utf8.RuneError && size <= 1, unicode.IsControl(r):
			put(i)
			wrong := size == 1 && r == utf8.RuneError
			if !wrong || !bad { // one mark for a whole run of bytes that are no text
				if bare {
					b.WriteByte(' ')
				}
				b.WriteRune(utf8.RuneError)
			}
			bare, bad, done = false, wrong, i+size
		}
		i += size
	}
	put(i)
	b.WriteString("\n")
}

func endsLine(r rune) bool {
	switch r {
	case '\n', '\v', '\f', '\r', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

func plainUTF8(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }

// cutString is the longest beginning of a valid text in at most n bytes.
func cutString(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// inWords is a time as people say it: 45 s, 5 min, 1 h 30 min.
func inWords(d time.Duration) string {
	d = max(d.Round(time.Second), time.Second)
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d/time.Second))
	}
	var parts []string
	for _, unit := range []struct {
		of   time.Duration
		word string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := d / unit.of; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit.word))
			d %= unit.of
		}
	}
	return strings.Join(parts, " ")
}
