package tasks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/read/view"
)

// sharedFiles are the files that another task changes, too, for people.
func sharedFiles(o view.TaskOverlap) string {
	var names []string
	for _, name := range o.Files {
		names = append(names, cli.Line(name, cli.PathWidth))
	}
	if o.More > 0 {
		names = append(names, fmt.Sprintf("%d more", o.More))
	}
	return strings.Join(names, ", ")
}

// overlaps has a line for every two open tasks that change the same files.
func overlaps(all []*view.TaskView) (lines []string) {
	var done []string
	for _, one := range all {
		for _, other := range one.Overlaps {
			if !slices.Contains(done, other.ID+" "+one.ID) {
				done = append(done, one.ID+" "+other.ID)
				lines = append(lines, fmt.Sprintf("%s and %s both change %s", withStatus(one.ID, one.Status), withStatus(other.ID, other.Status),
					sharedFiles(other)))
			}
		}
	}
	return lines
}

// alsoChange has a line for every open task that changes files that the task with an id changes, too.
func alsoChange(id string, all []*view.TaskView) (lines []string) {
	for _, one := range all {
		for _, other := range one.Overlaps {
			if one.ID == id {
				lines = append(lines, fmt.Sprintf("%s changes %s, too", withStatus(other.ID, other.Status), sharedFiles(other)))
			}
		}
	}
	return lines
}

func withStatus(id, status string) string { return cli.Plain(id) + " (" + Words(status) + ")" }
