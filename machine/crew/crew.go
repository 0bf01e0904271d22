// Package crew decides who of a team exists, and who is awake.
//
// A team has nine seats. In the middle one sits the lead, a session that a person can talk to;
// on the others sit agents that live inside the lead's session and nowhere else. So nobody
// can see them from outside: what is known of them is what the lead says. When it says that
// they are alive, they are; when its session ends, they sleep; while it has not spoken yet,
// nobody knows, and that is a state like the others. Each of them is a document that outlives
// every session: the name it took, its face, its soul. Who wakes up is handed what it was,
// and nobody who is awake is.
//
// A person begins two things, summon and wake. Both are told the lead and end with its report,
// with its silence, or with the lead itself. What the lead is to be told is read off the value
// (Asks), so a crash loses none of it.
//
// The one promise: nobody is alive but by a report of the lead session that is open now, and
// nobody is ever deleted.
package crew

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// DocID names a document: agent-7, or what the file was called that it came from.
type DocID string

// The seats: nine in three rows, and the lead in the middle (seed 001, gridPosition).
const (
	SeatMax  = 8
	LeadSeat = 4
)

// Times of SPEC P7 and P8, where the configuration names no others.
const (
	StatusMax = 30 * time.Second // of the lead's silence
	HatchMax  = 5 * time.Minute  // of a placeholder without a name, and of a ceremony altogether
)

// Crew is everything that is true of a team's agents. Decide looks at it, Apply alone changes
// it. Its zero value has no documents and no lead.
type Crew struct {
	Docs    map[DocID]*Document `json:"docs,omitempty"`
	Lead    Lead                `json:"lead,omitzero"`
	Made    uint64              `json:"made,omitempty"`    // documents that were named by us so far
	Notices []Notice            `json:"notices,omitempty"` // what people should see, oldest first, noticesMax at most

	// Render gives the identity of the bytes that a document is written as, so that it is in
	// the journal before the file is on disk (X3). It must be pure. Nil: no identities.
	Render func(*Document) string `json:"-"`
}

// Document is one agent of the team (seed 001, agent-identity).
type Document struct {
	ID          DocID           `json:"id"`
	Status      Status          `json:"status"`
	Identity                    // zero but for its seat while it hatches
	CreatedAt   time.Time       `json:"created_at"`
	LastAliveAt time.Time       `json:"last_alive_at,omitzero"` // when the lead said so last
	LastSession string          `json:"last_session,omitempty"` // the lead session that said so
	Extra       json.RawMessage `json:"extra,omitempty"`        // an object of fields that we do not know (X7)
	Sums        []string        `json:"sums,omitempty"`         // identities of our last projections, newest last
}

// Identity is who an agent is, by its own word. It is set once.
type Identity struct {
	Name      string `json:"name,omitempty"` // empty: a placeholder
	Color     string `json:"color,omitempty"`
	ColorName string `json:"color_name,omitempty"`
	Gender    string `json:"gender,omitempty"`
	Seat      int    `json:"seat"`
	Face      Face   `json:"face,omitzero"`
	Soul      string `json:"soul,omitempty"` // individuationArtifact, whole
}

// Face is what the page draws an agent with.
type Face struct {
	Eyes  string `json:"eyes,omitempty"`
	Mouth string `json:"mouth,omitempty"`
}

// Visible says whether people see it: an expired one stays and is hidden.
func (d *Document) Visible() bool { return d.Status != Expired }

// Ours says whether a content of this identity was projected by us: it is no news then.
func (d *Document) Ours(sum string) bool { return slices.Contains(d.Sums, sum) }

// Lead is the agent that answers for the team, and what is between it and us. A change sets it
// as a whole.
type Lead struct {
	Agent     string        `json:"agent,omitempty"` // by the configuration; empty: nobody leads
	Size      int           `json:"size,omitempty"`  // seats that SUMMON fills
	StatusMax time.Duration `json:"status_max,omitempty"`
	HatchMax  time.Duration `json:"hatch_max,omitempty"`

	Session  string    `json:"session,omitempty"` // its lead session; empty: none runs
	UUID     string    `json:"uuid,omitempty"`    // the same, as documents name it
	Reported time.Time `json:"reported,omitzero"` // last, in this session, to this daemon; zero: not yet
	Waits    time.Time `json:"waits,omitzero"`    // a status that it was asked for is due then; zero: none is
	Number   uint64    `json:"number,omitempty"`  // given to what it is told
	Actions  []Action  `json:"asks,omitempty"`    // what it is still to be told, in order
	Again    []int     `json:"again,omitempty"`   // seats that it was asked to register in this session
	Stage    Stage     `json:"stage,omitempty"`   // of the ceremony under way; empty is idle
	Since    time.Time `json:"since,omitzero"`    // it began then
	Ends     time.Time `json:"ends,omitzero"`     // it ends by silence then; zero: its errand was not told yet
	Who      []DocID   `json:"who,omitempty"`     // a wake is for them
}

// InProgress says whether a summon or a wake is under way.
func (l *Lead) InProgress() bool { return l.stage() != Idle }

func (l *Lead) stage() Stage { return cmp.Or(l.Stage, Idle) }

// Heard says whether the lead session that is open has reported.
func (l *Lead) Heard() bool { return l.Session != "" && !l.Reported.IsZero() }

// Action is one thing that the lead is to be told.
type Action struct {
	N     uint64     `json:"n"`
	Do    ActionKind `json:"do"`
	Seats []int      `json:"seats,omitempty"` // of a summon: the free ones; of a registration: those without
	Names []string   `json:"names,omitempty"` // beside Seats of a registration: as the lead listed them
	Docs  []DocID    `json:"docs,omitempty"`  // of a wake
}

// ActionKind is a kind of thing that the lead is told.
type ActionKind string

const (
	TellStatus   ActionKind = "tell_status"   // who of the team is alive?
	TellSummon   ActionKind = "tell_summon"   // [SUMMON AGENTS]
	TellWake     ActionKind = "tell_wake"     // [WAKE AGENTS]
	TellRegister ActionKind = "tell_register" // it listed somebody who was never registered
)

// Notice is something that people should see: a marker that is broken or refused, one from
// somebody who does not lead, a lead that is silent.
type Notice struct {
	At      time.Time  `json:"at"`
	Kind    NoticeKind `json:"kind"`
	Text    string     `json:"text"`
	Session string     `json:"session,omitempty"` // whose words it is about
}

// NoticeKind sorts notices for people and programs.
type NoticeKind string

const (
	NoticeFault   NoticeKind = "fault"   // a marker that cannot be read
	NoticeIgnored NoticeKind = "ignored" // a marker from somebody whose word does not count
	NoticeRefused NoticeKind = "refused" // what a marker or a document says cannot be
	NoticeSilent  NoticeKind = "silent"  // a report did not come
	NoticeLead    NoticeKind = "lead"    // the lead could not do what it was to be told
)

const (
	noticesMax     = 20      // older ones are in the journal
	noticeBytesMax = 2 << 10 // of one: what was meant can be seen by then
	docsMax        = 1024    // visible and expired: nobody is deleted, so somebody has to say stop
	sumsMax        = 16      // a restored file older than so many writes is taken for somebody else's
	asksMax        = 32      // of what the lead is to be told
	listedMax      = 64      // of one report: a team has eight
)

// InOrder lists the documents as people see them: by seat, then by id, expired ones last.
func (c *Crew) InOrder() []*Document {
	docs := slices.Collect(maps.Values(c.Docs))
	slices.SortFunc(docs, func(a, b *Document) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Seat, b.Seat), cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return docs
}

func rank(d *Document) int {
	if d.Visible() {
		return 0
	}
	return 1
}

// Button is the one button of the team (seed 001, Button Logic).
type Button string

const (
	SummonButton Button = "SUMMON"
	WakeButton   Button = "WAKE"
	WakingButton Button = "WAKING…" // disabled
	NoButton     Button = "none"
)

// Button is what people can press now.
func (c *Crew) Button() Button {
	return ButtonOf(slices.Collect(maps.Values(c.Docs)), c.Lead.InProgress())
}

// ButtonOf is the button of a team of these documents. It is a function of them and of whether
// a summon or a wake is under way, and of nothing else.
func ButtonOf(docs []*Document, inProgress bool) Button {
	count := map[Status]int{}
	visible := 0
	for _, d := range docs {
		if d.Visible() {
			visible++
			count[d.Status]++
		}
	}
	switch {
	case inProgress:
		return WakingButton
	case visible == 0:
		return SummonButton
	case count[Sleeping]+count[Unknown] > 0:
		return WakeButton
	case count[Hatching] > 0:
		return WakingButton // until they hatch, or P7
	default:
		return NoButton
	}
}
