package marker

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Scanner takes a stream apart. The zero value is ready, at the beginning of a stream. It is
// not for several goroutines.
type Scanner struct {
	// Only are the kinds that it looks for; all others stay conversation, byte for byte.
	// Nil: all. It is set before the first Write.
	Only []Kind

	buf    []byte // what came and was not given back yet
	offset int64  // of its first byte in the stream
	looked int    // so much of buf was looked at, within a marker
	mode   mode
	open   opening // of the marker that we are in
	object object  // of that marker
	midway bool    // something but white space is before buf on its line
	before []byte  // the last bytes before buf, enough for a character; empty: a word may begin
	led    bool    // the marker that we are in, or are behind, has its line to itself so far
	out    []Piece
}

type mode byte

const (
	plain  mode = iota // text without a marker
	behind             // white space behind a marker: it goes with the marker
	gap                // between a tag and its object
	body               // within an object
	within             // within a report
)

// Write takes the next part of a stream and says what it completed, in order. Text is given
// back as soon as it cannot be the beginning of a marker any more.
func (s *Scanner) Write(part []byte) []Piece {
	s.buf = append(s.buf, part...)
	return s.run(false)
}

// Flush ends a message: what was begun will not go on. The next Write begins a line.
func (s *Scanner) Flush() []Piece {
	out := s.run(true)
	s.mode, s.midway, s.before, s.led = plain, false, nil, false
	return out
}

// Pending returns how many bytes at the end of the input are held back because a marker begins there
// or may begin there. A reader that records its position must not record one after them: read again
// from there, the marker is complete.
func (s *Scanner) Pending() int { return len(s.buf) }

func (s *Scanner) run(last bool) []Piece {
	s.out = nil
	for len(s.buf) > 0 {
		var more bool
		switch s.mode {
		case plain:
			more = s.scanPlain(last)
		case behind:
			more = s.behind(last)
		case gap:
			more = s.gap(last)
		case body:
			more = s.body(last)
		case within:
			more = s.within(last)
		}
		if !more {
			break
		}
	}
	if len(s.buf) == 0 {
		s.buf = nil // do not keep a large buffer
	}
	return s.out
}

// scanPlain gives back text up to the next marker. It says whether there is more to do.
func (s *Scanner) scanPlain(last bool) bool {
	for i := 0; ; i++ {
		next := bytes.IndexAny(s.buf[i:], "[<T")
		if next < 0 {
			s.text(len(s.buf))
			return false
		}
		i += next
		open, sure := s.begins(s.buf[i:])
		if open.kind == "" {
			continue
		}
		if !sure && last {
			continue
		}
		if isWord(open.kind) && s.inWord(i) {
			continue
		}
		if !sure {
			s.text(i)
			return false
		}
		if isWord(open.kind) {
			switch s.endsLine(i+len(open.tag), last) {
			case yes:
				s.text(i)
				s.found(Marker{Kind: open.kind}, len(open.tag))
				return true
			case unsure:
				s.text(i)
				return false
			}
			continue
		}
		s.text(i)
		s.enter(open)
		return true
	}
}

// begins says which marker a text begins with, and whether it is sure of it: the beginning of
// a tag may be all that has come yet.
func (s *Scanner) begins(text []byte) (open opening, sure bool) {
	for i := range openings {
		o := &openings[i]
		n := min(len(text), len(o.tag))
		if string(text[:n]) == o.tag[:n] && (s.Only == nil && !o.asked || slices.Contains(s.Only, o.kind)) {
			return *o, n == len(o.tag)
		}
	}
	return opening{}, false
}

func isWord(kind Kind) bool { return kind == TurnComplete || kind == TurnPass || kind == TurnWait }

// inWord says whether the text at i goes on with a word.
func (s *Scanner) inWord(i int) bool { return EndsInWord(lastBytes(s.before, s.buf[:i])) }

// lastBytes returns the last bytes of two texts, enough for a character.
func lastBytes(before, text []byte) []byte {
	if len(text) < utf8.UTFMax {
		text = slices.Concat(before, text)
	}
	return text[max(0, len(text)-utf8.UTFMax):]
}

// cjk are the characters that are written without spaces between words, as far as they are letters. The sound marks
// belong to no script.
var cjk = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Yi,
	{R16: []unicode.Range16{
		{Lo: 0x3099, Hi: 0x309c, Stride: 1},
		{Lo: 0x30fc, Hi: 0x30fc, Stride: 1},
		{Lo: 0xff70, Hi: 0xff70, Stride: 1},
		{Lo: 0xff9e, Hi: 0xff9f, Stride: 1},
	}},
}

// EndsInWord reports whether a turn's word directly after the text would be the end of a longer word. It is a word of
// its own after white space, punctuation, symbols and CJK characters; after letters, digits and _ it is not.
func EndsInWord(text []byte) bool {
	switch r, n := utf8.DecodeLastRune(text); {
	case n == 0, unicode.In(r, cjk...), unicode.Is(unicode.Variation_Selector, r):
		return false
	case r == utf8.RuneError && n == 1:
		return true // no character
	default:
		return unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Pc)
	}
}

type answer byte

const (
	no answer = iota
	yes
	unsure
)

// endsLine says whether only white space follows from i to the end of the line.
func (s *Scanner) endsLine(i int, last bool) answer {
	for j := i; j < len(s.buf); {
		r, n := utf8.DecodeRune(s.buf[j:])
		switch {
		case r == '\n':
			return yes
		case j-i >= gapBytesMax:
			return no
		case !last && !utf8.FullRune(s.buf[j:]):
			return unsure
		case !unicode.IsSpace(r):
			return no
		}
		j += n
	}
	if last {
		return yes
	}
	return unsure
}

// enter begins a marker that is more than a word.
func (s *Scanner) enter(open opening) {
	s.open, s.looked, s.object, s.led = open, len(open.tag), object{}, !s.midway
	s.mode = gap
	if open == report {
		s.mode = within
	}
}

// gap waits for the object behind a tag. A tag without one is a broken marker at the start of a
// line; elsewhere it is text about markers.
func (s *Scanner) gap(last bool) bool {
	for ; s.looked < len(s.buf); s.looked++ {
		if s.buf[s.looked] == '{' {
			s.mode = body
			return true
		}
		if !isSpace(s.buf[s.looked]) || s.looked-len(s.open.tag) == gapBytesMax {
			s.noObject()
			return true
		}
	}
	if last {
		s.noObject()
	}
	return last
}

func (s *Scanner) noObject() {
	if !s.midway {
		s.found(Marker{Kind: s.open.kind, Fault: "no JSON object follows " + s.open.tag}, len(s.open.tag))
		return
	}
	s.mode = plain
	s.text(len(s.open.tag))
}

// body follows the object to its end, or to where it is none.
func (s *Scanner) body(last bool) bool {
	from := bytes.IndexByte(s.buf, '{')
	for s.looked < len(s.buf) {
		done, err := s.object.next(s.buf[s.looked])
		switch {
		case err != nil:
			fault := fmt.Sprintf("the JSON of %s breaks at its byte %d: %v", s.open.tag, s.looked-from+1, err)
			s.found(Marker{Kind: s.open.kind, Fault: fault}, s.resume())
			return true
		case done:
			end := s.looked + 1
			s.found(Marker{Kind: s.open.kind, JSON: bytes.Clone(s.buf[from:end])}, end)
			return true
		case s.looked-from >= jsonBytesMax:
			s.found(Marker{Kind: s.open.kind, Fault: tooLong(s.open.tag)}, s.looked)
			return true
		}
		s.looked++
	}
	if last {
		s.found(Marker{Kind: s.open.kind, Fault: "the message ended within the JSON of " + s.open.tag}, len(s.buf))
	}
	return last
}

func tooLong(tag string) string {
	return fmt.Sprintf("the JSON of %s is longer than %d KiB", tag, jsonBytesMax>>10)
}

// resume is where the stream goes on after a broken object: at the byte that broke it, or a
// little before, where that byte goes on with a new tag.
func (s *Scanner) resume() int {
	at := s.looked
	for k := max(len(s.open.tag), at-1); k < at; k++ {
		if open, _ := s.begins(s.buf[k : at+1]); open.kind != "" {
			return k
		}
	}
	return at
}

// within waits for the end of a report.
func (s *Scanner) within(last bool) bool {
	tag := len(s.open.tag)
	from := max(tag, s.looked-max(len(reportEnd), tag)+1)
	rest := s.buf[from:]
	again := bytes.Index(rest, []byte(report.tag))
	if again >= 0 {
		rest = rest[:again] // else beginnings without an end cost the square of their number
	}
	end := bytes.Index(rest, []byte(reportEnd))
	switch {
	case again >= 0 && from+again-tag <= jsonBytesMax && end < 0:
		s.found(Marker{Kind: RunReport, Fault: "a second report begins before the first one ended"}, from+again)
	case end >= 0 && from+end-tag <= jsonBytesMax:
		end += from
		m := Marker{Kind: RunReport}
		m.JSON, m.Fault = whatReport(s.buf[tag:end])
		s.found(m, end+len(reportEnd))
	case len(s.buf)-tag > jsonBytesMax+len(reportEnd):
		s.found(Marker{Kind: RunReport, Fault: tooLong(report.tag)}, tag+jsonBytesMax)
	case last:
		s.found(Marker{Kind: RunReport, Fault: "the message ended before " + reportEnd}, len(s.buf))
	default:
		s.looked = len(s.buf)
		return false
	}
	return true
}

// whatReport is the object between a report's two tags, or what is wrong with it.
func whatReport(between []byte) (data []byte, fault string) {
	between = bytes.TrimSpace(between)
	if len(between) == 0 {
		return nil, "nothing is between the two tags of the report"
	}
	var o object
	for i, c := range between {
		done, err := o.next(c)
		switch {
		case err != nil:
			return nil, fmt.Sprintf("the JSON of the report breaks at its byte %d: %v", i+1, err)
		case done && i+1 < len(between):
			return nil, fmt.Sprintf("something follows the JSON of the report, from its byte %d on", i+2)
		case done:
			return bytes.Clone(between), ""
		}
	}
	return nil, "the JSON of the report is not closed"
}

// behind passes over white space behind a marker, and over the end of its line where the
// marker had the line to itself.
func (s *Scanner) behind(last bool) bool {
	for i := 0; i < len(s.buf); {
		r, n := utf8.DecodeRune(s.buf[i:])
		switch {
		case r == '\n':
			s.mode = plain
			if s.led {
				s.drop(i + 1)
				s.midway, s.before = false, nil
			} else {
				s.drop(i)
			}
			return true
		case !last && !utf8.FullRune(s.buf[i:]):
			s.drop(i)
			return false
		case !unicode.IsSpace(r):
			s.drop(i)
			s.mode = plain
			return true
		}
		i += n
	}
	s.drop(len(s.buf))
	return false
}

// text gives the first n bytes back as conversation.
func (s *Scanner) text(n int) {
	if n == 0 {
		return
	}
	text := bytes.Clone(s.buf[:n])
	s.out = append(s.out, Piece{Text: text})
	s.before = bytes.Clone(lastBytes(s.before, text))
	line := bytes.LastIndexByte(text, '\n') + 1
	s.midway = s.midway && line == 0
	for _, c := range text[line:] {
		s.midway = s.midway || !isSpace(c)
	}
	s.drop(n)
}

// found gives the first n bytes back as a marker.
func (s *Scanner) found(m Marker, n int) {
	m.Offset = s.offset
	m.Text = string(s.buf[:min(n, quoteBytesMax)])
	m.Text = strings.ToValidUTF8(m.Text, "\uFFFD")
	s.out = append(s.out, Piece{Marker: &m})
	if isWord(m.Kind) {
		s.led = !s.midway
	}
	s.mode, s.before, s.midway = behind, nil, !s.led
	if line := bytes.LastIndexByte(s.buf[:n], '\n') + 1; line > 0 && m.Fault != "" {
		s.midway = len(bytes.TrimLeft(s.buf[line:n], " \t\r")) > 0 // it broke in another line than it began in
	}
	s.drop(n)
}

func (s *Scanner) drop(n int) {
	s.offset += int64(n)
	s.buf = s.buf[n:]
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
