package crew

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/channels"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/termtext"
	"github.com/fairlead-dev/fairlead/read/view"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
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
		view.LeadAsleep: "asleep", view.LeadStarting: "starting", view.LeadUnheard: "running, no report yet", view.LeadHeard: "running",
		view.LeadWaits: "waits",
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
	return fmt.Sprintf(termtext.Own("\x1b[38;2;%d;%d;%dm▍%s "), rgb[0], rgb[1], rgb[2], cli.Reset)
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

// documentMost is the maximum size of an agent's document in bytes; the daemon has the same limit.
const documentMost = 2 << 20

// DocumentsIn returns the documents in a folder, or the name itself if it is not a folder. Hidden
// files and files with another extension are not documents.
func DocumentsIn(name string) ([]string, error) {
	if info, err := os.Stat(name); name == "-" || err != nil || !info.IsDir() {
		return []string{name}, nil //nolint:nilerr // reading the file reports what is wrong with it
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("read the folder of documents: %w", err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".json") && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file in %s ends in .json; a team's documents are in its .fairlead/agents",
			cli.Line(name, cli.ErrorWidth))
	}
	return files, nil
}

// ImportOne imports one document of a crew member.
func ImportOne(ctx context.Context, a *cli.App, client *apiclient.Client, name string) error {
	data, err := document(a, name)
	if err != nil {
		return err
	}
	doc, err := client.Crew.Import(ctx, data)
	if err != nil {
		return fmt.Errorf("%s: %w", cli.Line(name, cli.ErrorWidth), err)
	}
	return a.Say(doc, "%s is in the crew as %s, on seat %d: %s", cli.Line(CrewName(doc), NameWidth), cli.Plain(doc.ID), doc.Seat,
		cli.Plain(doc.Status))
}

// document reads a file as long as the daemon would accept it.
func document(a *cli.App, name string) ([]byte, error) {
	from := a.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read the document: %w", err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, documentMost+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the document: %w", err)
	case len(data) > documentMost:
		return nil, fmt.Errorf("%s has more than %d MiB, the limit for an agent's document", cli.Line(name, cli.ErrorWidth),
			documentMost>>20)
	}
	data = file.Unmarked(data)
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, fmt.Errorf("%s: this is not an agent's document, which is a JSON object; a team's documents are in its .fairlead/agents", cli.Line(name, cli.ErrorWidth))
	}
	return data, nil
}

// SaidIn are the options of `fairlead crew transcript`.
type SaidIn struct {
	Speaker, Session, Search string
	Limit                    int
}

const (
	TranscriptLast = 50
	transcriptMost = 500 // of one page
)

// Transcript prints what was said, filtered by speaker and session.
func Transcript(ctx context.Context, a *cli.App, client *apiclient.Client, asked SaidIn) error {
	page, err := newest(ctx, client, asked)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(page)
	}
	if len(page.Messages) == 0 {
		_, err := fmt.Fprintln(a.Out, "there are no matching messages yet")
		return err
	}
	if page.More {
		fmt.Fprintln(a.Out, a.Paint(cli.Dim, "(older lines are left out; --limit shows more of them)"))
	}
	show := channels.NewConversation(a)
	last := ""
	for _, m := range page.Messages {
		if m.Session != "" && m.Session != last { // a person's messages belong to no session
			show.Note(m.At, cli.Dim, "── "+m.Session)
			last = m.Session
		}
		where := ""
		if m.Channel != "" {
			where = "  in " + cli.Line(m.Channel, channels.ChannelWidth)
		}
		colour := cli.Bold
		if m.Kind == channels.EntryHuman {
			colour = cli.Green
		}
		fmt.Fprintf(&show.Out, "%s  %s%s\n", cli.Clock(m.At), a.Paint(colour, cli.Line(m.Speaker, channels.SpeakerWidth)),
			a.Paint(cli.Dim, where))
		show.Text(m.Text)
	}
	return show.Flush()
}

// newest collects pages from the newest backwards until there are enough messages. A page of a
// search may have few messages or none, although more precede it.
func newest(ctx context.Context, client *apiclient.Client, asked SaidIn) (crewctl.TranscriptPage, error) {
	query := crewctl.TranscriptQuery{Speaker: asked.Speaker, Session: asked.Session, Text: asked.Search}
	var all crewctl.TranscriptPage
	for {
		query.Limit = min(asked.Limit-len(all.Messages), transcriptMost)
		page, err := client.Crew.Transcript(ctx, query)
		if err != nil {
			return all, err
		}
		all.Messages = append(page.Messages, all.Messages...)
		all.More, all.Next, all.Head = page.More, page.Next, max(all.Head, page.Head)
		if !page.More || len(all.Messages) >= asked.Limit || page.Next == 0 {
			return all, nil
		}
		query.Before = page.Next
	}
}
