package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/view"
)

const (
	screenRedraw = 100 * time.Millisecond
	tailLines    = 5    // of the output of a step at work
	tailBytes    = 4096 // of it that are kept
)

// The size of a terminal that does not say its own.
const (
	screenWidth  = 80
	screenHeight = 24
)

// screen shows a run on a terminal: what each step does, how long, and the tail of what the
// one at work says. It draws over itself, and leaves its last picture behind.
type screen struct {
	a    *app
	ctx  context.Context //nolint:containedctx // of the drawing, which lives as long as the face
	stop context.CancelFunc

	mu    sync.Mutex
	view  view.RunView
	notes []string // what was said to the person at the keyboard
	tail  spoken
	drawn int // lines of the last picture
	gone  sync.WaitGroup
}

// spoken is the end of what a step says: of its log, which is where the daemon is, and so here.
type spoken struct{ step, log, text string }

func newScreen(ctx context.Context, a *app) *screen {
	s := &screen{a: a}
	s.ctx, s.stop = context.WithCancel(ctx)
	s.gone.Go(s.draws)
	return s
}

// change has nothing to do: what is shown is how the run stands, which look brings.
func (s *screen) change(api.Change) error { return nil }

func (s *screen) look(view view.RunView) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = view
	s.tail = spoken{}
	for _, step := range view.Steps {
		if step.Status == string(workflow.Running) && step.LogPath != "" {
			s.tail = spoken{step: step.ID, log: step.LogPath}
			return
		}
	}
}

// endOf is the end of a log; nothing where there is none yet.
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

// done draws the last picture, and gives the terminal back.
func (s *screen) done() {
	s.stop()
	s.gone.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail = spoken{}
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

// draw writes the picture over the last one.
func (s *screen) draw() {
	width, height := s.a.size()
	if s.tail.log != "" {
		s.tail.text = endOf(s.tail.log)
	}
	lines := s.a.picture(s.view, s.tail, s.notes, width-1, height-1, time.Now())
	var out bytes.Buffer
	if s.drawn > 0 {
		fmt.Fprintf(&out, "\x1b[%dA", s.drawn)
	}
	out.WriteString("\r\x1b[J")
	for _, text := range lines {
		out.WriteString(text + "\n")
	}
	s.drawn = len(lines)
	_, _ = s.a.out.Write(out.Bytes()) // a terminal that is gone is seen by whoever writes next
}

// size is what the terminal has room for.
func (a *app) size() (width, height int) {
	if file, ok := a.out.(*os.File); ok {
		if w, h, err := term.GetSize(int(file.Fd())); err == nil && w > 20 && h > 8 { //nolint:gosec // a descriptor fits an int
			return w, h
		}
	}
	return screenWidth, screenHeight
}

// picture is a run in at most so many lines of at most so many characters.
func (a *app) picture(view view.RunView, t spoken, notes []string, width, height int, now time.Time) []string {
	if view.ID == "" {
		return nil
	}
	c := view.Counts
	head := fmt.Sprintf("%s  %s  %s", line(view.Workflow, stepWidth), view.ID, view.Status)
	head += fmt.Sprintf("  %d of %d done  %s", c.Completed+c.Skipped, len(view.Steps), ago(since(view.CreatedAt, view.UpdatedAt, view.Status, now)))
	if view.CostUSD > 0 {
		head += fmt.Sprintf("  $%.2f", view.CostUSD)
	}
	lines := []string{a.paint(bold, line(head, width))}
	var foot []string
	if said := strings.TrimRight(plain(t.text), "\n"); said != "" {
		foot = append(foot, a.paint(dim, line("── "+t.step, width)))
		rows := strings.Split(said, "\n")
		for _, row := range rows[max(0, len(rows)-tailLines):] {
			foot = append(foot, a.paint(dim, "   "+line(row, width-3)))
		}
	}
	for _, note := range notes {
		foot = append(foot, a.paint(yellow, line(note, width)))
	}
	return append(append(lines, a.stepLines(view.Steps, width, max(3, height-1-len(foot)), now)...), foot...)
}

func since(from, to time.Time, status string, now time.Time) time.Duration {
	if status == string(workflow.IsRunning) || status == string(workflow.IsWaiting) {
		to = now
	}
	return max(0, to.Sub(from))
}

// stepLines are the steps, in the order of the plan. Where there are more than there is room
// for, those at work are kept, with what is around the first of them.
func (a *app) stepLines(steps []view.StepView, width, room int, now time.Time) []string {
	wide := 0
	for _, s := range steps {
		wide = min(max(wide, len(s.ID)), stepWidth)
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
		lines = append(lines, a.paint(dim, fmt.Sprintf("  … %d steps before", from)))
	}
	for _, s := range steps[from:to] {
		lines = append(lines, a.stepLine(s, wide, width, now))
	}
	if to < len(steps) {
		lines = append(lines, a.paint(dim, fmt.Sprintf("  … %d steps behind", len(steps)-to)))
	}
	return lines
}

// marks are how a state is drawn. They differ without colour too.
var marks = map[workflow.State]struct{ mark, colour string }{
	workflow.Pending:   {"·", dim},
	workflow.Running:   {">", bold},
	workflow.Waiting:   {"?", yellow},
	workflow.Completed: {"+", green},
	workflow.Failed:    {"x", red},
	workflow.Skipped:   {"-", dim},
}

func (a *app) stepLine(s view.StepView, wide, width int, now time.Time) string {
	mark := marks[workflow.State(s.Status)]
	text := fmt.Sprintf("%-*s  ", wide, line(s.ID, stepWidth))
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
		text += orElse(s.WaitsFor, "pending")
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
	return a.paint(mark.colour, aligned(mark.mark+" "+text, width))
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// spent is how long a step took, or is at it.
func spent(s view.StepView, now time.Time) string {
	if s.StartedAt == nil {
		return ""
	}
	to := now
	if s.EndedAt != nil && s.Status != string(workflow.Running) {
		to = *s.EndedAt
	}
	return " " + ago(max(0, to.Sub(*s.StartedAt)))
}
