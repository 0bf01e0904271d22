package team

import (
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// coverage counts what Decide returned in the tests of this package.
var coverage = machinetest.NewCoverage()

func note(ch change.Change) {
	coverage.Row(ch.Row)
	if ch.Machine == "session" {
		coverage.Pair("", ch.From, ch.Trigger)
	}
}

// TestMain also fails if no test used some row of the tables.
func TestMain(m *testing.M) {
	rows := slices.Concat([]string{"X8", "C14", "E1", "E2", "E3", "J1", "X5", "X9"}, machinetest.Numbered("W", 15),
		machinetest.Numbered("D", 11))
	coverage.Main(m, rows, machinetest.Table{Rows: session.Table.Rows()})
}

// crewWorld is a team for tests that proceed step by step.
type crewWorld struct {
	*Team
	t       *testing.T
	at      time.Time
	journal []change.Change
}

// quiet is an agent without settings of its own.
var quiet = Settings{Driver: "script", Policy: control.Policy{FailuresMax: 5, BackoffFirst: time.Second, BackoffMax: time.Minute}}

func newCrew(t *testing.T, limits Limits, agents map[string]Settings) *crewWorld {
	c := &crewWorld{Team: New(identity), t: t, at: machinetest.Noon}
	c.must("", DaemonStarted{BootID: "boot"})
	c.must("", Configured{Limits: limits, Agents: agents})
	for _, name := range c.Names() {
		c.must(name, control.FileGone{})
		c.must(name, control.Started{})
	}
	return c
}

// try decides and applies an event a second later, and what follows from it.
func (c *crewWorld) try(agent string, what any) ([]change.Change, error) {
	return c.event(Event{Agent: agent, What: what})
}

func (c *crewWorld) event(ev Event) ([]change.Change, error) {
	c.at = c.at.Add(time.Second)
	ev.At, ev.Actor = c.at, change.Actor{Kind: "human", ID: "test"}
	var touched Touched
	all, err := c.apply(ev, &touched)
	for range 1000 {
		next, ok := c.Next(&touched, c.at)
		if !ok {
			return all, err
		}
		changes, refused := c.apply(next, &touched)
		if refused != nil || len(changes) == 0 {
			c.t.Fatalf("a following event is refused or has no effect: %T: %v", next.What, refused)
		}
		all = append(all, changes...)
	}
	c.t.Fatal("the following events do not end")
	return all, err
}

func (c *crewWorld) apply(ev Event, touched *Touched) ([]change.Change, error) {
	changes, err := c.Decide(ev)
	for _, ch := range changes {
		note(ch)
		touched.Note(ch)
		c.Apply(ch)
		c.journal = append(c.journal, ch)
	}
	return changes, err
}

func (c *crewWorld) must(agent string, what any) []change.Change {
	c.t.Helper()
	changes, err := c.try(agent, what)
	if err != nil {
		c.t.Fatalf("%T: %v", what, err)
	}
	return changes
}

func (c *crewWorld) wants(agent, desired string) []change.Change {
	c.t.Helper()
	return c.must(agent, control.Commanded{Desired: desired, By: "human", Note: "note"})
}

func (c *crewWorld) session(agent string) string {
	c.t.Helper()
	if c.Agents[agent].Session == nil {
		c.t.Fatalf("%s has no session", agent)
	}
	return c.Agents[agent].Session.ID
}

func (c *crewWorld) starts(agent string) string {
	c.t.Helper()
	id := c.session(agent)
	c.must(agent, SessionStarted{Session: id, PID: 1})
	return id
}

func (c *crewWorld) ends(agent string, how control.Outcome) []change.Change {
	c.t.Helper()
	return c.must(agent, SessionEnded{Session: c.session(agent), Outcome: how, Why: "so"})
}

// says compares an agent's state with the expected one.
func (c *crewWorld) says(agent string, state control.State, desired string) {
	c.t.Helper()
	if got := c.Agents[agent].Control; got.State != state || c.File(c.Agents[agent]).Desired != desired {
		c.t.Errorf("%s is %s, desired %s; want %s, desired %s", agent, got.State, c.File(c.Agents[agent]).Desired, state, desired)
	}
}

func two() map[string]Settings { return map[string]Settings{"ada": quiet, "bob": quiet} }
