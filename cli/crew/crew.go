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

// PrintCrew is the team for people: the lead, nine seats, what can be done.
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

// leadLine is what is true of the lead, as a sentence.
func leadLine(a *cli.App, lead view.LeadView) string {
	if lead.Agent == "" {
		return "nobody leads; name an agent as team.lead in fairlead.yaml, and start again"
	}
	return a.Paint(cli.Bold, cli.Line(lead.Agent, cli.CrewNameWidth)) + " leads: " + leadWords(lead)
}

func leadWords(lead view.LeadView) string {
	session := cli.Line(lead.Session, cli.CrewNameWidth)
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

// stamped is how long ago a time of a document is, in words; empty where it has none.
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

// leadSeat is the lead's own line, in the middle of the others.
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

// crewLine is one document.
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

// swatch is somebody's own colour, on a terminal that has so many, and as wide there for
// everybody. What is no colour is none.
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
	name = cli.Line(name, cli.CrewNameWidth)
	name += strings.Repeat(" ", max(0, cli.CrewNameWidth-cli.Columns(name)))
	status = cli.Line(status, cli.CrewStatusWidth)
	fmt.Fprintf(a.Out, "%d  %s%s  %-*s  %s\n", seat, mark, name, cli.CrewStatusWidth, status, cli.Line(about, cli.EvidenceWidth))
}

// CrewName is what people call somebody: a placeholder has no name yet.
func CrewName(doc view.DocumentView) string {
	if doc.Name == nil || *doc.Name == "" {
		return "(" + cli.Line(doc.ID, cli.CrewIDWidth) + ")"
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

// WhatNow is the team's one button, in words.
func WhatNow(a *cli.App, view view.CrewView) string {
	var asleep []string
	for _, doc := range view.Agents {
		if s := crew.Status(doc.Status); s == crew.Sleeping || s == crew.Unknown {
			asleep = append(asleep, CrewName(doc))
		}
	}
	switch crew.Button(view.Button) {
	case crew.SummonButton:
		return fmt.Sprintf("nobody is here yet; `fairlead crew summon` summons %d", view.Size)
	case crew.WakeButton:
		return fmt.Sprintf("`fairlead crew wake` wakes %d: %s", len(asleep), cli.Line(strings.Join(asleep, ", "), cli.SleepersWidth))
	case crew.WakingButton:
		return a.Paint(cli.Yellow, underway[view.InProgress])
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
func printNotices(a *cli.App, view view.CrewView) error {
	notices := view.Notices[max(0, len(view.Notices)-cli.NoticesShown):]
	if len(notices) > 0 {
		fmt.Fprintln(a.Out)
	}
	for _, n := range notices {
		fmt.Fprintf(a.Out, "%s  %s\n", cli.Clock(n.At), a.Paint(cli.Yellow, cli.Line(n.Kind+": "+n.Text, cli.NoticeWidth)))
	}
	return nil
}

// CrewWait is how long the shell's completion waits for the daemon.
const CrewWait = 300 * time.Millisecond
