package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Input is something that happened to a host.
type Input = change.Input[Event]

// Subject is what an input is about: Entity is the name of a host.
type Subject = change.Subject[Event]

// Join is a host that asks to take part. It asks at each start of its daemon, and when the journal says that
// it is lost. It has ended the sessions of its older incarnations by then, except those with [Wait].
type Join struct {
	Name, Boot string
	Labels     []string
	Capacity   int
	Key        string // public half of its key; empty: as known
	Engine     string // address of an engine host; empty: as known, or none if it joins
	Invited    bool   // it has shown a valid invitation
	Leads      bool
}

// Renew is a renewal that the leader has seen. Nothing is journaled unless it ends a doubt.
type Renew struct {
	Name        string
	Incarnation uint64
}

// Doubt and Lose are what [Watch.Due] says of a host.
type (
	Doubt struct{ Name string }
	Lose  struct{ Name string }
)

// Place gives a session a lease on a host.
type Place struct {
	Session, Host string
	OnLost        OnLost // empty: Restart
	Home          bool   // it has to run on the leader's machine, and takes no place there
}

// Release ends the lease of a session that has ended, that never started, or that [Hosts.MayMove] lets move.
type Release struct {
	Session string
	For     string // what it was opened for
}

// Drain, Leave and Remove are requests: of a person, of the host, of a person.
type (
	Drain  struct{ Name string }
	Leave  struct{ Name string }
	Remove struct{ Name string }
)

// Report is what a host said of a session, and what was kept of what it left. It changes nothing if its token counts.
type Report struct {
	Token
	What string
	Kept
}

// Note is what the daemon of a host lacks now, as it said with a renewal.
type Note struct {
	Name        string
	Incarnation uint64
	Lacks       []Lack
}

// Fetched says that all branches that a host had when it led are on the machine that leads.
type Fetched struct {
	Name        string
	Incarnation uint64
}

// Alone makes ordinary hosts of all engine hosts but the leader's own: from this change on only that one leads.
type Alone struct{ Name string }

// Subject of each input is what it is about.
func (in Join) Subject() Subject  { return Subject{Event: HostJoined, Entity: in.Name} }
func (in Renew) Subject() Subject { return Subject{Event: Renewed, Entity: in.Name} }
func (in Doubt) Subject() Subject { return Subject{Event: DoubtDue, Entity: in.Name} }
func (in Lose) Subject() Subject  { return Subject{Event: LostDue, Entity: in.Name} }
func (in Place) Subject() Subject {
	return Subject{Event: SessionPlaced, Entity: in.Host, Session: in.Session, Starts: true}
}
func (in Release) Subject() Subject { return Subject{Event: SessionReleased, Session: in.Session} }
func (in Drain) Subject() Subject   { return Subject{Event: DrainAsked, Entity: in.Name} }
func (in Leave) Subject() Subject   { return Subject{Event: HostLeft, Entity: in.Name} }
func (in Remove) Subject() Subject  { return Subject{Event: Removed, Entity: in.Name} }
func (in Report) Subject() Subject {
	return Subject{Event: ReportedLate, Entity: in.Host, Session: in.Session}
}
func (in Note) Subject() Subject    { return Subject{Event: LacksReported, Entity: in.Name} }
func (in Fetched) Subject() Subject { return Subject{Event: BranchesFetched, Entity: in.Name} }
func (Alone) Subject() Subject      { return Subject{Event: EngineEnded} } // all hosts but the one that it names

// Decide returns the changes that an input causes, or a refusal. It returns no change if the input says what
// already holds.
func (t *Hosts) Decide(at time.Time, by change.Actor, in Input) ([]change.Change, error) {
	d := &hostDraft{t: t, at: at, by: by}
	h := t.Hosts[in.Subject().Entity] // nil: the input names no host, or an unknown one
	var err error
	switch in := in.(type) {
	case Join:
		err = d.join(in)
	case Renew:
		if h.has(in.Incarnation) && h.RemovedBy == "" && !h.DoubtedAt.IsZero() && (h.State == Doubted || h.State == Draining) {
			err = d.move(in.Name, Renewed, in)
		}
	case Note:
		if h.has(in.Incarnation) && h.State != Lost && h.State != Left && !slices.Equal(h.Lacks, Lacks(in.Lacks)) {
			err = d.move(in.Name, LacksReported, in)
		}
	case Fetched:
		if h.has(in.Incarnation) && h.State != Lost && h.State != Left && h.Branches {
			err = d.move(in.Name, BranchesFetched, in)
		}
	case Doubt:
		if h == nil || h.DoubtedAt.IsZero() {
			err = d.move(in.Name, DoubtDue, in)
		}
	case Lose:
		err = d.lose(in)
	case Place:
		if l, placed := t.Leases[in.Session]; placed {
			return nil, d.refusal(in.Host, SessionPlaced, "H7", fmt.Sprintf("session %s is placed on %s already", in.Session, l.Host))
		}
		err = d.place(in)
	case Release:
		if l, placed := t.Leases[in.Session]; placed {
			err = cmp.Or(d.move(l.Host, t.released(l), in), d.drained(l.Host, 1))
		}
	case Drain:
		h := d.host(in.Name)
		if h.RemovedBy != "" && h.State != Left {
			return nil, d.refusal(in.Name, DrainAsked, "H13", "it was removed by "+h.RemovedBy)
		}
		if h.State != Draining {
			err = cmp.Or(d.move(in.Name, DrainAsked, in), d.drained(in.Name, 0))
		}
	case Leave:
		if h == nil || h.State != Left {
			err = d.move(in.Name, HostLeft, in)
		}
	case Remove:
		err = d.remove(in)
	case Alone:
		err = d.alone(in)
	case Report:
		known := h != nil &&
			slices.ContainsFunc(h.Late, func(l Late) bool { return l.Token == in.Token && l.What == clip.To(in.What, whatMax) })
		if ok, _ := t.Counts(in.Token); !ok && !known { // it is repeated until it is answered
			err = cmp.Or(d.move(in.Host, ReportedLate, in), d.drained(in.Host, 0))
		}
	default:
		panic(fmt.Sprintf("host: no such input: %T", in))
	}
	if err != nil {
		return nil, err
	}
	return d.changes, nil
}

// has reports whether a host is known, and this is its last incarnation.
func (h *Host) has(incarnation uint64) bool { return h != nil && h.Incarnation == incarnation }

// hostDraft collects the changes of one decision. is has those about one host applied.
type hostDraft struct {
	t       *Hosts
	is      *Host // nil before the first change
	at      time.Time
	by      change.Actor
	changes []change.Change
}

func (d *hostDraft) host(name string) Host {
	switch {
	case d.is != nil:
		return *d.is
	case d.t.Hosts[name] != nil:
		return *d.t.Hosts[name]
	}
	return Host{Name: name, State: None}
}

func (d *hostDraft) refusal(name string, event Event, row, reason string) error {
	state := d.host(name).State
	return &table.Refusal{
		Subject: "host " + name, Event: string(event), State: string(state), Row: row, Reason: reason,
		Takes: table.Names(Table[state]),
	}
}

// move takes a row of the table.
func (d *hostDraft) move(name string, event Event, in Input) error {
	h := d.host(name)
	if h.State == None && event != HostJoined {
		return d.refusal(clip.To(name, wordMax), event, "", "there is no such host; `fairlead hosts` lists them")
	}
	from := h.State
	rule, err := Table.Look("host "+name, from, event)
	if err != nil {
		return err
	}
	h.State = rule.To
	body := &Body{Host: &h}
	for _, act := range rule.Do {
		switch act {
		case TakeFacts:
			join := in.(Join) //nolint:forcetypeassert // the event implies the type
			h.Boot, h.Labels, h.Capacity, h.Leads, h.Key = join.Boot, labels(join.Labels), join.Capacity, join.Leads,
				cmp.Or(join.Key, h.Key)
			if join.Engine != "" || event == HostJoined {
				h.Engine = join.Engine
			}
		case NextIncarnation:
			h.Incarnation++
			h.JoinedAt, h.LostAt = d.at, time.Time{}
		case NoteDoubt:
			h.DoubtedAt = d.at
		case ForgetDoubt:
			h.DoubtedAt = time.Time{}
		case NoteLost:
			h.LostAt = d.at
		case LeaseSession:
			place := in.(Place) //nolint:forcetypeassert // the event implies the type
			h.Leases++
			body.Lease = &Lease{
				Token: Token{place.Session, name, h.Incarnation, h.Leases}, Boot: h.Boot,
				OnLost: cmp.Or(place.OnLost, Restart), Home: place.Home,
			}
		case ReleaseSession:
			body.Released = in.(Release).Session //nolint:forcetypeassert // the event implies the type
		case NoteMissing:
			l := d.t.Leases[body.Released]
			missing := append(slices.Clone(h.Missing),
				Missing{l.Token, in.(Release).For, l.OnLost, d.at}) //nolint:forcetypeassert // the event implies the type
			h.Missing = missing[max(0, len(missing)-missingMax):]
		case ForgetMissing:
			h.Missing = nil
		case NoteDrain:
			h.DrainedBy = d.by.Name()
		case ForgetDrain:
			h.DrainedBy = ""
		case NoteRemoval:
			h.RemovedBy = d.by.Name()
		case ForgetRemoval:
			h.RemovedBy = ""
		case ForgetEngine:
			h.Engine = ""
		case ForgetBranches:
			h.Branches = false
		case NoteLacks:
			h.Lacks = Lacks(in.(Note).Lacks) //nolint:forcetypeassert // the event implies the type
		case KeepLate:
			report := in.(Report) //nolint:forcetypeassert // the event implies the type
			is := Late{Token: report.Token, What: clip.To(report.What, whatMax), Kept: report.Kept, At: d.at}
			is.Lacks = clip.To(is.Lacks, notKeptMax)
			h.Missing = slices.DeleteFunc(slices.Clone(h.Missing), func(m Missing) bool {
				if m.Token == is.Token {
					is.For = m.For
				}
				return m.Token == is.Token
			})
			late := append(slices.Clone(h.Late), is)
			h.Late = late[max(0, len(late)-lateMax):]
		}
	}
	d.is = &h
	d.changes = append(d.changes, change.Change{
		Machine: "host", Entity: "host/" + name, Row: rule.ID, From: string(from), To: string(rule.To), Trigger: string(event),
		At: d.at, Actor: d.by, Body: body,
	})
	return nil
}

func (d *hostDraft) join(in Join) error {
	h := d.host(in.Name)
	if wrong := d.wrong(in); wrong != "" {
		return d.refusal(clip.To(in.Name, wordMax), HostJoined, "H1", wrong)
	}
	switch {
	case (h.State == None || h.State == Left) && in.Invited:
		return d.move(in.Name, HostJoined, in)
	case h.State == None || h.State == Left:
		return d.refusal(in.Name, HostJoined, "H1", "it needs an invitation; `fairlead host invite` makes one")
	case h.RemovedBy != "":
		return d.refusal(in.Name, CameBack, "H13", "it was removed by "+h.RemovedBy)
	case in.Key != "" && h.Key != "" && in.Key != h.Key && !in.Leads: // a leader may have made its cluster anew
		return d.refusal(in.Name, HostJoined, "H1", "another host of the team has this name; choose another one, or remove that host first")
	case in.Invited && in.Capacity == 0:
		return nil // it joins again, and is known
	case h.State == Lost && h.DrainedBy != "":
		return cmp.Or(d.move(in.Name, CameBackDraining, in), d.drained(in.Name, 0))
	case h.State == Lost || h.Boot != in.Boot:
		return cmp.Or(d.move(in.Name, CameBack, in), d.drained(in.Name, 0))
	case !slices.Equal(h.Labels, labels(in.Labels)) || h.Capacity != in.Capacity || h.Leads != in.Leads ||
		in.Engine != "" && h.Engine != in.Engine || in.Key != h.Key && in.Key != "":
		return d.move(in.Name, FactsReported, in)
	}
	return nil
}

// wrong says what is wrong with the facts of a host.
func (d *hostDraft) wrong(in Join) string {
	switch {
	case !IsWord(in.Name):
		return fmt.Sprintf("its name must have 1 to %d characters a-z, 0-9 and -", wordMax)
	case in.Boot == "" || len(in.Boot) > bootMax:
		return fmt.Sprintf("the id of its boot must have 1 to %d bytes", bootMax)
	case in.Capacity < 0 || in.Capacity == 0 && !in.Invited || in.Capacity > capacityMax:
		return fmt.Sprintf("its capacity is %d; it must be 1 to %d sessions", in.Capacity, capacityMax)
	case len(in.Key) > keyMax:
		return fmt.Sprintf("its key has more than %d bytes", keyMax)
	case len(in.Engine) > engineMax:
		return fmt.Sprintf("its address has more than %d bytes", engineMax)
	case len(in.Labels) > labelsMax || slices.ContainsFunc(in.Labels, func(l string) bool { return !IsWord(l) }):
		return fmt.Sprintf("it may have %d labels, each of 1 to %d characters a-z, 0-9 and -", labelsMax, wordMax)
	case d.t.Hosts[in.Name] == nil && len(d.t.Hosts) >= hostsMax:
		return fmt.Sprintf("the team knows %d hosts, which is the limit", hostsMax)
	}
	return ""
}

// IsWord reports whether a text can be the name of a host or a label.
func IsWord(s string) bool {
	return s != "" && len(s) <= wordMax && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// labels are sorted, so that they can be compared.
func labels(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// lose doubts a host before it is lost, if the leader slept over the doubt.
func (d *hostDraft) lose(in Lose) error {
	switch h := d.host(in.Name); {
	case h.State == Lost || h.State == Left:
		return nil
	case h.State == Joined:
		return cmp.Or(d.move(in.Name, DoubtDue, in), d.move(in.Name, LostDue, in))
	case h.RemovedBy != "":
		return d.move(in.Name, RemovalDue, in)
	}
	return d.move(in.Name, LostDue, in)
}

func (d *hostDraft) place(in Place) error {
	h := d.host(in.Host)
	if h.State == Joined && !in.Home && d.t.Busy(in.Host) >= h.Capacity {
		return d.refusal(in.Host, SessionPlaced, "H7", fmt.Sprintf("all %d places are taken", h.Capacity))
	}
	if !slices.Contains([]OnLost{"", Restart, Ask, Wait}, in.OnLost) {
		return d.refusal(in.Host, SessionPlaced, "H7",
			fmt.Sprintf("on_lost is restart, ask or wait, not %q", clip.To(string(in.OnLost), wordMax)))
	}
	return d.move(in.Host, SessionPlaced, in)
}

// released says how a lease ends: its host is asked for what the session left if the lease does not count, unless it has
// reported already, was removed, or is the leader.
func (t *Hosts) released(l Lease) Event {
	h := t.Hosts[l.Host]
	counts, _ := t.Counts(l.Token)
	if counts || h.Leads && h.State != Lost || h.State == Left || h.RemovedBy != "" ||
		slices.ContainsFunc(h.Late, func(late Late) bool { return late.Token == l.Token }) {
		return SessionReleased
	}
	return SessionLost
}

// drained lets a draining host leave when no session is left on it, and nothing is missing of those that were; ending is how
// many this decision ended.
func (d *hostDraft) drained(name string, ending int) error {
	if h := d.host(name); h.State != Draining || d.t.Placed(name) > ending || len(h.Missing) > 0 {
		return nil
	}
	return d.move(name, Drained, nil)
}

// alone takes the hosts one after the other. One that has left is none already.
func (d *hostDraft) alone(in Alone) error {
	for _, name := range d.t.Names() {
		d.is = nil
		if h := d.host(name); name == in.Name || h.Engine == "" || h.State == Left {
			continue
		}
		if err := d.move(name, EngineEnded, in); err != nil {
			return err
		}
	}
	return nil
}

func (d *hostDraft) remove(in Remove) error {
	switch h := d.host(in.Name); {
	case h.State == Left || h.RemovedBy != "":
		return nil
	case h.State != Lost && d.t.Placed(in.Name) > 0:
		return d.move(in.Name, RemovedBusy, in)
	}
	return d.move(in.Name, Removed, in)
}
