package team

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/dispatch"
)

// dispatchWorld is a dispatch folder beside a team. Writers to the folder decide there, and the
// team receives the folder's lines.
type dispatchWorld struct {
	*crewWorld
	name string
	is   dispatch.Dispatch
	end  int64
}

func newWard(c *crewWorld, setup dispatch.Setup) *dispatchWorld {
	w := &dispatchWorld{crewWorld: c, name: "20261121_120000"}
	setup.Path = "/repo/.claude/agent-state-machine/" + w.name
	w.tell(dispatch.Start{Setup: setup})
	return w
}

func (w *dispatchWorld) tell(in dispatch.Input) {
	w.t.Helper()
	changes, err := w.is.Decide(w.at, in)
	if err != nil {
		w.t.Fatalf("%T: %v", in, err)
	}
	seen := DispatchSeen{Name: w.name, Path: w.is.Path, From: w.end}
	for _, ch := range changes {
		w.is.Apply(ch)
		w.end += 100
		ch.Actor = change.Actor{Kind: "human", ID: "anna"}
		seen.Lines = append(seen.Lines, DispatchEntry{End: w.end, Change: ch})
	}
	seen.To = w.end
	w.must("", seen)
}

// session returns the session that works for the folder.
func (w *dispatchWorld) session(agent string) *Session {
	w.t.Helper()
	s := w.Agents[agent].Session
	if !s.servesDispatch() {
		w.t.Fatalf("%s has no session for the folder: %+v", agent, s)
	}
	return s
}

// runs lets the session of an agent begin and end, and returns the result for the folder.
func (w *dispatchWorld) runs(agent string, how control.Outcome) Action {
	w.t.Helper()
	s := w.session(agent)
	if ok, why := w.MayStart(agent, s.ID, w.at); !ok {
		w.t.Fatalf("%s may not start: %s", s.ID, why)
	}
	w.must(agent, SessionStarted{Session: s.ID, PID: 1})
	w.must(agent, SessionEnded{Session: s.ID, Outcome: how})
	actions := w.DispatchActions(w.name, w.at)
	if len(actions) != 1 || actions[0].Do != TellFolder || actions[0].End.Session != s.ID {
		w.t.Fatalf("results for the folder: %+v", actions)
	}
	return actions[0]
}

func hosted(mode dispatch.Mode, lead string) dispatch.Setup {
	return dispatch.Setup{
		Mode: mode, Host: dispatch.Fairlead, Lead: lead,
		Agents: []dispatch.Description{{Name: "builder", Text: "builds"}, {Name: "critic", Text: "reads"}},
	}
}

// D3, D4, D7: with an agent of the team in its slot, the session's answer is reported once, and no
// session starts for work that has ended.
func TestFolderHosted(t *testing.T) {
	c := newCrew(t, Limits{}, map[string]Settings{"builder": quiet, "main": quiet})
	w := newWard(c, hosted(dispatch.Orchestrator, "main"))
	w.tell(dispatch.UserInput{Text: "build it", Match: &dispatch.Match{Agent: "builder"}})
	action := w.runs("builder", control.OK)
	work, _ := dispatch.ActionOf(action.Work)
	w.tell(dispatch.TaskEnded{Task: work.Task, Round: work.Round, OK: true, Result: "built"})
	if actions := w.DispatchActions(w.name, w.at); len(actions) != 1 || actions[0].Do != AnswerFolder {
		t.Fatalf("the answer is %+v", actions)
	}
	answer, _ := w.Dispatches[w.name].State.Answer()
	w.tell(answer)
	if w.is.Phase != dispatch.Ready || len(w.DispatchActions(w.name, w.at)) > 0 || w.Agents["builder"].Session != nil {
		t.Fatalf("the conversation is answered: %+v", w.is.Now)
	}

	w.tell(dispatch.UserInput{Text: "hello"}) // no agent fits, so MAIN gets the input
	action = w.runs("main", control.OK)
	work, _ = dispatch.ActionOf(action.Work)
	w.tell(dispatch.MainEnded{Round: work.Round, OK: true, Result: "hello yourself"})
	if w.is.Open != nil {
		t.Fatalf("the conversation is answered: %+v", w.is.Now)
	}
	if again := New(identity); true {
		for _, ch := range c.journal {
			again.Apply(ch)
		}
		if len(again.Dispatches) != 1 || again.Dispatches[w.name].State.Made != 2 || again.Dispatches[w.name].Read != w.end {
			t.Fatalf("the replayed team differs: %+v", again.Dispatches[w.name])
		}
	}
}

// J1, X8: an agent has one slot for all purposes, and a hold keeps the place in the queue.
func TestFolderWaits(t *testing.T) {
	c := newCrew(t, Limits{}, map[string]Settings{"builder": quiet})
	c.must("builder", control.Commanded{Desired: control.WordRunOnce, By: "human"})
	w := newWard(c, hosted(dispatch.Orchestrator, ""))
	w.tell(dispatch.UserInput{Text: "build it", Match: &dispatch.Match{Agent: "builder"}})
	key := w.is.Due()[0].Key()
	if why := w.DispatchWaits(w.name, key, w.at); !strings.Contains(why, "behind control") {
		t.Fatalf("it waits for the slot: %q", why)
	}
	c.must("", HoldAsked{})
	s := c.Agents["builder"].Session
	c.must("builder", SessionStarted{Session: s.ID, PID: 1})
	c.must("builder", SessionEnded{Session: s.ID, Outcome: control.OK})
	if c.Agents["builder"].Session != nil {
		t.Fatal("a session begins while the team is held")
	}
	c.must("", ReleaseAsked{})
	w.runs("builder", control.Failed)
}

// D10 while an agent works: its session is asked to end, and its result is not reported.
func TestFolderEnded(t *testing.T) {
	c := newCrew(t, Limits{}, map[string]Settings{"builder": quiet})
	w := newWard(c, hosted(dispatch.Orchestrator, ""))
	w.tell(dispatch.UserInput{Text: "build it", Match: &dispatch.Match{Agent: "builder"}})
	s := w.session("builder")
	c.must("builder", SessionStarted{Session: s.ID, PID: 1})
	w.tell(dispatch.End{Why: "enough"})
	if got := c.Agents["builder"].Session.Ending; got != dispatchOverWords {
		t.Fatalf("it is asked to end: %q", got)
	}
	c.must("builder", SessionEnded{Session: s.ID, Outcome: control.OK})
	if len(c.DispatchActions(w.name, c.at)) > 0 {
		t.Fatal("the result is still wanted")
	}
	c.must("", DispatchGone{Name: w.name})
	if !c.Dispatches[w.name].Gone {
		t.Fatal("it is gone")
	}
	c.must("", DispatchSeen{Name: w.name, Path: w.is.Path, From: w.end, To: w.end}) // the folder is back, unchanged
	if f := c.Dispatches[w.name]; f.Gone || f.Read != w.end {
		t.Fatalf("it is back: %+v", f)
	}
}

// TestFolderCannot checks that the folder gets a result if an agent cannot be started here or has
// reached a limit, so that the person does not wait.
func TestFolderCannot(t *testing.T) {
	c := newCrew(t, Limits{}, map[string]Settings{})
	w := newWard(c, hosted(dispatch.Orchestrator, ""))
	w.tell(dispatch.UserInput{Text: "read it", Match: &dispatch.Match{Agent: "critic"}})
	actions := c.DispatchActions(w.name, c.at)
	if len(actions) != 1 || actions[0].End.Outcome != control.CannotStart ||
		!strings.Contains(actions[0].End.Why, "not an agent of fairlead.yaml") {
		t.Fatalf("the agent cannot be started: %+v", actions)
	}

	spent := quiet
	spent.Limits.TokensPerDay = 10
	c = newCrew(t, Limits{}, map[string]Settings{"builder": spent})
	w = newWard(c, hosted(dispatch.Orchestrator, ""))
	w.tell(dispatch.UserInput{Text: "build it", Match: &dispatch.Match{Agent: "builder"}})
	s := w.session("builder")
	c.must("builder", SessionStarted{Session: s.ID, PID: 1})
	c.must("builder", SessionReported{Session: s.ID, Offset: 10, Usage: change.Usage{OutputTokens: 11}})
	if got := c.Agents["builder"].Session.Ending; !strings.Contains(got, "limit") {
		t.Fatalf("X9: it is asked to end: %q", got)
	}
	if actions := c.DispatchActions(w.name, c.at); len(actions) > 0 {
		t.Fatalf("the agent works, but the folder gets a failure: %+v", actions)
	}
	c.must("builder", SessionEnded{Session: s.ID, Outcome: control.Failed})
	if actions := c.DispatchActions(w.name, c.at); len(actions) != 1 || !strings.Contains(actions[0].End.Why, "limit") {
		t.Fatalf("the folder gets the limit once: %+v", actions)
	}
}

// TestFolderLeavesTheQueue checks that a request for a conversation that has ended leaves the queue
// at once, and not only when the slot is free.
func TestFolderLeavesTheQueue(t *testing.T) {
	c := newCrew(t, Limits{}, map[string]Settings{"builder": quiet})
	c.wants("builder", control.WordRunOnce)
	c.starts("builder")
	w := newWard(c, hosted(dispatch.Orchestrator, ""))
	w.tell(dispatch.UserInput{Text: "build it", Match: &dispatch.Match{Agent: "builder"}})
	if queue := c.Agents["builder"].Queue; len(queue) != 1 {
		t.Fatalf("it is in the queue: %+v", queue)
	}
	w.tell(dispatch.Interrupt{})
	if queue := c.Agents["builder"].Queue; len(queue) != 0 {
		t.Fatalf("it is still in the queue: %+v", queue)
	}
}

// J2: an agent that was disabled between the opening of its session and the start does not begin,
// and the folder gets the reason.
func TestFolderWithADisabledAgent(t *testing.T) {
	c := newCrew(t, Limits{}, map[string]Settings{"builder": quiet})
	w := newWard(c, hosted(dispatch.Orchestrator, ""))
	w.tell(dispatch.UserInput{Text: "build it", Match: &dispatch.Match{Agent: "builder"}})
	s := w.session("builder")
	c.must("", Configured{
		Agents: map[string]Settings{"builder": quiet}, Turns: map[string]channel.AgentSettings{"builder": {}},
		Channels: map[string]Channel{"yard": {Settings: channel.DefaultSettings(), Agents: []string{"builder"}}},
	})
	c.must("", channel.DisableAsked{Agent: "builder"})
	ok, why := c.MayStart("builder", s.ID, c.at)
	if ok || !strings.Contains(why, "disabled") {
		t.Fatalf("it may start: %v, %q", ok, why)
	}
	c.must("builder", SessionEnded{Session: s.ID, Outcome: control.Withdrawn, Why: why})
	actions := c.DispatchActions(w.name, c.at)
	if len(actions) != 1 || actions[0].End.Outcome != control.CannotStart || !strings.Contains(actions[0].End.Why, "disabled") {
		t.Fatalf("results for the folder: %+v", actions)
	}
}
