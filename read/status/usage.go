package status

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// Usage sums up usage by agent, by day and by run, from the agents' own reports: for the days that
// are kept, and for the runs that are not archived. With archived set it includes archived runs,
// for which it reads the whole journal.
func (c *Controller) Usage(ctx context.Context, archived bool) (view.UsageTable, error) {
	table := view.UsageTable{Agents: []view.UsageRow{}, Days: []view.UsageRow{}, Runs: []view.UsageRow{}, Budgets: []view.Budget{}}
	gone, models := map[string]time.Time{}, view.ByModel{}
	err := c.loop.View(ctx, func(t *team.Team) {
		gone, table.Archived = maps.Clone(t.Archive), len(t.Archive)
		now := c.loop.Now()
		table.Budgets = append(table.Budgets, view.BudgetsOf("", t.Limits, t.Usage, now)...)
		for _, name := range c.order(t) {
			a := t.Agents[name]
			if a == nil {
				continue
			}
			if !a.Removed {
				table.Budgets = append(table.Budgets, view.BudgetsOf(name, a.Settings.Limits, a.Usage, now)...)
			}
			all := view.UsageRow{Agent: name, Sessions: int(min(a.Opened, 1<<53))} //nolint:gosec // it fits
			for _, day := range a.Days {
				all.Add(day.Usage)
				row := view.UsageRow{Agent: name, Day: day.Day, Sessions: day.Sessions}
				row.Add(day.Usage)
				table.Total.Add(day.Usage)
				table.Total.Sessions += day.Sessions
				table.Days = append(table.Days, row)
			}
			table.Agents = append(table.Agents, all)
			models.Add(a.Days, a.Models)
		}
		for _, id := range t.RunIDs() {
			table.Runs = append(table.Runs, usageOfRun(t, id))
		}
		slices.SortStableFunc(table.Runs, func(a, b view.UsageRow) int { return t.Runs[b.Run].CreatedAt.Compare(t.Runs[a.Run].CreatedAt) })
	})
	table.Models = models.Rows()
	slices.SortStableFunc(table.Days, func(a, b view.UsageRow) int { return cmp.Compare(b.Day, a.Day) })
	if err != nil || !archived || len(gone) == 0 {
		return table, err
	}
	rows, err := c.archivedUsage(ctx, gone)
	table.Runs = append(table.Runs, rows...)
	return table, err
}

func usageOfRun(t *team.Team, id string) view.UsageRow {
	r := t.Runs[id]
	row := view.UsageRow{Run: id, Workflow: r.Plan.Name}
	row.Title, _ = runs.TaskTitle(t, id)
	row.Add(t.Notes[id].Total)
	for i := range r.Plan.Steps {
		if _, p, known := r.Find(r.Plan.Steps[i].ID); known {
			row.Sessions += int(min(p.N, 1<<53)) //nolint:gosec // it fits
		}
	}
	return row
}

// archivedUsage returns what runs had used when they were archived, the newest run first. An
// agent's usage for a run is recorded with the agent's session, so the whole journal is replayed.
func (c *Controller) archivedUsage(ctx context.Context, gone map[string]time.Time) ([]view.UsageRow, error) {
	past, found := c.loop.NewTeam(), map[string]view.UsageRow{}
	for rec, err := range c.loop.Journal().Read(ctx, journal.Query{}) {
		if err != nil {
			return nil, fmt.Errorf("read the usage of archived runs from the journal: %w", err)
		}
		ch, err := loop.ChangeOf(rec)
		if err != nil {
			return nil, err
		}
		if id, is := strings.CutPrefix(rec.Entity, "run/"); is && change.As[team.RunLeft](ch.Body) != nil && past.Runs[id] != nil {
			row := usageOfRun(past, id)
			row.Archived = true
			found[id] = row
		}
		past.Apply(ch)
	}
	var rows []view.UsageRow
	for id := range gone {
		if row, is := found[id]; is {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b view.UsageRow) int {
		return cmp.Or(gone[b.Run].Compare(gone[a.Run]), cmp.Compare(a.Run, b.Run))
	})
	return rows, nil
}

// viewConversation adds what an agent asks, what its provider reports, and the conversation with
// its program. It runs in the loop.
func (c *Controller) viewConversation(shown *view.AgentView, a *team.Agent) {
	if open := c.loop.State().Questions.Open(a.Name); len(open) > 0 {
		shown.Asks, shown.AsksWhat = len(open), view.WantedWords(open[0])
	}
	if a.Waits() {
		shown.LimitedUntil, shown.LimitedWhy = view.Moment(a.Limited.Until), a.LimitedWhy()
	}
	if s := a.Says; s != nil {
		shown.Says = &view.SaysView{Text: s.Text, At: s.At}
	}
	if a.Session != nil {
		shown.Denied = a.Session.Denied
	}
	if conv := conversationOf(a); conv != nil {
		shown.Conversation = &view.ConversationView{
			ID: conv.ID, Session: conv.Session, Program: conv.Program, Model: conv.Model, Mode: conv.Mode, Enforced: conv.Enforced,
			Resumed: conv.Resumed, At: conv.At,
		}
	}
}

// conversationOf returns the open conversation, or the newest.
func conversationOf(a *team.Agent) *team.Conversation {
	var newest *team.Conversation
	for _, key := range slices.SortedFunc(maps.Keys(a.Conversations), team.Purpose.Compare) {
		c := a.Conversations[key]
		if a.Session != nil && c.Session == a.Session.ID {
			return c
		}
		if newest == nil || c.At.After(newest.At) {
			newest = c
		}
	}
	return newest
}

// conversationEvidence adds the evidence besides the process: the agent's conversation, its
// questions, its denied calls, and its provider's limits.
func conversationEvidence(a *team.Agent, open []question.Question, add adder) {
	if c := conversationOf(a); c != nil {
		text := "conversation " + c.ID + " in session " + c.Session
		if c.Resumed {
			text += ", resumed"
		}
		for _, more := range []struct{ name, value string }{{"with", c.Program}, {"model", c.Model}, {"mode", c.Mode}} {
			if more.value != "" {
				text += ", " + more.name + " " + more.value
			}
		}
		if c.Before != "" {
			text += "; its previous id was " + c.Before
		}
		add("program", c.At, true, "%s", text)
		if lost := sessions.NotFound(c); lost != "" {
			add("program", c.At, false, "%s", lost)
		}
		enforced := cmp.Or(c.Enforced, "its program does not report what it asks permission for")
		add("program", c.At, c.Enforced != "", "restricted by: %s", enforced)
	}
	for i := range open {
		q := &open[i]
		until := "until a person answers"
		if !q.ExpiresAt.IsZero() {
			until = "until " + q.ExpiresAt.UTC().Format("15:04:05Z")
		}
		add("journal", q.AskedAt, true, "it waits for a person, %s: %s: %s", until, q.ID, q.What)
	}
	for _, s := range a.Sessions() {
		if s.Denied > 0 {
			add("journal", s.StartedAt, true, "%s", sessions.DeniedOf(s))
		}
	}
	if a.Waits() {
		add("provider", a.Limited.Since, true, "%s", a.LimitedWhy())
	}
	if s := a.Says; s != nil {
		add("agent", s.At, true, "it reports about itself: %s", s.Text)
	}
}
