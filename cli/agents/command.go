package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Commands are the four orders of seed 000, with the desired state that each sets.
var Commands = map[string]struct{ Short, Long, said string }{
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

// Names returns the names of all agents.
func Names(ctx context.Context, client *apiclient.Client) ([]string, error) {
	view, err := client.Agents(ctx)
	var names []string
	for _, agent := range view.Agents {
		names = append(names, agent.Name)
	}
	return names, err
}

// Ordered are the options of an order.
type Ordered struct {
	Note      string
	Wait, Now bool
}

// Command gives the order to each agent, also if another agent refuses it.
func Command(ctx context.Context, a *cli.App, client *apiclient.Client, verb string, names []string, opts Ordered) error {
	var errs []error
	given := map[string]api.Commanded{}
	held := false
	for _, name := range names {
		answer, err := client.Command(ctx, api.Verb(verb), name, opts.Note)
		if err == nil && opts.Now && answer.Agent.Session != nil {
			_, err = client.EndAgentSession(ctx, name)
			if no := (*apiclient.Refused)(nil); errors.As(err, &no) && no.Refusal.State == "none" {
				err = nil // the session has ended meanwhile
			}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		given[name] = answer
		held = held || answer.Agent.Held
		if !opts.Wait {
			errs = append(errs, saidCommand(a, verb, answer, opts.Now))
		}
	}
	if held && !opts.Wait && verb != "stop" && !a.JSON {
		if view, err := client.Agents(ctx); err == nil && view.Hold {
			fmt.Fprintf(a.Err, "the team is held%s: nothing starts until `fairlead unhold`\n", cli.OrNote(view.Note))
		}
	}
	if opts.Wait {
		for _, name := range names {
			if answer, ok := given[name]; ok {
				errs = append(errs, waitFor(ctx, a, client, verb, answer))
			}
		}
	}
	return errors.Join(errs...)
}

func saidCommand(a *cli.App, verb string, answer api.Commanded, now bool) error {
	if a.JSON {
		return a.PrintJSON(answer)
	}
	text := answer.Agent.Name + " " + Commands[verb].said
	switch s := answer.Agent.Session; {
	case now && s != nil:
		text += "; " + s.ID + " is being ended"
	case verb == "stop" && s != nil:
		text += " after " + s.ID + " finishes"
	case s != nil && s.Phase == "running" && verb != "start":
		text += " after " + s.ID
	}
	_, err := fmt.Fprintln(a.Out, text)
	return err
}

// waitFor follows the journal from the command on, until the command has taken effect.
func waitFor(ctx context.Context, a *cli.App, client *apiclient.Client, verb string, answer api.Commanded) error {
	name, seq := answer.Agent.Name, answer.Seq
	if answer.Agent.Held && verb != "stop" && !a.JSON {
		if view, err := client.Agents(ctx); err == nil && view.Hold {
			fmt.Fprintf(a.Err, "the team is held%s: %s waits for `fairlead unhold`\n", cli.OrNote(view.Note), name)
		}
	}
	for {
		why, err := client.Why(ctx, name)
		if err != nil {
			return err
		}
		if done, err := tookEffect(verb, why); done {
			untilFileSays(ctx, a, client, name)
			if a.JSON {
				if perr := a.PrintJSON(why.Agent); perr != nil {
					return perr
				}
				return err
			}
			fmt.Fprintln(a.Out, cli.Plain(why.Verdict))
			return err
		}
		// After each change, look at the state again: the order waits for a state, not for an event.
		if seq, err = client.Next(ctx, seq, func(change api.Change) bool {
			return slices.Contains([]string{"control/" + name, "session/" + name}, change.Entity)
		}); err != nil {
			return err
		}
	}
}

// untilFileSays waits until agent_state.json shows the effect of an order that was waited for.
func untilFileSays(ctx context.Context, a *cli.App, client *apiclient.Client, name string) {
	ctx, cancel := context.WithTimeout(ctx, cli.FileWait)
	defer cancel()
	for {
		why, err := client.Why(ctx, name)
		if err == nil && !why.Agent.FileBehind {
			return
		}
		if err != nil || cli.Pause(ctx, 2*time.Millisecond) != nil {
			fmt.Fprintf(a.Err, "agent_state.json of %s does not show this yet; see `fairlead why %s`\n", name, name)
			return
		}
	}
}

// words are the values of desired_state that the orders set.
var words = map[string]string{"start": "continuous", "stop": "pause", "once": "run_once", "cleanup": "run_cleanup"}

// tookEffect reports whether an order has taken effect; the error says how a requested session
// failed.
func tookEffect(verb string, why view.WhyView) (bool, error) {
	agent := why.Agent
	if desired := agent.DesiredState; desired != words[verb] && desired != "pause" {
		return true,
			&cli.Coded{
				Code: cli.ExitCancelled,
				Err: fmt.Errorf("a newer order replaced this one: the desired state of %[2]s is now %[1]s%[3]s", cli.Line(desired, 30),
					agent.Name, cli.OrNote(agent.Note)),
			}
	}
	switch verb {
	case "start":
		if agent.DesiredState == "pause" {
			return true, fmt.Errorf("%s does not run: %s", agent.Name, cli.Line(agent.Note, 200))
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
		return true,
			fmt.Errorf("session %s of %s: %s %s; `fairlead watch %s` shows its output", last.ID, agent.Name, last.Outcome,
				cli.Line(last.Why, 200), last.ID)
	}
	return true, nil
}

// toldWords says when an agent reads what it was told.
var toldWords = map[string]string{
	view.TellAtOnce:      "gets it at once: before its next step, or after its answer if that was the last one",
	view.TellAfterAnswer: "gets it when its answer is over, in the same task",
	view.TellNextSession: "gets it at the start of its next session",
}

// Tell tells the agent of a running session something.
func Tell(ctx context.Context, a *cli.App, client *apiclient.Client, target, text string) error {
	told, err := client.Tell(ctx, target, text)
	if err != nil {
		return cli.Faulty(err)
	}
	return a.Say(told, "%s (%s) %s", cli.Plain(told.Agent), cli.Plain(told.Session), toldWords[told.When])
}
