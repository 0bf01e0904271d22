package agents

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	crewcli "github.com/fairlead-dev/fairlead/cli/crew"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/read/view"
)

// PrintTeam prints the table for people, with lines of at most width characters; 0 means no limit.
func PrintTeam(a *cli.App, out io.Writer, shown view.TeamView, width int) error {
	if shown.Hold {
		fmt.Fprintln(out, a.Paint(cli.Yellow, "the team is held")+cli.OrNote(shown.Note)+": nothing new starts until `fairlead unhold`")
	}
	if shown.Stopping {
		fmt.Fprintln(out, a.Paint(cli.Yellow, "fairlead is stopping")+": running sessions finish")
	}
	if len(shown.Agents) == 0 {
		_, err := fmt.Fprintln(out, "no agents; add some to fairlead.yaml and start fairlead again")
		return err
	}
	talk := slices.ContainsFunc(shown.Agents, func(agent view.AgentView) bool { return len(agent.Turn) > 0 })
	led := slices.ContainsFunc(shown.Agents, func(agent view.AgentView) bool { return agent.Presence != "" })
	used := slices.ContainsFunc(shown.Agents, func(agent view.AgentView) bool { return agent.Limits.OfProcesses() })
	var rows bytes.Buffer
	table := tabwriter.NewWriter(&rows, 0, 8, 2, ' ', 0)
	more := ""
	if led {
		more += "TEAM\t"
	}
	if talk {
		more += "TURNS\t"
	}
	if used {
		more += "USES\t"
	}
	fmt.Fprintln(table, "AGENT\tSTATUS\tCURRENT\tDESIRED\tSESSION\tPID\tFOR\t"+more+"REMARKS")
	var inRow []*view.AgentView // nil: a row for a session in a slot above 0
	for i, agent := range shown.Agents {
		session, pid, since := sessionColumns(agent.Session)
		more := ""
		if led {
			more += cli.OrDash(cli.Line(agent.Presence, crewcli.StatusWidth)) + "\t"
		}
		if talk {
			more += turnsOf(agent) + "\t"
		}
		if used {
			more += usesOf(agent.Session) + "\t"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s%s\n",
			agent.Name, statusCell(a, &agent), cli.Line(agent.CurrentState, 20), cli.Line(agent.DesiredState, 20), session, pid, since,
			more, Remarks(agent))
		inRow = append(inRow, &shown.Agents[i])
		for _, s := range agent.Others() {
			session, pid, since := sessionColumns(&s)
			words := busyWith(s.For)
			if s.Ending != "" {
				words = "ending: " + cli.Line(s.Ending, 70)
			}
			skipped := strings.Repeat("\t", strings.Count(more, "\t"))
			if used {
				skipped = skipped[1:] + usesOf(&s) + "\t"
			}
			fmt.Fprintf(table, "\t\t\t\t%s\t%s\t%s\t%s%s\n", session, pid, since, skipped, words)
			inRow = append(inRow, nil)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return printRows(a, out, rows.String(), inRow, width)
}

// usesOf is what the processes of a session use.
func usesOf(s *view.SessionView) string {
	if s == nil || s.Use == nil {
		return "-"
	}
	return s.Use.Words()
}

// sessionColumns are the columns SESSION, PID and FOR.
func sessionColumns(s *view.SessionView) (id, pid, since string) {
	id, pid, since = "-", "-", "-"
	if s == nil {
		return id, pid, since
	}
	if s.PID > 0 {
		pid = fmt.Sprint(s.PID)
	}
	if s.StartedAt != nil {
		since = cli.Ago(time.Since(*s.StartedAt))
	}
	if id = s.ID; s.Host != "" {
		id += " on " + s.Host
	}
	return id, pid, since
}

// printRows prints an aligned table and colours the statuses in it afterwards, because the table
// writer would count escape sequences as width. Names and statuses of agents have one byte per
// character.
func printRows(a *cli.App, out io.Writer, table string, agents []*view.AgentView, width int) error {
	rows := strings.Split(strings.TrimRight(table, "\n"), "\n")
	at := strings.Index(rows[0], "STATUS")
	for i, row := range rows {
		row = strings.TrimRight(row, " ")
		if width > 0 {
			row = cli.Aligned(row, width)
		}
		if i > 0 && agents[i-1] != nil {
			word := statusCell(a, agents[i-1])
			if from, ok := strings.CutPrefix(row[min(at, len(row)):], word); ok {
				row = row[:at] + paintStatus(a, agents[i-1]) + from
			}
		}
		if _, err := fmt.Fprintln(out, row); err != nil {
			return err
		}
	}
	return nil
}

// turnsWidth is the width of an agent's channels in the table.
const turnsWidth = 40

// turnsOf returns an agent's state in its channels; channels in which it has the turn come first.
func turnsOf(agent view.AgentView) string {
	var has, others []string
	for _, channelName := range slices.Sorted(maps.Keys(agent.Turn)) {
		state := agent.Turn[channelName]
		text := cli.Plain(channelName) + " " + cli.Plain(state)
		if state == string(channel.Active) || state == string(channel.Waiting) {
			has = append(has, text)
		} else {
			others = append(others, text)
		}
	}
	return cli.OrDash(cli.Line(strings.Join(append(has, others...), ", "), turnsWidth))
}

// statusCell is the status as shape and word on a terminal, and as the word alone for programs.
func statusCell(a *cli.App, agent *view.AgentView) string {
	mark := agent.Mark(cli.Colourless())
	if mark == "" || !cli.Tty(a.Out) {
		return agent.Word()
	}
	return mark + " " + agent.Word()
}

// statusColours are the colours of the page: green for work, red for a failure, yellow for what a person should look at.
var statusColours = map[view.Status]string{
	view.StatusFailed:  cli.Red,
	view.StatusUnknown: cli.Yellow, view.StatusWaiting: cli.Yellow, view.StatusRateLimited: cli.Yellow, view.StatusBackingOff: cli.Yellow,
	view.StatusRunning: cli.Green, view.StatusStopping: cli.Green,
}

// paintStatus colours the status.
func paintStatus(a *cli.App, agent *view.AgentView) string {
	colour, known := statusColours[agent.Status]
	if !known {
		colour = cli.Dim
	}
	return a.Paint(colour, statusCell(a, agent))
}

// contextHigh is the part of a model's context, in percent, from which a new conversation begins with the next task.
const contextHigh = 80

// Remarks are what a person should know beside the status; doubt comes first.
func Remarks(agent view.AgentView) string {
	return agent.Marked(remark(agent))
}

func remark(agent view.AgentView) string {
	switch {
	case agent.Doubt != "":
		return "? " + cli.Line(agent.Doubt, 80)
	case agent.Asks > 0:
		return asksWords(agent)
	case agent.Session != nil && agent.Session.Ending != "":
		return "ending: " + cli.Line(agent.Session.Ending, 70)
	case agent.AwayProvider() != nil:
		return cli.Line(agent.AwayProvider().Words(), 120)
	case agent.Session != nil && agent.Session.Waits != "":
		return cli.Line(agent.Session.Waits, 80)
	case limited(agent):
		return "rate limited until " + cli.ClockAt(*agent.LimitedUntil)
	case agent.Status == view.StatusFailed:
		return "gave up: " + cli.Line(agent.Note, 71)
	case agent.Status == view.StatusIdle &&
		(agent.IdleReason == view.IdleHeld || agent.IdleReason == view.IdleLimit || agent.IdleReason == view.IdleDisabled):
		return string(agent.IdleReason) + ": " + cli.Line(agent.StatusWhy, 70)
	case agent.RetryAt != nil:
		return fmt.Sprintf("%s; again in %s", agent.FailedInARow(), cli.Ago(max(0, time.Until(*agent.RetryAt))))
	case agent.WaitingBehind != "":
		return "waits behind " + cli.Line(agent.WaitingBehind, 60)
	case agent.TurnWhy != "":
		return cli.Line(agent.TurnWhy, 80)
	case agent.Session != nil && agent.Session.Context >= contextHigh:
		return fmt.Sprintf("its context is %d %% full", agent.Session.Context)
	case agent.Session != nil && agent.Says != nil && agent.Says.Text != "":
		return "says: " + cli.Line(agent.Says.Text, 74)
	case agent.Session != nil && busyWith(agent.Session.For) != "":
		return busyWith(agent.Session.For)
	case agent.Note != "":
		return cli.Line(agent.Note, 80)
	default:
		return ""
	}
}

// busyWith says what a session is for if its agent was not started for its own work: current_state is
// pause then, because agent_state.json is only about that work.
func busyWith(what team.Purpose) string {
	switch what.Kind {
	case team.PurposeChannels:
		return "takes part in its channels"
	case team.PurposeLead:
		return "leads its team"
	case team.PurposeStep:
		return cli.Line("does step "+what.Step+" of run "+what.Run, 80)
	default:
		return ""
	}
}

// asksWords says what an agent waits for a person with.
func asksWords(agent view.AgentView) string {
	words := cli.Line(strings.TrimPrefix(agent.AsksWhat, agent.Name+" "), 76) // its name is in the row already
	if words == agent.AsksWhat {
		words = "asks: " + words
	}
	if agent.Asks > 1 {
		words += fmt.Sprintf(" (and %d more)", agent.Asks-1)
	}
	return words
}

// limited reports whether an agent is rate limited at present.
func limited(agent view.AgentView) bool {
	return agent.LimitedUntil != nil && agent.LimitedUntil.After(time.Now())
}

// PrintWhy prints an agent's status with its evidence.
func PrintWhy(a *cli.App, why view.WhyView) error {
	fmt.Fprintln(a.Out, a.Paint(cli.Bold, cli.Plain(why.Verdict)))
	table := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "\n\tSOURCE\tAGE\tEVIDENCE")
	for _, piece := range why.Evidence {
		mark := "+"
		if !piece.Holds {
			mark = "!"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", mark, piece.Source, cli.Ago(time.Duration(piece.AgeMS)*time.Millisecond),
			cli.Line(piece.What, 160))
	}
	if len(why.Sessions) > 0 {
		fmt.Fprintln(table, "\n\tSESSION\tKIND\tENDED\tOUTCOME")
	}
	for _, s := range why.Sessions {
		ended := "runs"
		if s.EndedAt != nil {
			ended = cli.Ago(time.Since(*s.EndedAt)) + " ago"
		}
		fmt.Fprintf(table, "\t%s\t%s\t%s\t%s %s\n", s.ID, s.Kind, ended, s.Outcome, cli.Line(s.Why, 100))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	legend := "\n+ supports the status, ! contradicts it"
	if len(why.Sessions) > 0 {
		legend += "; `fairlead watch " + why.Sessions[0].ID + "` shows that session's output"
	}
	_, err := fmt.Fprintln(a.Out, a.Paint(cli.Dim, legend))
	return err
}
