package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

func (a *app) psVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "ps",
		Short: "List the agents: state, session, and anything that contradicts it",
		Long: `A line for each agent: its badge, its current and desired state, its session and process, and
remarks. A remark that begins with ? is evidence against the state; ` + "`fairlead why AGENT`" + ` prints it.`,
		Example: `  fairlead ps
  fairlead ps --json`,
		Args: args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *reader, _ []string) error {
			view, err := client.Team(ctx)
			if err != nil {
				return err
			}
			if client.offline != nil {
				view.Stopping = false // the daemon has stopped
			}
			if a.json {
				return a.printJSON(view)
			}
			return a.printTeam(a.out, view, 0)
		}),
	}
}

// printTeam is the table for people, with lines of at most width characters; 0 is as many as
// it takes.
func (a *app) printTeam(out io.Writer, shown view.TeamView, width int) error {
	if shown.Hold {
		fmt.Fprintln(out, a.paint(yellow, "the team is held")+orNote(shown.Note)+": nothing new starts until `fairlead unhold`")
	}
	if shown.Stopping {
		fmt.Fprintln(out, a.paint(yellow, "fairlead is stopping")+": what runs finishes")
	}
	if len(shown.Agents) == 0 {
		_, err := fmt.Fprintln(out, "no agents; add some to fairlead.yaml and start fairlead again")
		return err
	}
	talk := slices.ContainsFunc(shown.Agents, func(agent view.AgentView) bool { return len(agent.Turn) > 0 })
	led := slices.ContainsFunc(shown.Agents, func(agent view.AgentView) bool { return agent.Presence != "" })
	var rows bytes.Buffer
	table := tabwriter.NewWriter(&rows, 0, 8, 2, ' ', 0)
	more := ""
	if led {
		more += "TEAM\t"
	}
	if talk {
		more += "TURNS\t"
	}
	fmt.Fprintln(table, "AGENT\tBADGE\tCURRENT\tDESIRED\tSESSION\tPID\tFOR\t"+more+"REMARKS")
	for _, agent := range shown.Agents {
		session, pid, since := "-", "-", "-"
		if s := agent.Session; s != nil {
			session = s.ID
			if s.PID > 0 {
				pid = fmt.Sprint(s.PID)
			}
			if s.StartedAt != nil {
				since = ago(time.Since(*s.StartedAt))
			}
		}
		more := ""
		if led {
			more += orDash(line(agent.Presence, crewStatusWidth)) + "\t"
		}
		if talk {
			more += turnsOf(agent) + "\t"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s%s\n",
			agent.Name, line(agent.Badge, 20), line(agent.CurrentState, 20), line(agent.DesiredState, 20), session, pid, since, more, remarks(agent))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.printRows(out, rows.String(), shown.Agents, width)
}

// printRows prints a table whose columns stand, and colours the badges in it: the table would
// count escape sequences as width. Agents' names and badges have one byte a character.
func (a *app) printRows(out io.Writer, table string, agents []view.AgentView, width int) error {
	rows := strings.Split(strings.TrimRight(table, "\n"), "\n")
	at := strings.Index(rows[0], "BADGE")
	for i, row := range rows {
		row = strings.TrimRight(row, " ")
		if width > 0 {
			row = aligned(row, width)
		}
		if i > 0 {
			badge := agents[i-1].Badge
			if from, ok := strings.CutPrefix(row[min(at, len(row)):], badge); ok {
				row = row[:at] + a.paintBadge(badge) + from
			}
		}
		if _, err := fmt.Fprintln(out, row); err != nil {
			return err
		}
	}
	return nil
}

// turnsWidth is what of an agent's channels stands in the table.
const turnsWidth = 40

// turnsOf is where an agent stands in its channels, those first in which it has the turn.
func turnsOf(agent view.AgentView) string {
	var has, others []string
	for _, channelName := range slices.Sorted(maps.Keys(agent.Turn)) {
		state := agent.Turn[channelName]
		text := plain(channelName) + " " + plain(state)
		if state == string(channel.Active) || state == string(channel.Waiting) {
			has = append(has, text)
		} else {
			others = append(others, text)
		}
	}
	return orDash(line(strings.Join(append(has, others...), ", "), turnsWidth))
}

// paintBadge is green where somebody is at work, and quiet otherwise.
func (a *app) paintBadge(badge string) string {
	if badge == view.BadgeRunning {
		return a.paint(green, badge)
	}
	return a.paint(dim, badge)
}

// remarks are what a person should know beside the badge: doubt first.
func remarks(agent view.AgentView) string {
	switch {
	case agent.Doubt != "":
		return "? " + line(agent.Doubt, 80)
	case agent.Asks > 0:
		return asksWords(agent)
	case agent.Session != nil && agent.Session.Ending != "":
		return "ending: " + line(agent.Session.Ending, 70)
	case limited(agent):
		return "rate limited until " + clockAt(*agent.LimitedUntil)
	case agent.RetryAt != nil:
		return fmt.Sprintf("failed %d times; again in %s", agent.Failures, ago(max(0, time.Until(*agent.RetryAt))))
	case agent.WaitingBehind != "":
		return "waits behind " + line(agent.WaitingBehind, 60)
	case agent.Session != nil && agent.Says != nil && agent.Says.Text != "":
		return "says: " + line(agent.Says.Text, 74)
	case agent.Session != nil && busyWith(agent.Session.For) != "":
		return busyWith(agent.Session.For)
	case agent.Note != "":
		return line(agent.Note, 80)
	default:
		return ""
	}
}

// busyWith is what a session is for that nobody started an agent for: its badge is IDLE, as
// agent_state.json is about the agent's own work alone, and yet there is a process.
func busyWith(what team.Purpose) string {
	switch what.Kind {
	case team.PurposeChannels:
		return "takes part in its channels"
	case team.PurposeLead:
		return "leads its team"
	case team.PurposeStep:
		return line("does step "+what.Step+" of run "+what.Run, 80)
	default:
		return ""
	}
}

// asksWords says what an agent waits for a person with.
func asksWords(agent view.AgentView) string {
	words := line(strings.TrimPrefix(agent.AsksWhat, agent.Name+" "), 76) // its name stands in the row
	if words == agent.AsksWhat {
		words = "asks: " + words
	}
	if agent.Asks > 1 {
		words += fmt.Sprintf(" (and %d more)", agent.Asks-1)
	}
	return words
}

// limited says whether an agent's provider takes nothing more for now.
func limited(agent view.AgentView) bool {
	return agent.LimitedUntil != nil && agent.LimitedUntil.After(time.Now())
}

// clockAt is a time as the clock on the wall shows it, with the day where it is not today.
func clockAt(at time.Time) string {
	at = at.Local()
	if now := time.Now(); at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return at.Format("Mon 15:04")
	}
	return at.Format("15:04")
}

func orNote(note string) string {
	if note == "" {
		return ""
	}
	return " (" + line(note, 60) + ")"
}

func (a *app) whyVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "why AGENT",
		Short: "Print the evidence for the state of an agent, with its age",
		Long: `Each piece of evidence agrees with the state (+) or contradicts it (!). Below it are the agent's last
sessions and how they ended.`,
		Example: `  fairlead why coder
  fairlead why coder --json`,
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeAgents,
		RunE: a.reading(func(ctx context.Context, client *reader, words []string) error {
			why, err := client.Why(ctx, words[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(why)
			}
			return a.printWhy(why)
		}),
	}
}

func (a *app) printWhy(why view.WhyView) error {
	fmt.Fprintln(a.out, a.paint(bold, plain(why.Verdict)))
	table := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "\n\tSOURCE\tAGE\tEVIDENCE")
	for _, piece := range why.Evidence {
		mark := "+"
		if !piece.Holds {
			mark = "!"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", mark, piece.Source, ago(time.Duration(piece.AgeMS)*time.Millisecond), line(piece.What, 160))
	}
	if len(why.Sessions) > 0 {
		fmt.Fprintln(table, "\n\tSESSION\tKIND\tENDED\tOUTCOME")
	}
	for _, s := range why.Sessions {
		ended := "runs"
		if s.EndedAt != nil {
			ended = ago(time.Since(*s.EndedAt)) + " ago"
		}
		fmt.Fprintf(table, "\t%s\t%s\t%s\t%s %s\n", s.ID, s.Kind, ended, s.Outcome, line(s.Why, 100))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	legend := "\n+ speaks for the status, ! against it"
	if len(why.Sessions) > 0 {
		legend += "; `fairlead watch " + why.Sessions[0].ID + "` shows what that session said"
	}
	_, err := fmt.Fprintln(a.out, a.paint(dim, legend))
	return err
}

// completeAgents offers names to the shell; without a daemon those of fairlead.yaml.
func (a *app) completeAgents(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	conf, err := a.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, agent := range conf.Agents {
		names = append(names, agent.Name+"\t"+agent.Description)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
