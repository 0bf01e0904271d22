package crew

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/read/view"
)

// LeadAsked prints what the lead was asked to do.
func LeadAsked(a *cli.App, done api.CrewOrdered, what string) error {
	if a.JSON {
		return a.PrintJSON(done)
	}
	text := cli.Line(done.Team.Lead.Agent, NameWidth) + " " + what
	if done.Team.Lead.State == view.LeadWaits {
		text += "\nbut " + leadWords(done.Team.Lead)
	}
	_, err := fmt.Fprintln(a.Out, text)
	return err
}

// MembersOf returns the ids of the visible members.
func MembersOf(view view.CrewView) (ids []string) {
	for _, doc := range view.Agents {
		if doc.Status != string(crew.Expired) {
			ids = append(ids, doc.ID)
		}
	}
	return ids
}

// Addressed reports whether one of these names means a member.
func Addressed(view view.CrewView, id string, names []string) bool {
	doc, ok := docOf(view, id)
	return ok && (slices.Contains(names, id) || slices.Contains(names, CrewName(doc)))
}

func docOf(shown view.CrewView, id string) (view.DocumentView, bool) {
	i := slices.IndexFunc(shown.Agents, func(doc view.DocumentView) bool { return doc.ID == id })
	if i < 0 {
		return view.DocumentView{}, false
	}
	return shown.Agents[i], true
}

// IsAwake reports whether a document's member is alive.
func IsAwake(view view.CrewView, id string) bool {
	doc, ok := docOf(view, id)
	return ok && doc.Status == string(crew.Alive)
}

// NamesOf joins the names of documents by their ids.
func NamesOf(view view.CrewView, ids []string) string {
	var names []string
	for _, id := range ids {
		if doc, ok := docOf(view, id); ok {
			names = append(names, CrewName(doc))
		}
	}
	return strings.Join(names, ", ")
}

// Hatched reports whether all summoned members have registered or expired.
func Hatched(shown view.CrewView) bool {
	return shown.InProgress == "" &&
		!slices.ContainsFunc(shown.Agents, func(doc view.DocumentView) bool { return doc.Status == string(crew.Hatching) })
}

// Reported reports that the lead has said who is awake, was silent for too long, or is gone.
func Reported(view view.CrewView) bool { return view.InProgress == "" }

// LeadGone reports that the lead's session is over.
func LeadGone(view view.CrewView) bool { return view.Lead.Session == "" }

// AwaitCrew follows the journal from an order until it has taken effect, and reports which of the
// members in question are not awake then.
func AwaitCrew(ctx context.Context, a *cli.App, client *apiclient.Client, done api.CrewOrdered, who []string,
	over func(view.CrewView) bool,
) error {
	seq, said := done.Seq, ""
	for {
		view, err := client.Crew.Show(ctx, true)
		if err != nil {
			return err
		}
		if over(view) {
			if a.JSON {
				if err := a.PrintJSON(api.CrewOrdered{Seq: done.Seq, Team: view}); err != nil {
					return err
				}
			} else {
				fmt.Fprintln(a.Out, cli.Line(Outcome(view, who), cli.ErrorWidth))
			}
			return NotAwake(view, who, done.Team)
		}
		if !a.JSON {
			said = meanwhile(a, view, done.Team.Notices, said)
			done.Team.Notices = view.Notices // they have been printed
		}
		// After each change, look at the state again: the command waits for a state, not for an event.
		if seq, err = client.Next(ctx, seq, func(change api.Change) bool {
			return change.Machine == "crew" || change.Machine == "session"
		}); err != nil {
			return err
		}
	}
}

// meanwhile prints once what keeps the lead from the ceremony; it returns what was printed.
func meanwhile(a *cli.App, shown view.CrewView, known []view.NoticeView, said string) string {
	for _, n := range shown.Notices {
		if !slices.Contains(known, n) {
			fmt.Fprintln(a.Err, a.Paint(cli.Dim, cli.Line(n.Kind+": "+n.Text, noticeWidth)))
		}
	}
	if shown.Lead.State != view.LeadWaits || shown.Lead.Why == said {
		return said
	}
	fmt.Fprintln(a.Err, a.Paint(cli.Dim, cli.Line(shown.Lead.Agent, NameWidth)+" leads: "+leadWords(shown.Lead)))
	return shown.Lead.Why
}

// Outcome describes the crew when a ceremony is over.
func Outcome(view view.CrewView, who []string) string {
	if who == nil {
		return cli.Line(view.Lead.Agent, NameWidth) + "'s session is over; the crew sleeps"
	}
	var awake []string
	for _, id := range who {
		if IsAwake(view, id) {
			awake = append(awake, id)
		}
	}
	return fmt.Sprintf("%d of %d are awake: %s", len(awake), len(who), cli.OrDash(NamesOf(view, awake)))
}

// NotAwake returns an error that names those who are not awake, with the known reasons.
func NotAwake(view view.CrewView, who []string, before view.CrewView) error {
	var errs []string
	for _, id := range who {
		if doc, ok := docOf(view, id); ok && doc.Status != string(crew.Alive) {
			errs = append(errs,
				fmt.Sprintf("%s is %s: %s", cli.Line(CrewName(doc), NameWidth), cli.Plain(doc.Status), evidence(view.Lead, doc)))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	for _, n := range view.Notices {
		if !slices.Contains(before.Notices, n) {
			errs = append(errs, cli.Line(n.Kind+": "+n.Text, cli.ErrorWidth))
		}
	}
	return errors.New(strings.Join(errs, "\n"))
}
