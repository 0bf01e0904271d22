package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/policy"
)

func (a *app) sessionInputVerb(path *string) *cobra.Command {
	var wait, over bool
	cmd := &cobra.Command{
		Use:   "input TEXT...",
		Short: "Send a request: it starts a conversation with its own folder",
		Long: `The agent whose description fits best gets it; if none fits, MAIN keeps it. ` + "`fairlead dispatch route`" + `
shows the ranking. Agents may write to the paths that the request names; everything else that they
make goes to the conversation's outputs/. As TEXT, - reads standard input; several words are one
text. A request that comes while a conversation is open waits; --over ends the open one as
interrupted.

--wait shows which agent takes over, and returns with the answer; exit code 1 means that there is
none, because the conversation was interrupted or its task failed.`,
		Example: `  fairlead dispatch input "write a hello world in Python" --wait`,
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			text, err := a.spoken(words)
			if err != nil {
				return usage(cmd, err)
			}
			return a.sessionInput(cmd.Context(), *path, text, wait, over)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "show what happens, and return when it is answered")
	cmd.Flags().BoolVar(&over, "over", false, "end the conversation that is open as interrupted")
	return cmd
}

// saying is ordering, for what is said or done in a session. Where an agent program or the daemon does
// it, nobody else says that it was done: whoever does it would not be told.
func (a *app) saying(path, event string, by ...dispatch.Host) (openSession, error) {
	found, err := a.ordering(path, event)
	over := found.is.Phase == dispatch.Closed
	if err != nil || !over && slices.Contains(by, found.is.Host) {
		return found, err
	}
	no := &machine.Refusal{Subject: found.Name(), Event: event, State: string(found.is.Phase)}
	switch {
	case over:
		no.Reason = "it is over; begin another one: fairlead dispatch start"
	case found.is.Host == dispatch.Fairlead:
		no.Reason = "agents of fairlead.yaml do what is done in it, and their sessions say so; give it an input, or end it: fairlead dispatch end"
	default:
		no.Reason = "Claude Code does what is done in it, and its hooks say so; say it there, or end it: fairlead dispatch end"
	}
	return found, no
}

// moved is what `fairlead dispatch input --json` and its fellows print: where the session stands.
type moved struct {
	Conversation string          `json:"conversation_id,omitempty"`
	State        string          `json:"state"`
	Workspace    string          `json:"workspace,omitempty"`
	Waiting      int             `json:"waiting,omitempty"` // inputs in line, this one among them
	Transitions  []string        `json:"transitions,omitempty"`
	Match        *dispatch.Match `json:"match,omitempty"`
	Prompt       string          `json:"prompt,omitempty"` // of a delegation: what the agent is to be told
	Answer       string          `json:"answer,omitempty"` // with --wait
	Summary      string          `json:"summary,omitempty"`
	Files        []dispatch.File `json:"files,omitempty"`
	changes      []dispatch.Change
	after        *dispatch.Dispatch // as it stands
}

func (a *app) sessionInput(ctx context.Context, path, text string, wait, over bool) error {
	found, err := a.saying(path, "input", dispatch.NoHost, dispatch.Fairlead)
	if err != nil {
		return err
	}
	in := dispatch.UserInput{Text: text, Named: policy.NamedPaths(text), Over: over}
	if found.is.Mode != dispatch.Response && (found.is.Ranker == "" || found.is.Host != dispatch.Fairlead) { // else somebody is asked
		ranking, err := a.ranked(found.is, text)
		if err != nil {
			return err
		}
		in.Match = dispatchfolder.MatchOf(ranking)
	}
	from := historyEnd(found.Folder)
	done, err := a.tellSession(found, in)
	if err != nil {
		return a.inboxWords(found, err)
	}
	done.Match = in.Match
	if wait && done.Conversation != "" {
		return a.sessionWait(ctx, found, from, done)
	}
	if a.json {
		return a.printJSON(done)
	}
	return a.printMoved(done, found.is)
}

// ranked holds a text against the descriptions of a session, by the threshold of fairlead.yaml.
func (a *app) ranked(is dispatch.Dispatch, text string) (policy.Ranking, error) {
	conf, err := a.maybeConfig()
	if err != nil {
		return policy.Ranking{}, err
	}
	ranking := dispatchfolder.Best(is, text)
	if conf != nil {
		ranking = ranking.Over(conf.Dispatch.Threshold)
	}
	return ranking, nil
}

// historyEnd is the place behind everything that a session's history says now.
func historyEnd(f *dispatchfolder.Folder) int64 {
	info, err := os.Stat(filepath.Join(f.Path(), "state.jsonl"))
	if err != nil {
		return 0 // then all of it is looked through
	}
	return info.Size()
}

// inboxWords adds to a refusal in mode response where a message is to be put.
func (a *app) inboxWords(found openSession, err error) error {
	if found.is.Mode != dispatch.Response || codeOf(err) != exitRefused {
		return err
	}
	return fmt.Errorf("%w; a file of text in %s is one", err, filepath.Join(found.Path(), "inbox"))
}

// tellSession gives a session an input under the folder's lock, and says where it stands then.
func (a *app) tellSession(found openSession, in dispatch.Input) (moved, error) {
	changes, is, err := found.Do(time.Now(), byHand, in)
	if err != nil {
		return moved{}, err
	}
	done := moved{State: is.State(), Waiting: len(is.Waiting), changes: changes, after: &is}
	for _, ch := range changes {
		if ch.Body.Conversation != 0 && ch.Event != dispatch.InputWaits {
			done.about(found.Folder, ch.Body.Conversation)
		}
		if arrow := arrowOf(ch); arrow != "" {
			done.Transitions = append(done.Transitions, arrow)
		}
		if s := ch.Body.Summary; s != nil {
			done.Summary, done.Files = s.Text, s.Files
		}
	}
	return done, nil
}

// about says which conversation it is.
func (m *moved) about(f *dispatchfolder.Folder, n int) {
	m.Conversation, m.Workspace = dispatch.ConversationID(n), f.Workspace(n)
}

// arrowOf is a change as people see it who only look who is in charge; empty: nothing moved.
func arrowOf(ch dispatch.Change) string {
	if ch.From == "" || ch.From == ch.To {
		return ""
	}
	return dispatch.Arrow(ch.From, ch.To)
}

// printMoved shows an order and what came of it, as the seed shows it.
func (a *app) printMoved(done moved, was dispatch.Dispatch) error {
	for _, ch := range done.changes {
		a.printMove(ch)
	}
	if len(done.changes) == 0 {
		fmt.Fprintln(a.out, "nothing changes: it is so already")
	}
	is := done.after
	switch {
	case is.Host != dispatch.NoHost:
	case slices.ContainsFunc(done.changes, func(ch dispatch.Change) bool { return ch.Event == dispatch.InputWaits }):
		fmt.Fprintln(a.err, "`fairlead dispatch status` shows what is open; `fairlead dispatch respond TEXT` answers it, and begins the next one")
	case is.Phase == dispatch.Talking:
		fmt.Fprintln(a.err, "MAIN has it; `fairlead dispatch respond TEXT` answers, `fairlead dispatch delegate AGENT TEXT` lets an agent do it")
	case is.Phase == dispatch.Working && was.State() != is.State():
		fmt.Fprintln(a.err, "its files belong to "+plain(done.Workspace)+"; `fairlead dispatch done` says that it is done")
	}
	return nil
}

// printMove shows one change: a line for what people are told, none for the rest.
func (a *app) printMove(ch dispatch.Change) {
	n := fmt.Sprintf("[Conv: %03d]", ch.Body.Conversation)
	switch ch.Event {
	case dispatch.InputCame, dispatch.MessageTaken:
		fmt.Fprintf(a.out, "[State: %s] %s\n", dispatch.Display(ch.From), n)
	case dispatch.InputWaits:
		fmt.Fprintf(a.out, "it waits: %d in line behind %s\n", len(ch.Body.Now.Waiting), dispatch.ConversationID(ch.Body.Conversation))
	}
	if arrow := arrowOf(ch); arrow != "" {
		fmt.Fprintln(a.out, a.paint(bold, plain(arrow))+a.paint(dim, "  # "+line(shownTrigger(ch.Trigger), errorWidth)))
	}
	switch ch.Event {
	case dispatch.Responded, dispatch.MessageDone:
		fmt.Fprintln(a.out, a.paint(dim, dispatch.ConversationID(ch.Body.Conversation)+" is closed"))
	case dispatch.Interrupted:
		fmt.Fprintln(a.out, a.paint(dim, dispatch.ConversationID(ch.Body.Conversation)+" is closed: interrupted"))
	case dispatch.HelpAsked:
		if arrowOf(ch) == "" {
			fmt.Fprintln(a.out, plain(dispatch.Display(ch.To))+" asks another of its kind")
		}
	}
}

// shownTrigger is what a transition is for, as the seed shows it: Matched: "write" + "Python".
func shownTrigger(trigger string) string {
	if terms, ok := strings.CutPrefix(trigger, "matched \""); ok {
		return "Matched: \"" + terms
	}
	if trigger == "" {
		return trigger
	}
	return strings.ToUpper(trigger[:1]) + trigger[1:]
}

func (a *app) sessionDelegateVerb(path *string) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "delegate AGENT TEXT...",
		Short: "Give an agent a task, when you do the work of MAIN by hand",
		Long: `MAIN gives an agent a task; with --from, in mode interactive, an agent asks another one for help. It
prints what to tell the agent: the task, and where its files belong. As TEXT, - reads standard
input.`,
		Example:           `  fairlead dispatch delegate backend "add an index to the orders table"`,
		Args:              args(cobra.MinimumNArgs(2)),
		ValidArgsFunction: a.completeSessionAgent(path),
		RunE: func(cmd *cobra.Command, words []string) error {
			text, err := a.spoken(words[1:])
			if err != nil {
				return usage(cmd, err)
			}
			return a.sessionDelegate(*path, words[0], text, from)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the agent that asks for help (default: MAIN delegates)")
	return cmd
}

func (a *app) sessionDelegate(path, agent, text, from string) error {
	found, err := a.saying(path, "delegate", dispatch.NoHost)
	if err != nil {
		return err
	}
	agent = stateNamed(found.is, agent)
	in := dispatch.Delegate{Agent: agent, Text: text, Trigger: "delegated by MAIN"}
	if from != "" {
		if in.By, err = taskOf(found.is, from); err != nil {
			return err
		}
		in.Trigger = from + " needs help"
	}
	prompt := text
	if c := found.is.Open; c != nil {
		prompt = dispatchfolder.DelegationPrompt(text, found.Workspace(c.N), found.DialoguePath(c.N))
		in.Params = fmt.Sprintf("- subagent_type: %s\n- description: %s\n- prompt: %s", agent, line(text, summaryWidth), prompt)
	}
	done, err := a.tellSession(found, in)
	if err != nil {
		return err
	}
	done.Prompt = prompt
	if a.json {
		return a.printJSON(done)
	}
	for _, ch := range done.changes {
		a.printMove(ch)
	}
	_, err = fmt.Fprintln(a.out, "\n"+plain(prompt))
	return err
}

// summaryWidth is a task in a line.
const summaryWidth = 80

// taskOf is the task of an agent that is at work; the one begun last, where it has several.
func taskOf(is dispatch.Dispatch, agent string) (uint64, error) {
	if c := is.Open; c != nil {
		for _, task := range slices.Backward(c.Tasks) {
			if task.Agent == agent {
				return task.ID, nil
			}
		}
	}
	return 0, &coded{exitRefused, fmt.Errorf("%s is not at work; `fairlead dispatch status` shows who is", line(agent, stepWidth))}
}

func (a *app) sessionDoneVerb(path *string) *cobra.Command {
	var failed bool
	var agent string
	cmd := &cobra.Command{
		Use:   "done [TEXT...]",
		Short: "Report that an agent has finished its task, with the result",
		Long: `For people and programs that do the work by hand. Without --agent it ends the task that was started
last. In mode orchestrator MAIN is in charge then; in mode interactive, the agent that asked. As
TEXT, - reads standard input.`,
		Example: `  fairlead dispatch done "the index is there"
  fairlead dispatch done --failed "there is no such table"`,
		RunE: func(cmd *cobra.Command, words []string) error {
			text := ""
			if len(words) > 0 {
				var err error
				if text, err = a.spoken(words); err != nil {
					return usage(cmd, err)
				}
			}
			return a.sessionDone(*path, agent, text, failed)
		},
	}
	cmd.Flags().BoolVar(&failed, "failed", false, "it failed")
	cmd.Flags().StringVar(&agent, "agent", "", "whose task (default: the one that was begun last)")
	if err := cmd.RegisterFlagCompletionFunc("agent", a.completeSessionAgent(path)); err != nil {
		panic("fairlead: session done has no --agent: " + err.Error())
	}
	return cmd
}

func (a *app) sessionDone(path, agent, text string, failed bool) error {
	found, err := a.saying(path, "task_ended", dispatch.NoHost)
	if err != nil {
		return err
	}
	c := found.is.Open
	if c == nil || len(c.Tasks) == 0 {
		return &coded{exitRefused, errors.New("no agent is at work; `fairlead dispatch respond TEXT` answers an input that MAIN has")}
	}
	task := c.Tasks[len(c.Tasks)-1]
	if agent != "" {
		id, err := taskOf(found.is, agent)
		if err != nil {
			return err
		}
		task, _ = c.Task(id)
	}
	done, err := a.tellSession(found, dispatch.TaskEnded{Conversation: c.N, Task: task.ID, Round: task.Round, OK: !failed, Result: text})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(done)
	}
	return a.printMoved(done, found.is)
}

func (a *app) sessionRespondVerb(path *string) *cobra.Command {
	var summary string
	cmd := &cobra.Command{
		Use:   "respond TEXT...",
		Short: "Answer the request, and close the conversation",
		Long: `For people and programs that do the work by hand. The files in the conversation's outputs/ are listed
in its line of messages.jsonl. A waiting request starts then. As TEXT, - reads standard input.`,
		Example: `  fairlead dispatch respond "the query takes 20 ms now"`,
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			text, err := a.spoken(words)
			if err != nil {
				return usage(cmd, err)
			}
			found, err := a.saying(*path, "responded", dispatch.NoHost)
			if err != nil {
				return err
			}
			done, err := a.tellSession(found, dispatch.Respond{Text: text, Summary: summary})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(done)
			}
			return a.printMoved(done, found.is)
		},
	}
	cmd.Flags().StringVar(&summary, "summary", "", "what it was about, for messages.jsonl (default: the input's first line)")
	return cmd
}

// completeSessionAgent offers the agents of the session.
func (a *app) completeSessionAgent(path *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
		if a.place(nil) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := a.session(*path)
		if err != nil || len(words) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, d := range found.is.Agents {
			if !strings.ContainsAny(plain(d.Name), "\t\n\uFFFD") {
				names = append(names, d.Name+"\t"+line(d.Text, summaryWidth))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
