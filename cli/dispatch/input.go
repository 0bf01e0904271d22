package dispatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
)

// Saying is Ordering for reports of work in a session. If an agent program or the daemon carries out
// the session, other reports are refused, because the one that works would not receive them.
func Saying(a *cli.App, path, event string, by ...dispatch.Host) (dispatchfolder.Found, error) {
	found, err := Ordering(a, path, event)
	over := found.Session.Phase == dispatch.Closed
	if err != nil || !over && slices.Contains(by, found.Session.Host) {
		return found, err
	}
	no := &table.Refusal{Subject: found.Folder.Name(), Event: event, State: string(found.Session.Phase)}
	switch {
	case over:
		no.Reason = "it is over; start another one: fairlead dispatch start"
	case found.Session.Host == dispatch.Fairlead:
		no.Reason = "agents of fairlead.yaml carry it out, and their sessions report what happens; give it an input, or end it: fairlead dispatch end"
	default:
		no.Reason = "Claude Code carries it out, and its hooks report what happens; give the order there, or end it: fairlead dispatch end"
	}
	return found, no
}

// moved is what `fairlead dispatch input --json` and similar commands print: the session's state.
type moved struct {
	Conversation string             `json:"conversation_id,omitempty"`
	State        string             `json:"state"`
	Workspace    string             `json:"workspace,omitempty"`
	Waiting      int                `json:"waiting,omitempty"` // waiting inputs, including this one
	Transitions  []string           `json:"transitions,omitempty"`
	Match        *dispatch.Match    `json:"match,omitempty"`
	Prompt       string             `json:"prompt,omitempty"` // for a delegation: the prompt for the agent
	Answer       string             `json:"answer,omitempty"` // with --wait
	Summary      string             `json:"summary,omitempty"`
	Files        []dispatch.File    `json:"files,omitempty"`
	Changes      []change.Change    `json:"-"`
	After        *dispatch.Dispatch `json:"-"` // the state afterwards
}

// SessionInput gives an input to a dispatch folder.
func SessionInput(ctx context.Context, a *cli.App, path, text string, wait, over bool) error {
	found, err := Saying(a, path, "input", dispatch.NoHost, dispatch.Fairlead)
	if err != nil {
		return err
	}
	in := dispatch.UserInput{Text: text, Named: policy.NamedPaths(text, dispatchfolder.Exists(a.Dir, "")), Over: over}
	// otherwise a model decides
	if found.Session.Mode != dispatch.Response && (found.Session.Ranker == "" || found.Session.Host != dispatch.Fairlead) {
		orders, err := Orders(a)
		if err != nil {
			return err
		}
		in.Match = dispatchfolder.MatchOf(orders.RankDispatch(found.Session, text))
	}
	from := historyEnd(found.Folder)
	done, err := TellSession(a, found, in)
	if err != nil {
		return inboxWords(found, err)
	}
	done.Match = in.Match
	if wait && done.Conversation != "" {
		return sessionWait(ctx, a, found, from, done)
	}
	return a.Show(done, func() error { return PrintMoved(a, done, found.Session) })
}

// historyEnd returns the end of a session's history.
func historyEnd(f *dispatchfolder.Folder) int64 {
	info, err := os.Stat(filepath.Join(f.Path(), "state.jsonl"))
	if err != nil {
		return 0 // then all of it is searched
	}
	return info.Size()
}

// inboxWords adds to a refusal in mode response where messages must be put.
func inboxWords(found dispatchfolder.Found, err error) error {
	if found.Session.Mode != dispatch.Response || cli.CodeOf(err) != cli.ExitRefused {
		return err
	}
	return fmt.Errorf("%w; put a text file into %s", err, filepath.Join(found.Folder.Path(), "inbox"))
}

// TellSession gives a session an input under the folder's lock, and returns its state afterwards.
func TellSession(a *cli.App, found dispatchfolder.Found, in dispatch.Input) (moved, error) {
	changes, is, err := found.Folder.Do(time.Now(), byHand, in)
	if err != nil {
		return moved{}, err
	}
	done := moved{State: is.State(), Waiting: len(is.Waiting), Changes: changes, After: &is}
	for _, ch := range changes {
		body := change.As[dispatch.Body](ch.Body)
		if body.Conversation != 0 && ch.Trigger != string(dispatch.InputWaits) {
			done.about(found.Folder, body.Conversation)
		}
		if arrow := arrowOf(ch); arrow != "" {
			done.Transitions = append(done.Transitions, arrow)
		}
		if s := body.Summary; s != nil {
			done.Summary, done.Files = s.Text, s.Files
		}
	}
	return done, nil
}

// about fills in which conversation it is.
func (m *moved) about(f *dispatchfolder.Folder, n int) {
	m.Conversation, m.Workspace = dispatch.ConversationID(n), f.Workspace(n)
}

// arrowOf is a transition as the seed shows it; empty: the state did not change.
func arrowOf(ch change.Change) string {
	if ch.From == "" || ch.From == ch.To {
		return ""
	}
	return dispatch.Arrow(ch.From, ch.To)
}

// PrintMoved prints an order and its result, as the seed shows it.
func PrintMoved(a *cli.App, done moved, was dispatch.Dispatch) error {
	for _, ch := range done.Changes {
		PrintMove(a, ch)
	}
	if len(done.Changes) == 0 {
		fmt.Fprintln(a.Out, "nothing changes: the session is in this state already")
	}
	is := done.After
	switch {
	case is.Host != dispatch.NoHost:
	case slices.ContainsFunc(done.Changes, func(ch change.Change) bool { return ch.Trigger == string(dispatch.InputWaits) }):
		fmt.Fprintln(a.Err,
			"`fairlead dispatch status` shows what is open; `fairlead dispatch respond TEXT` answers it, and begins the next one")
	case is.Phase == dispatch.Talking:
		fmt.Fprintln(a.Err,
			"MAIN has it; `fairlead dispatch respond TEXT` answers, `fairlead dispatch delegate AGENT TEXT` lets an agent do it")
	case is.Phase == dispatch.Working && was.State() != is.State():
		fmt.Fprintln(a.Err, "its files belong to "+cli.Plain(done.Workspace)+"; `fairlead dispatch done` reports that it is done")
	}
	return nil
}

// PrintMove prints one change; changes that people need not see print nothing.
func PrintMove(a *cli.App, ch change.Change) {
	body, event := change.As[dispatch.Body](ch.Body), dispatch.Event(ch.Trigger)
	n := fmt.Sprintf("[Conv: %03d]", body.Conversation)
	switch event {
	case dispatch.InputCame, dispatch.MessageTaken:
		fmt.Fprintf(a.Out, "[State: %s] %s\n", dispatch.Display(ch.From), n)
	case dispatch.InputWaits:
		fmt.Fprintf(a.Out, "it waits: %d in the queue behind %s\n", len(body.Now.Waiting), dispatch.ConversationID(body.Conversation))
	}
	if arrow := arrowOf(ch); arrow != "" {
		fmt.Fprintln(a.Out, a.Paint(cli.Bold, cli.Plain(arrow))+a.Paint(cli.Dim, "  # "+cli.Line(shownTrigger(body.Trigger), cli.ErrorWidth)))
	}
	switch event {
	case dispatch.Responded, dispatch.MessageDone:
		fmt.Fprintln(a.Out, a.Paint(cli.Dim, dispatch.ConversationID(body.Conversation)+" is closed"))
	case dispatch.Interrupted:
		fmt.Fprintln(a.Out, a.Paint(cli.Dim, dispatch.ConversationID(body.Conversation)+" is closed: interrupted"))
	case dispatch.HelpAsked:
		if arrowOf(ch) == "" {
			fmt.Fprintln(a.Out, cli.Plain(dispatch.Display(ch.To))+" delegates to another agent of its kind")
		}
	}
}

// shownTrigger is a transition's trigger, as the seed shows it: Matched: "write" + "Python".
func shownTrigger(trigger string) string {
	if terms, ok := strings.CutPrefix(trigger, "matched \""); ok {
		return "Matched: \"" + terms
	}
	if trigger == "" {
		return trigger
	}
	return strings.ToUpper(trigger[:1]) + trigger[1:]
}

// SessionDelegate delegates a task from MAIN to an agent.
func SessionDelegate(a *cli.App, path, agent, text, from string) error {
	found, err := Saying(a, path, "delegate", dispatch.NoHost)
	if err != nil {
		return err
	}
	agent = StateNamed(found.Session, agent)
	in := dispatch.Delegate{Agent: agent, Text: text, Trigger: "delegated by MAIN"}
	if from != "" {
		if in.By, err = taskOf(found.Session, from); err != nil {
			return err
		}
		in.Trigger = from + " needs help"
	}
	prompt := text
	if c := found.Session.Open; c != nil {
		prompt = dispatchfolder.DelegationPrompt(text, found.Folder.Workspace(c.N), found.Folder.DialoguePath(c.N))
		in.Params = fmt.Sprintf("- subagent_type: %s\n- description: %s\n- prompt: %s", agent, cli.Line(text, cli.SummaryWidth), prompt)
	}
	done, err := TellSession(a, found, in)
	if err != nil {
		return err
	}
	done.Prompt = prompt
	if a.JSON {
		return a.PrintJSON(done)
	}
	for _, ch := range done.Changes {
		PrintMove(a, ch)
	}
	_, err = fmt.Fprintln(a.Out, "\n"+cli.Plain(prompt))
	return err
}

// taskOf returns the task of an agent; the newest, if it has several.
func taskOf(is dispatch.Dispatch, agent string) (uint64, error) {
	if c := is.Open; c != nil {
		for _, task := range slices.Backward(c.Tasks) {
			if task.Agent == agent {
				return task.ID, nil
			}
		}
	}
	return 0, &cli.Coded{
		Code: cli.ExitRefused,
		Err:  fmt.Errorf("%s has no task; `fairlead dispatch status` shows the agents that have one", cli.Line(agent, cli.StepWidth)),
	}
}

// SessionDone reports that an agent's task is done or has failed.
func SessionDone(a *cli.App, path, agent, text string, failed bool) error {
	found, err := Saying(a, path, "task_ended", dispatch.NoHost)
	if err != nil {
		return err
	}
	c := found.Session.Open
	if c == nil || len(c.Tasks) == 0 {
		return &cli.Coded{
			Code: cli.ExitRefused,
			Err:  errors.New("no agent has a task; `fairlead dispatch respond TEXT` answers an input that MAIN has"),
		}
	}
	task := c.Tasks[len(c.Tasks)-1]
	if agent != "" {
		id, err := taskOf(found.Session, agent)
		if err != nil {
			return err
		}
		task, _ = c.Task(id)
	}
	done, err := TellSession(a, found, dispatch.TaskEnded{Conversation: c.N, Task: task.ID, Round: task.Round, OK: !failed, Result: text})
	if err != nil {
		return err
	}
	return a.Show(done, func() error { return PrintMoved(a, done, found.Session) })
}

// sessionLook is how often a command that waits for an answer checks the session's folder. The
// folder has the complete state, with a daemon and without.
const sessionLook = 30 * time.Millisecond

// sessionWait shows what happens to an input until it is answered. from is the position in the
// history at which it begins.
func sessionWait(ctx context.Context, a *cli.App, found dispatchfolder.Found, from int64, done moved) error {
	n := done.After.Made
	shown, failed := 0, false
	for {
		lines, next, err := found.Folder.Lines(from)
		if err != nil {
			return err
		}
		for _, l := range lines {
			ch, body := l.Change, change.As[dispatch.Body](l.Change.Body)
			if ch.Trigger == string(dispatch.EndAsked) {
				return &cli.Coded{
					Code: cli.ExitFailed,
					Err:  fmt.Errorf("the session was ended before %s was answered", dispatch.ConversationID(n)),
				}
			}
			if body.Conversation != n {
				continue
			}
			if arrow := arrowOf(ch); arrow != "" && shown > 0 {
				done.Transitions = append(done.Transitions, arrow)
			}
			failed = body.Trigger == "task failed" || failed && ch.Trigger != string(dispatch.RoundOver)
			if over := body.Summary; over != nil {
				return answered(a, found, done, ch, failed)
			}
			if !a.JSON {
				PrintMove(a, ch)
			}
			shown++
		}
		from = next
		if err := cli.Pause(ctx, sessionLook); err != nil {
			return err
		}
	}
}

// answered shows how a conversation ended.
func answered(a *cli.App, found dispatchfolder.Found, done moved, ch change.Change, failed bool) error {
	body := change.As[dispatch.Body](ch.Body)
	is, err := found.Folder.Session()
	if err != nil {
		return err
	}
	done.State, done.Waiting, done.Summary, done.Files = is.State(), len(is.Waiting), body.Summary.Text, body.Summary.Files
	if done.Answer, err = found.Folder.Answer(body.Conversation); err != nil {
		return err
	}
	if a.JSON {
		if err := a.PrintJSON(done); err != nil {
			return err
		}
	} else if ch.Trigger != string(dispatch.Interrupted) {
		fmt.Fprintf(a.Out, "[State: %s] [Conv: %03d] %s\n", dispatch.Display(ch.To), body.Conversation, cli.Plain(done.Answer))
	}
	switch {
	case ch.Trigger == string(dispatch.Interrupted):
		return fmt.Errorf("%s has no answer: %s", done.Conversation, cli.Line(body.Summary.Text, cli.ErrorWidth))
	case failed && is.Lead == "":
		return fmt.Errorf("the task of %s failed; what its agent said is above", done.Conversation)
	}
	return nil
}
