package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
)

// What happened is told in few lines, the failed first, each with the place that shows it.
func TestDigest(t *testing.T) {
	since := time.Date(2026, 11, 24, 22, 0, 0, 0, time.UTC)
	at := func(h int) time.Time { return since.Add(time.Duration(h) * time.Hour) }
	var g DigestOf
	seq := uint64(100)
	add := func(machine, entity, trigger, by string, h int, body change.Body) {
		seq++
		g.Add(change.Change{
			Machine: machine, Entity: entity, Trigger: trigger, At: at(h), Actor: change.Actor{Kind: by, ID: "ann"},
			Body: body,
		}, seq)
	}
	asked := func(n int, q question.Question) {
		q.ID, q.Agent, q.What = fmt.Sprint("q", n), "coder", "run make\nand more"
		add("question", "question/"+q.ID, "answered", "engine", 1, &question.Body{Question: &q})
	}
	add("session", "session/ada", "ended", "engine", 1,
		&team.Session{ID: "ada-1", For: team.ForControl, Phase: session.None, Outcome: control.OK})
	add("session", "session/ada", "ended", "engine", 2,
		&team.Session{ID: "ada-2", For: team.ForControl, Phase: session.None, Outcome: control.OK})
	for n := range 2 {
		add("session", "session/eve", "ended", "engine", 2,
			&team.Session{
				ID: fmt.Sprint("eve-", n), For: team.ForControl, Phase: session.None,
				Outcome: []control.Outcome{control.OK, control.Failed}[n],
			})
	}
	add("session", "session/joe", "ended", "engine", 2,
		&team.Session{ID: "joe-1", For: team.ForControl, Phase: session.None, Outcome: control.Failed})
	add("session", "session/ada", "reported", "agent", 2,
		&team.Used{Usage: team.DayUsage{Usage: change.Usage{InputTokens: 9, OutputTokens: 1, CostUSD: 1.5}}})
	add("control", "control/bob", "failed_for_good", "engine", 3, &control.Body{Value: control.Value{GaveUp: at(3)}})
	add("control", "control/bob", "hold_set", "engine", 4, &control.Body{Value: control.Value{GaveUp: at(3)}})
	add("run", "run/r1/notes", "approved", "human", 4, nil)
	add("run", "run/T7/approve", "rejected", "human", 4, nil)
	asked(1, question.Question{State: question.Answered, Kind: question.Permission, Allow: true, By: "human/ann"})
	asked(2, question.Question{State: question.Answered, Kind: question.Permission, By: "time"})
	asked(3, question.Question{State: question.Answered, Kind: question.Permission, Allow: true, By: "rule"})
	asked(4, question.Question{State: question.Withdrawn, Kind: question.Permission})
	runs := []RunView{
		{ID: "T1", Status: "completed", UpdatedAt: at(2), Task: &TaskView{Title: "Fix it", Status: "done", Base: "main", FilesChanged: 3}},
		{ID: "T2", Status: "failed", UpdatedAt: at(1), Task: &TaskView{Title: "Try it", Status: "failed", Why: "checks fail\nmuch"}},
		{ID: "T3", Status: "running", UpdatedAt: at(1)},
		{ID: "old", Workflow: "nightly", Status: "completed", UpdatedAt: at(-1)},
		{ID: "r1", Workflow: "ship", Status: "completed", UpdatedAt: at(5)},
	}
	_ = g.Digest(runs, since, at(8)) // an earlier digest leaves nothing behind
	d := g.Digest(runs, since, at(8))
	var got []string
	for _, l := range d.Lines {
		got = append(got, fmt.Sprintf("%s %s %d: %s", l.Kind, l.Page, l.Seq, l.Text))
	}
	want := []string{
		"failed #/agents/bob/history/107 107: bob failed too often and gave up",
		"failed #/tasks/T2 0: T2 Try it failed: checks fail",
		"done #/runs/r1 109: ship r1 is done",
		"done #/tasks/T1 0: T1 Fix it landed on main, 3 files changed",
		"answered #/inbox 0: 1 question was answered by a rule or a saved answer",
		"answered #/runs/r1/notes 109: ann approved notes of r1",
		"answered #/runs/T7/approve 110: ann rejected T7",
		"answered #/inbox/q1 111: coder asked: run make; answered by ann: yes",
		"answered #/inbox/q2 112: coder asked: run make; answered by no person in time, so by the default: no",
		"worked #/agents/ada/output/ada-2 102: ada finished 2 sessions",
		"worked #/agents/eve/output/eve-1 104: eve finished 2 sessions, 1 of them failed",
		"worked #/agents/joe/output/joe-1 105: a session of joe failed",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if d.CostUSD != 1.5 || d.Tokens != 10 || d.Landed != 1 || d.Files != 3 {
		t.Errorf("%+v", d)
	}
	if none := (DigestOf{}).Digest(nil, since, at(8)); len(none.Lines) != 0 || none.Lines == nil {
		t.Errorf("%+v", none)
	}
}

// A digest stays short, and says what it leaves out.
func TestDigestIsShort(t *testing.T) {
	var g DigestOf
	now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	for n := range 5000 {
		q := question.Question{
			ID: fmt.Sprint("q", n), Agent: "a", What: strings.Repeat("é", 900), State: question.Answered,
			By: "human/ann", Text: strings.Repeat("x", 900),
		}
		g.Add(change.Change{
			Machine: "question", Entity: "question/" + q.ID, At: now,
			Body: &question.Body{Question: &q},
		}, uint64(n))
	}
	d := g.Digest(nil, now, now)
	if len(d.Lines) != digestLines || d.More != 5000-digestLines || len(d.Lines[0].Text) > 3*digestText {
		t.Errorf("%d lines, %d more, the first has %d bytes", len(d.Lines), d.More, len(d.Lines[0].Text))
	}
}
