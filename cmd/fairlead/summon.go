package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/view"
)

func (a *app) summonVerb() *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "summon",
		Short: "Summon the crew: as many members as team.size says",
		Long: `The lead is told which seats are free. On each seat a member hatches, and it is alive when the lead
has registered it. A member that does not come within team.hatch_timeout expires. A crew is summoned
once; after that, ` + "`fairlead crew wake`" + ` wakes it.

--wait returns when no member hatches any more; exit code 1 means that a member did not come.`,
		Example: "  fairlead crew summon --wait",
		Args:    args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			done, err := client.Summon(ctx)
			if err != nil {
				return err
			}
			if wait {
				return a.awaitCrew(ctx, client, done, everybodyOf(done.Team), hatched)
			}
			return a.toldLead(done, fmt.Sprintf("is to summon %s; `fairlead crew` shows who comes", howMany(len(done.Team.Agents), "agent", "agents")))
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return when everybody has come, or expired")
	return cmd
}

func (a *app) wakeVerb() *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "wake [AGENT...]",
		Short: "Wake sleeping crew members: all of them, or some by name",
		Long: `The lead is started if it has no session, and asked which members are with it. The others are woken:
for each, the lead gets its soul and what it said last. A member is awake when the lead says so. Two
members may have the same name; each has an id, which ` + "`fairlead crew --json`" + ` shows.

--wait returns when the lead has reported or was silent for too long; exit code 1 means that a member
is not awake.`,
		Example: `  fairlead crew wake --wait
  fairlead crew wake Wren`,
		Args:              args(namesSomebody),
		ValidArgsFunction: a.completeCrew,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, names []string) error {
			done, err := client.Wake(ctx, names)
			if err != nil {
				return err
			}
			who := everybodyOf(done.Team)
			if len(names) > 0 {
				who = slices.DeleteFunc(who, func(id string) bool { return !addressed(done.Team, id, names) })
			}
			if wait {
				return a.awaitCrew(ctx, client, done, who, reported)
			}
			asleep := slices.DeleteFunc(who, func(id string) bool { return isAwake(done.Team, id) })
			if len(asleep) == 0 {
				return a.toldLead(done, "is asked who is awake: everybody was, by its last word")
			}
			return a.toldLead(done, "is to wake "+line(namesOf(done.Team, asleep), errorWidth)+"; `fairlead crew` shows who does")
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return when the lead has said who is awake")
	return cmd
}

func (a *app) sleepVerb() *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "sleep",
		Short: "Let the crew sleep: the session of the lead ends",
		Long: `Members live in the session of the lead, so they sleep when it ends. Their souls and what they said
are kept; ` + "`fairlead crew wake`" + ` gives them back. --wait returns when the session is over.`,
		Example: "  fairlead crew sleep --wait",
		Args:    args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			done, err := client.Sleep(ctx)
			if err != nil {
				return err
			}
			if wait {
				return a.awaitCrew(ctx, client, done, nil, leadGone)
			}
			if done.Team.Lead.Session == "" {
				return a.toldLead(done, "has no session: the team sleeps already")
			}
			return a.toldLead(done, "is to end its session; then everybody sleeps")
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return when the lead's session is over")
	return cmd
}

// namesSomebody refuses an empty name, which is mostly a variable of a script that is not set.
func namesSomebody(_ *cobra.Command, names []string) error {
	if slices.Contains(names, "") {
		return errors.New("an empty name names nobody; `fairlead crew` shows who is there")
	}
	return nil
}

func (a *app) toldLead(done api.CrewOrdered, what string) error {
	if a.json {
		return a.printJSON(done)
	}
	text := line(done.Team.Lead.Agent, crewNameWidth) + " " + what
	if done.Team.Lead.State == view.LeadWaits {
		text += "\nbut " + leadWords(done.Team.Lead)
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}

// everybodyOf are the ids of those whom people see.
func everybodyOf(view view.CrewView) (ids []string) {
	for _, doc := range view.Agents {
		if doc.Status != string(crew.Expired) {
			ids = append(ids, doc.ID)
		}
	}
	return ids
}

// addressed says whether somebody is meant by one of these names.
func addressed(view view.CrewView, id string, names []string) bool {
	doc, ok := docOf(view, id)
	return ok && (slices.Contains(names, id) || slices.Contains(names, crewName(doc)))
}

func docOf(shown view.CrewView, id string) (view.DocumentView, bool) {
	i := slices.IndexFunc(shown.Agents, func(doc view.DocumentView) bool { return doc.ID == id })
	if i < 0 {
		return view.DocumentView{}, false
	}
	return shown.Agents[i], true
}

func isAwake(view view.CrewView, id string) bool {
	doc, ok := docOf(view, id)
	return ok && doc.Status == string(crew.Alive)
}

func namesOf(view view.CrewView, ids []string) string {
	var names []string
	for _, id := range ids {
		if doc, ok := docOf(view, id); ok {
			names = append(names, crewName(doc))
		}
	}
	return strings.Join(names, ", ")
}

// hatched: everybody who was summoned has come, or expired.
func hatched(shown view.CrewView) bool {
	return shown.InProgress == "" && !slices.ContainsFunc(shown.Agents, func(doc view.DocumentView) bool { return doc.Status == string(crew.Hatching) })
}

// reported: the lead has said who is awake, or was silent for too long, or is gone.
func reported(view view.CrewView) bool { return view.InProgress == "" }

// leadGone: its session is over.
func leadGone(view view.CrewView) bool { return view.Lead.Session == "" }

// awaitCrew follows the journal from an order on until it has taken effect, and says of those
// whom it is about who is not awake then.
func (a *app) awaitCrew(ctx context.Context, client *apiclient.Client, done api.CrewOrdered, who []string, over func(view.CrewView) bool) error {
	seq, said := done.Seq, ""
	for {
		view, err := client.Crew(ctx, true)
		if err != nil {
			return err
		}
		if over(view) {
			if a.json {
				if err := a.printJSON(api.CrewOrdered{Seq: done.Seq, Team: view}); err != nil {
					return err
				}
			} else {
				fmt.Fprintln(a.out, line(outcome(view, who), errorWidth))
			}
			return notAwake(view, who, done.Team)
		}
		if !a.json {
			said = a.meanwhile(view, done.Team.Notices, said)
			done.Team.Notices = view.Notices // who waits has read them
		}
		// Whatever changes next, look again: what is waited for is a state, not an event.
		for change, err := range client.Events(ctx, apiclient.EventsQuery{After: int64(seq)}) { //nolint:gosec // no journal is that long
			if err != nil {
				return err
			}
			seq = change.Seq
			if change.Machine == "presence" || change.Machine == "session" {
				break
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// meanwhile tells who waits what keeps the lead from it, once; it gives what was told.
func (a *app) meanwhile(shown view.CrewView, known []view.NoticeView, said string) string {
	for _, n := range shown.Notices {
		if !slices.Contains(known, n) {
			fmt.Fprintln(a.err, a.paint(dim, line(n.Kind+": "+n.Text, noticeWidth)))
		}
	}
	if shown.Lead.State != view.LeadWaits || shown.Lead.Why == said {
		return said
	}
	fmt.Fprintln(a.err, a.paint(dim, line(shown.Lead.Agent, crewNameWidth)+" leads: "+leadWords(shown.Lead)))
	return shown.Lead.Why
}

// outcome is how a team stands when what was asked for is over.
func outcome(view view.CrewView, who []string) string {
	if who == nil {
		return line(view.Lead.Agent, crewNameWidth) + "'s session is over; the team sleeps"
	}
	var awake []string
	for _, id := range who {
		if isAwake(view, id) {
			awake = append(awake, id)
		}
	}
	return fmt.Sprintf("%d of %d are awake: %s", len(awake), len(who), orDash(namesOf(view, awake)))
}

// notAwake says who of these is not awake, and why as far as is known.
func notAwake(view view.CrewView, who []string, before view.CrewView) error {
	var errs []string
	for _, id := range who {
		if doc, ok := docOf(view, id); ok && doc.Status != string(crew.Alive) {
			errs = append(errs, fmt.Sprintf("%s is %s: %s", line(crewName(doc), crewNameWidth), plain(doc.Status), evidence(view.Lead, doc)))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	for _, n := range view.Notices {
		if !slices.Contains(before.Notices, n) {
			errs = append(errs, line(n.Kind+": "+n.Text, errorWidth))
		}
	}
	return errors.New(strings.Join(errs, "\n"))
}
