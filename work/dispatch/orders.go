package dispatch

import (
	"cmp"
	"os"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/rank"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/process/claudehook"
)

// Orders decides on orders of people and programs to dispatch folders, and writes them. A folder is its
// own journal, so an order takes the folder's lock and does not use the loop.
type Orders struct {
	conf *config.Config
	home string // the user's home, which may describe agents; empty: only the project's count
}

// NewOrders returns the orders under a configuration. conf.Dir is the repository; a configuration without
// agents is the one of a repository without fairlead.yaml.
func NewOrders(conf *config.Config) Orders {
	home, _ := os.UserHomeDir() // on an error only the project's agents are found
	return Orders{conf, home}
}

// Target is the dispatch of an order. Name is the one under which people know it.
type Target struct {
	Name string
	dispatchfolder.Found
}

// MayOrder refuses an order from within the agent program that carries out the dispatch: an agent may not
// lift its own restrictions (X10). within reports whether the caller is a process of an agent program.
func (f Target) MayOrder(event string, within func() bool) error {
	if f.Session.Host != dispatch.Claude || !within() {
		return nil
	}
	return &table.Refusal{
		Subject: f.Name, Event: event, State: "asked from within the agent program", Row: "X10",
		Reason: "an agent may not lift its own restrictions: the person types /" + claudehook.CommandName +
			" in that program, or gives the order in another terminal",
	}
}

// DispatchInput gives a dispatch an input of the user (D2). The agent whose description fits takes over;
// while a conversation is open, the input waits. The result is the state after that.
func (o Orders) DispatchInput(by change.Actor, f Target, text string) (dispatch.Dispatch, error) {
	if err := f.reportedBy("input", "D2", dispatch.NoHost, dispatch.Fairlead); err != nil {
		return dispatch.Dispatch{}, err
	}
	return f.do(by,
		dispatch.UserInput{
			Text: text, Named: policy.NamedPaths(text, dispatchfolder.Exists(o.conf.Dir, o.home)),
			Match: dispatchfolder.MatchOf(o.RankDispatch(f.Session, text)),
		})
}

// DispatchReport records what happened in a dispatch that neither Claude Code nor Fairlead carries out
// (D3, D7).
func (o Orders) DispatchReport(by change.Actor, f Target, event string, what dispatch.Input) error {
	if err := f.reportedBy(event, "D3", dispatch.NoHost); err != nil {
		return err
	}
	_, err := f.do(by, what)
	return err
}

// DispatchTaskDone ends the task that began last (D4, D5).
func (o Orders) DispatchTaskDone(by change.Actor, f Target, ok bool, result string) error {
	open := f.Session.Open
	if open == nil || len(open.Tasks) == 0 {
		return &table.Refusal{Subject: f.Name, Event: "done", State: string(f.Session.Phase), Row: "D4", Reason: "no agent has a task"}
	}
	task := open.Tasks[len(open.Tasks)-1]
	return o.DispatchReport(by, f, "done", dispatch.TaskEnded{Task: task.ID, Round: task.Round, OK: ok, Result: result})
}

// EndDispatch ends a dispatch (D10).
func (o Orders) EndDispatch(by change.Actor, f Target, note string) error {
	_, err := f.do(by, dispatch.End{Why: note})
	return err
}

// RankDispatch compares a text with the descriptions of a dispatch, with the threshold of fairlead.yaml.
func (o Orders) RankDispatch(s dispatch.Dispatch, text string) rank.Ranking {
	return dispatchfolder.Best(s, text).Over(o.conf.Dispatch.Threshold)
}

// JudgeDispatch judges a tool call in a dispatch, which may be one of NewDispatch. state is MAIN, DESK,
// an agent's name, or empty for MAIN. delegate is the agent that fits best if MAIN may not do it itself.
func (o Orders) JudgeDispatch(f Target, state string, call policy.Call) (verdict policy.Verdict, delegate string) {
	if f.Session.Phase == dispatch.Closed {
		return policy.Verdict{Allow: true, Reason: "the session is closed, so nothing is enforced", Row: "D10"}, ""
	}
	main := state == "" || state == dispatch.Main || state == dispatch.Desk
	verdict = dispatchfolder.JudgeAs(f.Session, f.Folder, o.conf.Dir, main, call)
	if verdict.Allow {
		verdict = o.narrowed(verdict, f, state, main, call)
	}
	if !verdict.Allow && verdict.Code == policy.DeniedMain {
		delegate = o.RankDispatch(f.Session, verdict.Capability).Best
	}
	return verdict, delegate
}

// narrowed limits an allowed call to the bounds that fairlead.yaml sets for the agent in this state.
func (o Orders) narrowed(verdict policy.Verdict, f Target, state string, main bool, call policy.Call) policy.Verdict {
	if f.Folder != nil && f.Session.Host != dispatch.Fairlead {
		return verdict
	}
	if main {
		state = f.Session.Lead
	}
	agent, ok := o.conf.Agent(state)
	if !ok {
		return verdict
	}
	call.Dir = cmp.Or(call.Dir, agent.Workspace)
	return dispatchfolder.Narrowed(verdict, agent.Permissions.Bounds(), f.Session, f.Folder, agent.Workspace, main, call, nil)
}

// reportedBy refuses a report that only the dispatch's host may make: the agent program by its hooks,
// or the daemon for its agents.
func (f Target) reportedBy(event, row string, hosts ...dispatch.Host) error {
	if slices.Contains(hosts, f.Session.Host) {
		return nil
	}
	reason := "Claude Code carries out this session, and its hooks report what happens; give the order there"
	if f.Session.Host == dispatch.Fairlead {
		reason = "agents of fairlead.yaml carry out this session, and their sessions report what happens; give it an input"
	}
	return &table.Refusal{Subject: f.Name, Event: event, State: string(f.Session.Phase), Row: row, Reason: reason}
}

func (f Target) do(by change.Actor, in dispatch.Input) (dispatch.Dispatch, error) {
	_, is, err := f.Folder.Do(time.Now(), by, in)
	return is, err
}
