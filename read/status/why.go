package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// Why collects the current evidence for an agent's status.
func (c *Controller) Why(ctx context.Context, name string) (view.WhyView, error) {
	var (
		agent   team.Agent
		hold    team.Hold
		limit   string
		conf    config.Agent
		drives  driver.Driver
		shown   view.WhyView
		unknown error
		written bool
		strange string
		stops   bool
		changed time.Time
		part    []channelEvidence
		leads   []leadEvidence
		asks    []question.Question
		waits   []string
		now     time.Time // of an earlier moment
	)
	err := c.loop.View(ctx, func(t *team.Team) {
		a, ok := t.Agents[name]
		if !ok {
			unknown = &team.Unknown{What: "agent", Name: name, Known: t.Names()}
			return
		}
		agent, hold, limit, now = *a, t.Hold, t.OverLimit(a, c.loop.Now()), c.opts.At
		part, leads = channelEvidenceOf(t, a), append(leadIn(t, a, c.loop.Now()), c.workIn(t, a, c.loop.Now())...)
		waits = slices.Concat(waitingSteps(t, a), c.placesOf(a), c.lateOf(t, a))
		for _, q := range t.Questions.Open(name) {
			asks = append(asks, *q)
		}
		shown.Agent, strange, stops = c.agentView(a), c.sessions.OrphanOf(name), t.Stopping
		if known := c.agents.Files[name]; known != nil && !c.readOnly() {
			changed = known.Changed
			written = !known.Writing && !c.agents.FileDue(known, a)
			conf, drives = *known.Conf, known.Driver // fixed since the start; all else belongs to the loop
		}
	})
	if err != nil || unknown != nil {
		return view.WhyView{}, cmp.Or(err, unknown)
	}
	proofs := c.prove(ctx, &shown.Agent)
	now = cmp.Or(now, time.Now().UTC())
	shown.Agent.SetStatus(stops, now)
	add := func(source string, at time.Time, holds bool, format string, args ...any) {
		if at.IsZero() {
			at = now
		}
		shown.Evidence = append(shown.Evidence, view.Evidence{
			What: fmt.Sprintf(format, args...), Source: source, At: at, AgeMS: max(0, now.Sub(at).Milliseconds()), Holds: holds,
		})
	}
	add("journal", agent.Control.Stamp, true, "control is %s; desired_state %s, set by %s%s", agent.Control.State,
		shown.Agent.DesiredState, view.OrNobody(shown.Agent.SetBy), view.Because(shown.Agent.Note))
	if current := c.fileEvidence(conf, shown.Agent, add); written && !agent.Settings.Policy.Foreign &&
		current != shown.Agent.CurrentState && current != "" {
		shown.Agent.Contradicted("%s says current %s, and the journal %s", agentstate.FileName, current, shown.Agent.CurrentState)
	}
	shown.Agent.SetStatus(stops, now)
	if strange != "" {
		add("shim", now, false, "%s", strange)
	}
	statusEvidence(&shown.Agent, changed, add)
	slotEvidence(&agent, proofs, waits, add)
	conversationEvidence(&agent, asks, add)
	if conf.Workspace != "" {
		driverEvidence(&conf, drives, now, add)
	}
	if conf.Driver != "" {
		missing := ""
		if conf.Sandbox.On() {
			missing = c.sessions.SandboxMissing(ctx)
		}
		shown.Layers = sessions.LayersOfAgent(&conf, missing)
		if no := sessions.CommitRefusal(&conf, conf.Workspace, c.sessions.Wall(ctx, &conf).By); no != "" {
			shown.Layers = append(shown.Layers, view.Layer{Name: view.LayerGit, Holds: true, Text: no})
		}
	}
	for _, l := range shown.Layers {
		if l.Holds && l.Name != sessions.LayerRules {
			add("permissions", now, true, "restricted by its %s: %s", l.Name, l.Text)
		}
	}
	wallEvidence(&shown.Agent, add)
	for _, one := range leads {
		add("journal", one.at, one.holds, "%s", one.text)
	}
	for _, one := range part {
		add("channel", one.at, true, "%s", one.text)
	}
	if hold.On {
		add("journal", hold.At, true, "the team is held by %s%s: nothing new starts", view.OrNobody(hold.By), view.Because(hold.Note))
	}
	if limit != "" {
		add("limits", now, true, "%s is reached", limit)
	}
	shown.Sessions = sessionsOf(&agent)
	shown.Verdict = verdict(shown.Agent, hold.On)
	return shown, nil
}

// wallEvidence adds what an agent's wall does not hold, and the holes in it.
func wallEvidence(shown *view.AgentView, add adder) {
	switch shown.Wall {
	case "":
		return
	case view.WallNothing:
		add("wall", time.Time{}, true, "%s: its program can do what your user can", view.NoWall)
		return
	}
	add("wall", time.Time{}, true, "it is made of %s", shown.Wall)
	for _, row := range shown.Unheld {
		add("wall", time.Time{}, true, "%s is not held: %s", row, sessions.UnheldWords(row))
	}
	for _, hole := range shown.Holes {
		add("wall", time.Time{}, true, "a hole: %s", hole)
	}
	for _, one := range shown.Contacts[max(0, len(shown.Contacts)-contactsInWhy):] {
		add("network", one.Last, true, "%s: %s", one.Host, contactWords(one))
	}
	if shown.Driver == config.DriverCodex {
		add("wall", time.Time{}, true, "codex is started with danger-full-access, because its own sandbox does not work inside a wall")
	}
}

// contactsInWhy is how many hosts are shown, the newest: more fill the screen, and the view has all.
const contactsInWhy = 10

func contactWords(c view.ContactView) string {
	var words []string
	if c.Reached > 0 {
		words = append(words, fmt.Sprintf("reached %s, %d bytes in and %d out", times(c.Reached), c.In, c.Out))
	}
	if c.Refused > 0 {
		words = append(words, "refused "+times(c.Refused))
	}
	return strings.Join(words, "; ")
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// driverEvidence adds whether the agent's program could be started, and with which variables.
func driverEvidence(conf *config.Agent, drives driver.Driver, now time.Time, add adder) {
	if err := drives.Check(sessions.Known(*conf)); err != nil {
		add("driver", now, false, "it cannot be started at present: %s", err)
	} else {
		add("driver", now, true, "driver %s finds what it needs to start it", conf.Driver)
	}
	add("driver", now, true, "%s", sessions.VariablesInWords(drives, conf))
}

// statusEvidence adds the evidence for the status that no other source gives.
func statusEvidence(a *view.AgentView, changed time.Time, add adder) {
	foreign := foreignReport(a) && a.Badge == view.BadgeRunning
	switch {
	case foreign && a.Status == view.StatusUnknown:
		add("file", changed, false, "the last write of its own loop: %s", a.Doubt)
	case foreign:
		add("file", changed, true, "the last write of its own loop; Fairlead did not start its program")
	case a.Status == view.StatusFailed:
		add("journal", *a.GaveUp, true, "it gave up: %s", a.Note)
	case a.Status == view.StatusBackingOff:
		add("journal", time.Time{}, true, "%s", a.StatusWhy)
	case a.Status == view.StatusIdle && (a.IdleReason == view.IdleQueued || a.IdleReason == view.IdleDisabled):
		add("journal", time.Time{}, true, "%s", a.StatusWhy)
	}
}

type adder = func(source string, at time.Time, holds bool, format string, args ...any)

// fileEvidence compares the current file with the journal, and returns the file's current_state;
// empty if there is none.
func (c *Controller) fileEvidence(conf config.Agent, shown view.AgentView, add adder) (current string) {
	if conf.Workspace == "" {
		return ""
	}
	seen, err := c.opts.Files.Read(conf.Name)
	switch {
	case err != nil:
		add("file", time.Time{}, false, "%s cannot be read: %s", agentstate.FileName, err)
	case seen.Kind == exchange.KindDeleted:
		add("file", seen.At, false, "there is no %s", agentstate.FileName)
	case seen.Kind != exchange.KindWritten:
		add("file", seen.At, false, "%s is %s: %s", agentstate.FileName, seen.Kind, seen.Fault)
	default:
		at, _ := seen.State.Time()
		works := control.Badge(seen.State.CurrentState) == view.BadgeRunning
		if shown.Loop == string(config.LoopForeign) && works &&
			!(shown.Status == view.StatusRunning || shown.Status == view.StatusStopping || shown.Status == view.StatusWaiting) {
			add("file", at, false, "%s says desired %s, current %s", agentstate.FileName, seen.State.DesiredState, seen.State.CurrentState)
			return seen.State.CurrentState
		}
		same := seen.State.DesiredState == shown.DesiredState &&
			(seen.State.CurrentState == shown.CurrentState || shown.CurrentState == "unknown")
		add("file", at, same, "%s says desired %s, current %s", agentstate.FileName, seen.State.DesiredState, seen.State.CurrentState)
		return seen.State.CurrentState
	}
	return ""
}

// lateOf says what is missing of an agent's lost sessions, and what came late.
func (c *Controller) lateOf(t *team.Team, a *team.Agent) (words []string) {
	all := view.HostsOf(&t.Hosts, view.HostsBeside{}, func(string) view.PlacedSession { return view.PlacedSession{} }, archived(t))
	for i := range all.Hosts {
		h := &all.Hosts[i]
		for _, m := range h.Missing {
			if m.Agent == a.Name && !archived(t)(m.Run) {
				words = append(words,
					"session "+m.Session+" was lost with "+h.Name+", which is asked for what it left there when it is back")
			}
		}
		for i := range h.Late {
			if l := &h.Late[i]; l.Agent == a.Name {
				words = append(words, "session "+l.Words(h.Name))
			}
		}
	}
	return words
}

// archived reports whether a run is.
func archived(t *team.Team) func(run string) bool {
	return func(run string) bool { return t.Runs[run] == nil }
}

// placesOf says on which hosts an agent's sessions run, and why, or why they have none.
func (c *Controller) placesOf(a *team.Agent) (words []string) {
	beside, _ := c.cluster.Beside()
	for _, s := range a.Sessions() {
		if why := beside.Placed[s.ID]; why != "" {
			words = append(words, "session "+s.ID+": "+why)
		}
	}
	return words
}

// waitingStepsMax is how many waiting steps `why` lists.
const waitingStepsMax = 10

// waitingSteps says what the steps wait for that want a slot of an agent with instances.
func waitingSteps(t *team.Team, a *team.Agent) (words []string) {
	if a.Settings.Instances <= 1 {
		return nil
	}
	for _, c := range a.Queue {
		run, step, isStep := team.StepOf(c.For)
		if !isStep {
			continue
		}
		if len(words) == waitingStepsMax {
			return append(words, "more steps wait; `fairlead run list` shows their runs")
		}
		words = append(words, fmt.Sprintf("step %s of run %s: %s", step, run, t.StepWaits(run, step)))
	}
	return words
}

// slotEvidence adds what is in each slot, and what waits for one.
func slotEvidence(agent *team.Agent, proofs map[string]proven, waits []string, add adder) {
	if agent.Control.Overwritten() {
		add("file", time.Time{}, false, "%s", view.Overwritten(agent.Control.Desired.State))
	}
	processEvidence(agent.Session, proofs, add)
	for _, s := range agent.Sessions() {
		if s.Slot > 0 {
			processEvidence(s, proofs, add)
		}
	}
	for _, why := range waits {
		add("journal", time.Time{}, true, "%s", why)
	}
}

// processEvidence adds the current answer of a session's shim, or that it does not answer. nil: slot 0 is free.
func processEvidence(s *team.Session, proofs map[string]proven, add adder) {
	if s == nil {
		if len(proofs) == 0 {
			add("journal", time.Time{}, true, "no session is open")
		}
		return
	}
	proof, silent := proofs[s.ID].proof, proofs[s.ID].silent
	slot := ""
	if s.Slot > 0 {
		slot = fmt.Sprintf(", in slot %d for %s", s.Slot, s.For)
	}
	add("journal", s.OpenedAt, true, "session %s (%s) is %s%s", s.ID, s.Kind, s.Phase, slot)
	if s.Ending != "" {
		add("journal", time.Time{}, true, "it was asked to end: %s", s.Ending)
	}
	switch {
	case proofs == nil: // an earlier moment, of which the journal alone knows
		return
	case silent != nil:
		if errors.As(silent, new(*sessionhost.NotAdopted)) {
			add("shim", time.Time{}, true, "%s", silent)
			return
		}
		add("shim", time.Time{}, false, "its shim does not answer: %s", silent)
		return
	case proof == nil:
		add("shim", time.Time{}, s.Phase == session.Open, "no shim is known for it")
		return
	case proof.Observed && proof.Against == "":
		add("shim", time.Time{}, true, "shim %d answers for process %d", proof.ShimPID, proof.PID)
	case !proof.Observed:
		shimEvidence(proof, add)
	}
	switch {
	case proof.Against != "":
		add("process table", time.Time{}, false, "%s", proof.Against)
	case proof.Stopped:
		add("process table", time.Time{}, false, "process %d was stopped by a signal: it exists and does nothing", proof.PID)
	case proof.Ended:
		add("shim", time.Time{}, false, "process %d has ended; its remaining processes are being ended", proof.PID)
	}
	if s.PID != 0 && s.PID != proof.PID {
		add("shim", time.Time{}, false, "the journal says process %d", s.PID)
	}
}

// shimEvidence adds what only a daemon's shim tells: what holds the process, and its output.
func shimEvidence(proof *sessionhost.Proof, add adder) {
	add("shim", time.Time{}, true, "shim %d holds process %d by %s; %d more in its tree", proof.ShimPID, proof.PID,
		strings.Join(proof.Holds, ", "), proof.Children)
	if proof.LastByteAt.IsZero() {
		add("shim", proof.StartedAt, true, "it has not written any output yet")
	} else {
		add("shim", proof.LastByteAt, true, "%d bytes of output; time of the last one", proof.Bytes)
	}
	if proof.Full != "" {
		add("shim", time.Time{}, false, "%s", proof.Full)
	}
}

func sessionsOf(a *team.Agent) []view.PastSession {
	var all []team.Session
	for _, s := range a.Sessions() {
		all = append(all, *s)
	}
	slices.SortStableFunc(all, func(a, b team.Session) int { return cmp.Compare(b.N, a.N) })
	for i := range a.Past {
		all = append(all, a.Past[len(a.Past)-1-i])
	}
	views := make([]view.PastSession, 0, len(all))
	for _, s := range all {
		view := view.PastSession{
			ID: s.ID, Kind: string(s.Kind), OpenedAt: s.OpenedAt, Outcome: string(s.Outcome), Why: s.Why,
			Bytes: s.Bytes,
		}
		if !s.StartedAt.IsZero() {
			view.StartedAt = &s.StartedAt
		}
		if !s.EndedAt.IsZero() {
			view.EndedAt = &s.EndedAt
		}
		views = append(views, view)
	}
	return views
}

// verdict summarizes the status in one sentence.
func verdict(a view.AgentView, held bool) string {
	text := a.Name + " is " + a.Word()
	first, more := a.Session, a.Others()
	if first == nil && len(more) > 0 {
		first, more = &more[0], more[1:]
	}
	switch {
	case a.Status == view.StatusUnknown:
		return text + ": " + a.Doubt
	case a.Status == view.StatusFailed:
		text += ": it gave up: " + a.Note
	case first != nil && first.Phase == string(session.Running):
		text += fmt.Sprintf(": session %s runs as process %d%s", first.ID, first.PID, onStep(first))
	case first != nil:
		text += ": " + first.Next() + onStep(first)
	case a.LimitedUntil != nil:
		text += ": nothing runs; " + a.LimitedWhy
	case a.RetryAt != nil:
		text += fmt.Sprintf(": %s; the next try is at %s", a.FailedInARow(), a.RetryAt.Format(time.TimeOnly))
	case a.Loop == "foreign":
		text += ": its own loop says " + a.CurrentState
	default:
		text += ": nothing runs"
	}
	for i := range more {
		text += "; " + more[i].ID + " is " + more[i].Phase + onStep(&more[i])
	}
	if a.Status == view.StatusIdle && a.IdleReason != view.IdlePaused && a.IdleReason != "" {
		text += fmt.Sprintf(" (%s: %s)", a.IdleReason, a.StatusWhy)
	}
	if a.AsksWhat != "" {
		text += "; it waits for a person: " + a.AsksWhat
	}
	if a.WaitingBehind != "" {
		text += "; for its own session " + a.WaitingBehind
	}
	if a.DesiredState != a.CurrentState {
		text += "; " + a.DesiredState + " is wanted next"
	}
	if held {
		text += "; the team is held"
	}
	if a.Doubt != "" {
		text += "; but " + a.Doubt
	}
	return text
}

// onStep describes what a session works for: a step of a run, the lead, or a dispatch folder.
func onStep(s *view.SessionView) string {
	if run, step, is := team.StepOf(s.For); is {
		return fmt.Sprintf(" on step %s of run %s", step, run)
	}
	if folder, w, is := team.DispatchActionOf(s.For); is {
		return ": " + WorkWords(folder, w)
	}
	if s.For == team.ForLead {
		return ", and leads the team"
	}
	return ""
}
