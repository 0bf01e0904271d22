package transitions

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	machineturn "github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/transitionlog"
	"github.com/fairlead-dev/fairlead/internal/retry"
)

// Controller writes the transition log.
type Controller struct {
	loop *loop.Loop
	log  *slog.Logger

	LogBytesMax int64 // size at which the log continues in a new file
}

// New makes the writer of the transition log.
func New(l *loop.Loop, log *slog.Logger) *Controller {
	return &Controller{loop: l, log: log, LogBytesMax: logBytesMax}
}

// logBytesMax is the size at which the transition log continues in a new file.
const logBytesMax = 64 << 20

// LogRetry is the delay after a failed write.
const LogRetry = 5 * time.Second

// LogTransitions writes every transition as a line of JSON in the words of the turn seed (X6), for
// programs that do not read the journal. The log is a projection: after a crash or a full disk it
// continues after the last whole line. If that line belongs to a change that the journal does not
// have, because the journal was lost or replaced by an old copy, the log is moved aside and begun
// anew. LogTransitions returns when ctx or the loop ends; the error is for a file that it cannot
// continue.
func (c *Controller) LogTransitions(ctx context.Context, path string) error {
	return c.writeLog(ctx, transitionLog{path: path, what: "the log of transitions", lines: c.TransitionLines})
}

// LogTurns is LogTransitions for turns only (seed 003, Logging): one line for each state change of
// an agent in a channel, or of an agent itself, in the seed's words. At a start it reads the
// journal from its last line on, or from the beginning if it has none.
func (c *Controller) LogTurns(ctx context.Context, path string) error {
	return c.writeLog(ctx, transitionLog{path: path, what: "the log of turns", lines: c.TurnLines})
}

// transitionLog is one log: its lines for a change, and its name for people.
type transitionLog struct {
	path  string
	what  string
	lines func(context.Context, journal.Change) ([][]byte, error)
}

func (c *Controller) writeLog(ctx context.Context, l transitionLog) error {
	warned := false
	for {
		err := c.logTo(ctx, l)
		switch {
		case ctx.Err() != nil, errors.Is(err, loop.ErrClosed), errors.Is(err, journal.ErrClosed):
			return nil //nolint:nilerr // the daemon stops; the next start continues after the last whole line
		case errors.Is(err, errLogAnew):
			continue
		case err == nil, errors.As(err, new(*notOurLog)):
			return err
		}
		if !warned {
			warned = true
			c.log.Error(l.what+" cannot be written; Fairlead tries again, and leaves nothing out", "error", err)
		}
		if !retry.Rest(ctx, LogRetry) {
			return nil
		}
	}
}

var errLogAnew = errors.New("the transition log continues in a new file")

// notOurLog means that the last line of a log is not a transition, so that the place to continue is
// unknown.
type notOurLog struct {
	path string
	err  error
}

func (n *notOurLog) Error() string {
	return fmt.Sprintf("the last line of %s is no transition: %v; move the file away, and Fairlead writes it anew", n.path, n.err)
}

func (n *notOurLog) Unwrap() error { return n.err }

// logTo continues one file until it is full.
func (c *Controller) logTo(ctx context.Context, l transitionLog) (err error) {
	path := l.path
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create the folder of the transition log: %w", err)
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
	last, size, err := lastLine(file)
	if err == nil && last == nil {
		last, err = lastFull(path)
	}
	if err != nil {
		return err
	}
	after, err := c.goesOnAfter(ctx, l, last)
	if err != nil {
		return err
	}
	for ch, err := range c.loop.Changes(ctx, after.seq, "") {
		if err != nil {
			return err
		}
		lines, err := l.lines(ctx, ch)
		if err != nil {
			return err
		}
		if ch.Seq == after.skipSeq {
			lines = lines[min(after.skip, len(lines)):] // the lines that the log already has are skipped
		}
		if len(lines) == 0 {
			continue
		}
		text := bytes.Join(lines, nil)
		if _, err := file.Write(text); err != nil {
			return fmt.Errorf("write the transition log: %w", err)
		}
		if size += int64(len(text)); size >= c.LogBytesMax {
			if err := os.Rename(path, fmt.Sprintf("%s.%d", path, ch.Seq)); err != nil {
				return fmt.Errorf("begin a new transition log: %w", err)
			}
			return errLogAnew
		}
	}
	return nil
}

// TransitionLines returns the lines of one change: one for each agent or step whose state changed.
// The current team state says which agent a step belongs to; a step of an archived run is named
// alone.
func (c *Controller) TransitionLines(ctx context.Context, ch journal.Change) ([][]byte, error) {
	if ch.Machine == "turn" {
		line, err := turnLine(ch)
		return [][]byte{line}, err
	}
	fact := change.Change{Entity: ch.Entity, From: ch.From, To: ch.To}
	var agents map[string]string
	if strings.HasPrefix(ch.Entity, "run/") {
		var err error
		if fact.Body, err = team.BodyOf(ch.Data); err != nil {
			return nil, fmt.Errorf("read change %d of %s: %w", ch.Seq, ch.Entity, err)
		}
		agents = map[string]string{}
		_ = c.loop.View(ctx, func(t *team.Team) { // fails only if the loop has stopped; steps are then named alone
			team.Transitions(fact, func(run, step string) string {
				agents[step] = t.StepAgent(run, step)
				return ""
			})
		})
	}
	moved := team.Transitions(fact, func(_, step string) string { return agents[step] })
	lines := make([][]byte, len(moved))
	for i, line := range moved {
		one := transitionlog.Entry{
			At: ch.Time, AgentID: line.Agent, From: line.From, To: line.To, Trigger: ch.Trigger,
			Machine: ch.Machine, Entity: line.Entity, Row: ch.Row, Actor: ch.Actor, Seq: ch.Seq,
		}
		if len(moved) > 1 {
			one.Part, one.Parts = i+1, len(moved)
		}
		lines[i] = transitionlog.Line(one)
	}
	return lines, nil
}

// logPlace is where a log continues: after a change, or between the lines of one change.
type logPlace struct {
	seq     uint64 // everything up to this Seq is in the log
	skipSeq uint64 // and of this change
	skip    int    // this many lines
}

// logLine is the part of a line that identifies its change. Seqs alone are not enough: another
// journal has the same ones.
type logLine struct {
	Timestamp string `json:"timestamp"`
	Entity    string `json:"entity"`
	Row       string `json:"row"`
	Seq       uint64 `json:"seq"`
	Part      int    `json:"part"`
	Parts     int    `json:"parts"`
}

// goesOnAfter returns the place after the last line; the beginning if the log is empty. A log of
// another journal is moved aside.
func (c *Controller) goesOnAfter(ctx context.Context, l transitionLog, last []byte) (logPlace, error) {
	if last == nil {
		return logPlace{}, nil
	}
	var told, is logLine
	if err := json.Unmarshal(last, &told); err != nil {
		return logPlace{}, &notOurLog{l.path, err}
	}
	if told.Seq == 0 {
		return logPlace{}, &notOurLog{l.path, errors.New("it has no seq")}
	}
	for ch, err := range c.loop.Journal().Read(ctx, journal.Query{After: told.Seq - 1, Until: told.Seq}) {
		if err != nil {
			return logPlace{}, err
		}
		lines, err := l.lines(ctx, ch)
		if err != nil {
			return logPlace{}, err
		}
		if at := max(1, told.Part); at <= len(lines) {
			if err := json.Unmarshal(lines[at-1], &is); err != nil {
				panic("transitions: decode a line that was just encoded: " + err.Error())
			}
		}
	}
	switch {
	case is == told && told.Part == told.Parts:
		return logPlace{seq: told.Seq}, nil
	case is == told:
		return logPlace{seq: told.Seq - 1, skipSeq: told.Seq, skip: told.Part}, nil
	}
	aside, err := putAside(l.path)
	if err != nil {
		return logPlace{}, fmt.Errorf("move the log of another journal aside: %w", err)
	}
	c.log.Warn(l.what+" contains a change that the journal does not have; it is moved aside and written anew", "seq", told.Seq, "kept_as",
		aside)
	return logPlace{}, errLogAnew
}

// putAside renames a log and all its full files to names that no log uses.
func putAside(path string) (aside string, err error) {
	for n := 1; ; n++ {
		aside = fmt.Sprintf("%s.aside-%d", path, n)
		taken, _ := filepath.Glob(aside + "*") // the pattern is valid; it also matches longer numbers
		if len(taken) == 0 {
			break
		}
	}
	for _, full := range fullLogs(path) {
		if err := os.Rename(fmt.Sprintf("%s.%d", path, full), fmt.Sprintf("%s.%d", aside, full)); err != nil {
			return "", err
		}
	}
	return aside, os.Rename(path, aside)
}

// fullLogs returns the last Seqs of the full logs in order; they are part of their names.
func fullLogs(path string) (seqs []uint64) {
	names, _ := filepath.Glob(path + ".*") // the pattern is valid
	for _, name := range names {
		if seq, err := strconv.ParseUint(strings.TrimPrefix(name, path+"."), 10, 64); err == nil {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs
}

// lastFull returns the last line of the newest full log; nil if there is none.
func lastFull(path string) (last []byte, err error) {
	full := fullLogs(path)
	if len(full) == 0 {
		return nil, nil
	}
	file, err := os.Open(fmt.Sprintf("%s.%d", path, full[len(full)-1])) //nolint:gosec // our own folder
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	last, _, err = tailOf(file)
	return last, err
}

// lastLine finds the last whole line, removes a torn line after it, and leaves the file at its end.
func lastLine(file *os.File) (last []byte, size int64, err error) {
	last, size, err = tailOf(file)
	if err == nil {
		err = file.Truncate(size)
	}
	if err == nil {
		_, err = file.Seek(size, io.SeekStart)
	}
	return last, size, err
}

// tailOf returns the last whole line and the offset of its end; nil if there is no line.
func tailOf(file *os.File) (last []byte, size int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	const tail = 64 << 10 // far longer than a line
	from := max(0, info.Size()-tail)
	text, err := io.ReadAll(bufio.NewReader(io.NewSectionReader(file, from, info.Size()-from)))
	if err != nil {
		return nil, 0, err
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	size = from + int64(end)
	if end == 0 {
		return nil, size, nil
	}
	return text[bytes.LastIndexByte(text[:end-1], '\n')+1 : end], size, nil
}

// TurnLines returns the line of a change for the log of turns; none if no agent's state changed.
func (c *Controller) TurnLines(_ context.Context, ch journal.Change) ([][]byte, error) {
	if ch.Machine != "turn" || ch.From == "" || ch.From == ch.To {
		return nil, nil
	}
	line, err := turnLine(ch)
	return [][]byte{line}, err
}

// turnLine returns the line of a turn's change, with the seed's trigger if it has one, else
// Fairlead's.
func turnLine(ch journal.Change) ([]byte, error) {
	// Only the agent is needed; the rest of the data may be a long text.
	var data struct {
		Turn struct {
			Agent string `json:"agent"`
		} `json:"turn"`
	}
	if err := json.Unmarshal(ch.Data, &data); err != nil {
		return nil, fmt.Errorf("read change %d of %s: %w", ch.Seq, ch.Entity, err)
	}
	channel, ok := strings.CutPrefix(ch.Entity, machineturn.EntityPrefix)
	if !ok {
		channel = "" // the agent itself, not its part in a channel
	}
	trigger := ch.Trigger
	if ch.From != "" && ch.From != ch.To {
		trigger = machineturn.TriggerFrom(machineturn.State(ch.From), machineturn.Event(ch.Trigger))
	}
	return transitionlog.Line(transitionlog.Entry{
		At: ch.Time, AgentID: data.Turn.Agent, From: ch.From, To: ch.To, Trigger: trigger, Channel: channel,
		Machine: ch.Machine, Entity: ch.Entity, Row: ch.Row, Actor: ch.Actor, Seq: ch.Seq,
	}), nil
}
