package indexer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/search"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// The texts of a task are in files of its run's folder: the journal has only their beginning.

const (
	taskSource   = "task/"
	fileMax      = 256 << 10 // of one file
	roundsMax    = 100       // of a task; a person does not read more
	findingsPart = "findings"
)

// task notes the folder of a task when its run begins, and that its files no longer change when the
// run leaves.
func (b *batch) task(ctx context.Context, ch *change.Change) error {
	id, step, _ := strings.Cut(strings.TrimPrefix(ch.Entity, "run/"), "/")
	if !strings.HasPrefix(ch.Entity, "run/") || step != "" {
		return nil
	}
	switch body := ch.Body.(type) {
	case *workflow.Body:
		if body.Head == nil {
			return nil
		}
		dir := filepath.Dir(body.Head.ReportsDir)
		known, err := b.source(ctx, taskSource+id)
		if err != nil || known != nil && known.Open && known.File == dir {
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, task.FileName)); err != nil {
			return nil //nolint:nilerr // it is no task, or its folder was removed
		}
		b.begun = true
		b.sources[taskSource+id] = &search.Source{ID: taskSource + id, File: dir, Time: body.Head.CreatedAt, Open: true}
	case *team.RunLeft:
		s, err := b.source(ctx, taskSource+id)
		if err != nil || s == nil {
			return err
		}
		s.Open = false
		b.sources[s.ID] = s
		return b.taskFiles(s)
	}
	return nil
}

// files reads the files of tasks that have changed.
func (b *batch) files(ctx context.Context) error {
	list, err := b.x.opts.Index.OpenSources(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		s := &list[i]
		if mine := b.sources[s.ID]; mine != nil {
			continue // in the next round
		}
		if s.File != "" && !b.full() {
			if err := b.taskFiles(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// taskFiles reads the files of a task, if they have changed since they were read.
func (b *batch) taskFiles(s *search.Source) error {
	id := strings.TrimPrefix(s.ID, taskSource)
	looks := looksOf(s.File)
	if b.x.tasks[id] == looks {
		return nil
	}
	t, err := task.Load(filepath.Join(s.File, task.FileName))
	if err != nil {
		return nil //nolint:nilerr // the folder was removed; what was read stays in the index
	}
	add := func(part, text string, at time.Time) {
		if text = strings.TrimSpace(text); text == "" {
			return
		}
		for len(text) > 0 {
			n := max(cut(text, search.PassageBytesMax), 1)
			b.add(search.Passage{
				Place: search.Place{Kind: search.Task, Entity: id, Part: part, Agent: t.Agent}, Time: at,
				At: search.FromFile, Text: text[:n],
			})
			text = text[n:]
		}
	}
	b.replace = append(b.replace, search.Place{Kind: search.Task, Entity: id})
	add("", t.Text, s.Time)
	for _, round := range requestsOf(s.File) {
		name := filepath.Join(s.File, task.RequestName(round))
		text, err := readText(name)
		if err != nil {
			return err
		}
		add(fmt.Sprintf("request-%d", round), text, changedAt(name, s.Time))
	}
	review := task.Review{Task: t}
	review.Run = s.File
	if comments, err := review.Comments(); err == nil { // a file that cannot be read has no comments
		at := changedAt(filepath.Join(s.File, task.CommentsName), s.Time)
		for _, c := range comments {
			add(fmt.Sprintf("comment-%d", c.ID), strings.TrimSpace(c.File+"\n"+c.Quote+"\n"+c.Text), at)
		}
	}
	findings := filepath.Join(s.File, task.FindingsName)
	text, err := readText(findings)
	if err != nil {
		return err
	}
	var found runstate.Review
	if text != "" && json.Unmarshal([]byte(text), &found) == nil {
		var lines []string
		for _, f := range found.Open {
			lines = append(lines, f.String())
		}
		add(findingsPart, strings.Join(lines, "\n"), changedAt(findings, s.Time))
	}
	b.x.tasks[id] = looks
	return nil
}

// readText reads a file; a missing one is empty.
func readText(path string) (string, error) {
	text, err := sessions.ReadUpTo(path, fileMax)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.ToValidUTF8(string(text), "\ufffd"), err
}

func changedAt(path string, otherwise time.Time) time.Time {
	if info, err := os.Stat(path); err == nil {
		return info.ModTime()
	}
	return otherwise
}

// requestsOf are the rounds of a task in which a person asked for changes: not every round has a request.
func requestsOf(dir string) []int {
	rounds, err := task.Requests(dir)
	if err != nil {
		return nil // the folder was removed
	}
	return rounds[max(0, len(rounds)-roundsMax):]
}

// looksOf changes when a file of a task changes.
func looksOf(dir string) string {
	names := []string{task.FileName, task.CommentsName, task.FindingsName}
	for _, round := range requestsOf(dir) {
		names = append(names, task.RequestName(round))
	}
	var b strings.Builder
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
	}
	return b.String()
}
