package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/work/sessions"
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

func (p *statePen) now(ctx context.Context) (is stateNow, err error) {
	err = p.e.loop.View(ctx, func(t *team.Team) {
		if r := t.Runs[p.m.id]; r != nil {
			is = stateNow{runstate.RunStateOf(r), stateFile(r), p.m.due, atEnd(r), r.AtRest(), howOf(t, p.m.id).Task != nil}
		}
	})
	return is, err
}

// stateThere is the file at the path of run_state.json.
type stateThere struct {
	info fs.FileInfo // nil: there is none
	same bool        // it has the content that Fairlead would write
	edit *workflow.StateEdited
	why  string // why what another program wrote cannot be taken in
}

// look examines the file at the path of run_state.json. Without edit and why, Fairlead wrote it. A content that cannot be
// parsed is judged when no program has written for tornFor, because an editor that writes in place first truncates the file.
func (p *statePen) look(is *stateNow, content []byte, by string) (there stateThere, err error) {
	began := time.Now()
	for {
		there, torn, err := p.lookOnce(is, content, by)
		if !torn || time.Since(there.info.ModTime()) >= tornFor || time.Since(began) >= tornMax {
			return there, err
		}
		p.rest(tornFor / 10)
	}
}

func (p *statePen) rest(d time.Duration) {
	if p.pause != nil {
		p.pause()
		return
	}
	time.Sleep(d)
}

const (
	tornFor = 200 * time.Millisecond // an in-place save takes less time between its truncation and its last byte
	tornMax = 5 * time.Second        // a writer that never finishes, or whose clock is ahead, is not waited for any longer
)

// lookOnce is one look. torn: the content is malformed; it may be half of what is being written.
func (p *statePen) lookOnce(is *stateNow, content []byte, by string) (there stateThere, torn bool, err error) {
	info, err := os.Lstat(is.path)
	if errors.Is(err, fs.ErrNotExist) {
		return there, false, nil
	}
	if there.info = info; err != nil {
		return there, false, err
	}
	if p.last != nil && os.SameFile(info, p.last) && info.ModTime().Equal(p.last.ModTime()) && info.Size() == p.last.Size() {
		return there, false, nil // Fairlead wrote it, or has what is in it
	}
	if !info.Mode().IsRegular() {
		there.why = "it is no regular file"
		return there, false, nil
	}
	text, err := sessions.ReadUpTo(is.path, workspace.RunFileMax)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return stateThere{}, false, nil
	case err != nil: // it is too large, or not readable
		there.why = err.Error()
		return there, false, nil //nolint:nilerr // the error is the reason why the file is kept aside
	}
	if there.same = bytes.Equal(text, content); there.same {
		return there, false, nil
	}
	was, err := runstate.ParseRunState(text)
	switch {
	case err != nil:
		there.why, torn = err.Error(), true
	case p.last == nil && was.UpdatedAt < is.state.UpdatedAt && writtenAtOnce(was.UpdatedAt, info.ModTime()):
		// Fairlead wrote it before the restart, and then the journal went on. The time format sorts as text. With the same time but
		// other content it was edited.
	case is.task:
		there.why = "the run is a task, whose steps are approved on the page or with `fairlead merge`, and not by a file"
	case !is.rests:
		there.why = "the run is not over; an edit is taken in only after it has completed, failed or been cancelled"
	default:
		edit, changed, err := runstate.StateEditedOf(is.state, was, by)
		if err != nil {
			there.why = err.Error()
		} else if changed {
			there.edit = &edit
		}
	}
	return there, torn, nil
}

// keepAside renames what another program wrote.
func (p *statePen) keepAside(path, why string) error { return p.putAside(path, path, why) }

// putAside renames a file, which lies at the path of run_state.json or has lain there.
func (p *statePen) putAside(at, path, why string) error {
	aside := fmt.Sprintf("%s.foreign-%s", path, time.Now().UTC().Format("20060102T150405.000000Z"))
	if err := os.Rename(at, aside); err != nil {
		return err
	}
	p.e.log.Warn("run_state.json was edited by a person or another program; that file is kept aside, and Fairlead writes its own", "run",
		p.m.id, "kept_as", aside, "why", why)
	p.say("kept aside as " + filepath.Base(aside) + ": " + why)
	return nil
}

// say records for people the outcome of an edit.
func (p *statePen) say(words string) { p.edited.Store(&words) }

// takeEdit takes in an edit of run_state.json before the run is resumed, or keeps it aside.
func (p *statePen) takeEdit(ctx context.Context, by change.Actor) (taken bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, err := p.now(ctx)
	if err != nil || is.path == "" {
		return false, err
	}
	there, err := p.look(&is, is.state.Render(), by.ID)
	switch {
	case err != nil:
		return false, err
	case there.why != "":
		return false, p.keepAside(is.path, there.why)
	case there.edit == nil:
		return false, nil
	}
	_, err = p.e.SubmitRun(ctx, by, p.m.id, *there.edit)
	if no, ok := errors.AsType[*table.Refusal](err); ok {
		return false, p.keepAside(is.path, no.Subject+": "+no.Reason)
	}
	if err != nil {
		return false, err
	}
	p.last = there.info // its content is in the journal; what is written over it after this is kept aside
	p.e.log.Info("run_state.json was edited by a person or another program; the edit is taken in", "run", p.m.id)
	p.say("taken in, by the resume of " + time.Now().UTC().Format(time.RFC3339))
	return true, nil
}
