package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/controller/agents"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/session"
	"github.com/fairlead-dev/fairlead/team"
)

// doubtFile compares the last known content of the file with what it should say. A short difference
// is normal; it counts if Fairlead cannot correct it. It runs in the loop.
func (c *Controller) doubtFile(shown *view.AgentView, m *agents.AgentFile, a *team.Agent) {
	if m.Failed != "" {
		shown.Doubt = agentfile.FileName + ": " + m.Failed
	}
	stuck := m.Failed != "" || !m.Again.IsZero() // Again is set if the file could not be written, or another program keeps changing it
	if stuck && m.Known && a.Control.State != control.Foreign && m.State.CurrentState != shown.CurrentState {
		shown.Contradicted("%s says current %s, and the journal %s; the file cannot be corrected at present%s", agentfile.FileName,
			orNothing(m.State.CurrentState), shown.CurrentState, view.Because(m.Failed))
	}
}

func orNothing(word string) string {
	if word == "" {
		return "nothing"
	}
	return word
}

// look finds out, where no daemon runs, whether the process of a session runs. It returns what was found,
// as a clause, or nothing if no process is expected.
func (c *Controller) look(ctx context.Context, view *view.AgentView) (what string, runs bool) {
	s := view.Session
	if c.opts.Look == nil || s == nil || s.Phase != string(session.Running) {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, EvidenceWait)
	defer cancel()
	found, pid, err := c.opts.Look(ctx, s.ID)
	if err != nil {
		return fmt.Sprintf("whether %s runs is not known: %s", s.ID, err), false
	}
	var now int64
	view.EvidenceAgeMS = &now
	switch {
	case found != seam.Running:
		return fmt.Sprintf("%s does not run any more (%s); the next `fairlead up` records its end", s.ID, strings.ReplaceAll(string(found), "_", " ")), false
	case s.PID != 0 && pid != s.PID:
		return fmt.Sprintf("the journal says that %s runs as process %d, and its shim has process %d", s.ID, s.PID, pid), false
	}
	return fmt.Sprintf("the shim of %s answers; process %d runs", s.ID, pid), true
}

// prove asks the shim of a session and adds the answer, or the failure, to the view. It returns the
// shim's answer, or the error if it did not answer; neither if there is no process to ask.
func (c *Controller) prove(ctx context.Context, view *view.AgentView) (*seam.Proof, error) {
	s := view.Session
	if s == nil {
		return nil, nil
	}
	if why := c.sessions.Silence(s.ID); why != "" {
		err := errors.New(why)
		view.Contradicted("whether %s runs is not known: its shim does not answer (%s)", s.ID, why)
		return nil, err
	}
	proc := c.sessions.Proc(s.ID)
	if proc == nil && c.opts.Look != nil {
		if what, runs := c.look(ctx, view); !runs && what != "" {
			view.Contradicted("%s", what)
		}
		return nil, nil
	}
	if proc == nil {
		if s.Phase == string(session.Running) {
			view.Contradicted("the journal says that %s runs, but no shim answers for it", s.ID)
		}
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, EvidenceWait)
	defer cancel()
	asked := time.Now()
	proof, err := proc.Evidence(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it did not answer for %v (%w)", time.Since(asked).Round(time.Millisecond), err)
		}
		view.Contradicted("its shim does not answer: %s", err)
		return nil, err
	}
	age := time.Since(asked).Milliseconds()
	view.EvidenceAgeMS = &age
	switch {
	case proof.Against != "":
		view.Contradicted("%s", proof.Against)
	case s.PID != 0 && proof.PID != s.PID:
		view.Contradicted("the journal says that %s runs as process %d, and its shim holds process %d", s.ID, s.PID, proof.PID)
	case proof.Full != "":
		view.Doubt = proof.Full + ": it waits until its output is read again"
	case proof.Stopped:
		view.Doubt = fmt.Sprintf("process %d was stopped by a signal: it exists and does nothing; `kill -CONT %d` lets it continue", proof.PID, proof.PID)
	case proof.Ended:
		view.Doubt = fmt.Sprintf("process %d has ended, and its remaining processes are being ended", proof.PID)
	}
	return &proof, nil
}
