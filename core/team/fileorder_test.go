package team

import (
	"errors"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// confined are ada, an agent in a sandbox whose folder contains eve's, and bob, who has no sandbox.
func confined() map[string]Settings {
	return map[string]Settings{"ada": quiet, "bob": quiet, "eve": quiet}
}

// written is what a program writes into the file of an agent at a time, signed by a person.
func written(c *crewWorld, agent, word string, wrote time.Time) control.FileRead {
	f := c.Agents[agent].Control.File(false)
	in := control.FileRead{
		Desired: word, Current: f.Current, By: "human", Note: "by file", Stamp: f.Stamp.Add(time.Second), Ident: word,
		Wrote: wrote,
	}
	if agent != "bob" {
		in.Writers = []string{"ada"}
	}
	return in
}

// SPEC X10, orders by file: an order for more work that was written while a session of a sandboxed agent ran is a question, also if
// the session has ended before the file is looked at. Its twins order as before: before a session, after it, a pause, and an agent
// without a sandbox.
func TestOrdersByFileAreAsked(t *testing.T) {
	for _, test := range []struct {
		name, agent, word string
		when              func(c *crewWorld, s *Session) time.Time
		ended, asked      bool
	}{
		{name: "during the session", agent: "ada", word: "continuous", when: during, asked: true},
		{name: "cleanup", agent: "ada", word: "run_cleanup", when: during, asked: true},
		{name: "one more", agent: "ada", word: "run_once", when: during, asked: true},
		{name: "seen after its end", agent: "ada", word: "continuous", when: during, ended: true, asked: true},
		{name: "pause", agent: "ada", word: "pause", when: during},
		{
			name: "before the session", agent: "ada", word: "continuous",
			when: func(_ *crewWorld, s *Session) time.Time { return s.OpenedAt.Add(-time.Second) },
		},
		{
			name: "after its end", agent: "ada", word: "continuous",
			when: func(c *crewWorld, _ *Session) time.Time { return c.at.Add(time.Minute) }, ended: true,
		},
		{name: "without a sandbox", agent: "bob", word: "continuous", when: during},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCrew(t, Limits{}, confined())
			c.wants(test.agent, "run_once")
			c.starts(test.agent)
			s := *c.Agents[test.agent].Session
			in := written(c, test.agent, test.word, test.when(c, &s))
			if test.ended {
				c.ends(test.agent, control.OK)
				in.Current = control.WordPause
				in.Stamp = c.Agents[test.agent].Control.Stamp.Add(time.Second)
			}
			before := c.Agents[test.agent].Control.Desired
			c.must(test.agent, in)
			open := c.Questions.Open(test.agent)
			switch now := c.Agents[test.agent].Control.Desired; {
			case !test.asked && (len(open) > 0 || now.State != test.word):
				t.Errorf("it is no order: %+v, %d questions", now, len(open))
			case test.asked && (now != before || len(open) != 1 || open[0].Order != test.word || open[0].Session != s.ID):
				t.Errorf("it is no question: %+v, %+v", now, open)
			}
		})
	}
}

func during(c *crewWorld, _ *Session) time.Time { return c.at }

// SPEC X10, orders by file: yes is the person's order, no changes nothing, and the question outlives the session. No agent answers
// it, and the same order is asked about once.
func TestAnswersToOrdersByFile(t *testing.T) {
	ask := func(t *testing.T) (*crewWorld, *question.Question) {
		c := newCrew(t, Limits{}, confined())
		c.wants("ada", "run_once")
		c.starts("ada")
		for range 1000 {
			c.must("ada", written(c, "ada", "continuous", c.at))
		}
		c.ends("ada", control.OK)
		open := c.Questions.Open("ada")
		if len(open) != 1 {
			t.Fatalf("%d questions", len(open))
		}
		return c, open[0]
	}
	t.Run("yes", func(t *testing.T) {
		c, q := ask(t)
		c.must("", question.Answer{ID: q.ID, Allow: true})
		c.says("ada", control.Continuous, "continuous")
		if is := c.Questions.Questions[q.ID]; is.State != question.Delivered || c.Agents["ada"].Control.Desired.By != "human" {
			t.Errorf("%+v", is)
		}
	})
	t.Run("no", func(t *testing.T) {
		c, q := ask(t)
		c.must("", question.Answer{ID: q.ID})
		c.says("ada", control.Resting, "pause")
		if is := c.Questions.Questions[q.ID]; is.State != question.Delivered || is.Allow {
			t.Errorf("%+v", is)
		}
	})
	t.Run("an agent", func(t *testing.T) {
		c, q := ask(t)
		_, err := c.Decide(Event{
			At: machinetest.Noon, Actor: change.Actor{Kind: "agent", ID: "bob"},
			What: question.Answer{ID: q.ID, Allow: true},
		})
		var refused *table.Refusal
		if !errors.As(err, &refused) || refused.Row != "X10" {
			t.Errorf("%v", err)
		}
	})
	t.Run("a newer order", func(t *testing.T) {
		c, q := ask(t)
		c.wants("ada", "run_cleanup")
		if is := c.Questions.Questions[q.ID]; is.State != question.Withdrawn {
			t.Errorf("%+v", is)
		}
	})
	t.Run("the program takes it back", func(t *testing.T) {
		c, q := ask(t)
		c.must("ada", question.TakeBack{Session: q.Session, Ask: q.Ask, Why: "never mind"})
		if is := c.Questions.Questions[q.ID]; is.State != question.Open {
			t.Errorf("%+v", is)
		}
	})
}

// SPEC X10: a file that a session of another agent can have written lifts no pause of an agent, also with setBy human. The twins: the
// same write before and after that session, a pause, and the file of an agent that the session cannot write.
func TestOtherAgentsLiftNoPause(t *testing.T) {
	for _, test := range []struct {
		name, agent, word string
		when              func(c *crewWorld, s *Session) time.Time
		ended, asked      bool
	}{
		{name: "during the session", agent: "eve", word: "continuous", when: during, asked: true},
		{name: "once", agent: "eve", word: "run_once", when: during, asked: true},
		{name: "cleanup", agent: "eve", word: "run_cleanup", when: during, asked: true},
		{name: "seen after its end", agent: "eve", word: "continuous", when: during, ended: true, asked: true},
		{name: "pause", agent: "eve", word: "pause", when: during},
		{
			name: "before the session", agent: "eve", word: "continuous",
			when: func(_ *crewWorld, s *Session) time.Time { return s.OpenedAt.Add(-time.Second) },
		},
		{
			name: "after its end", agent: "eve", word: "continuous",
			when: func(c *crewWorld, _ *Session) time.Time { return c.at.Add(time.Minute) }, ended: true,
		},
		{name: "out of its reach", agent: "bob", word: "continuous", when: during},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCrew(t, Limits{}, confined())
			c.must(test.agent, written(c, test.agent, "pause", c.at)) // a person pauses it by file
			c.wants("ada", "run_once")
			c.starts("ada")
			s := *c.Agents["ada"].Session
			in := written(c, test.agent, test.word, test.when(c, &s))
			if test.ended {
				c.ends("ada", control.OK)
			}
			before := c.Agents[test.agent].Control.Desired
			for range 3 {
				c.must(test.agent, in)
			}
			open := c.Questions.Open(test.agent)
			switch now := c.Agents[test.agent].Control.Desired; {
			case !test.asked && (len(open) > 0 || now.State != test.word):
				t.Errorf("it is no order: %+v, %d questions", now, len(open))
			case test.asked && (now != before || len(open) != 1 || open[0].Order != test.word || open[0].Session != s.ID):
				t.Errorf("it is no question: %+v, %+v", now, open)
			}
		})
	}
}

// One session that writes the files of two agents causes a question about each.
func TestOrdersInTwoFilesAreTwoQuestions(t *testing.T) {
	c := newCrew(t, Limits{}, confined())
	c.wants("ada", "run_once")
	c.starts("ada")
	for _, name := range []string{"bob", "eve"} {
		in := written(c, name, "continuous", c.at)
		in.Writers = []string{"ada"}
		c.must(name, in)
		if open := c.Questions.Open(name); len(open) != 1 {
			t.Errorf("%s: %d questions", name, len(open))
		}
	}
}
