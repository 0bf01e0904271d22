package runs

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// treeDigits is the length of the shortest prefix that names a tree. An agent can choose what it writes, so a short one
// would be the prefix of another tree, too.
const treeDigits = view.TreeDigits

// shownMetric is a metric of the report with what the newest question about a task shows, or showed; empty: it has none. A pull request
// that is published already is not asked about: then the checks have shown it.
func shownMetric(r *workflow.Run, name string) string {
	for _, step := range []workflow.StepID{task.StepApprove, task.StepCheck} {
		if metric(r, step, task.MetricTree) != "" {
			return metric(r, step, name)
		}
	}
	return ""
}

// askedOf is what the newest question about a task shows, or showed. It is read from the journal only.
func askedOf(r *workflow.Run) task.Asked {
	return task.Asked{
		Tree: shownMetric(r, task.MetricTree), Commit: shownMetric(r, task.MetricCommit), From: shownMetric(r, task.MetricFrom),
	}
}

// governsOf are the governing files among what the newest question about a task shows. A separate yes names their hash.
func governsOf(r *workflow.Run) task.Governs {
	return task.ParseGoverns(shownMetric(r, task.MetricGoverning), shownMetric(r, task.MetricGoverns))
}

// workTold are lines about the newest answer of a task's agent for the person who decides.
func workTold(r *workflow.Run) (lines []string) {
	if _, work, ok := r.Find(task.StepWork); ok {
		for _, sentence := range work.Denied {
			lines = append(lines, "the last answer of its agent: "+sentence)
		}
	}
	if metric(r, task.StepWork, task.MetricSilent) != "" {
		lines = append(lines, "the last answer of its agent ended without a word")
	}
	return lines
}

// governingOf are the patterns of files that are governing besides those of the table: those of the configuration in force, and what it
// names.
func governingOf(conf *config.Config, workspace string) []string {
	all := slices.Clone(conf.Tasks.Governing)
	for _, file := range append(conf.Includes(), conf.Workflows...) {
		if name, err := filepath.Rel(workspace, file); err == nil && filepath.IsLocal(name) {
			all = append(all, filepath.ToSlash(name))
		}
	}
	return all
}

// allowed refuses an approval of governing files without a separate yes for exactly these.
func allowed(id, yes string, g task.Governs) error {
	reason := g.Wants(id, yes)
	if reason == "" {
		return nil
	}
	return &table.Refusal{Subject: "task " + id, Event: "approve", State: string(workflow.Waiting), Row: "W9", Reason: reason}
}

// NotByHand refuses an order about a task that a person has checked out: what is committed there would not be part of it.
func NotByHand(t task.Task, event string) error {
	c, err := t.ByHand()
	if err != nil || c.Dir == "" {
		return err
	}
	return &table.Refusal{
		Subject: "task " + t.ID, Event: event, State: string(workflow.Waiting), Row: "W9",
		Reason: "it is checked out in " + c.Dir + "; " + t.DoneWords(),
	}
}

// waitsForPerson reports whether the step approve of a task waits for a person.
func waitsForPerson(r *workflow.Run) bool {
	_, p, ok := r.Find(task.StepApprove)
	return ok && p.State == workflow.Waiting && r.Stage != workflow.Stopped
}

// asksAgain is why a task that could not land is shown to a person again; empty: it is not.
func asksAgain(r *workflow.Run) string {
	if _, p, ok := r.Find(task.StepLand); !ok || p.State != workflow.Failed || r.Stage != workflow.Driven {
		return ""
	}
	return metric(r, task.StepLand, task.MetricAgain)
}

// askAgain starts a task over at the step that shows it.
func (c *Controller) askAgain(ctx context.Context, id, why string) {
	if _, err := c.SubmitRun(ctx, sessions.ByEngine, id,
		workflow.ResumeAsked{From: task.StepApprove, By: sessions.ByEngine.ID, Why: why}); err != nil && ctx.Err() == nil {
		c.log.Warn("a task cannot be shown again; `fairlead run resume` with --start-at-step approve does it", "task", id, "error", err)
	}
}

// named refuses an approval of another tree than the one that a question shows.
func named(id, tree string, asked task.Asked) error {
	refuse := func(format string, args ...any) error {
		return &table.Refusal{
			Subject: "task " + id, Event: "approve", State: string(workflow.Waiting), Row: "W9",
			Reason: fmt.Sprintf(format, args...),
		}
	}
	switch {
	case tree == "":
		return nil
	case asked == (task.Asked{}):
		return refuse("the question shows no tree; leave the hash out")
	case len(tree) < treeDigits:
		return refuse("tree %s is too short; name it with at least %d digits, as `fairlead diff %s` prints it", tree, treeDigits, id)
	case !strings.HasPrefix(asked.Tree, strings.ToLower(tree)):
		return refuse("you looked at tree %.12s, and it now shows tree %.12s; nothing was approved. Look at it again: fairlead diff %s",
			tree, asked.Tree, id)
	}
	return nil
}

// StillApproved refuses to land a task again for a person who looked at another commit or tree than the one that was approved. A
// repository that does not have that commit, because another machine showed it, has shown another one: then only the tree counts.
func (c *Controller) StillApproved(ctx context.Context, id, shown, tree string, has func(commit string) bool) error {
	var asked task.Asked
	if err := c.loop.View(ctx, func(t *team.Team) {
		if r := t.Runs[id]; r != nil {
			asked = askedOf(r)
		}
	}); err != nil {
		return err
	}
	if shown != "" && shown != asked.Commit && has(asked.Commit) {
		return &table.Refusal{
			Subject: "task " + id, Event: "merge", State: string(workflow.Failed), Row: "W9",
			Reason: fmt.Sprintf("you looked at commit %.10s, and commit %.10s was approved; look at it again: fairlead diff %s", shown,
				asked.Commit, id),
		}
	}
	return named(id, tree, asked)
}
