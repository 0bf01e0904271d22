package runs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/read/view"
)

const (
	inboxStepsMax = 8       // steps whose results are shown beside a question
	inboxLogsMax  = 6       // lines of each
	inboxFilesMax = 8       // artifacts whose content is shown
	fileTextMax   = 4 << 10 // bytes of each: about a screen
	fileSumMax    = 4 << 20 // bytes: a larger file is identified by its size and time
	thenMax       = 20      // steps that wait for an answer
)

// Asked are the steps that wait for a person, and the runs that failed and were not started again. The
// artifacts are not read yet: see WithFiles. It runs in the loop.
func Asked(t *team.Team, now time.Time) []StepAsked {
	var all []StepAsked
	newest := map[string]string{} // by workflow: the run that was started last
	for _, id := range t.RunIDs() {
		r := t.Runs[id]
		if was := t.Runs[newest[r.Plan.Name]]; was == nil || r.CreatedAt.After(was.CreatedAt) {
			newest[r.Plan.Name] = id
		}
	}
	for _, id := range t.RunIDs() {
		r := t.Runs[id]
		for _, todo := range t.RunActions(id, now) {
			if todo.Do == team.AskForAnswer {
				all = append(all, stepAsked(t, r, todo.Step.Lease))
			}
		}
		k := t.Tasks[id]
		if k == nil && r.Status() == workflow.IsFailed && newest[r.Plan.Name] == id || k != nil && k.NeedsHelp() {
			all = append(all, StepAsked{InboxItem: failedRun(t, r)})
		}
	}
	return all
}

// StepAsked is an inbox item about a run, with what is needed to read the artifacts of its step.
type StepAsked struct {
	view.InboxItem
	lease workflow.Lease
	dir   string // the folder that artifacts are relative to; empty: there are none to read
	run   string // the run's folder
}

// stepAsked is a step that waits for an answer. It runs in the loop.
func stepAsked(t *team.Team, r *workflow.Run, lease workflow.Lease) StepAsked {
	how := howOf(t, string(r.ID))
	item := InboxItem(r, lease.Step)
	item.ID = fmt.Sprintf("step/%s/%s/%d", r.ID, lease.Step, lease.N)
	if item.Task = taskView(t, how, r); item.Task != nil {
		item.Path = "" // it is not approved by a file
		shown := t.Tasks[string(r.ID)].Shown
		item.Logs, item.BackTo, item.Then = view.Some(shown.Lines), task.StepWork, []string{task.StepLand}
		item.Made = stepsMade(r, task.StepCheck, task.StepReview)
		if shown.Diff != "" {
			item.Artifacts = []string{shown.Diff}
		}
	}
	return StepAsked{InboxItem: item, lease: lease, dir: workedOn(r.RepoDir, how), run: runDir(r)}
}

// InboxItem is a step that waits for an answer.
func InboxItem(r *workflow.Run, step workflow.StepID) view.InboxItem {
	plan, p, _ := r.Find(step)
	item := view.InboxItem{
		Kind: view.InboxStepWaits, Run: string(r.ID), Step: string(step), Workflow: r.Plan.Name, Since: cmp.Or(p.EndedAt, p.StartedAt),
		Why:  "step " + string(step) + " of " + r.Plan.Name + " waits for an answer",
		Path: p.ManualInputPath, InputSchema: plan.InputSchema, BadInput: p.Fault, Agent: plan.Agent, Blocks: []string{},
		Artifacts: view.Some(p.Artifacts), Logs: view.Some(p.Logs), Metrics: metricsOf(p), BackTo: string(plan.LoopBackTo),
	}
	item.Made = stepsMade(r, plan.Needs[:min(len(plan.Needs), inboxStepsMax)]...)
	for i := range r.Plan.Steps {
		for _, need := range r.Plan.Steps[i].Needs {
			if need == step && len(item.Then) < thenMax {
				item.Then = append(item.Then, string(r.Plan.Steps[i].ID))
			}
		}
	}
	return item
}

// stepsMade is what some steps have made, of those that the plan has.
func stepsMade(r *workflow.Run, steps ...workflow.StepID) (made []view.InboxStep) {
	for _, id := range steps {
		if of, done, ok := r.Find(id); ok {
			made = append(made, view.InboxStep{
				ID: string(id), Agent: of.Agent, Status: string(done.State), Artifacts: view.Some(done.Artifacts), Metrics: metricsOf(done),
				Logs: view.Some(done.Logs[max(0, len(done.Logs)-inboxLogsMax):]),
			})
		}
	}
	return made
}

func metricsOf(p *workflow.Progress) map[string]string {
	if len(p.Metrics) == 0 {
		return nil
	}
	all := map[string]string{}
	for _, m := range p.Metrics {
		all[m.Name] = m.Value
	}
	return all
}

// failedRun is a run that failed. It runs in the loop.
func failedRun(t *team.Team, r *workflow.Run) view.InboxItem {
	id := string(r.ID)
	item := view.InboxItem{
		ID: "run/" + id, Kind: view.InboxRun, Run: id, Workflow: r.Plan.Name, Since: r.UpdatedAt, Blocks: []string{}, Artifacts: []string{},
		Logs: []string{},
		Task: taskView(t, howOf(t, id), r),
	}
	k := t.Tasks[id]
	for i := range r.Steps {
		plan, p := &r.Plan.Steps[i], &r.Steps[i]
		if p.State == workflow.Failed && (k == nil || plan.ID == workflow.StepID(k.FailedAt())) {
			item.Step, item.Agent, item.Error, item.Since = string(plan.ID), plan.Agent, p.LastError, cmp.Or(p.EndedAt, r.UpdatedAt)
			item.Session = lastSession(t, id, plan, p)
		}
	}
	if k != nil && item.Step == "" { // a landing, or another function
		item.Step, item.Error, item.Since = item.Task.FailedStep, k.Why, k.Since
	}
	item.Why = "step " + item.Step + " of " + r.Plan.Name + " failed"
	return item
}

// WithFiles reads the beginning of the artifacts and names what is shown, so that an answer can say what
// it is about. It does not run in the loop.
func (a StepAsked) WithFiles() view.InboxItem {
	item := a.InboxItem
	if item.Kind != view.InboxStepWaits {
		return item
	}
	sayByHand(item.Task, a.run)
	if root, err := os.OpenRoot(a.dir); err == nil {
		defer root.Close()
		names := item.Artifacts
		for _, one := range item.Made {
			names = append(names[:len(names):len(names)], one.Artifacts...)
		}
		seen := map[string]bool{}
		for _, name := range names {
			if !seen[name] && len(item.Files) < inboxFilesMax {
				seen[name] = true
				item.Files = append(item.Files, readArtifact(root, a.dir, name))
			}
		}
	}
	item.Shown = a.sum(item)
	return item
}

// sum identifies what a person is shown: all of the item that was made before the question, the question's
// number, and the artifacts.
func (a StepAsked) sum(item view.InboxItem) string {
	item.Blocks, item.BadInput, item.Task, item.Why, item.Shown = nil, "", nil, "", ""
	text, _ := json.Marshal(struct { // such values can be marshalled
		Question uint64
		Item     view.InboxItem
	}{a.lease.N, item})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// readArtifact reads the beginning of a file that an agent named. It follows no link out of the folder, and
// opens nothing but an ordinary file.
func readArtifact(root *os.Root, dir, name string) view.InboxFile {
	file := view.InboxFile{Name: name}
	path := name
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			file.Why = "it is outside of the repository"
			return file
		}
		path = rel
	}
	if !filepath.IsLocal(path) {
		file.Why = "it is outside of the repository"
		return file
	}
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case os.IsNotExist(err):
		file.Why = "there is no such file"
		return file
	case err != nil:
		file.Why = "it cannot be read"
		return file
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		file.Why = "it cannot be read"
		return file
	case info.IsDir():
		file.Why = "it is a folder"
		return file
	case !info.Mode().IsRegular():
		file.Why = "it is no ordinary file"
		return file
	}
	file.Bytes = info.Size()
	if file.Bytes > fileSumMax {
		file.Why = "it is larger than 4 MiB; last written " + info.ModTime().UTC().Format("2006-01-02T15:04:05.000000000Z")
		return file
	}
	content, err := io.ReadAll(io.LimitReader(f, fileSumMax))
	if err != nil {
		file.Why = "it cannot be read"
		return file
	}
	sum := sha256.Sum256(content)
	file.Bytes, file.Sum = int64(len(content)), hex.EncodeToString(sum[:])
	file.Text, file.Cut = textOf(content)
	if file.Text == "" && file.Bytes > 0 {
		file.Why = "it is no text"
	}
	return file
}

// textOf is the beginning of a text; empty if it is none.
func textOf(content []byte) (text string, cut bool) {
	text = clip.To(string(content[:min(len(content), fileTextMax+1)]), fileTextMax)
	if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return "", false
	}
	return text, len(text) < len(content)
}

// stepItem is one step that waits, as the inbox shows it; false: no person is asked about it.
func (c *Controller) stepItem(ctx context.Context, id, step string) (item view.InboxItem, waits bool, err error) {
	var asked StepAsked
	err = c.loop.View(ctx, func(t *team.Team) {
		for _, todo := range t.RunActions(id, c.loop.Now()) {
			if todo.Do == team.AskForAnswer && string(todo.Step.Lease.Step) == step {
				asked, waits = stepAsked(t, t.Runs[id], todo.Step.Lease), true
			}
		}
	})
	if err != nil || !waits {
		return item, false, err
	}
	return asked.WithFiles(), true, nil
}

// stillShown refuses an answer to a question whose content is not what the person was shown.
func (c *Controller) stillShown(ctx context.Context, id, step, shown string) error {
	if shown == "" {
		return nil
	}
	item, waits, err := c.stepItem(ctx, id, step)
	switch {
	case err != nil:
		return err
	case !waits:
		return c.noQuestion(ctx, id, step)
	case item.Shown != shown:
		return &table.Refusal{
			Subject: "step " + step + " of run " + id, Event: "answer_read", State: string(workflow.Waiting), Row: "W9",
			Reason: "it was changed since you looked; nothing was answered. Look at it again: the inbox has what is asked now",
		}
	}
	return nil
}
