package crew

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Decide returns the changes that an input causes, without applying them. It returns no change if
// the input says what already holds. A refusal is a *table.Refusal.
func (c *Crew) Decide(in Input, now Now) ([]change.Change, error) {
	d := &crewDraft{crew: c, now: now, lead: c.Lead, made: c.Made}
	if err := d.decide(in); err != nil {
		return nil, err
	}
	return d.changes, nil
}

// crewDraft collects the changes of one input with their results.
type crewDraft struct {
	crew    *Crew
	now     Now
	lead    Lead
	docs    map[DocID]*Document // documents that changed
	made    uint64
	changes []change.Change
}

func (d *crewDraft) decide(in Input) error {
	switch in := in.(type) {
	case LeadConfigured:
		return d.configure(in)
	case DaemonStarted:
		return d.daemonStarted()
	case SummonAsked:
		return d.summon()
	case WakeAsked:
		return d.wake(in)
	case LeadBegan:
		return d.began(in)
	case LeadEnded:
		return d.ended(in)
	case LeadHeard:
		if d.lead.Agent == "" || d.lead.Session != "" {
			return nil
		}
		return d.leadStep(Heard, step{Session: in.Session, UUID: in.UUID})
	case LeadLost:
		return lostLead(d, in)
	case ActionReceived:
		return d.received(in)
	case Reported:
		return d.reported(in)
	case Registered:
		return d.registered(in)
	case Spoke:
		return d.spoke(in)
	case Faulty:
		return d.faulty(in)
	case Imported:
		return d.imported(in)
	case TimerFired:
		return d.timer()
	default:
		panic(fmt.Sprintf("crew: unknown input: %T", in))
	}
}

// doc returns a document with the changes so far.
func (d *crewDraft) doc(id DocID) *Document {
	if doc := d.docs[id]; doc != nil {
		return doc
	}
	return d.crew.Docs[id]
}

// visible lists the documents that people see, by seat.
func (d *crewDraft) visible() []*Document {
	var docs []*Document
	for id, doc := range d.crew.Docs { // many may have expired; at most eight are visible
		if d.docs[id] == nil && doc.Visible() {
			docs = append(docs, doc)
		}
	}
	for _, doc := range d.docs {
		if doc.Visible() {
			docs = append(docs, doc)
		}
	}
	slices.SortFunc(docs, func(a, b *Document) int { return cmp.Or(cmp.Compare(a.Seat, b.Seat), cmp.Compare(a.ID, b.ID)) })
	return docs
}

// onSeat returns the document on a seat; nil: none.
func (d *crewDraft) onSeat(seat int) *Document {
	for _, doc := range d.visible() {
		if doc.Seat == seat {
			return doc
		}
	}
	return nil
}

// named is the data of a document's row besides its status.
type named struct {
	Identity    Identity // of TakeIdentity
	CreatedAt   time.Time
	LastAliveAt time.Time // of an imported document
	LastSession string
	Extra       []byte
	Made        uint64
	Notice      string // of Refuse
}

// move applies an event to a document. A row that changes nothing emits no change.
func (d *crewDraft) move(id DocID, event Event, with named) error {
	was := d.doc(id)
	if was == nil {
		was = &Document{ID: id, Status: None, CreatedAt: d.now.At}
	}
	rule, err := Table.Look(string(id), was.Status, event)
	if err != nil {
		return err
	}
	if rule.To == was.Status && len(rule.Do) == 0 {
		return nil
	}
	next, set, refused := *was, DocSet{}, (*Notice)(nil)
	next.Status = rule.To
	if was.Status == None {
		next.Identity.Seat, set.Made = with.Identity.Seat, with.Made
		next.CreatedAt = cmp.Or(with.CreatedAt, d.now.At)
		set.Identity = &next.Identity
	}
	for _, act := range rule.Do {
		switch act {
		case TakeIdentity:
			next.Identity = with.Identity
			set.Identity = &next.Identity
			if was.Status == None {
				next.LastAliveAt, next.LastSession, next.Extra = with.LastAliveAt, with.LastSession, with.Extra
			}
		case NoteAlive:
			next.LastAliveAt, next.LastSession = d.now.At, d.lead.UUID
		case TakeExtra:
			next.Extra = with.Extra
		case Refuse:
			refused = d.notice(NoticeRefused, with.Notice, d.lead.Session)
		case AskToRegist: // part of the lead's change
		}
	}
	if refused != nil {
		d.addOf(id, rule.ID, was.Status, rule.To, event, Body{Notice: refused})
		return nil
	}
	if len(rule.Do) == 1 && rule.Do[0] == AskToRegist {
		return nil
	}
	set.Status, set.CreatedAt, set.LastAliveAt, set.LastSession, set.Extra = next.Status, next.CreatedAt, next.LastAliveAt,
		next.LastSession, next.Extra
	if d.crew.Render != nil {
		set.Sum = d.crew.Render(&next)
	}
	if d.docs == nil {
		d.docs = map[DocID]*Document{}
	}
	d.docs[id] = &next
	d.addOf(id, rule.ID, was.Status, rule.To, event, Body{Doc: &set})
	return nil
}

func (d *crewDraft) add(ch change.Change) {
	ch.Machine, ch.At = "crew", d.now.At
	d.changes = append(d.changes, ch)
}

// addOf adds a change of a document.
func (d *crewDraft) addOf(id DocID, row string, from, to Status, event Event, body Body) {
	d.add(change.Change{
		Entity: docPrefix + string(id), Row: row, From: string(from), To: string(to), Trigger: string(event), Body: &body,
	})
}

// allVisible applies an event to all visible documents whose status accepts it.
func (d *crewDraft) allVisible(event Event, but map[DocID]bool) error {
	for _, doc := range d.visible() {
		if _, takes := Table[doc.Status][event]; !takes || but[doc.ID] {
			continue
		}
		if err := d.move(doc.ID, event, named{}); err != nil {
			return err
		}
	}
	return nil
}

// step is the data of a change of the lead.
type step struct {
	Session, UUID string // of TakeSession
	Ask           uint64 // of DropAction
	Wake          []DocID
	Seats         []int // of QueueSummon and QueueRegister
	Names         []string
	Conf          LeadConfigured
	Notice        *Notice
}

// leadStep applies an event to the lead.
func (d *crewDraft) leadStep(event LeadEvent, with step) error {
	from := d.lead.stage()
	rule, err := LeadTable.Look(cmp.Or(d.lead.Agent, "the team"), from, event)
	if err != nil {
		return err
	}
	next := d.lead
	next.Stage = rule.To
	if rule.To == Idle {
		next.Stage = ""
	}
	if from == Idle && rule.To != Idle {
		next.Since, next.Ends = d.now.At, time.Time{}
	}
	for _, act := range rule.Do {
		if err := d.act(&next, act, with); err != nil {
			return err
		}
	}
	body := Body{Notice: with.Notice}
	if !sameLead(&d.lead, &next) {
		body.Lead = &next
		d.lead = next
	}
	if body.Lead == nil && body.Notice == nil {
		return nil
	}
	d.add(change.Change{Entity: LeadEntity, Row: rule.ID, From: string(from), To: string(rule.To), Trigger: string(event), Body: &body})
	return nil
}

func sameLead(a, b *Lead) bool {
	return a.Agent == b.Agent && a.Size == b.Size && a.StatusMax == b.StatusMax && a.HatchMax == b.HatchMax &&
		a.Session == b.Session && a.UUID == b.UUID && a.Reported.Equal(b.Reported) && a.Waits.Equal(b.Waits) &&
		a.Number == b.Number && slices.EqualFunc(a.Actions, b.Actions, sameAction) && slices.Equal(a.Again, b.Again) &&
		a.Stage == b.Stage && a.Since.Equal(b.Since) && a.Ends.Equal(b.Ends) && slices.Equal(a.Who, b.Who)
}

func sameAction(a, b Action) bool { return a.N == b.N && slices.Equal(a.Docs, b.Docs) }

// notice creates a message for people, cut to its limit.
func (d *crewDraft) notice(kind NoticeKind, text, session string) *Notice {
	return &Notice{At: d.now.At, Kind: kind, Text: clip.Text(text, noticeBytesMax), Session: session}
}

// refuse returns the refusal of a person's request.
func (d *crewDraft) refuse(event LeadEvent, row, reason string, takes ...string) error {
	return &table.Refusal{
		Subject: "the team", Event: string(event), State: string(d.lead.stage()), Row: row, Reason: reason, Takes: takes,
	}
}

// begins reports whether a summon or a wake may start.
func (d *crewDraft) begins(event LeadEvent, row string) error {
	switch l := &d.lead; {
	case l.Agent == "":
		return d.refuse(event, row, "the team has no lead; name an agent as team.lead in fairlead.yaml and restart")
	case d.now.Held:
		return d.refuse(event, "X8", "the team is held, or Fairlead is stopping; release it first")
	case d.now.Limit != "":
		return d.refuse(event, "X9", fmt.Sprintf("%s cannot run: limit reached: %s", l.Agent, d.now.Limit))
	case l.InProgress():
		return d.refuse(event, row,
			fmt.Sprintf("it is %s already, since %s; when that is over, wake the agents that are not alive", l.stage(),
				l.Since.Format(time.TimeOnly)))
	}
	return nil
}

// Deadline returns when the crew changes without an input; zero: never. TimerFired is due
// then.
func (c *Crew) Deadline() time.Time {
	var next time.Time
	earlier := func(at time.Time) { next = table.Earliest(next, at) }
	for _, doc := range c.Docs {
		if doc.Status == Hatching && doc.Name == "" {
			earlier(doc.CreatedAt.Add(c.Lead.hatchMax()))
		}
	}
	earlier(c.Lead.Waits)
	if c.Lead.InProgress() {
		earlier(c.Lead.Ends)
		earlier(c.Lead.Since.Add(c.Lead.hatchMax()))
	}
	return next
}

func (l *Lead) hatchMax() time.Duration  { return cmp.Or(l.HatchMax, HatchMax) }
func (l *Lead) statusMax() time.Duration { return cmp.Or(l.StatusMax, StatusMax) }

// ActionOf returns the lead's action with this number. It returns false if the action is no longer
// pending.
func (l *Lead) ActionOf(n uint64) (Action, bool) {
	if i := slices.IndexFunc(l.Actions, func(a Action) bool { return a.N == n }); i >= 0 {
		return l.Actions[i], true
	}
	return Action{}, false
}

// ByName finds a document by id or name. An expired document has no name. It fails if no document
// or two of them match.
func (c *Crew) ByName(name string) (*Document, error) {
	if doc := c.Docs[DocID(name)]; doc != nil {
		return doc, nil
	}
	var found []*Document
	for _, doc := range c.InOrder() {
		if doc.Visible() && doc.Name == name && name != "" {
			found = append(found, doc)
		}
	}
	switch len(found) {
	case 0:
		return nil, ErrNoSuchAgent
	case 1:
		return found[0], nil
	default:
		return nil, &table.Refusal{
			Subject: name, Event: "named", State: "twice in the team", Row: "P4",
			Reason: fmt.Sprintf("two have this name; say which by its id: %s (seat %d) or %s (seat %d)", found[0].ID, found[0].Seat,
				found[1].ID, found[1].Seat),
		}
	}
}

// ErrNoSuchAgent means that no agent of the crew has this name.
var ErrNoSuchAgent = errors.New("no agent of the team has this name")
