package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/interop"
	"github.com/fairlead-dev/fairlead/journal"
)

// logBytesMax is the size at which the log of transitions goes on in a new file.
const logBytesMax = 64 << 20

// logRetry is the wait after a disk that took no line.
const logRetry = 5 * time.Second

// LogTransitions writes every transition as a line of JSON in the words of the turn seed
// (X6), for programs that know nothing of the journal. It is a projection: after a crash, or
// a disk that was full, it goes on after the last whole line. It returns when ctx or the
// engine ends; the error is for a file that cannot be gone on with.
func (e *Engine) LogTransitions(ctx context.Context, path string) error {
	warned := false
	for {
		err := e.logTo(ctx, path)
		var refused *notOurLog
		switch {
		case ctx.Err() != nil, errors.Is(err, ErrClosed), errors.Is(err, journal.ErrClosed):
			return nil //nolint:nilerr // we stop; the next start goes on after the last whole line
		case errors.Is(err, ErrLagged), errors.Is(err, errLogFull):
			continue // it goes on from the journal, or in a new file
		case err == nil, errors.As(err, &refused):
			return err
		}
		if !warned {
			warned = true
			e.log.Error("the log of transitions cannot be written; it is tried again, and nothing is left out", "error", err)
		}
		if !rest(ctx, logRetry) {
			return nil
		}
	}
}

var errLogFull = errors.New("the transition log is full")

// notOurLog says that what stands at the end of a log is no transition: nobody knows after
// which one to go on.
type notOurLog struct {
	path string
	err  error
}

func (n *notOurLog) Error() string {
	return fmt.Sprintf("the last line of %s is no transition: %v; move the file away, and it is written anew", n.path, n.err)
}
func (n *notOurLog) Unwrap() error { return n.err }

// logTo goes on with one file until it is full.
func (e *Engine) logTo(ctx context.Context, path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the folder of the transition log: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // our own folder
	if err != nil {
		return fmt.Errorf("open the transition log: %w", err)
	}
	defer func() {
		if cerr := file.Close(); err == nil {
			err = cerr
		}
	}()
	after, size, err := lastLogged(file)
	if err != nil {
		return err
	}
	after = max(after, lastFull(path))
	for ch, err := range e.Changes(ctx, after, "") {
		if err != nil {
			return err
		}
		line := transitionLine(ch)
		if _, err := file.Write(line); err != nil {
			return fmt.Errorf("write the transition log: %w", err)
		}
		if size += int64(len(line)); size >= e.logBytesMax {
			if err := os.Rename(path, fmt.Sprintf("%s.%d", path, ch.Seq)); err != nil {
				return fmt.Errorf("begin a new transition log: %w", err)
			}
			return errLogFull
		}
	}
	return nil
}

func transitionLine(ch journal.Change) []byte {
	agent := ""
	if ch.Entity != teamEntity {
		agent = agentOf(ch.Entity)
	}
	return interop.TransitionLine(interop.Transition{
		At: ch.Time, AgentID: agent, From: ch.From, To: ch.To, Trigger: ch.Trigger,
		Machine: ch.Machine, Entity: ch.Entity, Row: ch.Row, Actor: interop.Actor(ch.Actor), Seq: ch.Seq,
	})
}

// lastFull is the Seq up to which full logs go; it stands in their names.
func lastFull(path string) uint64 {
	var last uint64
	names, _ := filepath.Glob(path + ".*") // the pattern is ours: it cannot be malformed
	for _, name := range names {
		if seq, err := strconv.ParseUint(strings.TrimPrefix(name, path+"."), 10, 64); err == nil {
			last = max(last, seq)
		}
	}
	return last
}

// lastLogged finds the last whole line, cuts a torn one off, and leaves the file at its end.
func lastLogged(file *os.File) (after uint64, size int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, 0, err
	}
	const tail = 64 << 10 // far more than a line
	from := max(0, info.Size()-tail)
	text, err := io.ReadAll(bufio.NewReader(io.NewSectionReader(file, from, info.Size()-from)))
	if err != nil {
		return 0, 0, err
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	size = from + int64(end)
	if err := file.Truncate(size); err != nil {
		return 0, 0, err
	}
	if _, err := file.Seek(size, io.SeekStart); err != nil {
		return 0, 0, err
	}
	if end == 0 {
		return 0, size, nil
	}
	begin := bytes.LastIndexByte(text[:end-1], '\n') + 1
	var line struct {
		Seq uint64 `json:"seq"`
	}
	if err := json.Unmarshal(text[begin:end], &line); err != nil {
		return 0, 0, &notOurLog{file.Name(), err}
	}
	return line.Seq, size, nil
}
