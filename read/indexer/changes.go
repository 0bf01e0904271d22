package indexer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/read/search"
)

// passageOf is the text of a change, for people; empty: it says nothing.
func passageOf(seq uint64, ch *change.Change) search.Passage {
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
	switch body := ch.Body.(type) {
	case *channel.Set:
		p.Place = search.Place{Kind: search.Channel, Entity: name, Agent: string(body.Agent)}
		if post := body.Body.Post; post != nil {
			p.Agent = post.By
			say(post.By + ": " + body.Text)
		} else {
			say(body.Body.Say, body.Body.Warn)
		}
	case *crew.Body:
		p.Place = search.Place{Kind: search.Crew, Entity: name}
		switch {
		case body.Words != nil:
			p.Entity, p.Agent = body.Words.Speaker, body.Words.Speaker
			say(body.Words.Speaker + ": " + body.Words.Text)
		case body.Notice != nil:
			say(body.Notice.Text)
		case body.Doc != nil && body.Doc.Identity != nil:
			say(body.Doc.Identity.Name, body.Doc.Identity.Soul)
		}
	case *question.Body:
		p.Place = search.Place{Kind: search.Question, Entity: name}
		if q := body.Question; q != nil {
			p.Entity, p.Agent = q.ID, q.Agent
			say(fmt.Sprintf("%s, question %s, %s", q.Agent, q.ID, q.State), q.What, strings.TrimSpace(q.Tool+" "+q.Call), q.Why, q.Option,
				q.Text, q.By, q.Ended)
		} else if s := body.Saved; s != nil {
			p.Entity, p.Agent = s.ID, s.Agent
			say(fmt.Sprintf("%s, saved answer %s", s.Agent, s.ID), strings.TrimSpace(s.Tool+" "+s.Call))
		}
	case *team.DispatchSet:
		p.Place = search.Place{Kind: search.Dispatch, Entity: name}
		if d := body.Body; d != nil {
			if d.Conversation > 0 {
				p.Part = fmt.Sprintf("conv_%03d", d.Conversation)
			}
			sayDispatch(d, say)
		}
	case *workflow.Body:
		moved()
		sayRun(&p, body, name, say)
	case *team.TeamSet:
		p.Entity, p.Agent = "team", ""
		moved()
		say(body.Hold.Note)
	case *control.Body:
		moved()
		if d := body.Value.Desired; d.At.Equal(ch.At) { // otherwise it is that of an earlier change
			say(d.Note)
		}
		say(body.Value.Limit)
	case *team.Session:
		if strings.HasPrefix(ch.Entity, "run/") { // of a step without an agent
			run, step, _ := strings.Cut(name, "/")
			p.Place = search.Place{Kind: search.Run, Entity: run, Part: step}
		}
		moved()
		saySession(body, say)
	case *team.Says:
		say(body.Text)
	case *team.Limited:
		moved()
		say(body.Why)
	case *team.TellsSet:
		for _, told := range body.Tells {
			if told.N == body.Last {
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

func sayRun(p *search.Passage, body *workflow.Body, name string, say func(...string)) {
	run, step, _ := strings.Cut(name, "/")
	p.Place = search.Place{Kind: search.Run, Entity: run, Part: step}
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
