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
)

// treeDigits is the length of the shortest prefix that names a tree. An agent can choose what it writes, so a short one
// would be the prefix of another tree, too.
const treeDigits = view.TreeDigits

// workTold are lines about the newest answer of a task's agent for the person who decides.
func workTold(r *workflow.Run) (lines []string) {
	if _, work, ok := r.Find(task.StepWork); ok {
		for _, sentence := range work.Denied {
			lines = append(lines, "the last answer of its agent: "+sentence)
		}
	}
	if _, work, ok := r.Find(task.StepWork); ok && work.Metric(task.MetricSilent) != "" {
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
		if k := t.Tasks[id]; k != nil {
			asked = k.Shown.Asked
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
