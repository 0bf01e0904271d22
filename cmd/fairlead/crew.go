package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/view"
)

// crewVerb shows the crew, and groups the commands about it; subs names those that it has, or
// all where there are none.
func (a *app) crewVerb(subs ...string) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "crew",
		Short: "Show the lead and its crew, and summon, wake or look at its members",
		Long: `The crew is an agent that leads (team.lead in fairlead.yaml) and the members that it summoned.
` + "`fairlead crew`" + ` prints a line for each seat, with the lead in the middle. Which members are
awake is what the lead reported; a member that it has not reported on in its session is shown as
unknown. Below the list it prints what you can do next, and the latest problems.

--all also shows expired members: they were summoned and never came.`,
		Example: `  fairlead crew
  fairlead crew summon --wait
  fairlead crew show Wren`,
		Args: knownVerb,
		RunE: a.reading(func(ctx context.Context, client *reader, _ []string) error {
			view, err := client.Crew(ctx, all)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(view)
			}
			return a.printCrew(view)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "also show expired members")
	return noun(cmd, only(subs, a.summonVerb(), a.wakeVerb(), a.sleepVerb(), a.crewShowVerb(), a.transcriptVerb(), a.importVerb())...)
}

// What of a name and a colour stands in a line that has to fit into 80 columns.
const (
	crewNameWidth   = 20
	crewStatusWidth = 8 // the longest status
	crewIDWidth     = 12
	evidenceWidth   = 40
	sleepersWidth   = 54 // behind "`fairlead crew wake` wakes 8: "
	noticeWidth     = 200
	noticesShown    = 5 // the newest; the journal has them all
)

// printCrew is the team for people: the lead, nine seats, what can be done.
func (a *app) printCrew(view view.CrewView) error {
	fmt.Fprintln(a.out, a.leadLine(view.Lead)+"\n")
	led := view.Lead.Agent == ""
	for _, doc := range view.Agents {
		if !led && doc.Seat > view.Lead.Seat && doc.Status != string(crew.Expired) {
			a.leadSeat(view.Lead)
			led = true
		}
		a.crewLine(view, doc)
	}
	if !led && len(view.Agents) > 0 {
		a.leadSeat(view.Lead)
	}
	if len(view.Agents) > 0 {
		fmt.Fprintln(a.out)
	}
	if view.Lead.Agent != "" {
		fmt.Fprintln(a.out, a.whatNow(view))
	}
	return a.printNotices(view)
}

// leadLine is what is true of the lead, as a sentence.
func (a *app) leadLine(lead view.LeadView) string {
	if lead.Agent == "" {
		return "nobody leads; name an agent as team.lead in fairlead.yaml, and start again"
	}
	return a.paint(bold, line(lead.Agent, crewNameWidth)) + " leads: " + leadWords(lead)
}

func leadWords(lead view.LeadView) string {
	session := line(lead.Session, crewNameWidth)
	switch lead.State {
	case view.LeadAsleep:
		return "it has no session"
	case view.LeadStarting:
		return "its session " + session + " is starting"
	case view.LeadUnheard:
		return "it is here in " + session + ", and has not reported yet"
	case view.LeadHeard:
		if lead.ReportedAt != nil {
			return "it is here in " + session + ", and reported " + ago(past(*lead.ReportedAt)) + " ago"
		}
		return "it is here in " + session
	case view.LeadWaits:
		return "its session waits: " + line(lead.Why, remarkWidth)
	default:
		return plain(lead.State)
	}
}

// past is how long something is past; clocks of two programs may differ a little.
func past(at time.Time) time.Duration { return max(0, time.Since(at)) }

// stamped is how long ago a time of a document is, in words; empty where it has none.
func stamped(at *string) string {
	if at == nil {
		return ""
	}
	when, err := time.Parse(time.RFC3339, *at)
	if err != nil {
		return plain(*at)
	}
	return ago(past(when))
}

// leadSeat is the lead's own line, in the middle of the others.
func (a *app) leadSeat(lead view.LeadView) {
	colour := dim
	if lead.State == view.LeadHeard || lead.State == view.LeadUnheard {
		colour = green
	}
	about := map[string]string{
		view.LeadAsleep: "asleep", view.LeadStarting: "starting", view.LeadUnheard: "here, not heard yet", view.LeadHeard: "here", view.LeadWaits: "waits",
	}
	a.seat(lead.Seat, a.paint(colour, "◆")+" "+a.swatch(""), lead.Agent, "lead", about[lead.State])
}

// crewLine is one document.
func (a *app) crewLine(view view.CrewView, doc view.DocumentView) {
	colour, mark := yellow, "●"
	switch crew.Status(doc.Status) {
	case crew.Alive:
		colour = green
	case crew.Hatching:
		colour, mark = "", "○"
	case crew.Expired:
		colour, mark = dim, "·"
	}
	a.seat(doc.Seat, a.paint(colour, mark)+" "+a.swatch(doc.Color), crewName(doc), doc.Status, evidence(view.Lead, doc))
}

// swatch is somebody's own colour, on a terminal that has so many, and as wide there for
// everybody. What is no colour is none.
func (a *app) swatch(colour string) string {
	if depth := os.Getenv("COLORTERM"); !tty(a.out) || colourless() || depth != "truecolor" && depth != "24bit" {
		return ""
	}
	rgb, err := hex.DecodeString(strings.TrimPrefix(colour, "#"))
	if err != nil || len(colour) != len("#c9b1e8") || len(rgb) != 3 {
		return "  "
	}
	return fmt.Sprintf("\x1b[38;2;%d;%d;%dm▍%s ", rgb[0], rgb[1], rgb[2], reset)
}

func (a *app) seat(seat int, mark, name, status, about string) {
	name = line(name, crewNameWidth)
	name += strings.Repeat(" ", max(0, crewNameWidth-columns(name)))
	status = line(status, crewStatusWidth)
	fmt.Fprintf(a.out, "%d  %s%s  %-*s  %s\n", seat, mark, name, crewStatusWidth, status, line(about, evidenceWidth))
}

// crewName is what people call somebody: a placeholder has no name yet.
func crewName(doc view.DocumentView) string {
	if doc.Name == nil || *doc.Name == "" {
		return "(" + line(doc.ID, crewIDWidth) + ")"
	}
	return *doc.Name
}

// evidence is why somebody's status is shown so, and how old that is.
func evidence(lead view.LeadView, doc view.DocumentView) string {
	last := "never alive here"
	if doc.LastAliveAt != nil {
		last = "alive last " + stamped(doc.LastAliveAt) + " ago"
	}
	switch crew.Status(doc.Status) {
	case crew.Alive:
		if doc.LastAliveAt == nil {
			return "says the lead"
		}
		return "said the lead " + stamped(doc.LastAliveAt) + " ago"
	case crew.Hatching:
		return "for " + stamped(&doc.CreatedAt)
	case crew.Unknown:
		if lead.State == view.LeadAsleep || lead.State == view.LeadWaits {
			return last + "; the lead is away"
		}
		return "the lead has not reported yet"
	case crew.Expired:
		return "nobody came"
	default:
		return last
	}
}

// whatNow is the team's one button, in words.
func (a *app) whatNow(view view.CrewView) string {
	var asleep []string
	for _, doc := range view.Agents {
		if s := crew.Status(doc.Status); s == crew.Sleeping || s == crew.Unknown {
			asleep = append(asleep, crewName(doc))
		}
	}
	switch crew.Button(view.Button) {
	case crew.SummonButton:
		return fmt.Sprintf("nobody is here yet; `fairlead crew summon` summons %d", view.Size)
	case crew.WakeButton:
		return fmt.Sprintf("`fairlead crew wake` wakes %d: %s", len(asleep), line(strings.Join(asleep, ", "), sleepersWidth))
	case crew.WakingButton:
		return a.paint(yellow, underway[view.InProgress])
	default:
		return "everybody is awake; `fairlead crew sleep` lets them sleep"
	}
}

// underway is what the lead is at.
var underway = map[string]string{
	"":          "waiting for those who hatch",
	"summoning": "summoning: the lead gives them their letters",
	"asking":    "waking: the lead is asked who is awake",
	"waking":    "waking: the lead has been told whom to wake",
}

// printNotices shows what went wrong last, the newest at the end.
func (a *app) printNotices(view view.CrewView) error {
	notices := view.Notices[max(0, len(view.Notices)-noticesShown):]
	if len(notices) > 0 {
		fmt.Fprintln(a.out)
	}
	for _, n := range notices {
		fmt.Fprintf(a.out, "%s  %s\n", clock(n.At), a.paint(yellow, line(n.Kind+": "+n.Text, noticeWidth)))
	}
	return nil
}

// crewWait is how long the shell's completion waits for the daemon.
const crewWait = 300 * time.Millisecond

// completeCrew offers those who are in the team now; nobody where no daemon runs.
func (a *app) completeCrew(cmd *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
	client, err := a.dial()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), crewWait)
	defer cancel()
	view, err := client.Crew(ctx, false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, doc := range view.Agents {
		if doc.Name != nil && !strings.ContainsAny(plain(*doc.Name), "\t\n\uFFFD") {
			names = append(names, *doc.Name+"\t"+doc.Status)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
