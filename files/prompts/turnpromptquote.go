package prompts

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// nameRunesMax bounds a name in a prompt. Agents' names have at most 64 characters; people's names are not
// limited.
const nameRunesMax = 80

// name formats a name for a line of Fairlead's own text: unchanged if it cannot be misread, else in quotation marks.
func name(s string) string {
	if simple(s) {
		return s
	}
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

// simple says that a name has only letters, digits and the signs between them that names of agents and channels may have.
// Almost all names are simple, and the prompt of a turn has all names of a channel.
func simple(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= nameRunesMax
}

// shortLine returns a text without line breaks and control characters, shortened like a name.
func shortLine(s string) string {
	if simple(s) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || endsLine(r) {
			return utf8.RuneError
		}
		return r
	}, plainUTF8(s))
	return clip.Runes(s, nameRunesMax)
}

func nameOr(s, none string) string {
	if s == "" {
		return none
	}
	return name(s)
}

// quote writes a text with "> " before each of its lines, whatever line ends it uses, and without terminal
// control characters. It stops after more than most bytes.
func quote(b *strings.Builder, text string, most int) {
	b.Grow(max(0, min(len(text)+len(text)/16, most)) + utf8.UTFMax)
	from, done := b.Len(), 0 // text[:done] has been written
	bare, bad := true, false // bare: the line is empty so far; bad: the last byte was not valid UTF-8
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
			if i+size < len(text) { // a line end at the very end starts no line
				b.WriteString("\n>")
			}
			bare, bad, done = true, false, i+size
		case r == utf8.RuneError && size <= 1, unicode.IsControl(r):
			put(i)
			wrong := size == 1 && r == utf8.RuneError
			if !wrong || !bad { // one replacement character for a run of invalid bytes
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

// inWords formats a duration: 45 s, 5 min, 1 h 30 min.
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
