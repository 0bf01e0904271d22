package team

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// setSession records a session event, also on the agent's copy.
func (d *decision) setSession(a *Agent, event session.Event, s Session) error {
	rule, err := d.look(a, event)
	if err != nil {
		return err
	}
	from := a.phase()
	if s.Phase = rule.To; s.Phase == session.None {
		s.FirstTells = nil // what it began with is in its log
	}
	d.add(a.entity(), "session", rule.ID, string(from), string(rule.To), string(event), &s)
	a.setSession(s)
	return nil
}

// openSession occupies a free slot. It panics if the slot is not free.
func (d *decision) openSession(a *Agent, s Session) error {
	s.OpenedAt = d.ev.At
	if folder, _, works := DispatchActionOf(s.For); works && d.team.Dispatches[folder] != nil {
		s.Folder = d.team.Dispatches[folder].State.Began
	}
	if run, step, _ := StepOf(s.For); a.step() != "" {
		s.ID, s.N = fmt.Sprintf("%s@%s-%d", step, run, s.Lease), s.Lease
	} else {
		s.Slot, s.N = a.slot(), a.Opened+1
		s.ID = sessionID(a.Name, s.N)
	}
	if a.step() == "" {
		s.FirstTells = a.tellsFor(s.For)
	}
	if err := d.setSession(a, session.Opened, s); err != nil {
		panic("team: a second session at one time: " + err.Error())
	}
	return nil
}

// ours finds the session that an event names, or refuses an event about an ended one: late events
// change nothing.
func (d *decision) ours(a *Agent, in Input) (Session, error) {
	about := in.Subject()
	if a.Session == nil || a.Session.ID != about.Session {
		return Session{}, &table.Refusal{
			Subject: "session " + about.Session + " of " + a.Name, Event: string(about.Event), State: string(session.None),
			Reason: "it is over, or it never was",
		}
	}
	return *a.Session, nil
}

func (d *decision) sessionSeen(a *Agent, in Input, pid int) error {
	s, err := d.ours(a, in)
	if err != nil {
		return err
	}
	s.PID = pid
	if s.StartedAt.IsZero() {
		s.StartedAt = d.ev.At
	}
	return d.setSession(a, in.Subject().Event, s)
}

// adopted records a session that outlived a restart, and notifies its requester.
func (d *decision) adopted(a *Agent, what SessionAdopted) error {
	if err := d.sessionSeen(a, what, what.PID); err != nil {
		return err
	}
	id, step, ok := StepOf(a.Session.For)
	if a.Session.ServesChannels() {
		return d.channelSessionSeen(a, a.Session, what.Input, true)
	}
	if a.Session.servesDispatch() {
		return nil // the folder says whether it is still wanted
	}
	if !ok {
		return d.control(a, control.Adopted{})
	}
	r := d.team.Runs[id]
	if r == nil {
		return nil
	}
	err := d.runDecides(id, r, workflow.ProcessAdopted{Lease: workflow.Lease{Step: workflow.StepID(step), N: a.Session.Lease}})
	if _, refused := err.(*table.Refusal); refused { //nolint:errorlint // a refusal is a type of its own and is never wrapped
		return nil // its attempt has ended, and the session will be ended
	}
	return err
}

// endSession asks a session to end. A second request for the same reason has no effect; an immediate
// one replaces one with a grace period.
func (d *decision) endSession(a *Agent, why ending, now bool) error {
	if a.Session == nil {
		return nil
	}
	s := *a.Session
	if s.Ending != "" && (s.Now || !now) {
		return nil
	}
	s.CutOff = a.cutsOff(&s, why.reason, now)
	s.EndReason, s.Ending, s.Now = why.reason, why.words(), now
	return d.setSession(a, session.EndAsked, s)
}

// endAsked ends an agent's current session. Sessions of a run or of the lead have their own
// commands, which also decide on the run or the crew.
func (d *decision) endAsked(a *Agent) error {
	no := &table.Refusal{Subject: a.Name, Event: string(session.EndAsked), State: string(a.phase())}
	if a.Session == nil {
		no.Reason = "no session of it runs"
		if steps := a.stepsOf(); steps != "" {
			no.Reason = "its sessions do " + steps + "; cancel one: `fairlead run cancel RUN STEP`"
		}
		return no
	}
	if run, step, ok := StepOf(a.Session.For); ok {
		no.Reason = "it does step " + step + " of run " + run + "; cancel that: `fairlead run cancel " + run + " " + step + "`"
		return no
	}
	if a.Session.IsLead() {
		no.Reason = "its session leads the team; `fairlead crew sleep` ends that"
		return no
	}
	return d.endSession(a, ending{EndByPerson, d.ev.Actor.ID}, a.Session.Ending != "")
}

// heldBytesMax is more than the longest turn word and its line end.
const heldBytesMax = 32

// reported adds an agent's usage report once: a report at or before the last journaled offset is a
// repetition. One at that offset can have what was said about the provider, which is reported late.
func (d *decision) reported(a *Agent, what SessionReported) error {
	s, err := d.ours(a, what)
	if err != nil {
		return err
	}
	rule, err := d.look(a, session.Reported)
	if err != nil {
		return err
	}
	if what.Offset <= s.Offset {
		if what.Offset < s.Offset || what.Provider == nil {
			return nil
		}
		what = SessionReported{Session: s.ID, Offset: s.Offset, Provider: what.Provider, Held: what.Held}
	}
	used := Used{
		Session: s.ID, Offset: what.Offset, Usage: DayUsage{Day: dayOf(d.ev.At), Usage: what.Usage.Sane()}, Stop: what.Stop.cut(),
		RateLimit: what.RateLimit.Cut(cutLine), Provider: what.Provider.Next(s.Provider, d.ev.At, cutLine),
	}
	if what.Over && s.AnswerPending() && (what.Heard == 0 || what.Heard >= s.Delivery.Input) {
		used.Over = d.ev.At
	} else if len(what.Held) <= heldBytesMax {
		used.Held = what.Held
	}
	used.Models = ModelsWithin(what.Models, used.Usage.Usage)
	used.Context = min(max(what.Context, 0), 100)
	if id, _, _ := StepOf(s.For); d.team.Runs[id] != nil {
		day := d.team.RepoDay(d.team.Runs[id], d.ev.At)
		used.RepoDay, used.RepoEnds = day.Day, day.Ends
	}
	d.add(a.entity(), "session", rule.ID, string(s.Phase), string(rule.To), string(session.Reported), &used)
	a.use(used)

	// The team's total applies to all agents: at the team's limit, all working agents are over it.
	next := *d.team
	next.Usage = next.Usage.On(used.Usage.Day).Plus(used.Usage)
	d.team = &next
	return d.limitReached(a)
}

// limitReached notifies every agent that has reached a daily limit, the current one first. Repeated
// notifications have no effect. Steps are notified by Next.
func (d *decision) limitReached(a *Agent) error {
	limit := d.team.OverLimit(a, d.ev.At)
	if limit == "" {
		return nil
	}
	if a.step() == "" {
		if err := d.control(a.at(0), control.LimitHit{Limit: limit}); err != nil {
			return err
		}
	}
	if d.team.Limits.over(d.team.Usage.Usage) == "" {
		return nil
	}
	for _, name := range d.team.Names() {
		if name == a.Name {
			continue
		}
		other := *d.team.Agents[name]
		if err := d.control(&other, control.LimitHit{Limit: d.team.OverLimit(&other, d.ev.At)}); err != nil {
			return err
		}
	}
	return nil
}

// sessionEnded frees the slot and lets its requester decide what follows. Next then gives the slot
// to the first request in the queue.
func (d *decision) sessionEnded(a *Agent, what SessionEnded) error {
	s, err := d.ours(a, what)
	if err != nil {
		return err
	}
	switch what.Outcome {
	case control.OK, control.Failed, control.CannotStart, control.Cancelled, control.RateLimited, control.Anew,
		control.Lost, control.Withdrawn:
	default:
		panic(fmt.Sprintf("team: no such outcome: %q", what.Outcome))
	}
	s.EndedAt, s.Outcome, s.Why, s.Bytes = d.ev.At, what.Outcome, cutLine(what.Why), what.Exit.SpoolBytes
	s.Limit, s.Use = what.Exit.Limit, what.Exit.Use
	if s.Stop != nil && what.Reason != "" {
		stop := *s.Stop
		stop.OK, stop.Reason = false, cutLine(what.Reason)
		s.Stop = &stop
	}
	switch {
	case s.Ending == "" || s.Outcome == control.Lost || s.Outcome == control.Withdrawn:
	case s.EndReason == EndReported:
		s.Outcome, s.Why = control.OK, s.Ending // it has done its work, however its process ended
	default:
		s.Outcome, s.Why = control.Cancelled, s.Ending
	}
	if s.ServesChannels() && s.Outcome == control.Failed && d.stopping(a.Name) {
		s.Outcome = control.Cancelled // it was stopped intentionally
	}
	var ran time.Duration
	if !s.StartedAt.IsZero() {
		ran = d.ev.At.Sub(s.StartedAt)
	}
	s.Launch, s.TokenHashes = nil, nil // its conversation keeps the record, and its token is invalid
	if err := d.setSession(a, what.Subject().Event, s); err != nil {
		return err
	}
	if err := d.unplace(&s); err != nil {
		return err
	}
	if err := d.questioned(question.TakeBack{Session: s.ID, Why: "its session is over: " + cmp.Or(s.Why, string(s.Outcome))}); err != nil {
		return err
	}
	d.limited(a, &s, what.Until)
	if s.IsLead() || d.team.Crew.Lead.Session == s.ID {
		if err := d.leadOver(&s); err != nil {
			return err
		}
	}
	if _, _, isStep := StepOf(s.For); isStep {
		return d.stepEnded(&s, what)
	}
	if s.ServesChannels() {
		return d.channelSessionEnded(a, &s)
	}
	if s.servesDispatch() {
		return d.dispatchSessionEnded(a, &s)
	}
	err = d.told(a, control.Ended{Kind: s.Kind, Outcome: s.Outcome, Why: s.Why, Ran: ran, AtStart: what.AtStart, ForGood: what.ForGood})
	if err != nil {
		return fmt.Errorf("team: the end of %s: %w", s.ID, err)
	}
	return nil
}

// controlEnded tells control that its request is void: the session ended before it began.
func (d *decision) controlEnded(a *Agent, c Request, why string) error {
	return d.told(a, control.Ended{Kind: c.Kind, Outcome: control.Withdrawn, Why: cutLine(why)})
}

// told tells control that its session has ended.
func (d *decision) told(a *Agent, in control.Ended) error {
	if err := d.control(a, in); err != nil {
		return err
	}
	if foreign := a.Control.State == control.Foreign; foreign != a.Settings.Policy.Foreign && !a.controls() {
		return d.control(a, control.Started{}) // the configuration changed, but the session delayed it
	}
	return nil
}

// timer handles what is due at this time.
func (d *decision) timer(a *Agent) error {
	for _, slot := range slices.Sorted(maps.Keys(a.Extra)) {
		if limit, at := d.team.sessionDeadline(a.at(slot)); !at.IsZero() && !d.ev.At.Before(at) {
			return d.timeUp(a.at(slot), limit) // everything else follows at the next timer
		}
	}
	if limit, at := d.team.sessionDeadline(a); !at.IsZero() && !d.ev.At.Before(at) {
		if _, _, isStep := StepOf(a.Session.For); isStep {
			return d.timeUp(a, limit) // everything else follows at the next timer
		}
		if a.Session.servesDispatch() {
			return d.endSession(a, ending{EndLimit, "session " + limit.String()}, false)
		}
		if !a.Session.ServesChannels() {
			if err := d.control(a, control.LimitHit{Limit: "session " + limit.String()}); err != nil {
				return err
			}
		}
	}
	if a.Waits() && !d.ev.At.Before(a.Limited.Until) {
		if err := d.lift(a); err != nil {
			return err
		}
	}
	if retry := a.Control.Retry(); !retry.IsZero() && !d.ev.At.Before(retry) {
		if err := d.control(a, control.Elapsed{RetryAt: retry}); err != nil {
			return err
		}
	}
	return d.channelTimer(a)
}

// whyBytesMax limits an agent's text about its own end.
const whyBytesMax = 500

// cutLine keeps the first line of untrusted text. Invalid UTF-8 is replaced: the journal could not store it.
func cutLine(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for i, r := range s {
		if r == '\n' || r == '\r' || i >= whyBytesMax {
			return s[:i]
		}
	}
	return s
}

// governed reports whether a session is open that may write fairlead.yaml. One that is not started yet may become one.
func (t *Team) governed() bool {
	open := slices.Collect(maps.Values(t.Pool.Sessions))
	for _, a := range t.Agents {
		open = append(open, a.Sessions()...)
	}
	return slices.ContainsFunc(open, func(s *Session) bool { return s.Launch == nil || s.Launch.Governs })
}
