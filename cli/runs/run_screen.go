package runs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/termtext"
	"github.com/fairlead-dev/fairlead/read/view"
)

const (
	screenRedraw = 100 * time.Millisecond
	tailLines    = 5    // of the output of a running step
	tailBytes    = 4096 // of it that are kept
)

// screen shows a run on a terminal: each step with its state and time, and the tail of the running
// step's output. It redraws in place, and leaves the last picture.
type screen struct {
	a    *cli.App
	ctx  context.Context //nolint:containedctx // of the drawing, which lives as long as the display
	stop context.CancelFunc

	mu    sync.Mutex
	view  view.RunView
	notes []string // messages to the person at the terminal
	tail  Spoken
	drawn int // lines of the last picture
	gone  sync.WaitGroup
}

// Spoken is the tail of a step's log, read from the file.
type Spoken struct{ Step, log, Text string }

func newScreen(ctx context.Context, a *cli.App) *screen {
	s := &screen{a: a}
	s.ctx, s.stop = context.WithCancel(ctx)
	s.gone.Go(s.draws)
	return s
}

// Change does nothing: the screen shows the view that Look brings.
func (s *screen) Change(api.Change) error { return nil }

func (s *screen) Look(view view.RunView) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = view
	s.tail = Spoken{}
	for _, step := range view.Steps {
		if step.Status == string(workflow.Running) && step.LogPath != "" {
			s.tail = Spoken{Step: step.ID, log: step.LogPath}
			return
		}
	}
}

// endOf returns the end of a log; empty if there is none yet.
func endOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	from := max(0, info.Size()-tailBytes)
	text, err := io.ReadAll(io.NewSectionReader(file, from, tailBytes))
	if err != nil {
		return ""
	}
	if from > 0 { // it begins within a line, or within a character
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return string(text)
}

func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

func (s *screen) warn(text string) { s.say("warning: %s", text) }

// done draws the last picture, and releases the terminal.
func (s *screen) done() {
	s.stop()
	s.gone.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail = Spoken{}
	s.draw()
}

func (s *screen) draws() {
	tick := time.NewTicker(screenRedraw)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
			s.mu.Lock()
			s.draw()
			s.mu.Unlock()
		}
	}
}

// draw draws the picture over the previous one.
func (s *screen) draw() {
	width, height := s.a.Size()
	if s.tail.log != "" {
		s.tail.Text = endOf(s.tail.log)
	}
	lines := Picture(s.a, s.view, s.tail, s.notes, width-1, height-1, time.Now())
	var out bytes.Buffer
	if s.drawn > 0 {
		fmt.Fprintf(&out, termtext.Own("\x1b[%dA"), s.drawn)
	}
	out.WriteString(termtext.Own("\r") + termtext.Own("\x1b[J"))
	for _, text := range lines {
		out.WriteString(text + "\n")
	}
	s.drawn = len(lines)
	_, _ = s.a.Out.Write(out.Bytes()) // if the terminal is gone, the next write reports it
}

// Picture is a run in at most so many lines of at most so many characters.
func Picture(a *cli.App, view view.RunView, t Spoken, notes []string, width, height int, now time.Time) []string {
	if view.ID == "" {
		return nil
	}
	c := view.Counts
	head := fmt.Sprintf("%s  %s  %s", cli.Line(view.Workflow, cli.StepWidth), view.ID, view.Status)
	head += fmt.Sprintf("  %d of %d done  %s", c.Completed+c.Skipped, len(view.Steps),
		cli.Ago(since(view.CreatedAt, view.UpdatedAt, view.Status, now)))
	if view.CostUSD > 0 {
		head += "  " + cli.Money(view.CostUSD)
	}
	lines := []string{a.Paint(cli.Bold, cli.Line(head, width))}
	var foot []string
	if said := strings.TrimRight(cli.Plain(t.Text), "\n"); said != "" {
		foot = append(foot, a.Paint(cli.Dim, cli.Line("── "+t.Step, width)))
		rows := strings.Split(said, "\n")
		for _, row := range rows[max(0, len(rows)-tailLines):] {
			foot = append(foot, a.Paint(cli.Dim, "   "+cli.Line(row, width-3)))
		}
	}
	for _, note := range notes {
		foot = append(foot, a.Paint(cli.Yellow, cli.Line(note, width)))
	}
	return append(append(lines, stepLines(a, view.Steps, width, max(3, height-1-len(foot)), now)...), foot...)
}

func since(from, to time.Time, status string, now time.Time) time.Duration {
	if status == string(workflow.IsRunning) || status == string(workflow.IsWaiting) {
		to = now
	}
	return max(0, to.Sub(from))
}

// stepLines are the steps, in the order of the plan. If there are more than fit, the running ones
// are shown, with the steps around the first of them.
func stepLines(a *cli.App, steps []view.StepView, width, room int, now time.Time) []string {
	wide := 0
	for _, s := range steps {
		wide = min(max(wide, len(s.ID)), cli.StepWidth)
	}
	from, to := 0, len(steps)
	if to > room {
		at := 0
		for i, s := range steps {
			if s.Status != string(workflow.Completed) && s.Status != string(workflow.Skipped) {
				at = i
				break
			}
		}
		room -= 2 // for the two lines that count the others
		from = max(0, min(at-room/3, len(steps)-room))
		to = from + room
	}
	var lines []string
	if from > 0 {
		lines = append(lines, a.Paint(cli.Dim, fmt.Sprintf("  … %d before", from)))
	}
	for _, s := range steps[from:to] {
		lines = append(lines, stepLine(a, s, wide, width, now))
	}
	if to < len(steps) {
		lines = append(lines, a.Paint(cli.Dim, fmt.Sprintf("  … %d more", len(steps)-to)))
	}
	return lines
}

// marks are the symbols of the states. They differ without colour, too.
var marks = map[workflow.State]struct{ mark, colour string }{
	workflow.Pending:   {"·", cli.Dim},
	workflow.Running:   {">", cli.Bold},
	workflow.Waiting:   {"?", cli.Yellow},
	workflow.Completed: {"+", cli.Green},
	workflow.Failed:    {"x", cli.Red},
	workflow.Skipped:   {"-", cli.Dim},
}

func stepLine(a *cli.App, s view.StepView, wide, width int, now time.Time) string {
	mark := marks[workflow.State(s.Status)]
	text := fmt.Sprintf("%-*s  ", wide, cli.Line(s.ID, cli.StepWidth))
	switch workflow.State(s.Status) {
	case workflow.Running:
		text += "running" + spent(s, now)
	case workflow.Completed:
		text += "completed" + spent(s, now)
	case workflow.Failed:
		text += "failed" + spent(s, now)
	case workflow.Waiting:
		text += "waits for a person" + spent(s, now)
	case workflow.Skipped:
		text += "skipped"
	default:
		text += cmp.Or(s.WaitsFor, "pending")
	}
	var notes []string
	if s.Attempts > 1 {
		notes = append(notes, fmt.Sprintf("attempt %d", s.Attempts))
	}
	if s.Iteration > 0 {
		notes = append(notes, fmt.Sprintf("iteration %d", s.Iteration+1))
	}
	if s.LoopItems > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d items", s.LoopDone, s.LoopItems))
	}
	if s.LastError != "" && s.Status != string(workflow.Completed) {
		notes = append(notes, s.LastError)
	}
	if len(notes) > 0 {
		text += "  " + strings.Join(notes, ", ")
	}
	return a.Paint(mark.colour, cli.Aligned(mark.mark+" "+text, width))
}

// spent is how long a step took, or has run so far.
func spent(s view.StepView, now time.Time) string {
	if s.StartedAt == nil {
		return ""
	}
	to := now
	if s.EndedAt != nil && s.Status != string(workflow.Running) {
		to = *s.EndedAt
	}
	return " " + cli.Ago(max(0, to.Sub(*s.StartedAt)))
}
