package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/core/change"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/git/worktree"
)

// RecallRun restores an archived run (SPEC X5), so that it can resume. It moves the folder first and
// then records the run from the journal. After a crash in between, the next prune archives the
// folder again. The error is *team.Unknown if no archived run has that ID.
func (c *Controller) RecallRun(ctx context.Context, by change.Actor, id string) error {
	r, of, note, err := c.archivedRun(ctx, id)
	if err != nil {
		return err
	}
	onOtherHost := false
	if err := c.loop.View(ctx, func(t *team.Team) {
		h := t.Hosts.Hosts[note.Away]
		onOtherHost = t.Leader != note.Away && h != nil && h.State != host.Left && h.RemovedBy == ""
	}); err != nil {
		return err
	}
	if onOtherHost {
		return worktree.RefuseRun(id,
			fmt.Sprintf("it was archived when %s led, which has its files: `fairlead cluster lead %s` lets that machine lead. If that is lost for good, `fairlead host remove %s` lets the run begin with what is here", note.Away, note.Away, note.Away))
	}
	if err := FromArchive(r.RepoDir, id, runstate.FormatRunTime(r.UpdatedAt)); err != nil {
		return err
	}
	_, err = c.SubmitRun(ctx, by, id, team.RunRecalled{Run: r, Settings: note.Settings, Changes: note.Changes, Task: of})
	return err
}

// archivedRun reads a run from the journal as it was when it was archived. Away in its note is the host that has its files since then;
// empty: no other host can lead. It reads the whole journal: the case is rare, and the time is that of a start without a snapshot.
func (c *Controller) archivedRun(ctx context.Context, id string) (r *workflow.Run, of *task.Task, note team.RunMeta, err error) {
	past, key := c.loop.NewTeam(), "run/"+id
	var moved team.FolderMove // since it was archived
	for rec, err := range c.loop.Journal().Read(ctx, journal.Query{}) {
		if err != nil {
			return nil, nil, note, fmt.Errorf("read the journal for run %s: %w", id, err)
		}
		if rec.Entity != "team/team" && rec.Entity != key && !strings.HasPrefix(rec.Entity, key+"/") {
			continue
		}
		ch, err := loop.ChangeOf(rec)
		if err != nil {
			return nil, nil, note, err
		}
		switch ch.Body.(type) {
		case *team.TeamSet: // another machine may lead by now, with other paths
		case *team.RunLeft:
			r, of, note = past.Runs[id], past.Tasks[id], past.Notes[id]
			moved.From = past.Root
			note.Away = cmp.Or(note.Away, past.Leader)
		case *workflow.Body, *task.Body, *team.NoteSet:
			r = nil
		default:
			continue // sessions of its steps
		}
		if past.Apply(ch); r != nil {
			note.Away = cmp.Or(note.Away, past.Leader) // the first one was the machine that had the journal alone
		}
	}
	if r == nil {
		return nil, nil, note, &team.Unknown{What: "run", Name: id, Known: c.knownRuns(ctx)}
	}
	if moved.To = past.Root; moved.From != "" && moved.To != "" {
		workflow.EachPath(r, moved.Of)
		note.Settings.How = moved.JSON(note.Settings.How)
	}
	return r, of, note, nil
}

// FromArchive moves a run's folder back. Of the folders with its name it takes the one whose
// run_state.json was written at the given time. An existing folder is accepted. If the archive has
// none, the run starts a new folder.
func FromArchive(repo, id, updated string) (err error) {
	defer func() { err = wrapped("get the folder of run "+id+" out of the archive", err) }()
	root, err := os.OpenRoot(repo)
	if err != nil {
		return err
	}
	defer root.Close()
	to := filepath.Join(".agents", "runs", id)
	if _, err := root.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	from := filepath.Join(archiveDir(), id)
	for n := 2; n <= archiveTriesMax; n++ {
		if _, err := root.Lstat(from); err != nil {
			break
		}
		state, err := runstate.ReadRunState(filepath.Join(repo, from, runstate.RunStateName))
		if err == nil && state.RunID == id && state.UpdatedAt == updated {
			if err := root.MkdirAll(filepath.Dir(to), DirMode); err != nil {
				return err
			}
			return root.Rename(from, to)
		}
		from = filepath.Join(archiveDir(), fmt.Sprintf("%s.%d", id, n))
	}
	return nil
}
