package crew

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/view"
)

// Widths of names and colours in lines that must fit into 80 columns.
const (
	NameWidth     = 20
	StatusWidth   = 8 // the longest status
	idWidth       = 12
	evidenceWidth = 40
	sleepersWidth = 54 // behind "`fairlead crew wake` wakes 8: "
	noticeWidth   = 200
	noticesShown  = 5 // the newest; the journal has them all
)

// PrintCrew prints the crew for people: the lead, nine seats, and what can be done.
func PrintCrew(a *cli.App, view view.CrewView) error {
	fmt.Fprintln(a.Out, leadLine(a, view.Lead)+"\n")
	led := view.Lead.Agent == ""
	for _, doc := range view.Agents {
		if !led && doc.Seat > view.Lead.Seat && doc.Status != string(crew.Expired) {
			leadSeat(a, view.Lead)
			led = true
		}
		crewLine(a, view, doc)
	}
	if !led && len(view.Agents) > 0 {
		leadSeat(a, view.Lead)
	}
	if len(view.Agents) > 0 {
		fmt.Fprintln(a.Out)
	}
	if view.Lead.Agent != "" {
		fmt.Fprintln(a.Out, WhatNow(a, view))
	}
	return printNotices(a, view)
}

// leadLine describes the lead as a sentence.
func leadLine(a *cli.App, lead view.LeadView) string {
	if lead.Agent == "" {
		return "no lead is configured; set team.lead in fairlead.yaml, and start again"
	}
	return a.Paint(cli.Bold, cli.Line(lead.Agent, NameWidth)) + " leads: " + leadWords(lead)
}

func leadWords(lead view.LeadView) string {
	session := cli.Line(lead.Session, NameWidth)
	switch lead.State {
	case view.LeadAsleep:
		return "it has no session"
	case view.LeadStarting:
		return "its session " + session + " is starting"
	case view.LeadUnheard:
		return "it is here in " + session + ", and has not reported yet"
	case view.LeadHeard:
		if lead.ReportedAt != nil {
			return "it is here in " + session + ", and reported " + cli.Ago(cli.Past(*lead.ReportedAt)) + " ago"
		}
		return "it is here in " + session
	case view.LeadWaits:
		return "its session waits: " + cli.Line(lead.Why, cli.RemarkWidth)
	default:
		return cli.Plain(lead.State)
	}
}

// stamped says how long ago a document's time is; empty if it has none.
func stamped(at *string) string {
	if at == nil {
		return ""
	}
	when, err := time.Parse(time.RFC3339, *at)
	if err != nil {
		return cli.Plain(*at)
	}
	return cli.Ago(cli.Past(when))
}

// leadSeat prints the lead's seat, in the middle of the others.
func leadSeat(a *cli.App, lead view.LeadView) {
	colour := cli.Dim
	if lead.State == view.LeadHeard || lead.State == view.LeadUnheard {
		colour = cli.Green
	}
	about := map[string]string{
		view.LeadAsleep: "asleep", view.LeadStarting: "starting", view.LeadUnheard: "here, not heard yet", view.LeadHeard: "here", view.LeadWaits: "waits",
	}
	seat(a, lead.Seat, a.Paint(colour, "◆")+" "+swatch(a, ""), lead.Agent, "lead", about[lead.State])
}

// crewLine prints one document.
func crewLine(a *cli.App, view view.CrewView, doc view.DocumentView) {
	colour, mark := cli.Yellow, "●"
	switch crew.Status(doc.Status) {
	case crew.Alive:
		colour = cli.Green
	case crew.Hatching:
		colour, mark = "", "○"
	case crew.Expired:
		colour, mark = cli.Dim, "·"
	}
	seat(a, doc.Seat, a.Paint(colour, mark)+" "+swatch(a, doc.Color), CrewName(doc), doc.Status, evidence(view.Lead, doc))
}

// swatch is a member's own colour on a terminal that supports it, always of the same width. An
// invalid colour gives none.
func swatch(a *cli.App, colour string) string {
	if depth := os.Getenv("COLORTERM"); !cli.Tty(a.Out) || cli.Colourless() || depth != "truecolor" && depth != "24bit" {
		return ""
	}
	rgb, err := hex.DecodeString(strings.TrimPrefix(colour, "#"))
	if err != nil || len(colour) != len("#c9b1e8") || len(rgb) != 3 {
		return "  "
	}
	return fmt.Sprintf("\x1b[38;2;%d;%d;%dm▍%s ", rgb[0], rgb[1], rgb[2], cli.Reset)
}

func seat(a *cli.App, seat int, mark, name, status, about string) {
	name = cli.Line(name, NameWidth)
	name += strings.Repeat(" ", max(0, NameWidth-cli.Columns(name)))
	status = cli.Line(status, StatusWidth)
	fmt.Fprintf(a.Out, "%d  %s%s  %-*s  %s\n", seat, mark, name, StatusWidth, status, cli.Line(about, evidenceWidth))
}

// CrewName is the displayed name of a member: a placeholder has no name yet.
func CrewName(doc view.DocumentView) string {
	if doc.Name == nil || *doc.Name == "" {
		return "(" + cli.Line(doc.ID, idWidth) + ")"
	}
	return *doc.Name
}

// evidence says why a member's status is shown, and how old the evidence is.
func evidence(lead view.LeadView, doc view.DocumentView) string {
	last := "never alive here"
	if doc.LastAliveAt != nil {
		last = "alive last " + stamped(doc.LastAliveAt) + " ago"
	}
	switch crew.Status(doc.Status) {
	case crew.Alive:
		if doc.LastAliveAt == nil {
			return "reported by the lead"
		}
		return "reported by the lead " + stamped(doc.LastAliveAt) + " ago"
	case crew.Hatching:
		return "for " + stamped(&doc.CreatedAt)
	case crew.Unknown:
		if lead.State == view.LeadAsleep || lead.State == view.LeadWaits {
			return last + "; the lead is away"
		}
		return "the lead has not reported yet"
	case crew.Expired:
		return "did not become an agent"
	default:
		return last
	}
}

// WhatNow describes the crew's one button.
func WhatNow(a *cli.App, view view.CrewView) string {
	var asleep []string
	for _, doc := range view.Agents {
		if s := crew.Status(doc.Status); s == crew.Sleeping || s == crew.Unknown {
			asleep = append(asleep, CrewName(doc))
		}
	}
	switch crew.Button(view.Button) {
	case crew.SummonButton:
		return fmt.Sprintf("the crew has no members yet; `fairlead crew summon` summons %d", view.Size)
	case crew.WakeButton:
		return fmt.Sprintf("`fairlead crew wake` wakes %d: %s", len(asleep), cli.Line(strings.Join(asleep, ", "), sleepersWidth))
	case crew.WakingButton:
		return a.Paint(cli.Yellow, underway[view.InProgress])
	default:
		return "all members are awake; `fairlead crew sleep` sends them to sleep"
	}
}

// underway describes the lead's current ceremony.
var underway = map[string]string{
	"":          "waiting for placeholders to become agents",
	"summoning": "summoning: the lead introduces the new members",
	"asking":    "waking: the lead is asked who is awake",
	"waking":    "waking: the lead knows which members to wake",
}

// printNotices shows the latest problems, the newest at the end.
func printNotices(a *cli.App, view view.CrewView) error {
	notices := view.Notices[max(0, len(view.Notices)-noticesShown):]
	if len(notices) > 0 {
		fmt.Fprintln(a.Out)
	}
	for _, n := range notices {
		fmt.Fprintf(a.Out, "%s  %s\n", cli.Clock(n.At), a.Paint(cli.Yellow, cli.Line(n.Kind+": "+n.Text, noticeWidth)))
	}
	return nil
}

// CrewWait is how long the shell's completion waits for the daemon.
const CrewWait = 300 * time.Millisecond
