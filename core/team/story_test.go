package team

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/workflow"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// TestStories plays the scripts of agents and runs: each line is an event, followed by every change
// that it caused. UPDATE=1 go test ./core/team writes the results again.
func TestStories(t *testing.T) { golden.Stories(t, filepath.Join("stories", "*.txt"), tellStory) }

// tellStory returns a script with its actual results. It replaces the indented lines; empty lines
// and those with # are for readers.
func tellStory(t *testing.T, text string) string {
	c := newCrew(t, Limits{}, map[string]Settings{"ada": quiet, "bob": quiet})
	var out strings.Builder
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		fmt.Fprintln(&out, line)
		if line == "" || line[0] == '#' {
			continue
		}
		changes, err := c.event(c.lineOf(t, line))
		var refusal *table.Refusal
		switch {
		case errors.As(err, &refusal):
			fmt.Fprintf(&out, "  refused: %v\n", err)
			continue
		case err != nil:
			t.Fatalf("%s: %v", line, err)
		}
		for _, ch := range changes {
			for _, l := range Transitions(ch, nil) {
				fmt.Fprintf(&out, "  %-12s %-16s -> %-16s %-4s %s\n", l.Entity, l.From, l.To, ch.Row, ch.Trigger)
			}
		}
	}
	return out.String()
}

// lineOf parses the event of one line.
func (c *crewWorld) lineOf(t *testing.T, line string) Event {
	words := strings.Fields(line)
	word := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch words[0] {
	case "run": // run ID: STEP AGENT …; STEP AGENT …
		id := strings.TrimSuffix(words[1], ":")
		var steps []string
		for _, step := range strings.Split(line[strings.Index(line, ": ")+2:], ";") {
			steps = append(steps, strings.TrimSpace(step))
		}
		options := often
		options.BackoffFirst, options.BackoffMax = time.Minute, time.Hour
		return Event{
			Run: id,
			What: workflow.RunAsked{
				ID: workflow.RunID(id), Plan: plan(steps...), Options: options, RepoDir: "/w", ReportsDir: "/r",
				ManualInputsDir: "/m", By: "ann",
			},
		}
	case "want": // want AGENT WORD
		return Event{Agent: words[1], What: control.Commanded{Desired: words[2], By: "human"}}
	case "hold":
		return Event{What: HoldAsked{}}
	case "release":
		return Event{What: ReleaseAsked{}}
	case "stop":
		return Event{What: StopAsked{Now: word(1) == "now"}}
	case "began", "ended": // began SEAT; ended SEAT OUTCOME [REPORT]: SEAT is an agent, or STEP@RUN
		return c.sessionLine(t, words)
	case "answer": // answer RUN STEP N [rejected]
		n, _ := strconv.ParseUint(words[3], 10, 64)
		return Event{
			Run: words[1],
			What: workflow.AnswerRead{
				Lease: workflow.Lease{Step: workflow.StepID(words[2]), N: n}, By: "ann",
				Rejected: word(4) == "rejected",
			},
		}
	case "cancel": // cancel RUN [STEP]
		return Event{Run: words[1], What: workflow.CancelAsked{Step: workflow.StepID(word(2)), By: "ann"}}
	case "resume": // resume RUN [STEP]
		return Event{Run: words[1], What: workflow.ResumeAsked{From: workflow.StepID(word(2)), By: "ann"}}
	case "archive":
		return Event{Run: words[1], What: RunArchived{}}
	case "wait": // until the run's next deadline
		c.at = c.DeadlineRun(words[1])
		return Event{Run: words[1], What: TimerFired{}}
	}
	t.Fatalf("unknown line: %s", line)
	return Event{}
}

func (c *crewWorld) sessionLine(t *testing.T, words []string) Event {
	ev, s := Event{Agent: words[1]}, (*Session)(nil)
	if step, run, onBench := strings.Cut(words[1], "@"); onBench {
		ev, s = Event{Run: run}, c.Pool.Sessions[run+"/"+step]
	} else if a := c.Agents[words[1]]; a != nil {
		s = a.Session
	}
	if s == nil {
		t.Fatalf("%s has no session", words[1])
	}
	if words[0] == "began" {
		ev.What = SessionStarted{Session: s.ID, PID: 1}
		return ev
	}
	ended := SessionEnded{Session: s.ID, Outcome: control.Outcome(words[2]), Why: "so"}
	if len(words) > 3 {
		report := map[string]workflow.Report{
			"good": {}, "bad": {Failed: true, Why: "red"},
			"gate": {GateFailed: true, Why: "red"},
		}[words[3]]
		ended.Report = &StepReport{Report: report}
	}
	ev.What = ended
	return ev
}
