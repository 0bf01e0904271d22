// Package crew records which agents of a crew exist and which are alive.
//
// A crew has nine seats (seed 001). The lead has the seat in the middle: it is a session that a
// person can talk to. The other agents live inside the lead's session, so Fairlead cannot observe
// them. It knows only what the lead reports. An agent is alive if the lead's open session listed it
// in a report, sleeping when that session has ended, and unknown until the session's first report.
// Each agent has a document that outlives all sessions: its name, face and soul.
//
// A person starts a summon or a wake. The lead receives a prompt for it. It ends with the lead's
// report, with a timeout, or with the lead's session. Pending prompts are part of the value
// (Lead.Actions), so a crash loses none.
//
// The one promise: an agent is alive only by a report of the lead's open session, and no document
// is ever deleted.
package crew

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// DocID is the id of a document: agent-7, or the name of the file that it was imported from.
type DocID string

// The seats: nine in three rows, with the lead in the middle (seed 001, gridPosition).
const (
	SeatMax  = 8
	LeadSeat = 4
)

// noMemberSeat says why a seat is no member's; empty: it is one.
func noMemberSeat(seat int) string {
	if seat >= 0 && seat <= SeatMax && seat != LeadSeat {
		return ""
	}
	return fmt.Sprintf("seat %d; seats are 0 to %d except %d, which is the lead's", seat, SeatMax, LeadSeat)
}

// Defaults of SPEC P7 and P8.
const (
	StatusMax = 30 * time.Second // how long the lead may take for a status report
	HatchMax  = 5 * time.Minute  // how long a placeholder, and a whole summon or wake, may take
)

// AliveMax is how long a member counts as alive after the lead reported it. A lead that works has
// reported again by then.
const AliveMax = HatchMax

// Crew is the state of a crew. Decide reads it, only Apply changes it. Its zero value has no
// documents and no lead.
type Crew struct {
	Docs    map[DocID]*Document `json:"docs,omitempty"`
	Lead    Lead                `json:"lead,omitzero"`
	Made    uint64              `json:"made,omitempty"`    // documents that Fairlead has named so far
	Notices []Notice            `json:"notices,omitempty"` // messages for people, oldest first, noticesMax at most

	// Render returns the identity of a document's bytes, so that the identity is in the journal before
	// the file is on disk (X3). It must be pure. Nil: no identities.
	Render func(*Document) string `json:"-"`
}

// Document is one agent of the crew (seed 001, agent-identity).
type Document struct {
	ID          DocID           `json:"id"`
	Status      Status          `json:"status"`
	Identity                    // zero except for the seat while it hatches
	CreatedAt   time.Time       `json:"created_at"`
	LastAliveAt time.Time       `json:"last_alive_at,omitzero"` // last time the lead reported it alive
	LastSession string          `json:"last_session,omitempty"` // the lead session of that report
	Extra       json.RawMessage `json:"extra,omitempty"`        // an object with the fields that Fairlead does not know (X7)
	Sums        []string        `json:"sums,omitempty"`         // identities of the last files written, newest last
}

// Identity is what an agent reports about itself. It is set once.
type Identity struct {
	Name      string `json:"name,omitempty"` // empty: a placeholder
	Color     string `json:"color,omitempty"`
	ColorName string `json:"color_name,omitempty"`
	Gender    string `json:"gender,omitempty"`
	Seat      int    `json:"seat"`
	Face      Face   `json:"face,omitzero"`
	Soul      string `json:"soul,omitempty"` // individuationArtifact, complete
}

// Face is how the page draws an agent.
type Face struct {
	Eyes  string `json:"eyes,omitempty"`
	Mouth string `json:"mouth,omitempty"`
}

// Visible reports whether people see the document. An expired document is kept but hidden.
func (d *Document) Visible() bool { return d.Status != Expired }

// Ours reports whether Fairlead wrote content of this identity.
func (d *Document) Ours(sum string) bool { return slices.Contains(d.Sums, sum) }

// Lead is the agent that leads the crew, with its pending actions and its reports. A change sets it
// as a whole.
type Lead struct {
	Agent     string        `json:"agent,omitempty"` // by the configuration; empty: no lead
	Size      int           `json:"size,omitempty"`  // number of seats that SUMMON fills
	StatusMax time.Duration `json:"status_max,omitempty"`
	HatchMax  time.Duration `json:"hatch_max,omitempty"`

	Session  string    `json:"session,omitempty"` // its open session; empty: none
	UUID     string    `json:"uuid,omitempty"`    // the session's name in documents
	Reported time.Time `json:"reported,omitzero"` // last report in this session to this daemon; zero: none yet
	Waits    time.Time `json:"waits,omitzero"`    // deadline of a status report that it was asked for; zero: none
	Number   uint64    `json:"number,omitempty"`  // number of the last action
	Actions  []Action  `json:"asks,omitempty"`    // pending actions, in order
	Again    []int     `json:"again,omitempty"`   // seats that it was asked to register in this session
	Stage    Stage     `json:"stage,omitempty"`   // of the summon or wake in progress; empty is idle
	Since    time.Time `json:"since,omitzero"`    // start of the summon or wake
	Ends     time.Time `json:"ends,omitzero"`     // its timeout; zero: the lead has not received it yet
	Who      []DocID   `json:"who,omitempty"`     // the agents that a wake is for
}

// InProgress reports whether a summon or a wake is in progress.
func (l *Lead) InProgress() bool { return l.stage() != Idle }

func (l *Lead) stage() Stage { return cmp.Or(l.Stage, Idle) }

// Heard reports whether the lead's open session has reported.
func (l *Lead) Heard() bool { return l.Session != "" && !l.Reported.IsZero() }

// Action is one prompt that the lead must receive.
type Action struct {
	N     uint64     `json:"n"`
	Do    ActionKind `json:"do"`
	Seats []int      `json:"seats,omitempty"` // of a summon: the free seats; of a registration: the unregistered ones
	Names []string   `json:"names,omitempty"` // of a registration: the names for Seats, as the lead listed them
	Docs  []DocID    `json:"docs,omitempty"`  // of a wake
}

// ActionKind is the kind of an action.
type ActionKind string

const (
	TellStatus   ActionKind = "tell_status"   // which agents are alive?
	TellSummon   ActionKind = "tell_summon"   // [SUMMON AGENTS]
	TellWake     ActionKind = "tell_wake"     // [WAKE AGENTS]
	TellRegister ActionKind = "tell_register" // the lead listed an agent that was never registered
)

// Notice is a message for people: about an invalid or refused marker, a marker from another
// session, or a lead that does not answer.
type Notice struct {
	At      time.Time  `json:"at"`
	Kind    NoticeKind `json:"kind"`
	Text    string     `json:"text"`
	Session string     `json:"session,omitempty"` // the session that it is about
}

// NoticeKind classifies notices.
type NoticeKind string

const (
	NoticeFault   NoticeKind = "fault"   // an invalid marker
	NoticeIgnored NoticeKind = "ignored" // a marker from a session that does not lead
	NoticeRefused NoticeKind = "refused" // a marker or a document says something impossible
	NoticeSilent  NoticeKind = "silent"  // a report did not come in time
	NoticeLead    NoticeKind = "lead"    // the lead could not carry out an action
)

const (
	noticesMax     = 20      // the journal has the older ones
	noticeBytesMax = 2 << 10 // bytes of one notice
	docsMax        = 1024    // visible and expired documents; they are never deleted, so there has to be a limit
	sumsMax        = 16      // a restored file that is older than this many writes counts as written by another program
	asksMax        = 32      // actions of the lead
	listedMax      = 64      // agents of one report; a crew has eight
)

// InOrder lists the documents as people see them: by seat, then by id, expired ones last.
func (c *Crew) InOrder() []*Document {
	docs := slices.Collect(maps.Values(c.Docs))
	slices.SortFunc(docs, func(a, b *Document) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Seat, b.Seat), cmp.Compare(len(a.ID), len(b.ID)),
			cmp.Compare(a.ID, b.ID))
	})
	return docs
}

func rank(d *Document) int {
	if d.Visible() {
		return 0
	}
	return 1
}

// Button is the one button of the crew (seed 001, Button Logic).
type Button string

const (
	SummonButton Button = "SUMMON"
	WakeButton   Button = "WAKE"
	WakingButton Button = "WAKING…" // disabled
	NoButton     Button = "none"
)

// Button returns the button to show.
func (c *Crew) Button() Button {
	return ButtonOf(slices.Collect(maps.Values(c.Docs)), c.Lead.InProgress())
}

// ButtonOf returns the button for these documents. It depends only on them and on whether a summon
// or a wake is in progress.
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
		return WakingButton // until they hatch or expire (P7)
	default:
		return NoButton
	}
}
