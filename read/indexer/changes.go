package indexer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/read/search"
)

// passageOf is the text of a change, for people; empty: it says nothing.
func passageOf(seq uint64, ch *team.Change) search.Passage {
	p := search.Passage{Time: ch.At, At: int64(seq)} //nolint:gosec // a journal has no 2^63 changes
	_, name, _ := strings.Cut(ch.Entity, "/")
	p.Place = search.Place{Kind: search.History, Entity: team.AgentOf(ch.Entity), Agent: team.AgentOf(ch.Entity)}
	var parts []string
	say := func(texts ...string) {
		for _, t := range texts {
			if t = strings.TrimSpace(t); t != "" {
				parts = append(parts, t)
			}
		}
	}
	moved := func() {
		if ch.From != ch.To {
			say(fmt.Sprintf("%s: %s → %s (%s, by %s)", ch.Entity, orNone(ch.From), orNone(ch.To), strings.ReplaceAll(ch.Trigger, "_", " "),
				strings.Trim(ch.Actor.Kind+" "+ch.Actor.ID, " ")))
		}
	}
	switch body := &ch.Body; {
	case body.Turn != nil:
		t := body.Turn
		p.Place = search.Place{Kind: search.Channel, Entity: name, Agent: t.Agent}
		if post := t.Body.Post; post != nil {
			p.Agent = post.By
			say(post.By + ": " + t.Text)
		} else {
			say(t.Body.Say, t.Body.Warn)
		}
	case body.Presence != nil:
		pres := body.Presence
		p.Place = search.Place{Kind: search.Crew, Entity: name}
		switch {
		case pres.Words != nil:
			p.Entity, p.Agent = pres.Words.Speaker, pres.Words.Speaker
			say(pres.Words.Speaker + ": " + pres.Words.Text)
		case pres.Notice != nil:
			say(pres.Notice.Text)
		case pres.Doc != nil && pres.Doc.Identity != nil:
			say(pres.Doc.Identity.Name, pres.Doc.Identity.Soul)
		}
	case body.Question != nil:
		p.Place = search.Place{Kind: search.Question, Entity: name}
		if q := body.Question.Question; q != nil {
			p.Entity, p.Agent = q.ID, q.Agent
			say(fmt.Sprintf("%s, question %s, %s", q.Agent, q.ID, q.State), q.What, strings.TrimSpace(q.Tool+" "+q.Call), q.Why, q.Option,
				q.Text, q.By, q.Ended)
		} else if s := body.Question.Saved; s != nil {
			p.Entity, p.Agent = s.ID, s.Agent
			say(fmt.Sprintf("%s, saved answer %s", s.Agent, s.ID), strings.TrimSpace(s.Tool+" "+s.Call))
		}
	case body.Dispatch != nil:
		p.Place = search.Place{Kind: search.Dispatch, Entity: name}
		if d := body.Dispatch.Body; d != nil {
			if d.Conversation > 0 {
				p.Part = fmt.Sprintf("conv_%03d", d.Conversation)
			}
			sayDispatch(d, say)
		}
	case body.Run != nil:
		moved()
		sayRun(&p, ch, name, say)
	case body.Team != nil:
		p.Entity, p.Agent = "team", ""
		moved()
		say(body.Team.Hold.Note)
	case body.Control != nil:
		moved()
		if d := body.Control.Value.Desired; d.At.Equal(ch.At) { // otherwise it is that of an earlier change
			say(d.Note)
		}
		say(body.Control.Value.Limit)
	case body.Session != nil:
		if strings.HasPrefix(ch.Entity, "run/") { // of a step without an agent
			run, step, _ := strings.Cut(name, "/")
			p.Place = search.Place{Kind: search.Run, Entity: run, Part: step}
		}
		moved()
		saySession(body.Session, say)
	case body.Says != nil:
		say(body.Says.Text)
	case body.Limited != nil:
		moved()
		say(body.Limited.Why)
	case body.Tells != nil:
		for _, told := range body.Tells.Tells {
			if told.N == body.Tells.Last {
				say(told.By + ": " + told.Text)
			}
		}
	}
	p.Text = strings.Join(parts, "\n")
	return p
}

func orNone(state string) string {
	if state == "" {
		return "none"
	}
	return state
}

// saySession says everything once, although each change has the whole session.
func saySession(s *team.Session, say func(...string)) {
	say(s.ID)
	switch s.Phase {
	case session.Open:
		for _, told := range s.FirstTells {
			say(told.Text)
		}
	case session.Running:
	case session.None:
		say(s.Ending, s.Why)
		if s.Stop != nil {
			say(s.Stop.Reason, s.Stop.Detail)
		}
		say(s.DeniedWhat...)
	}
}

func sayRun(p *search.Passage, ch *team.Change, name string, say func(...string)) {
	run, step, _ := strings.Cut(name, "/")
	p.Place = search.Place{Kind: search.Run, Entity: run, Part: step}
	body := ch.Body.Run
	if h := body.Head; h != nil {
		say(h.Why, h.By)
	}
	if plan := body.Plan; plan != nil {
		say(plan.Name, plan.Description)
	}
	if s := body.Step; s != nil {
		say(s.Value.LastError, s.Value.Fault, s.Value.Ending)
		if s.Facts != nil {
			say(s.Facts.Logs...)
			say(s.Facts.Artifacts...)
			say(s.Facts.Denied...)
			for _, m := range s.Facts.Metrics {
				say(m.Name + " " + m.Value)
			}
		}
	}
}

func sayDispatch(d *dispatch.Body, say func(...string)) {
	for _, e := range d.Entries {
		say(strings.TrimLeft(e.Who+": "+e.Text, ": "), e.More)
	}
	if d.Summary != nil && !slices.ContainsFunc(d.Entries, func(e dispatch.Entry) bool { return e.Text == d.Summary.Text }) {
		say(d.Summary.Text)
	}
	if x := d.Denied; x != nil {
		say(x.By+" was denied "+x.Tool+" "+x.Call, x.Reason)
	}
}
