// Package question is what agents ask, and what becomes of it.
//
// Picture a counter with numbered slips. Who wants something that he may not simply do puts a
// slip on it: may I run this, which of these shall it be, this conversation would go on under
// other conditions. If the house rules answer it, or an answer that was left standing, it is
// stamped at once and goes back. Else it lies there, in the order in which it came, until a
// person stamps it, or until its time is up and it is stamped with what was agreed for that case.
// A slip goes back to who wrote it; when he has left meanwhile, that is noted on it. No slip is
// ever thrown away unread.
//
// The one promise: every question ends with an answer that was told, or says who did not want it any more.
package question

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/machine"
)

// Kind is what kind of answer a question wants.
type Kind string

const (
	Permission Kind = "permission" // yes or no
	Asked      Kind = "question"   // words, or one of the options
	Resume     Kind = "resume"     // one of the options: the conversation would go on under other conditions
)

// Scope is for how long an answer stands.
type Scope string

const (
	Once    Scope = "once"    // for this question
	Session Scope = "session" // for every one like it in the same session
	Always  Scope = "always"  // for every one like it of the same agent, until it is taken back
)

// Option is one of the answers that who asks has named.
type Option struct {
	ID    string `json:"id"`
	Kind  string `json:"kind,omitempty"` // allow_once, reject_once, …; or the program's own word
	Label string `json:"label,omitempty"`
}

// Question is one of them, whole.
type Question struct {
	N       uint64 `json:"n"`
	ID      string `json:"id"` // q17
	Kind    Kind   `json:"kind"`
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Ask     string `json:"ask"` // who asks calls it so: with the session it is unique

	What    string    `json:"what"`           // one line, the program's own words: not to be trusted
	Tool    string    `json:"tool,omitempty"` // Bash, Write, …
	Call    string    `json:"call,omitempty"` // what it is called with, as far as it is shown
	Key     string    `json:"key,omitempty"`  // of the whole call: two calls with the same are the same
	Why     string    `json:"why,omitempty"`  // why it is asked and not done: no rule allows it
	Paths   []string  `json:"paths,omitempty"`
	Options []Option  `json:"options,omitempty"`
	AskedAt time.Time `json:"asked_at"`

	ExpiresAt time.Time `json:"expires_at,omitzero"` // then the default answers; zero: never
	Otherwise bool      `json:"otherwise,omitempty"` // the default of a permission: is it allowed?
	Default   string    `json:"default,omitempty"`   // of other kinds: which option; empty: no words

	State      State     `json:"state"`
	Allow      bool      `json:"allow,omitempty"`
	Option     string    `json:"option,omitempty"`
	Text       string    `json:"text,omitempty"`
	Scope      Scope     `json:"scope,omitempty"`
	By         string    `json:"by,omitempty"`   // human/ann; rule; time
	Rule       string    `json:"rule,omitempty"` // which rule, or which answer that stands
	AnsweredAt time.Time `json:"answered_at,omitzero"`
	EndedAt    time.Time `json:"ended_at,omitzero"`
	Ended      string    `json:"ended,omitempty"` // why it was taken back
}

// SavedAnswer is an answer that answers the next ones, too.
type SavedAnswer struct {
	N       uint64    `json:"n"`
	ID      string    `json:"id"` // s3
	Agent   string    `json:"agent"`
	Session string    `json:"session,omitempty"` // it stands as long as this one; empty: always
	Tool    string    `json:"tool"`
	Call    string    `json:"call,omitempty"` // as it was shown to who answered
	Key     string    `json:"key"`
	Allow   bool      `json:"allow"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	From    string    `json:"from"` // the question that it was the answer to
}

// Questions is all questions of a team. Its zero value is an empty one.
type Questions struct {
	Asked     uint64                  `json:"asked,omitempty"` // so far; the next id
	Stood     uint64                  `json:"stood,omitempty"` // answers that were left standing, so far
	Questions map[string]*Question    `json:"questions,omitempty"`
	Standing  map[string]*SavedAnswer `json:"standing,omitempty"`
	Past      []string                `json:"past,omitempty"` // ids of ended ones, oldest first, pastMax at most; older ones are in the journal
}

const (
	openMax     = 64       // of one agent at a time: whoever asks more is mistaken
	standingMax = 500      // of one agent
	pastMax     = 200      // shown without asking the journal, and known again when they are asked a second time
	lineMax     = 500      // bytes of one line of somebody's words
	callMax     = 4 << 10  // of a call that is shown
	textMax     = 16 << 10 // of a question in words, and of an answer
	optionsMax  = 32
	pathsMax    = 32
)

// Input is something that happened to a question.
type Input interface{ input() }

// Ask raises a question. Said twice (after a crash) it is one question. Verdict is what the rules say.
type Ask struct {
	Question Question // what who asks knows of it; its number, its state and its answer are not looked at
	Verdict  Verdict
}

// Verdict is what a rule says. Its zero value is nothing.
type Verdict struct {
	Rule  string // its row, or its pattern; empty: none says anything
	Allow bool
}

// Answer is a person's.
type Answer struct {
	ID     string
	Allow  bool   // of a permission
	Option string // by its id; of a permission it may be left out
	Text   string
	Scope  Scope // empty: once
}

// Cover has a rule answer a question that was open before the rule was there.
type Cover struct {
	ID      string
	Verdict Verdict
}

// Hand says that who asked was told.
type Hand struct{ ID string }

// TakeBack says that nobody wants to know any more: one question, by its id or by what who asked calls
// it, or all of a session.
type TakeBack struct {
	ID      string
	Session string // where no ID is given
	Ask     string // one of the session; empty: all, and what stands for it
	Why     string
}

// Revoke has an answer stand no longer.
type Revoke struct{ ID string }

// Due is the time: what has been waited for long enough is answered.
type Due struct{}

func (Ask) input()      {}
func (Answer) input()   {}
func (Cover) input()    {}
func (Hand) input()     {}
func (TakeBack) input() {}
func (Revoke) input()   {}
func (Due) input()      {}

// Body is what Apply needs: exactly one of the first three is set.
type Body struct {
	Question *Question    `json:"question,omitempty"` // as it is now
	Standing *SavedAnswer `json:"standing,omitempty"` // from now on
	Revoked  string       `json:"revoked,omitempty"`  // the id of one that stands no longer
}

// Change is one rule taken. Entity is the question's id, or that of an answer that stands.
type Change struct {
	Entity string
	Row    string
	From   State
	To     State
	Event  Event
	Body   Body
}

// Events of answers that stand: they have no states, only a beginning and an end.
const (
	Stands  Event = "stands"
	Revoked Event = "revoked"
)

// Apply makes a change true. It looks at no table.
func (b *Questions) Apply(ch Change) {
	switch {
	case ch.Body.Question != nil:
		b.put(*ch.Body.Question)
	case ch.Body.Standing != nil:
		s := *ch.Body.Standing
		b.Stood = max(b.Stood, s.N)
		next := maps.Clone(b.Standing)
		if next == nil {
			next = map[string]*SavedAnswer{}
		}
		next[s.ID] = &s
		b.Standing = next
	default:
		next := maps.Clone(b.Standing)
		if delete(next, ch.Body.Revoked); len(next) == 0 {
			next = nil
		}
		b.Standing = next
	}
}

// put keeps maps and lists of its own: others may hold the old ones.
func (b *Questions) put(q Question) {
	b.Asked = max(b.Asked, q.N)
	next := maps.Clone(b.Questions)
	if next == nil {
		next = map[string]*Question{}
	}
	next[q.ID] = &q
	if q.Over() && !slices.Contains(b.Past, q.ID) {
		b.Past = append(b.Past[:len(b.Past):len(b.Past)], q.ID)
		for len(b.Past) > pastMax {
			delete(next, b.Past[0])
			b.Past = b.Past[1:]
		}
	}
	b.Questions = next
}

// Over says whether nothing is to come of a question any more.
func (q *Question) Over() bool { return q.State == Told || q.State == Withdrawn }

// Open lists what waits for a person, the oldest first; of one agent, or of all.
func (b *Questions) Open(agent string) []*Question { return b.in(Open, agent) }

// Untold lists the answers that who asked is to be told, the oldest first.
func (b *Questions) Untold(agent string) []*Question { return b.in(Answered, agent) }

func (b *Questions) in(state State, agent string) []*Question {
	var list []*Question
	for _, q := range b.Questions {
		if q.State == state && (agent == "" || q.Agent == agent) {
			list = append(list, q)
		}
	}
	slices.SortFunc(list, func(x, y *Question) int { return int(x.N) - int(y.N) }) //nolint:gosec // numbers of questions of one team
	return list
}

// Of finds a question by how who asked calls it; nil: it was never asked, or long ago.
func (b *Questions) Of(session, ask string) *Question {
	for _, q := range b.Questions {
		if q.Session == session && q.Ask == ask {
			return q
		}
	}
	return nil
}

// Deadline is when the next question's time is up; zero: none has one.
func (b *Questions) Deadline() time.Time {
	var next time.Time
	for _, q := range b.Questions {
		if q.State == Open && !q.ExpiresAt.IsZero() && (next.IsZero() || q.ExpiresAt.Before(next)) {
			next = q.ExpiresAt
		}
	}
	return next
}

// Covering is the answer that stands for such a call; nil: none. A no wins over a yes.
func (b *Questions) Covering(agent, session, tool, key string) *SavedAnswer {
	var found *SavedAnswer
	if key == "" {
		return nil
	}
	for _, s := range b.Standing {
		if s.Agent != agent || s.Tool != tool || s.Key != key || s.Session != "" && s.Session != session {
			continue
		}
		if found == nil || found.Allow && !s.Allow || found.Allow == s.Allow && s.N < found.N {
			found = s
		}
	}
	return found
}

// List is what stands, the oldest first.
func (b *Questions) List() []*SavedAnswer {
	return slices.SortedFunc(maps.Values(b.Standing), func(x, y *SavedAnswer) int { return int(x.N) - int(y.N) }) //nolint:gosec // as above
}

func refusal(id string, event Event, state State, row, reason string) error {
	return &machine.Refusal{Subject: id, Event: string(event), State: string(state), Row: row, Reason: reason, Takes: machine.Names(Table[state])}
}

// cut makes somebody's words fit: valid, and no longer than most bytes.
func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// line is cut, of the first line alone.
func line(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return cut(strings.TrimSpace(first), lineMax)
}

func id(letter string, n uint64) string { return fmt.Sprintf("%s%d", letter, n) }
