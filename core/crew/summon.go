package crew

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// act applies one act of a row to the lead.
func (d *crewDraft) act(l *Lead, act LeadAct, with step) error {
	switch act {
	case Configure:
		if l.Agent != with.Conf.Agent { // another agent becomes the lead
			*l = Lead{Number: l.Number}
		}
		l.Agent, l.Size = with.Conf.Agent, with.Conf.Size
		l.StatusMax, l.HatchMax = with.Conf.StatusMax, with.Conf.HatchMax
	case TakeSession:
		if l.Session != with.Session {
			l.Again = nil
		}
		l.Session, l.UUID, l.Reported, l.Waits = with.Session, with.UUID, time.Time{}, time.Time{}
	case DropSession:
		l.Session, l.UUID, l.Reported, l.Waits, l.Again = "", "", time.Time{}, time.Time{}, nil
	case Forget:
		l.Reported, l.Waits = time.Time{}, time.Time{}
	case DropActions:
		l.Actions = nil
	case TellAgain:
		l.Ends = time.Time{}
	case DropAction:
		d.dropAction(l, with.Ask)
	case QueueStatus:
		if l.Waits.IsZero() && !slices.ContainsFunc(l.Actions, func(a Action) bool { return a.Do == TellStatus }) {
			return d.queueAction(l, Action{Do: TellStatus})
		}
	case QueueSummon:
		return d.queueAction(l, Action{Do: TellSummon, Seats: with.Seats})
	case QueueWake:
		l.Who, l.Ends = with.Wake, time.Time{}
		return d.queueAction(l, Action{Do: TellWake, Docs: with.Wake})
	case NoteWho:
		l.Who, l.Ends = with.Wake, l.Waits // it may have been asked before
	case NarrowWake:
		l.Who, l.Actions = with.Wake, slices.Clone(l.Actions)
		for i := range l.Actions {
			if l.Actions[i].Do == TellWake {
				l.Actions[i].Docs = with.Wake
			}
		}
	case QueueRegister:
		l.Again = append(slices.Clip(l.Again), with.Seats...)
		return d.queueAction(l, Action{Do: TellRegister, Seats: with.Seats, Names: with.Names})
	case NoteReport:
		l.Reported, l.Waits = d.now.At, time.Time{}
		l.Actions = without(l.Actions, TellStatus) // it has reported before it was asked
	case NoteSilence:
		l.Waits = time.Time{}
	case EndCeremony:
		l.Actions = without(l.Actions, TellSummon, TellWake)
		if d.lead.stage() == Asking && l.Session == "" { // an open session that has not reported is asked anyway (P6)
			l.Actions = without(l.Actions, TellStatus)
		}
		l.Stage, l.Since, l.Ends, l.Who = "", time.Time{}, time.Time{}, nil
	case MoreTime:
		if !l.Ends.IsZero() {
			l.Ends = d.patience(l)
		}
	}
	return nil
}

// patience returns the deadline of a report. A lead that keeps speaking gets more time, up to a
// limit.
func (d *crewDraft) patience(l *Lead) time.Time {
	ends, last := d.now.At.Add(l.statusMax()), l.Since.Add(l.hatchMax())
	if last.Before(ends) {
		return last
	}
	return ends
}

func (d *crewDraft) queueAction(l *Lead, ask Action) error {
	if len(l.Actions) >= asksMax {
		return d.refuse(RegisterDue, "P9", fmt.Sprintf("%s already has %d pending actions", l.Agent, asksMax))
	}
	l.Number++
	ask.N = l.Number
	l.Actions = append(slices.Clip(l.Actions), ask)
	return nil
}

// dropAction records that the lead received an action. The time for its report starts now.
func (d *crewDraft) dropAction(l *Lead, n uint64) {
	ask, _ := l.ActionOf(n)
	l.Actions = slices.DeleteFunc(slices.Clone(l.Actions), func(a Action) bool { return a.N == n })
	if len(l.Actions) == 0 {
		l.Actions = nil
	}
	switch ask.Do {
	case TellStatus:
		l.Waits = d.now.At.Add(l.statusMax())
		if l.stage() == Asking {
			l.Ends = l.Waits
		}
	case TellSummon, TellWake:
		l.Ends = d.patience(l)
	case TellRegister: // no deadline
	}
}

func without(asks []Action, which ...ActionKind) []Action {
	var rest []Action
	for _, a := range asks {
		if !slices.Contains(which, a.Do) {
			rest = append(rest, a)
		}
	}
	return rest
}

// pending reports whether an action of this kind is pending.
func (l *Lead) pending(which ActionKind) bool {
	return slices.ContainsFunc(l.Actions, func(a Action) bool { return a.Do == which })
}

func (d *crewDraft) configure(in LeadConfigured) error {
	in.StatusMax, in.HatchMax = cmp.Or(in.StatusMax, StatusMax), cmp.Or(in.HatchMax, HatchMax)
	l := &d.lead
	if l.Agent == in.Agent && l.Size == in.Size && (l.Agent == "" || l.StatusMax == in.StatusMax && l.HatchMax == in.HatchMax) {
		return nil
	}
	if l.Agent != "" && l.Agent != in.Agent {
		if err := d.ended(LeadEnded{Session: l.Session, Why: l.Agent + " no longer leads the team"}); err != nil {
			return err
		}
	}
	return d.leadStep(Configured, step{Conf: in})
}

// daemonStarted marks every status as unknown until the lead reports (seed 001: a page load).
func (d *crewDraft) daemonStarted() error {
	if err := d.allVisible(LeadUnheard, nil); err != nil {
		return err
	}
	if err := d.hatched(); err != nil {
		return err
	}
	l := &d.lead
	if l.Session != "" && (!l.Reported.IsZero() || !l.Waits.IsZero() || !l.Ends.IsZero()) {
		if err := d.leadStep(Forgotten, step{}); err != nil {
			return err
		}
	}
	return d.tooLate()
}

// seats returns the seats of a crew of this size, without the lead's.
func seats(size int) []int {
	var free []int
	for seat := 0; seat <= SeatMax && len(free) < size; seat++ {
		if seat != LeadSeat {
			free = append(free, seat)
		}
	}
	return free
}

// summon creates the crew. It is possible once, while there are no agents.
func (d *crewDraft) summon() error {
	if err := d.begins(SummonBegins, "P1"); err != nil {
		return err
	}
	if here := d.visible(); len(here) > 0 {
		words := fmt.Sprintf("the crew was summoned already and has %d agents", len(here))
		if !slices.ContainsFunc(here, func(doc *Document) bool { return doc.Status != Hatching }) {
			return d.refuse(SummonBegins, "P1", words+", which are hatching; wake is possible when one has registered")
		}
		return d.refuse(SummonBegins, "P1", words+"; wake those that are not alive", "wake")
	}
	free := seats(d.lead.Size)
	if len(d.crew.Docs)+len(free) > docsMax {
		return d.refuse(SummonBegins, "P1",
			fmt.Sprintf("there are %d documents, including expired ones; the limit is %d", len(d.crew.Docs), docsMax))
	}
	for _, seat := range free {
		id := d.newID()
		if err := d.move(id, Summoned, named{Identity: Identity{Seat: seat}, Made: d.made}); err != nil {
			return err
		}
	}
	return d.leadStep(SummonBegins, step{Seats: free})
}

// newID returns an unused document id.
func (d *crewDraft) newID() DocID {
	for {
		d.made++
		if id := DocID(fmt.Sprintf("agent-%d", d.made)); d.doc(id) == nil {
			return id
		}
	}
}

// wake makes the lead wake agents. If its session has not reported yet, it is first asked which
// agents are alive, so that none is woken twice.
func (d *crewDraft) wake(in WakeAsked) error {
	if err := d.begins(WakeBegins, "P8"); err != nil {
		return err
	}
	who, err := d.addressed(in.Docs)
	if err != nil || len(who) == 0 {
		return err
	}
	for _, id := range who {
		if err := d.move(id, Woken, named{}); err != nil {
			return err
		}
	}
	if d.lead.Heard() {
		return d.leadStep(WakeBegins, step{Wake: who})
	}
	return d.leadStep(WakeUnheard, step{Wake: who})
}

// addressed lists the agents that a wake is for: the named ones, or all that are not alive.
func (d *crewDraft) addressed(docs []DocID) (who []DocID, err error) {
	here := d.visible()
	if len(here) == 0 {
		return nil, d.refuse(WakeBegins, "P8", "the crew was never summoned; summon it first", "summon")
	}
	for _, id := range docs {
		switch doc := d.doc(id); {
		case doc == nil:
			return nil, d.refuse(WakeBegins, "P8", fmt.Sprintf("there is no document %q", string(id)))
		case doc.Status == Expired:
			return nil, d.refuse(WakeBegins, "P7", fmt.Sprintf("%s has expired: no agent registered for it", id))
		case doc.Status == Hatching:
			return nil, d.refuse(WakeBegins, "P9", fmt.Sprintf("%s is hatching: no agent has registered for it yet", id))
		}
	}
	hatching := 0
	for _, doc := range here {
		switch {
		case doc.Status == Hatching:
			hatching++
		case doc.Status != Alive && (len(docs) == 0 || slices.Contains(docs, doc.ID)):
			who = append(who, doc.ID)
		}
	}
	if hatching == len(here) {
		return nil, d.refuse(WakeBegins, "P8", "they are hatching: there is no agent to wake yet; wake is possible when one has registered")
	}
	return who, nil
}

// began records a lead session. Its agents are unknown until it reports.
func (d *crewDraft) began(in LeadBegan) error {
	event := Began
	if in.Adopted {
		event = Adopted
	} else if d.lead.Session == in.Session {
		return nil
	}
	if err := d.allVisible(LeadUnheard, nil); err != nil {
		return err
	}
	return d.leadStep(event, step{Session: in.Session, UUID: in.UUID})
}

// ended records that a lead session ended or cannot start.
func (d *crewDraft) ended(in LeadEnded) error {
	l := &d.lead
	if l.Session != "" && in.Session != l.Session {
		return nil
	}
	if l.Session == "" && !l.InProgress() && len(l.Actions) == 0 {
		return nil
	}
	if l.Session != "" {
		if err := d.allVisible(LeadGone, nil); err != nil {
			return err
		}
	}
	var said *Notice
	if l.InProgress() {
		words := "%s ended in the middle of %s: %s"
		if l.Session == "" {
			words = "%s did not start, so there is no %s: %s"
		}
		said = d.notice(NoticeLead, fmt.Sprintf(words, l.Agent, l.stage(), cmp.Or(in.Why, "no reason given")), in.Session)
	}
	return d.leadStep(Ended, step{Notice: said})
}

// lostLead records the end of a session that keeps the summon or wake in progress. Its actions are
// pending again for the next session.
func lostLead(d *crewDraft, in LeadLost) error {
	l := &d.lead
	if l.Session == "" || in.Session != l.Session {
		return nil // no action was delivered
	}
	if err := d.allVisible(LeadGone, nil); err != nil {
		return err
	}
	var with step
	for _, doc := range d.visible() {
		if doc.Status == Hatching && doc.Name == "" {
			with.Seats = append(with.Seats, doc.Seat)
		}
	}
	if in.Why != "" {
		with.Notice = d.notice(NoticeLead, in.Why, in.Session)
	}
	return d.leadStep(Left, with)
}

func (d *crewDraft) received(in ActionReceived) error {
	if _, ok := d.lead.ActionOf(in.N); !ok {
		return nil
	}
	return d.leadStep(Received, step{Ask: in.N})
}

func (d *crewDraft) timer() error {
	if err := d.hatched(); err != nil {
		return err
	}
	return d.tooLate()
}

// hatched lets placeholders expire that no agent registered for (P7).
func (d *crewDraft) hatched() error {
	for _, doc := range d.visible() {
		if doc.Status == Hatching && doc.Name == "" && !d.now.At.Before(doc.CreatedAt.Add(d.lead.hatchMax())) {
			if err := d.move(doc.ID, HatchedNever, named{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// unreported returns the names or seats of members that the lead has not reported yet.
func unreported(d *crewDraft) (missing []string) {
	switch d.lead.stage() {
	case Waking:
		for _, id := range d.notAlive(d.lead.Who) {
			missing = append(missing, d.doc(id).Name)
		}
	case Summoning:
		for _, doc := range d.visible() {
			if doc.Status == Hatching {
				missing = append(missing, fmt.Sprintf("seat %d", doc.Seat))
			}
		}
	case Idle, Asking:
	}
	return missing
}

// tooLate ends what waits for a report when its deadline passes.
func (d *crewDraft) tooLate() error {
	l := &d.lead
	due := func(at time.Time) bool { return !at.IsZero() && !d.now.At.Before(at) }
	switch {
	case l.InProgress() && (due(l.Ends) || due(l.Since.Add(l.hatchMax()))):
		words := fmt.Sprintf("%s has not reported in time (%s); the status of the agents that it did not list is unknown", l.Agent,
			l.stage())
		if missing := unreported(d); l.Heard() && len(missing) > 0 {
			words = fmt.Sprintf("%s has not reported all agents in time (%s): %s", l.Agent, l.stage(), strings.Join(missing, ", "))
		}
		if l.stage() == Asking {
			words = fmt.Sprintf("%s did not report in time which agents are awake; none was woken", l.Agent)
		}
		if l.pending(TellSummon) || l.pending(TellWake) || l.stage() == Asking && l.pending(TellStatus) {
			words = fmt.Sprintf("%s could not receive the prompt in time (%s)", l.Agent, l.stage())
		}
		return d.leadStep(FellSilent, step{Notice: d.notice(NoticeSilent, words, l.Session)})
	case due(l.Waits):
		return d.leadStep(StatusMissing,
			step{Notice: d.notice(NoticeSilent, l.Agent+" did not report in time which agents are awake", l.Session)})
	}
	return nil
}
