package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	// LineBytesMax is how much of one line is held in memory. Agents were seen to write lines over
	// 1 MB, and one agent must not use up the memory of all.
	LineBytesMax = 1 << 20

	// cutShownBytes is how much of a longer line is shown, since it is data and not speech. The
	// session's output keeps the whole line.
	cutShownBytes = 4 << 10

	// PromptBytesMax is the longest text a driver sends to an agent in one order.
	PromptBytesMax = 1 << 20

	readBytes = 64 << 10 // size of one read; the capacity of a Linux pipe
)

// Line is one line of an agent's output.
type Line struct {
	Bytes  []byte // without the line ending (\n or \r\n); only valid until the next line
	Start  int64  // offset of its first byte
	End    int64  // offset after its line ending; reading may resume here
	Cut    bool   // longer than LineBytesMax: Bytes is only its beginning
	Length int64  // total length without the line ending; with Cut it includes a \r
}

// Text returns the line for display: valid UTF-8, with a note if it was cut.
func (l Line) Text() string {
	text := strings.ToValidUTF8(string(l.Bytes), string(utf8.RuneError))
	if l.Cut {
		text += fmt.Sprintf(" … [cut: the line has %d bytes]", l.Length)
	}
	return text
}

// ReadLines reads an agent's output from an offset on and yields its lines until the output ends;
// the last one may lack a line ending. It holds at most LineBytesMax bytes in memory. An error ends
// the sequence.
func ReadLines(ctx context.Context, w Wire, from int64) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		if err := readLines(ctx, w, from, func(l Line) bool { return yield(l, nil) }); err != nil {
			yield(Line{}, err)
		}
	}
}

func readLines(ctx context.Context, w Wire, from int64, yield func(Line) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	output, err := w.Output(ctx, from)
	if err != nil {
		return fmt.Errorf("read the agent's output from byte %d: %w", from, err)
	}
	// Closing the output wakes a reader that waits for more. Close may be called twice.
	release := context.AfterFunc(ctx, func() { output.Close() })
	defer func() {
		release()
		output.Close()
	}()

	line := lineBuffer{start: from}
	buf := make([]byte, readBytes)
	for {
		n, err := output.Read(buf)
		for rest := buf[:n]; len(rest) > 0; {
			head, tail, ended := bytes.Cut(rest, []byte{'\n'})
			line.add(head)
			if !ended {
				break
			}
			if !yield(line.take(1)) {
				return nil
			}
			rest = tail
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			if line.length > 0 {
				yield(line.take(0))
			}
			return nil
		default:
			return fmt.Errorf("read the agent's output at byte %d: %w", line.start+line.length, err)
		}
	}
}

// lineBuffer assembles one line from pieces and drops what exceeds the limit.
type lineBuffer struct {
	kept   []byte
	start  int64
	length int64
}

func (b *lineBuffer) add(piece []byte) {
	b.length += int64(len(piece))
	// Keep one byte more than the limit: it may be the \r of a line that just fits.
	if room := LineBytesMax + 1 - len(b.kept); room > 0 {
		b.kept = append(b.kept, piece[:min(room, len(piece))]...)
	}
}

func (b *lineBuffer) take(ending int64) Line {
	l := Line{Bytes: b.kept, Start: b.start, End: b.start + b.length + ending, Length: b.length}
	if ending > 0 && b.length == int64(len(b.kept)) && bytes.HasSuffix(l.Bytes, []byte{'\r'}) {
		l.Bytes = l.Bytes[:len(l.Bytes)-1]
		l.Length--
	}
	if l.Length > LineBytesMax {
		l.Cut = true
		l.Bytes = l.Bytes[:clip.Whole(l.Bytes[:min(len(l.Bytes), cutShownBytes)])]
	}
	b.kept, b.start, b.length = b.kept[:0], l.End, 0
	if cap(b.kept) > 4*readBytes { // release the memory of a long line
		b.kept = nil
	}
	return l
}

// LastWords returns the line of a program's last output that explains its end best: the last one that looks like an
// error message, or else the last one with a letter.
func LastWords(lines []string) (words string) {
	for _, line := range lines {
		line = strings.ToValidUTF8(strings.TrimSpace(line), "")
		if strings.ContainsFunc(line, unicode.IsLetter) && (wrong.MatchString(line) || !wrong.MatchString(words)) {
			words = line
		}
	}
	return words
}

// wrong matches lines that look like error messages.
var wrong = regexp.MustCompile(`(?i)error|fatal|panic|fail|cannot|can't|denied|invalid|not found`)

// WithoutEscapes removes the escape sequences of terminals (ECMA-48), which programs write into
// messages. An incomplete sequence loses only its beginning, so that no text is lost with it.
func WithoutEscapes(text string) string {
	if !strings.ContainsRune(text, '\x1b') {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		if text[i] != '\x1b' {
			b.WriteByte(text[i])
			i++
			continue
		}
		i = afterEscape(text, i+1)
	}
	return b.String()
}

// afterEscape returns the index after the escape sequence whose second byte is at i.
func afterEscape(text string, i int) int {
	if i >= len(text) {
		return i
	}
	switch text[i] {
	case '[': // control sequence: parameters, then one final byte
		for k := i + 1; k < len(text) && text[k] >= 0x20 && text[k] <= 0x7e; k++ {
			if text[k] >= 0x40 {
				return k + 1
			}
		}
		return i + 1
	case ']', 'P', 'X', '^', '_': // a string, up to BEL or ESC \
		for k := i + 1; k < len(text); k++ {
			switch {
			case text[k] == '\a':
				return k + 1
			case text[k] == '\x1b' && k+1 < len(text) && text[k+1] == '\\':
				return k + 2
			case text[k] == '\x1b':
				return k
			}
		}
		return i + 1
	}
	k := i
	for k < len(text) && text[k] >= 0x20 && text[k] <= 0x2f {
		k++
	}
	if k < len(text) && text[k] >= 0x30 && text[k] <= 0x7e {
		return k + 1
	}
	return k
}
