package adapter

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

const (
	// LineBytesMax is the longest line of a program that is read: a message that contains a large file.
	// Lines of 11 MiB were observed.
	LineBytesMax = 64 << 20

	readBytes      = 64 << 10
	shownBytes     = 4 << 10 // bytes shown of a skipped line
	errorLineMax   = 16 << 10
	lastWordsBytes = 2 << 10
	keptBytes      = 16 << 10 // bytes kept of the error output: an error and its stack trace
)

// Line is one line of a program's output.
type Line struct {
	Bytes   []byte // without the line ending; owned by the receiver
	Skipped int64  // length of a line longer than LineBytesMax, of which Bytes is the beginning; otherwise 0
	more    bool   // another complete line was already read
}

func (l Line) blank() bool  { return len(bytes.TrimSpace(l.Bytes)) == 0 }
func (l Line) object() bool { return bytes.HasPrefix(bytes.TrimLeft(l.Bytes, " \t"), []byte{'{'}) }
func (l Line) text() string {
	return strings.ToValidUTF8(strings.TrimSuffix(string(l.Bytes), "\r"), string(utf8.RuneError))
}

// lineReader reads lines up to a length limit.
type lineReader struct {
	r   *bufio.Reader
	max int
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, readBytes), max: LineBytesMax}
}

// next returns the next line; the last one may lack a line ending. ok is false at the end of the
// input.
func (r *lineReader) next() (l Line, ok bool) {
	var length int64
	for {
		part, err := r.r.ReadSlice('\n')
		length += int64(len(part))
		if room := r.max + 1 - len(l.Bytes); room > 0 { // one more byte, because the line ending does not count
			l.Bytes = append(l.Bytes, part[:min(room, len(part))]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		ended := bytes.HasSuffix(part, []byte{'\n'})
		if ended {
			length--
		}
		if length > int64(r.max) {
			l.Bytes, l.Skipped = bytes.Clone(l.Bytes[:min(shownBytes, len(l.Bytes))]), length
		} else {
			l.Bytes = bytes.TrimSuffix(l.Bytes, []byte{'\n'})
		}
		return l, length > 0 || ended
	}
}

// more reports whether another complete line was already read.
func (r *lineReader) more() bool {
	read, _ := r.r.Peek(r.r.Buffered())
	return bytes.IndexByte(read, '\n') >= 0
}

// errorsRead reports a program's error output and keeps its end.
type errorsRead struct {
	stage *Stage

	mu   sync.Mutex
	kept []byte
}

func (e *errorsRead) read(from io.Reader) {
	r := newLineReader(from)
	r.max = errorLineMax
	for {
		l, ok := r.next()
		if !ok {
			return
		}
		text := l.text()
		if l.Skipped > 0 {
			text += fmt.Sprintf(" … [cut: the line has %d bytes]", l.Skipped)
		}
		if l.blank() {
			continue
		}
		e.stage.print("stderr", speech.CutText(text))
		e.keep(text)
	}
}

func (e *errorsRead) keep(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept = append(append(e.kept, clip.Text(text, lastWordsBytes)...), '\n')
	if over := len(e.kept) - keptBytes; over > 0 {
		e.kept = append(e.kept[:0], e.kept[over:]...)
	}
}

// last returns the last line that looks like an error message. Below it there are often only stack
// traces and braces.
func (e *errorsRead) last() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return driver.LastWords(strings.Split(string(e.kept), "\n"))
}
