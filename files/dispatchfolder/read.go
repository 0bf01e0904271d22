package dispatchfolder

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
)

// Line is a complete line of state.jsonl, as a change.
type Line struct {
	Offset, End int64         // bytes of the file; End is where the next line begins
	Change      change.Change // its Body is a dispatch.Body
	Foreign     bool          // another program wrote it; Change.Row follows from its type
	Fault       string        // what was not applied, or why the line could not be read; then Change changes only Now.Line
}

// ErrShorter says that state.jsonl is shorter than before, so it was replaced. Read from 0.
var ErrShorter = errors.New("state.jsonl is shorter than before: it was replaced; read it again from the beginning")

// Session returns the current state. It takes no lock: it reads the first line and the last complete one, and
// if the last lines are another program's, all lines after our last one.
func (f *Folder) Session() (dispatch.Dispatch, error) {
	d, err := openFolder(f.path)
	if err != nil {
		return dispatch.Dispatch{}, f.notASession(err)
	}
	defer d.close()
	return f.session(d)
}

func (f *Folder) session(d opened) (dispatch.Dispatch, error) {
	file, err := d.open(stateName, unix.O_RDONLY)
	if err != nil {
		return dispatch.Dispatch{}, f.notASession(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return dispatch.Dispatch{}, fmt.Errorf("check %s: %w", file.Name(), err)
	}
	s, _, err := f.before(file, info.Size())
	if err == nil && s.Line == 0 {
		return s, &NotASession{Path: f.path, Why: "its state.jsonl has no complete line; remove the folder, or write its session_init"}
	}
	return s, err
}

// before returns the state at an offset where a line begins or the file ends, and the time.
func (f *Folder) before(file *os.File, end int64) (dispatch.Dispatch, time.Time, error) {
	var s dispatch.Dispatch
	var last time.Time
	var behind []span // lines of other programs, last first
	err := backward(file, end, func(at span, line []byte) (more bool) {
		r, err := parseRecord(line)
		if err == nil && r.Ours != nil {
			s.Now, last = r.Ours.Now, r.Ours.At
			if r.Ours.Setup != nil {
				s.Setup = *r.Ours.Setup
			}
			return false
		}
		behind = append(behind, at)
		return true
	})
	if err != nil {
		return s, last, err
	}
	if s.Line > 1 && s.Mode == "" {
		if s.Setup, err = f.setup(file); err != nil {
			return s, last, err
		}
	}
	slices.Reverse(behind)
	for _, at := range behind {
		line, err := lineAt(file, at)
		if err != nil {
			return s, last, err
		}
		if r, err := parseRecord(line); err == nil {
			ch, _ := fold(&s, r, last)
			last = ch.At
		}
	}
	return s, last, nil
}

// span is a line's place and its end.
type span struct{ from, to int64 }

func lineAt(file *os.File, at span) ([]byte, error) {
	line := make([]byte, min(at.to-at.from, lineBytesMax+1))
	if _, err := file.ReadAt(line, at.from); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	return line, nil
}

// lookBytes is how much is read at once to find a line: most have less than 2 KiB.
const lookBytes = 8 << 10

// backward passes the complete lines before an offset, last first, to look until it returns true. Text after
// the last line end is not a complete line. A line that is too long is passed shortened.
func backward(file *os.File, end int64, look func(at span, line []byte) (more bool)) error {
	step := int64(lookBytes) // doubled within a line, so that a long one is not copied again and again
	var rest []byte          // the end of the line that begins before the bytes read so far; at most twice lineBytesMax
	lineEnd := int64(-1)
	for at := end; at > 0; {
		from := max(0, at-step)
		chunk := make([]byte, at-from, int(at-from)+len(rest))
		if _, err := file.ReadAt(chunk, from); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s: %w", file.Name(), err)
		}
		tail := len(chunk)
		for {
			i := bytes.LastIndexByte(chunk[:tail], '\n')
			if i < 0 {
				break
			}
			if lineEnd >= 0 {
				line := append(slices.Clone(chunk[i+1:tail]), rest...)
				if !look(span{from + int64(i) + 1, lineEnd}, line) {
					return nil
				}
			}
			rest, lineEnd, tail, step = nil, from+int64(i)+1, i, lookBytes
		}
		if lineEnd >= 0 {
			rest = append(chunk[:tail:tail], rest...)
			if len(rest) > 2*lineBytesMax { // too long to be used; only its end is needed
				rest = rest[:lineBytesMax+1]
			}
		}
		at, step = from, min(2*step, lineBytesMax)
	}
	if lineEnd > 0 {
		look(span{0, lineEnd}, rest)
	}
	return nil
}

// setup returns the setup of our first line that has one. It never changes, so it is read once.
func (f *Folder) setup(file *os.File) (dispatch.Setup, error) {
	first, err := f.firstLine(file)
	if err != nil {
		return dispatch.Setup{}, err
	}
	return first.setup, nil
}

// first is the beginning of a dispatch in one state file.
type first struct {
	dev, ino uint64
	setup    dispatch.Setup
	about    about
}

func (f *Folder) firstLine(file *os.File) (first, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(int(file.Fd()), &st) }); err != nil {
		return first{}, fmt.Errorf("check %s: %w", file.Name(), err)
	}
	dev, ino := uint64(st.Dev), st.Ino //nolint:unconvert // signed on one system
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first != nil && f.first.dev == dev && f.first.ino == ino {
		return *f.first, nil
	}
	in := bufio.NewReaderSize(io.NewSectionReader(file, 0, linesBytesMax), lookBytes)
	var r record
	for { // the first line that can be read, as Lines returns it
		line, _, err := wholeLine(in)
		if errors.Is(err, io.EOF) {
			return first{},
				&NotASession{
					Path: f.path,
					Why:  "the first lines of its state.jsonl cannot be read; remove the folder, or write its session_init",
				}
		}
		if err != nil {
			return first{}, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		if r, err = parseRecord(line); err == nil {
			break
		}
	}
	is := first{dev: dev, ino: ino}
	switch {
	case r.Ours != nil && r.Ours.Setup != nil:
		is.setup = *r.Ours.Setup
		if r.Ours.About != nil {
			is.about = *r.Ours.About
		}
	case r.Ours == nil && r.Type != "session_init":
		is.setup = setupOf(record{}, seedTimeOf(r.Timestamp, time.Time{}))
	default:
		is.setup = setupOf(r, seedTimeOf(r.Timestamp, time.Time{}))
	}
	f.first = &is
	return is, nil
}

// Lines returns the complete lines of state.jsonl from an offset on, as changes, and the offset to continue
// from: at most 1000 lines or 16 MiB. If next equals from, there are no more. It includes lines of other
// programs and lines that cannot be read (Fault says why). from is 0, or a next or End that was returned
// before.
func (f *Folder) Lines(from int64) (lines []Line, next int64, err error) {
	d, err := openFolder(f.path)
	if err != nil {
		return nil, from, f.notASession(err)
	}
	defer d.close()
	file, err := d.open(stateName, unix.O_RDONLY)
	if err != nil {
		return nil, from, f.notASession(err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, from, fmt.Errorf("check %s: %w", file.Name(), err)
	case from < 0 || from > info.Size():
		return nil, 0, fmt.Errorf("read %s from byte %d: %w", file.Name(), from, ErrShorter)
	case from == info.Size():
		return nil, from, nil
	}
	s, last, err := f.before(file, from)
	if err != nil {
		return nil, from, err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(file, from, info.Size()-from), 64<<10)
	for next = from; len(lines) < linesAtOnceMax && next-from < linesBytesMax; {
		text, size, err := wholeLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return lines, next, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		if line, is := lineOf(&s, &last, text, size); is {
			line.Offset, line.End = next, next+size
			lines = append(lines, line)
		}
		next += size
	}
	return lines, next, nil
}

// wholeLine reads a line to its end and keeps at most a valid line's length.
func wholeLine(in *bufio.Reader) (text []byte, size int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += int64(len(part))
		if len(text) <= lineBytesMax {
			text = append(text, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, size, err
		}
	}
}

// lineOf converts a line to a change and applies it. An empty line is skipped.
func lineOf(s *dispatch.Dispatch, last *time.Time, text []byte, size int64) (Line, bool) {
	if size < 64 && len(trimmed(text)) == 0 {
		return Line{}, false
	}
	r, err := parseRecord(text)
	if err != nil {
		ch := change.Change{At: *last, From: s.State(), To: s.State(), Body: &dispatch.Body{Now: s.Now}}
		return Line{Change: ch, Foreign: true, Fault: err.Error()}, true
	}
	if r.Ours != nil {
		ch := r.change()
		s.Apply(ch)
		*last = ch.At
		return Line{Change: ch}, true
	}
	ch, fault := fold(s, r, *last)
	*last = ch.At
	return Line{Change: ch, Foreign: true, Fault: fault}, true
}
