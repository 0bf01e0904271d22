package runs

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// stateNow is a run as its file has to show it.
type stateNow struct {
	state runstate.RunState
	path  string // empty: there is no such run
	due   uint64
	over  bool // see atEnd
	rests bool // an edit may be taken in
	task  bool
}

func (p *stateWriter) now(ctx context.Context) (is stateNow, err error) {
	err = p.e.loop.View(ctx, func(t *team.Team) {
		if r := t.Runs[p.m.id]; r != nil {
			is = stateNow{runstate.RunStateOf(r), stateFile(r), p.m.due, atEnd(r), r.AtRest(), howOf(t, p.m.id).Task != nil}
		}
	})
	return is, err
}

// open prepares the exchange of the run's folder. The error wraps fs.ErrNotExist if there is none.
func (p *stateWriter) open(path string) error {
	if p.files != nil {
		return nil
	}
	files := exchange.Watch(runstate.Content, p.e.log)
	files.Deliver(func(seen runstate.Seen) {
		if seen.FromSwap {
			p.kept(seen.KeptAs, "it was edited while Fairlead wrote it")
		}
	})
	err := files.Add(p.m.id, filepath.Dir(path))
	if err == nil {
		p.files = files
	}
	return err
}

// look reads the file. The error wraps fs.ErrNotExist if its folder is missing.
func (p *stateWriter) look(path string) (seen runstate.Seen, err error) {
	if err := p.open(path); err != nil {
		return seen, err
	}
	return p.files.Read(p.m.id)
}

// judge says what to do about the file as it was seen: it is an edit that may be taken in, or it is kept aside because of why. If it
// is neither, Fairlead wrote it or may replace it.
func (p *stateWriter) judge(is *stateNow, seen *runstate.Seen, by string) (edit *workflow.StateEdited, why string) {
	was := &seen.State
	switch {
	case seen.Own || seen.Seq == p.taken || seen.Kind == exchange.KindDeleted || seen.Sum == file.SumOf(is.state.Render()):
	case seen.Kind != exchange.KindWritten:
		return nil, seen.Fault
	case !p.begun && was.UpdatedAt < is.state.UpdatedAt && writtenAtOnce(was.UpdatedAt, seen.Changed):
		// Fairlead wrote it before the restart, and then the journal went on. The time format sorts as text. With the same time but
		// other content it was edited.
	case is.task:
		return nil, "the run is a task, whose steps are approved on the page or with `fairlead merge`, and not by a file"
	case !is.rests:
		return nil, "the run is not over; an edit is taken in only after it has completed, failed or been cancelled"
	default:
		edit, changed, err := runstate.StateEditedOf(is.state, *was, by)
		if err != nil {
			return nil, err.Error()
		}
		if changed {
			return &edit, ""
		}
	}
	return nil, ""
}

// keepAside renames what another program wrote.
func (p *stateWriter) keepAside(seen *runstate.Seen, why string) error {
	name, err := p.files.PutAside(*seen, exchange.Foreign)
	if err == nil {
		p.kept(name, why)
	}
	return err
}

// kept says what was kept aside, and why.
func (p *stateWriter) kept(name, why string) {
	p.e.log.Warn("run_state.json was edited by a person or another program; that file is kept aside, and Fairlead writes its own", "run",
		p.m.id, "kept_as", name, "why", why)
	p.say("kept aside as " + name + ": " + why)
}

// say records for people the outcome of an edit.
func (p *stateWriter) say(words string) { p.edited.Store(&words) }

// takeEdit takes in an edit of run_state.json before the run is resumed, or keeps it aside.
func (p *stateWriter) takeEdit(ctx context.Context, by change.Actor) (taken bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, err := p.now(ctx)
	if err != nil || is.path == "" {
		return false, err
	}
	seen, err := p.look(is.path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // there is no folder
		}
		return false, err
	}
	edit, why := p.judge(&is, &seen, by.ID)
	switch {
	case why != "":
		return false, p.keepAside(&seen, why)
	case edit == nil:
		return false, nil
	}
	_, err = p.e.SubmitRun(ctx, by, p.m.id, *edit)
	if no, ok := errors.AsType[*table.Refusal](err); ok {
		return false, p.keepAside(&seen, no.Subject+": "+no.Reason)
	}
	if err != nil {
		return false, err
	}
	p.files.Confirm(seen) // its content is in the journal; what is written over it after this is kept aside
	p.begun, p.taken = true, seen.Seq
	p.e.log.Info("run_state.json was edited by a person or another program; the edit is taken in", "run", p.m.id)
	p.say("taken in, by the resume of " + time.Now().UTC().Format(time.RFC3339))
	return true, nil
}
