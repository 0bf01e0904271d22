package notices

import (
	"cmp"
	"time"

	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"
)

const limitLeast = 5 * time.Minute // a shorter wait for a provider is over before a person has looked

// Due derives everything that there is to tell at a time.
func Due(t *team.Team, now time.Time) []notice.Notice {
	var all []notice.Notice
	for _, id := range t.RunIDs() {
		all = append(all, ofRun(t, id, now)...)
	}
	for _, q := range t.Questions.Open("") {
		all = append(all, ofQuestion(q))
	}
	limits := map[string]bool{}
	for _, name := range t.Names() {
		a := t.Agents[name]
		if a.Removed {
			continue
		}
		if !a.Control.GaveUp.IsZero() {
			all = append(all, notice.Notice{
				Event: notice.GaveUp, Cause: "agent/" + name, Since: a.Control.GaveUp, Agent: name,
				Why: name + " failed too often and is not started again", Page: view.PageLink("agents", name, "evidence"),
			})
		}
		if a.Control.Overwritten() {
			all = append(all, notice.Notice{
				Event: notice.NeedsYou, Cause: "agent/" + name, Since: a.Control.Desired.At, Agent: name,
				Why: "the loop of " + name + " keeps writing over an order", Page: view.PageLink("agents", name, "evidence"),
			})
		}
		if l := a.Limited; a.Waits() && now.Before(l.Until) && l.Until.Sub(l.Since) >= limitLeast {
			all = append(all, notice.Notice{
				Event: notice.LimitReached, Cause: "provider/" + name, Since: l.Since, Agent: name,
				Why:  "the provider of " + name + " is rate limited until " + l.Until.UTC().Format("2006-01-02 15:04Z"),
				Page: view.PageLink("agents", name, "evidence"),
			})
		}
		if limit, ofTeam := t.LimitOver(a, now); limit != "" {
			m := overLimit(limit, "agent/"+name, now)
			if m.Agent = name; ofTeam {
				m = overLimit(limit, "team", now)
			}
			if !limits[m.Cause] {
				limits[m.Cause] = true
				all = append(all, m)
			}
		}
	}
	return all
}

// overLimit is a daily limit of the configuration. It is told once a day; the text changes with what was used.
func overLimit(limit, whose string, now time.Time) notice.Notice {
	return notice.Notice{
		Event: notice.LimitReached, Cause: "limit/" + whose, Since: now.UTC().Truncate(24 * time.Hour),
		Why: "the limit " + limit + " is reached: no session starts until the next day (UTC)", Page: view.PageLink("usage"),
	}
}

// overDisk is the disk budget of the configuration. It is told once a day, as the other limits are.
func overDisk(why string, now time.Time) notice.Notice {
	return notice.Notice{
		Event: notice.LimitReached, Cause: "limit/disk", Since: now.UTC().Truncate(24 * time.Hour), Why: why,
		Page: view.PageLink("agents"),
	}
}

// fetchStopped is a fetch of tasks.fetch that failed. It is told until a person has seen to it.
func fetchStopped(stop *runs.FetchStop) notice.Notice {
	return notice.Notice{
		Event: notice.NeedsYou, Cause: "fetch", Since: stop.At, Page: view.PageLink("inbox"),
		Why: "tasks.fetch could not fetch the remote, and fetches no more until `fairlead reload`, or a `fairlead task sync` that works",
	}
}

func ofRun(t *team.Team, id string, now time.Time) []notice.Notice {
	r := t.Runs[id]
	about := notice.Notice{Run: id, Workflow: r.Plan.Name, Page: view.PageLink("runs", id)}
	var all []notice.Notice
	if w := t.Notes[id].Warned; w.Day != "" && now.Sub(w.At) <= notice.AgeMax {
		m := about
		m.Event, m.Cause, m.Since, m.Past, m.Why = notice.LimitReached, "limit/run/"+id, w.At, true, view.WarnedWords(w)
		all = append(all, m)
	}
	switch r.Status() {
	case workflow.IsCompleted, workflow.IsFailed:
		return append(all, ended(t, r, about, now)...)
	case workflow.IsCancelled, workflow.IsRunning, workflow.IsWaiting:
	}
	for _, todo := range t.RunActions(id, now) {
		if todo.Do != team.AskForAnswer {
			continue
		}
		item, m := runs.InboxItem(r, todo.Step.Lease.Step), about
		m.Event, m.Kind, m.Step, m.Since, m.Why, m.Path = notice.NeedsYou, item.Kind, item.Step, item.Since, item.Why, item.Path
		m.Cause, m.Page = "step/"+id+"/"+item.Step, view.PageLink("runs", id, item.Step)
		if title, is := runs.TaskTitle(t, id); is {
			m.Title, m.Page, m.Why = title, view.PageLink("tasks", id), "task "+id+" waits for your review"
		}
		all = append(all, m)
	}
	if limit := t.RunOver(id, now); limit != "" && t.Notes[id].Settings.AtLimit != team.LimitWarns {
		m := about
		m.Event, m.Cause, m.Why = notice.LimitReached, "limit/run/"+id, "the limit "+limit+" is reached"
		m.Since = t.RepoDay(r, now).Ends.Add(-24 * time.Hour) // once on the repository's day
		all = append(all, m)
	}
	return all
}

// ended is a run that completed or failed. A failed task that a person can help on is one that needs you.
func ended(t *team.Team, r *workflow.Run, m notice.Notice, now time.Time) []notice.Notice {
	if now.Sub(r.UpdatedAt) > notice.AgeMax {
		return nil
	}
	failed, k := "", t.Tasks[m.Run]
	if k != nil {
		m.Since, failed = k.Since, string(k.FailedAt())
	}
	for i := range r.Steps {
		if p := &r.Steps[i]; p.EndedAt.After(m.Since) {
			m.Since = p.EndedAt
		}
		if k == nil && r.Steps[i].State == workflow.Failed {
			failed = cmp.Or(failed, string(r.Plan.Steps[i].ID))
		}
	}
	m.Since = cmp.Or(m.Since, r.UpdatedAt)
	m.Past, m.Event, m.Cause = true, notice.Finished, "run/"+m.Run
	title, isTask := runs.TaskTitle(t, m.Run)
	word := "run " + m.Run + " of " + m.Workflow
	if isTask {
		m.Title, m.Page, word = title, view.PageLink("tasks", m.Run), "task "+m.Run
	}
	if m.Why = word + " is done"; failed == "" {
		return []notice.Notice{m}
	}
	m.Event, m.Step, m.Why = notice.RunFailed, failed, word+" failed in step "+failed
	if !isTask {
		return []notice.Notice{m}
	}
	if m.Event = notice.TaskFailed; runs.NeedsRoom(failed) {
		m.Event, m.Past, m.Kind, m.Why = notice.NeedsYou, false, "step", "task "+m.Run+" cannot land without you"
	}
	return []notice.Notice{m}
}

func ofQuestion(q *question.Question) notice.Notice {
	m := notice.Notice{
		Event: notice.NeedsYou, Cause: "question/" + q.ID, Since: q.AskedAt, Kind: string(q.Kind), Agent: q.Agent,
		Page: view.PageLink("inbox", q.ID),
	}
	switch q.Kind {
	case question.Permission:
		switch {
		case q.Order != "":
			m.Why = "agent_state.json of " + q.Agent + " asks for " + q.Order + " (" + q.ID + ")"
		case q.Host != "":
			m.Why = q.Agent + " wants to reach " + q.Host + " (" + q.ID + ")"
		default:
			m.Why = q.Agent + " asks for permission (" + q.ID + ")"
		}
	case question.Resume:
		m.Why = q.Agent + " waits for a word about its conversation (" + q.ID + ")"
	case question.HostLost:
		m.Why = q.Agent + " waits for a word about a lost host (" + q.ID + ")"
	case question.Asked:
		m.Why = q.Agent + " asks a question (" + q.ID + ")"
	}
	return m
}
