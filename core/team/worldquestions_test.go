package team

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
)

// questionHappens makes an agent ask, or a person answer, or neither, and an agent report its
// status.
func (w *world) questionHappens(how uint64) {
	var sessions []*Session
	for _, name := range w.team.Names() {
		for _, s := range w.team.Agents[name].Sessions() {
			if s.Phase == session.Running {
				sessions = append(sessions, s)
			}
		}
	}
	if how%37 == 0 { // of a session that is over, or was not seen yet
		w.contacts(from(w.team.Names(), how), "gone-1", how)
	}
	kind := how % 12
	how >>= 8
	if len(sessions) > 0 && kind < 6 {
		s := from(sessions, how)
		w.ofSession(s, kind, how>>4)
		w.endedSessions()
		return
	}
	var all []*question.Question
	all = append(append(all, w.team.Questions.Open("")...), w.team.Questions.Undelivered("")...)
	if len(all) == 0 {
		return
	}
	q := from(all, how)
	switch kind {
	case 6, 7:
		if err := w.tell("",
			question.Answer{
				ID: q.ID, Allow: how>>8%2 == 0, Text: "so",
				Scope: from([]question.Scope{question.Once, question.Session, question.Always}, how>>16),
			}); err == nil &&
			q.State != question.Open {
			w.t.Fatalf("%s is %s, but was answered again", q.ID, q.State)
		}
	case 8:
		w.say("", question.Hand{ID: q.ID})
	case 9:
		w.at = w.at.Add(time.Hour)
		w.say("", question.Due{})
	case 10:
		for _, s := range w.team.Questions.List() {
			w.say("", question.Revoke{ID: s.ID})
			break
		}
	default:
		w.say("", question.TakeBack{Session: q.Session, Ask: q.Ask, Why: "it does not care"})
	}
	w.endedSessions()
}

// ofSession applies input of one session.
func (w *world) ofSession(s *Session, kind, how uint64) {
	agent := ""
	for _, name := range w.team.Names() {
		if w.team.Agents[name].Open(s.ID) != nil {
			agent = name
		}
	}
	denied := s.Denied
	switch kind {
	case 0, 1, 2:
		ask := question.Ask{Question: question.Question{
			Kind: question.Permission, Agent: agent, Session: s.ID, Ask: fmt.Sprint(how % 9), Tool: "Bash", Key: fmt.Sprint(how >> 4 % 5),
			Call:    "make",
			Options: []question.Option{{ID: "y", Kind: "allow_once"}, {ID: "n", Kind: "reject_once"}},
		}}
		if how>>8%4 == 0 {
			ask.Verdict = question.Verdict{Rule: "deny Bash(make)"}
		}
		was := w.team.Questions.Of(s.ID, ask.Question.Ask)
		w.say("", ask)
		is := w.team.Questions.Of(s.ID, ask.Question.Ask)
		now := w.team.Agents[agent].Open(s.ID)
		if more := now.Denied - denied; was != nil && more != 0 || was == nil && is.State == question.Answered && !is.Allow && more != 1 {
			w.t.Fatalf("%s was denied %d more times by %+v", s.ID, more, is)
		}
	case 3:
		w.say(agent, ConversationNamed{Session: s.ID, Conversed: Conversed{ID: fmt.Sprint("c", how%3), Model: "m1"}})
		if c := w.team.Agents[agent].Conversations[s.For]; c == nil || c.ID != fmt.Sprint("c", how%3) || c.Session != s.ID {
			w.t.Fatalf("%s: its conversation is %+v", s.ID, c)
		}
	case 4:
		if how>>4%2 == 0 {
			w.say(agent, StatusSaid{Session: s.ID, Text: fmt.Sprint("at ", how%4)})
			return
		}
		w.contacts(agent, s.ID, how)
	default:
		w.say(agent, LimitLifted{})
	}
}

// contacts reports a host, and checks that the agent's contacts tell it.
func (w *world) contacts(agent, session string, how uint64) {
	host, before := fmt.Sprint("h", how%3, ".example.org:443"), w.team.Agents[agent].Contacts
	w.say(agent, HostsContacted{Session: session, Hosts: []Contact{{Host: host, Reached: int(how >> 5 % 2), Refused: 1, In: 10}}})
	after := w.team.Agents[agent].Contacts
	if last := after[len(after)-1]; last.Host != host || sumRefused(after) != sumRefused(before)+1 {
		w.t.Fatalf("%s: its contacts were %+v and are %+v", session, before, after)
	}
}

func sumRefused(contacts []Contact) (sum int) {
	for _, c := range contacts {
		sum += c.Refused
	}
	return sum
}

// endedSessions checks that a session that has ended has no open question and no saved answer.
func (w *world) endedSessions() {
	open := map[string]bool{}
	for _, name := range w.team.Names() {
		for _, s := range w.team.Agents[name].Sessions() {
			open[s.ID] = true
		}
	}
	for _, q := range slices.Concat(w.team.Questions.Open(""), w.team.Questions.Undelivered("")) {
		if !open[q.Session] {
			w.t.Fatalf("%s of %s, which has ended, is %s", q.ID, q.Session, q.State)
		}
	}
	for _, s := range w.team.Questions.List() {
		if s.Session != "" && !open[s.Session] {
			w.t.Fatalf("%s is saved for %s, which has ended", s.ID, s.Session)
		}
	}
}
