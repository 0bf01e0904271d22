package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/read/view"
)

const (
	overlapTasksMax = 20 // open tasks whose files are compared: git starts once for each
	overlapFilesMax = 5  // files that are named of two tasks
)

// touchedBy are the files that each open task changes, by its id, as far as they were kept. A task whose files cannot be read is left out.
func touchedBy(ctx context.Context, a *cli.App, all []*view.TaskView) map[string][]string {
	open := slices.DeleteFunc(slices.Clone(all), func(t *view.TaskView) bool {
		return t.Status == view.TaskDone || t.Status == view.TaskDropped || t.Status == view.TaskBlocked
	})
	touched := map[string][]string{}
	if len(open) < 2 {
		return touched
	}
	for _, one := range open[:min(len(open), overlapTasksMax)] {
		if t, err := Open(a, one.ID); err == nil {
			if files, err := t.Touched(ctx); err == nil {
				touched[one.ID] = files
			}
		}
	}
	return touched
}

// bothChange are the files that two tasks change, for people; empty: none.
func bothChange(one, other []string) string {
	has := map[string]bool{}
	for _, name := range one {
		has[name] = true
	}
	var both []string
	for _, name := range other {
		if has[name] {
			both = append(both, cli.Line(name, cli.PathWidth))
		}
	}
	if more := len(both) - overlapFilesMax; more > 0 {
		both = append(both[:overlapFilesMax:overlapFilesMax], fmt.Sprintf("%d more", more))
	}
	return strings.Join(both, ", ")
}

// overlaps has a line for every two open tasks that change the same files.
func overlaps(ctx context.Context, a *cli.App, all []*view.TaskView) (lines []string) {
	touched := touchedBy(ctx, a, all)
	for i, one := range all {
		for _, other := range all[i+1:] {
			if files := bothChange(touched[one.ID], touched[other.ID]); files != "" && one.Base == other.Base {
				lines = append(lines, fmt.Sprintf("%s and %s both change %s", withStatus(one), withStatus(other), files))
			}
		}
	}
	return lines
}

// alsoChange has a line for every open task that changes files that the task with an id changes, too.
func alsoChange(ctx context.Context, a *cli.App, id string, all []*view.TaskView) (lines []string) {
	touched := touchedBy(ctx, a, all)
	for _, other := range all {
		if files := bothChange(touched[id], touched[other.ID]); files != "" && other.ID != id {
			lines = append(lines, fmt.Sprintf("%s changes %s, too", withStatus(other), files))
		}
	}
	return lines
}

func withStatus(t *view.TaskView) string { return cli.Plain(t.ID) + " (" + Words(t.Status) + ")" }
