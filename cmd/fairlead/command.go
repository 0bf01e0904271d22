package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// commands are the four orders of seed 000, with the desired state that each sets.
var commands = map[string]struct{ short, long, said string }{
	"start": {
		"Let agents run, one session after the other",
		"It sets desired_state to continuous.", "will run continuously",
	},
	"stop": {
		"Let agents finish their session, then stop",
		`It sets desired_state to pause. A running session finishes. --now ends it: the agent gets the time that
grace allows; a second call with --now ends it at once.`, "will stop",
	},
	"once": {
		"Let agents run exactly one session",
		"It sets desired_state to run_once. The agent stops after the session.", "will run one session",
	},
	"cleanup": {
		"Let agents run one cleanup session",
		"It sets desired_state to run_cleanup. The agent stops after the session.", "will run one cleanup session",
	},
}

func (a *app) commandVerb(verb string) *cobra.Command {
	var opts ordered
	var all bool
	about := commands[verb]
	cmd := &cobra.Command{
		Use:   verb + " AGENT...",
		Short: about.short,
		Long: about.long + `

The command returns when the order is on disk. With --wait it returns when the order has taken effect:
a started agent runs, a stopped one has stopped, a single session is over. Exit code 1 means that the
session failed.`,
		Example:           "  fairlead " + verb + " coder --wait\n  fairlead " + verb + " --all",
		ValidArgsFunction: a.completeAgents,
		Args: func(cmd *cobra.Command, names []string) error {
			if all == (len(names) > 0) {
				return usage(cmd, errors.New("name one or more agents, or pass --all"))
			}
			return nil
		},
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, names []string) error {
			if all {
				var err error
				if names, err = everybody(ctx, client); err != nil {
					return err
				}
			}
			return a.command(ctx, client, verb, names, opts)
		}),
	}
	if verb == "stop" {
		cmd.Flags().BoolVar(&opts.now, "now", false, "end the running session; a second call ends it without its grace period")
	}
	cmd.Flags().BoolVar(&opts.wait, "wait", false, "return when the order has taken effect")
	cmd.Flags().BoolVar(&all, "all", false, "all agents of the team")
	cmd.Flags().StringVar(&opts.note, "note", "", "the reason, kept in agent_state.json")
	return cmd
}

func everybody(ctx context.Context, client *apiclient.Client) ([]string, error) {
	view, err := client.Team(ctx)
	var names []string
	for _, agent := range view.Agents {
		names = append(names, agent.Name)
	}
	return names, err
}

// ordered are the options of an order.
type ordered struct {
	note      string
	wait, now bool
}

// command gives the order to each agent, also if another agent refuses it.
func (a *app) command(ctx context.Context, client *apiclient.Client, verb string, names []string, opts ordered) error {
	var errs []error
	given := map[string]uint64{}
	for _, name := range names {
		answer, err := client.Command(ctx, api.Verb(verb), name, opts.note)
		if err == nil && opts.now && answer.Agent.Session != nil {
			_, err = client.EndAgentSession(ctx, name)
			if no := (*apiclient.Refused)(nil); errors.As(err, &no) && no.Refusal.State == "none" {
				err = nil // it has ended by itself meanwhile
			}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		given[name] = answer.Seq
		if !opts.wait {
			errs = append(errs, a.saidCommand(verb, answer, opts.now))
		}
	}
	if opts.wait {
		for _, name := range names {
			if seq, ok := given[name]; ok {
				errs = append(errs, a.waitFor(ctx, client, verb, name, seq))
			}
		}
	}
	if len(errs) == 1 {
		return errs[0] // its own words and its own exit code, without a wrapping
	}
	return errors.Join(errs...)
}

func (a *app) saidCommand(verb string, answer api.Commanded, now bool) error {
	if a.json {
		return a.printJSON(answer)
	}
	text := answer.Agent.Name + " " + commands[verb].said
	switch s := answer.Agent.Session; {
	case now && s != nil:
		text += "; " + s.ID + " is being ended"
	case verb == "stop" && s != nil:
		text += " after " + s.ID + " finishes"
	case s != nil && s.Phase == "running" && verb != "start":
		text += " after " + s.ID
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}

// waitFor follows the journal from the command on, until the command has taken effect.
func (a *app) waitFor(ctx context.Context, client *apiclient.Client, verb, name string, seq uint64) error {
	if view, err := client.Team(ctx); err == nil && view.Hold && verb != "stop" && !a.json {
		fmt.Fprintf(a.err, "the team is held%s: %s waits for `fairlead unhold`\n", orNote(view.Note), name)
	}
	for {
		why, err := client.Why(ctx, name)
		if err != nil {
			return err
		}
		if done, err := tookEffect(verb, why); done {
			a.untilFileSays(ctx, client, name)
			if a.json {
				if perr := a.printJSON(why.Agent); perr != nil {
					return perr
				}
				return err
			}
			fmt.Fprintln(a.out, plain(why.Verdict))
			return err
		}
		// Whatever changes next, look again: what is waited for is a state, not an event.
		for change, err := range client.Events(ctx, apiclient.EventsQuery{After: int64(seq)}) {
			if err != nil {
				return err
			}
			seq = change.Seq
			if slices.Contains([]string{"control/" + name, "session/" + name}, change.Entity) {
				break
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// fileWait is how long a verb waits for agent_state.json to say what the journal does. It
// takes a millisecond; longer is a full disk or the like, which `fairlead why` tells.
const fileWait = 5 * time.Second

// untilFileSays lets whoever waited for a verb find its effect in the file too.
func (a *app) untilFileSays(ctx context.Context, client *apiclient.Client, name string) {
	ctx, cancel := context.WithTimeout(ctx, fileWait)
	defer cancel()
	for {
		why, err := client.Why(ctx, name)
		if err == nil && !why.Agent.FileBehind {
			return
		}
		if err != nil || pause(ctx, 2*time.Millisecond) != nil {
			fmt.Fprintf(a.err, "agent_state.json of %s does not say so yet; `fairlead why %s` tells more\n", name, name)
			return
		}
	}
}

// words are what the verbs write as desired_state.
var words = map[string]string{"start": "continuous", "stop": "pause", "once": "run_once", "cleanup": "run_cleanup"}

// tookEffect says whether a command has, and how a session that was asked for ended.
func tookEffect(verb string, why view.WhyView) (bool, error) {
	agent := why.Agent
	if desired := agent.DesiredState; desired != words[verb] && desired != "pause" {
		return true, &coded{exitCancelled, fmt.Errorf("a newer order replaced this one: %s is wanted of %s now%s", line(desired, 30), agent.Name, orNote(agent.Note))}
	}
	switch verb {
	case "start":
		if agent.DesiredState == "pause" {
			return true, fmt.Errorf("%s does not run: %s", agent.Name, line(agent.Note, 200))
		}
		return agent.Session != nil && agent.Session.Phase == "running" && agent.Session.For == team.ForControl, nil
	case "stop":
		return agent.CurrentState == "pause", nil
	}
	if agent.Session != nil || agent.CurrentState != "pause" || agent.DesiredState != "pause" {
		return false, nil
	}
	if len(why.Sessions) == 0 {
		return true, nil
	}
	if last := why.Sessions[0]; last.Outcome != "ok" {
		return true, fmt.Errorf("session %s of %s: %s %s; `fairlead watch %s` shows what it said", last.ID, agent.Name, last.Outcome, line(last.Why, 200), last.ID)
	}
	return true, nil
}

func (a *app) holdVerb() *cobra.Command {
	return a.switchVerb("hold", "Start no new sessions; running ones finish",
		"The hold applies to the whole team and survives a restart. `fairlead unhold` ends it.",
		"the team is held: no session starts until `fairlead unhold`", (*apiclient.Client).Hold)
}

func (a *app) unholdVerb() *cobra.Command {
	return a.switchVerb("unhold", "End the hold: agents start again",
		"Agents whose desired state asks for a session start it now.",
		"the hold is lifted", (*apiclient.Client).Release)
}

func (a *app) switchVerb(verb, short, long, said string, give func(*apiclient.Client, context.Context, string) (api.Held, error)) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:     verb,
		Short:   short,
		Long:    long,
		Example: "  fairlead " + verb + ` --note "release freeze"`,
		Args:    args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			answer, err := give(client, ctx, note)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(answer)
			}
			_, err = fmt.Fprintln(a.out, said)
			return err
		}),
	}
	cmd.Flags().StringVar(&note, "note", "", "why")
	return cmd
}
