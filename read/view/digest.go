package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Digest is what happened since a person looked last, in a few lines.
type Digest struct {
	Since time.Time    `json:"since"`
	Until time.Time    `json:"until"`
	Lines []DigestLine `json:"lines" doc:"What failed first, then what finished, then what was answered. Empty: nothing happened"`
	More  int          `json:"more,omitempty" doc:"Lines that are left out"`

	CostUSD float64 `json:"cost_usd" doc:"As reported since then"`
	Tokens  int64   `json:"tokens" doc:"As reported since then"`
	Files   int     `json:"files_changed" doc:"Of the tasks that landed"`
	Landed  int     `json:"landed" doc:"Tasks that landed"`
	Cut     bool    `json:"cut,omitempty" doc:"The journal has more changes since then than are read: answers, sessions and cost are those of the newest ones"`

	First bool `json:"first,omitempty" doc:"Nothing was marked as seen yet: it begins a day ago"`
}

// DigestLine is one thing that happened.
type DigestLine struct {
	Kind string    `json:"kind" enum:"failed,done,answered,worked"`
	At   time.Time `json:"at"`
	Text string    `json:"text" doc:"With words of agents in it; untrusted"`
	Of   string    `json:"of,omitempty" doc:"The run, the agent or the question"`
	Page string    `json:"page" doc:"The part of Mission Control's address that opens it, as in #/tasks/T3"`
	Seq  uint64    `json:"seq,omitempty" doc:"The change of the journal; with ?at= after page it shows everything as it was then"`
}

const (
	digestLines = 100 // more are not a digest; the page and the command line show twelve at first
	digestText  = 160 // bytes of an agent's words in a line
)

// DigestOf composes digests. Changes are added in their order; a digest can be made after each.
type DigestOf struct {
	d       Digest
	entity  map[string]uint64 // the last change of each run
	lines   []DigestLine
	worked  map[string]*workedOf
	byRules int
}

type workedOf struct {
	n, failed int
	line      DigestLine
}

// Add takes in one change.
func (g *DigestOf) Add(ch change.Change, seq uint64) {
	name := strings.TrimPrefix(ch.Entity, ch.Machine+"/")
	if id, of, is := strings.Cut(ch.Entity, "/"); is && id == "run" {
		if g.entity == nil {
			g.entity = map[string]uint64{}
		}
		run, step, _ := strings.Cut(of, "/")
		g.entity[run] = seq
		if ch.Actor.Kind == "human" && (ch.Trigger == string(workflow.Approved) || ch.Trigger == string(workflow.Rejected)) {
			what := step + " of " + run
			if step == "approve" { // of a task, and of many workflows: the word is said already
				what = run
			}
			words := fmt.Sprintf("%s %s %s", cmp.Or(ch.Actor.ID, "a person"), ch.Trigger, what)
			if body := change.As[workflow.Body](ch.Body); body != nil && body.Step != nil && body.Step.Value.Answer.ByFile {
				words = what + " was " + ch.Trigger + " by file"
			}
			g.line("answered", run, ch.At, seq, PageLink("runs", run, step), "%s", words)
		}
	}
	switch body := ch.Body.(type) {
	case *team.Used:
		g.d.CostUSD += body.Usage.CostUSD
		g.d.Tokens += body.Usage.InputTokens + body.Usage.OutputTokens
	case *control.Body:
		if gaveUp := body.Value.GaveUp; !gaveUp.IsZero() && gaveUp.Equal(ch.At) {
			g.line("failed", name, ch.At, seq, PageLink("agents", name, "history", fmt.Sprint(seq)), "%s failed too often and gave up", name)
		}
	case *team.Session:
		if body.Phase != session.None || body.For != team.ForControl || body.Outcome != control.OK && body.Outcome != control.Failed {
			return
		}
		if g.worked == nil {
			g.worked = map[string]*workedOf{}
		}
		w := cmp.Or(g.worked[name], &workedOf{})
		if w.n++; body.Outcome == control.Failed {
			w.failed++
		}
		w.line = DigestLine{Kind: "worked", Of: name, At: ch.At, Page: PageLink("agents", name, "output", body.ID), Seq: seq}
		g.worked[name] = w
	case *question.Body:
		if body.Question != nil {
			g.answered(body.Question, ch.At, seq)
		}
	}
}

func (g *DigestOf) answered(q *question.Question, at time.Time, seq uint64) {
	if q.State != question.Answered {
		return
	}
	var who, how string
	said := q.Text
	switch by, id, _ := strings.Cut(q.By, "/"); by {
	case "human":
		who = cmp.Or(id, "a person")
	case "time":
		who = "no person in time, so by the default"
	default:
		g.byRules++
		return
	}
	switch {
	case q.Kind == question.Permission && q.Allow:
		how = "yes"
	case q.Kind == question.Permission:
		how = "no"
	default:
		how = cmp.Or(q.Option, said)
	}
	g.line("answered", q.ID, at, seq, PageLink("inbox", q.ID), "%s asked: %s; answered by %s: %s", q.Agent, digestWords(q.What), who,
		digestWords(how))
}

func (g *DigestOf) line(kind, of string, at time.Time, seq uint64, page, format string, args ...any) {
	g.lines = append(g.lines, DigestLine{Kind: kind, Of: of, At: at, Text: fmt.Sprintf(format, args...), Page: page, Seq: seq})
	if len(g.lines) > 100*digestLines { // the oldest are left out
		g.lines, g.d.More = g.lines[digestLines:], g.d.More+digestLines
	}
}

// digestWords is the first line of an agent's words.
func digestWords(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return clip.Text(text, digestText)
}

// runs takes in the runs as they are now: those that ended since then are lines.
func (g *DigestOf) runs(all []RunView, since, until time.Time) {
	for i := range all {
		r := &all[i]
		if r.UpdatedAt.Before(since) || r.UpdatedAt.After(until) {
			continue
		}
		title, page := r.Workflow+" "+r.ID, PageLink("runs", r.ID)
		if r.Task != nil {
			title, page = r.ID+" "+digestWords(r.Task.Title), PageLink("tasks", r.ID)
		}
		seq := g.entity[r.ID]
		switch {
		case r.Task != nil && r.Task.Status == "done" && r.Task.FilesChanged > 0:
			g.d.Landed, g.d.Files = g.d.Landed+1, g.d.Files+r.Task.FilesChanged
			g.line("done", r.ID, r.UpdatedAt, seq, page, "%s landed on %s, %s changed", title, r.Task.Base, files(r.Task.FilesChanged))
		case r.Task != nil && r.Task.Status == "dropped", r.Status == "cancelled":
			g.line("done", r.ID, r.UpdatedAt, seq, page, "%s was dropped", title)
		case r.Status == "completed":
			g.line("done", r.ID, r.UpdatedAt, seq, page, "%s is done", title)
		case r.Status == "failed":
			why := r.Why
			if r.Task != nil {
				why = cmp.Or(r.Task.Why, why)
			}
			g.line("failed", r.ID, r.UpdatedAt, seq, page, "%s failed%s", title, note(digestWords(why)))
		}
	}
}

func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

func note(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// Digest returns the digest with the runs as they are now, the most important lines first.
func (g DigestOf) Digest(runs []RunView, since, until time.Time) Digest {
	g.lines = slices.Clip(g.lines) // those of the runs are not kept
	g.runs(runs, since, until)
	d := g.d
	d.Since, d.Until, d.Lines = since, until, []DigestLine{}
	order := map[string]int{"failed": 0, "done": 1, "answered": 2, "worked": 3}
	all := slices.Clone(g.lines)
	for _, name := range slices.Sorted(maps.Keys(g.worked)) {
		w := g.worked[name]
		line := w.line
		switch {
		case w.failed == 1 && w.n == 1:
			line.Text = "a session of " + name + " failed"
		case w.n == 1:
			line.Text = name + " finished a session"
		case w.failed > 0:
			line.Text = fmt.Sprintf("%s finished %d sessions, %d of them failed", name, w.n, w.failed)
		default:
			line.Text = fmt.Sprintf("%s finished %d sessions", name, w.n)
		}
		all = append(all, line)
	}
	if g.byRules > 0 {
		text := fmt.Sprintf("%d questions were answered by rules and saved answers", g.byRules)
		if g.byRules == 1 {
			text = "1 question was answered by a rule or a saved answer"
		}
		all = append(all, DigestLine{Kind: "answered", At: until, Text: text, Page: PageLink("inbox")})
	}
	slices.SortStableFunc(all, func(a, b DigestLine) int {
		return cmp.Or(cmp.Compare(order[a.Kind], order[b.Kind]), b.At.Compare(a.At))
	})
	d.More += max(0, len(all)-digestLines)
	d.Lines = append(d.Lines, all[:min(len(all), digestLines)]...)
	return d
}
