package status

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/agents"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/agentstate"
)

// doubtFile compares the last known content of the file with what it should say. A short difference
// is normal; it counts if Fairlead cannot correct it. It runs in the loop.
func (c *Controller) doubtFile(shown *view.AgentView, m *agents.AgentFile, a *team.Agent) {
	if m.Failed != "" {
		shown.Doubt = agentstate.FileName + ": " + m.Failed
	}
	stuck := m.Failed != "" || !m.Again.IsZero() // Again is set if the file could not be written, or another program keeps changing it
	if stuck && m.Known && a.Control.State != control.Foreign && m.State.CurrentState != shown.CurrentState {
		shown.Contradicted("%s says current %s, and the journal %s; the file cannot be corrected at present%s", agentstate.FileName,
			orNothing(m.State.CurrentState), shown.CurrentState, view.Because(m.Failed))
	}
}

// doubtReport makes the status unknown if a foreign loop says that it works and has not written its
// file for too long. Fairlead did not start its program, so only the file shows that it runs. It runs
// in the loop.
func doubtReport(shown *view.AgentView, m *agents.AgentFile, now time.Time) {
	if shown.Badge != view.BadgeRunning || !foreignReport(shown) {
		return
	}
	if age, within := reportAge(shown, m, now), m.Conf.ReportWithin; within > 0 && age > within {
		shown.Contradicted("its own loop said %s %s ago and has written nothing since (report_within is %s); nothing else shows whether it runs",
			shown.CurrentState, age.Round(time.Second), within)
	}
}

// foreignReport reports whether only the file shows what an agent does.
func foreignReport(shown *view.AgentView) bool {
	return shown.Loop == string(config.LoopForeign) && !shown.Program
}

// reportAge is how long ago a foreign loop wrote its file; without that time, how long ago anyone did.
func reportAge(shown *view.AgentView, m *agents.AgentFile, now time.Time) time.Duration {
	at := m.Changed
	if at.IsZero() {
		at = shown.Timestamp
	}
	return max(0, now.Sub(at))
}

func orNothing(word string) string {
	if word == "" {
		return "nothing"
	}
	return word
}

// proven is the answer of a session's shim, or the error if it did not answer; neither if there is no
// process to ask.
type proven struct {
	proof  *sessionhost.Proof
	silent error
}

// prove asks the shims of all open sessions at the same time and adds the answers, or the failures, to
// the view. It returns them by the sessions' ids.
func (c *Controller) prove(ctx context.Context, shown *view.AgentView) map[string]proven {
	if c.readOnly() {
		return nil
	}
	parts := make([]view.AgentView, len(shown.Sessions))
	answers := make([]proven, len(parts))
	var asking sync.WaitGroup
	for i := range parts {
		asking.Go(func() {
			parts[i].Name, parts[i].Session = shown.Name, &shown.Sessions[i]
			answers[i].proof, answers[i].silent = c.proveSession(ctx, &parts[i])
		})
	}
	asking.Wait()
	found := make(map[string]proven, len(parts))
	for i := range parts {
		found[shown.Sessions[i].ID] = answers[i]
		if answers[i].proof != nil {
			shown.Sessions[i].Ports = answers[i].proof.Ports
		}
		if shown.EvidenceAgeMS == nil {
			shown.EvidenceAgeMS = parts[i].EvidenceAgeMS
		}
		switch {
		case parts[i].Certainty == view.CertaintyUnknown:
			shown.Contradicted("%s", parts[i].Doubt)
		case parts[i].Doubt != "" && shown.Certainty != view.CertaintyUnknown:
			shown.Doubt = parts[i].Doubt
		}
	}
	c.viewWall(ctx, shown, found)
	return found
}

// viewWall adds what the walls of an agent's sessions hold, and without one what this machine would.
func (c *Controller) viewWall(ctx context.Context, shown *view.AgentView, found map[string]proven) {
	conf, known := c.opts.Config.Agent(shown.Name)
	if !known {
		return
	}
	var wall *sessions.Wall
	for i := range shown.Sessions {
		s := &shown.Sessions[i]
		proof := found[s.ID].proof
		if s.For.Kind == team.PurposeDispatch || proof == nil || proof.Observed { // MAIN's layers are shown with its folder
			continue
		}
		is := sessions.WallOf(*proof)
		if wall != nil {
			is = wall.Both(is)
		}
		wall = &is
	}
	if wall == nil {
		is := c.sessions.Wall(ctx, &conf)
		wall = &is
	}
	shown.Wall, shown.Unheld, shown.Holes = string(wall.By), view.Some(wall.Words()), view.Some(sessions.HolesOf(&conf))
}

// endCommand is the command with which a person ends a session.
func endCommand(agent string, purpose team.Purpose) string {
	switch {
	case purpose.Kind == team.PurposeStep:
		return "fairlead run cancel " + purpose.Run + " " + purpose.Step
	case purpose == team.ForLead:
		return "fairlead crew sleep"
	}
	return "fairlead stop " + agent + " --now"
}

// proveSession asks the shim of one session.
func (c *Controller) proveSession(ctx context.Context, view *view.AgentView) (*sessionhost.Proof, error) {
	s := view.Session
	if err := c.sessions.Silence(s.ID); err != nil {
		if errors.As(err, new(*sessionhost.NotAdopted)) {
			view.Contradicted("%s goes on: %s; let it finish, end it with `%s`, or run the version of Fairlead that started it", s.ID, err,
				endCommand(view.Name, s.For))
		} else {
			view.Contradicted("whether %s runs is not known: its shim does not answer (%s)", s.ID, err)
		}
		return nil, err
	}
	var ask func(context.Context) (sessionhost.Proof, error)
	switch proc := c.sessions.Proc(s.ID); {
	case proc != nil:
		ask = proc.Evidence
	case s.Phase != string(session.Running):
		return nil, nil
	case c.opts.Look != nil:
		ask = func(ctx context.Context) (sessionhost.Proof, error) { return c.opts.Look(ctx, s.ID) }
	default:
		view.Contradicted("the journal says that %s runs, but no shim answers for it", s.ID)
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, EvidenceWait)
	defer cancel()
	asked := time.Now()
	proof, err := ask(ctx)
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
		view.Doubt = fmt.Sprintf("process %d was stopped by a signal: it exists and does nothing; `kill -CONT %d` lets it continue",
			proof.PID, proof.PID)
	case proof.Ended:
		view.Doubt = fmt.Sprintf("process %d has ended, and its remaining processes are being ended", proof.PID)
	}
	return &proof, nil
}
