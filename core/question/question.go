// Package question holds the questions of agents and their answers.
//
// An agent asks before a call that no rule allows, to choose between options, or before it resumes
// a conversation under changed conditions. A rule of the configuration or a saved answer answers at
// once. Otherwise the question waits for a person. If its time runs out, its default is the answer.
// The answer is then delivered to the agent. If the agent withdraws a question or its session ends,
// the question records that.
//
// The one promise: every question ends as delivered or withdrawn, and records which.
package question

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Kind is the kind of answer that a question needs.
type Kind string

const (
	Permission Kind = "permission" // yes or no
	Asked      Kind = "question"   // text, or one of the options
	Resume     Kind = "resume"     // one of the options: the conversation would resume under changed conditions
	HostLost   Kind = "host_lost"  // one of the options: the host of the step's last session was lost
)

// choice reports whether only one of the options answers such a question.
func (k Kind) choice() bool { return k == Resume || k == HostLost }

// Scope is how long an answer applies.
type Scope string

const (
	Once    Scope = "once"    // for this question
	Session Scope = "session" // for all similar questions of the same session
	Always  Scope = "always"  // for all similar questions of the same agent, until it is revoked
)

// Option is one of the answers that a question offers.
type Option struct {
	ID    string `json:"id"`
	Kind  string `json:"kind,omitempty"` // allow_once, reject_once, …; or the program's own word
	Label string `json:"label,omitempty"`
}

// Question is one question with its answer.
type Question struct {
	N       uint64 `json:"n"`
	ID      string `json:"id"` // q17
	Kind    Kind   `json:"kind"`
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Ask     string `json:"ask"` // the asking program's id; unique in its session

	What    string    `json:"what"`           // one line from the program; untrusted
	Tool    string    `json:"tool,omitempty"` // Bash, Write, …
	Call    string    `json:"call,omitempty"` // the arguments of the call, cut for display
	Key     string    `json:"key,omitempty"`  // identity of the whole call: equal calls have equal keys
	Why     string    `json:"why,omitempty"`  // why it is not simply allowed: no rule covers it
	Paths   []string  `json:"paths,omitempty"`
	Options []Option  `json:"options,omitempty"`
	Order   string    `json:"order,omitempty"` // of a permission: yes gives the agent this desired state; it outlives the session
	Host    string    `json:"host,omitempty"`  // of a permission: yes lets the session reach this host (NAME, or NAME:PORT); its program does not wait
	AskedAt time.Time `json:"asked_at"`

	ExpiresAt time.Time `json:"expires_at,omitzero"` // after this time the default answers; zero: never
	Otherwise bool      `json:"otherwise,omitempty"` // the default of a permission: allow?
	Default   string    `json:"default,omitempty"`   // the default option of other kinds; empty: no text

	State      State     `json:"state"`
	Allow      bool      `json:"allow,omitempty"`
	Option     string    `json:"option,omitempty"`
	Text       string    `json:"text,omitempty"`
	Scope      Scope     `json:"scope,omitempty"`
	By         string    `json:"by,omitempty"`   // human/ann; rule; time
	Rule       string    `json:"rule,omitempty"` // id of the rule or of the saved answer
	AnsweredAt time.Time `json:"answered_at,omitzero"`
	EndedAt    time.Time `json:"ended_at,omitzero"`
	Ended      string    `json:"ended,omitempty"` // why it was withdrawn
}

// SavedAnswer is an answer that also applies to later questions.
type SavedAnswer struct {
	N       uint64    `json:"n"`
	ID      string    `json:"id"` // s3
	Agent   string    `json:"agent"`
	Session string    `json:"session,omitempty"` // it applies as long as this session; empty: always
	Tool    string    `json:"tool"`
	Call    string    `json:"call,omitempty"` // as shown to the person
	Key     string    `json:"key"`
	Allow   bool      `json:"allow"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	From    string    `json:"from"` // the question that it answered
}

// Questions holds all questions of a team. Its zero value is empty.
type Questions struct {
	Asked     uint64                  `json:"asked,omitempty"` // count so far; gives the next id
	Stood     uint64                  `json:"stood,omitempty"` // saved answers so far
	Questions map[string]*Question    `json:"questions,omitempty"`
	Saved     map[string]*SavedAnswer `json:"saved,omitempty"`
	// ids of ended questions, oldest first, pastMax at most; the journal has the older ones
	Past []string `json:"past,omitempty"`
}

const (
	openMax    = 64       // open questions of one agent; more is an error in its program
	savedMax   = 500      // of one agent
	pastMax    = 200      // shown without reading the journal, and recognised when asked again
	lineMax    = 500      // bytes of one line of text
	callMax    = 4 << 10  // bytes of the arguments of a call
	textMax    = 16 << 10 // bytes of a question in text, and of an answer
	optionsMax = 32
	pathsMax   = 32
)

// Input is something that happened to a question.
type Input = change.Input[Event]

// Subject is what an input is about: Entity is the id of a question or of a saved answer.
type Subject = change.Subject[Event]

// Ask raises a question. The same question again (after a crash) has no effect. Verdict is what the rules say.
type Ask struct {
	Question Question // number, state and answer are ignored
	Verdict  Verdict
}

// Verdict is what a rule says. Its zero value is no verdict.
type Verdict struct {
	Rule  string // its row or pattern; empty: no rule applies
	Allow bool
}

// Answer is a person's answer.
type Answer struct {
	ID     string
	Allow  bool   // of a permission
	Option string // by id; optional for a permission
	Text   string
	Scope  Scope // empty: once
}

// Cover lets a rule answer a question that was open before the rule existed.
type Cover struct {
	ID      string
	Verdict Verdict
}

// Hand records that the answer was delivered.
type Hand struct{ ID string }

// TakeBack withdraws one question, by its id or by the program's id, or all questions of
// a session.
type TakeBack struct {
	ID      string
	Session string // if ID is empty
	Ask     string // one of the session; empty: all of them, and its saved answers
	Why     string
}

// Overtake withdraws the questions about orders by file of an agent that has a newer desired state.
type Overtake struct{ Agent string }

// Revoke ends a saved answer.
type Revoke struct{ ID string }

// Due answers the questions whose time has run out.
type Due struct{}

// Subject of each input is what it is about.
func (in Ask) Subject() Subject {
	return Subject{Event: Raised, Agent: in.Question.Agent, Session: in.Question.Session, Starts: true}
}
func (in Answer) Subject() Subject { return Subject{Event: Replied, Entity: in.ID} }
func (in Cover) Subject() Subject  { return Subject{Event: Ruled, Entity: in.ID} }
func (in Hand) Subject() Subject   { return Subject{Event: Handed, Entity: in.ID} }
func (in TakeBack) Subject() Subject {
	return Subject{Event: TakenBack, Entity: in.ID, Session: in.Session}
}
func (in Overtake) Subject() Subject { return Subject{Event: TakenBack, Agent: in.Agent} }
func (in Revoke) Subject() Subject   { return Subject{Event: Revoked, Entity: in.ID} }
func (Due) Subject() Subject         { return Subject{Event: TimeUp} }

// Body is what Apply needs: exactly one of the first three fields is set.
type Body struct {
	Question *Question    `json:"question,omitempty"` // the question with its new state
	Saved    *SavedAnswer `json:"saved,omitempty"`    // a new saved answer
	Revoked  string       `json:"revoked,omitempty"`  // id of a saved answer that has ended
}

// JSONKey is the key of a change in the journal.
func (*Body) JSONKey() string { return "question" }

// Agent is the agent that a change concerns; empty: it is not known.
func (b *Body) Agent() string {
	switch {
	case b.Question != nil:
		return b.Question.Agent
	case b.Saved != nil:
		return b.Saved.Agent
	default:
		return ""
	}
}

// Called describes the call that a question is about: Bash rm -rf build (Q4). Of arguments that are JSON it has the most informative
// one, but never the content of a file.
func (q *Question) Called() string {
	call := q.Call
	var args map[string]any
	if json.Unmarshal([]byte(call), &args) == nil {
		for _, name := range []string{"command", "file_path", "path", "notebook_path", "url", "query", "pattern"} {
			if text, ok := args[name].(string); ok && text != "" {
				call = text
				break
			}
		}
	}
	return strings.TrimSpace(q.Tool + " " + call)
}

// Events of saved answers. They have no states, only a start and an end.
const (
	Stands  Event = "stands"
	Revoked Event = "revoked"
)

// Apply applies a change. It does not use the table.
func (b *Questions) Apply(ch change.Change) {
	switch body := change.As[Body](ch.Body); {
	case body.Question != nil:
		b.put(*body.Question)
	case body.Saved != nil:
		s := *body.Saved
		b.Stood = max(b.Stood, s.N)
		next := maps.Clone(b.Saved)
		if next == nil {
			next = map[string]*SavedAnswer{}
		}
		next[s.ID] = &s
		b.Saved = next
	default:
		next := maps.Clone(b.Saved)
		if delete(next, body.Revoked); len(next) == 0 {
			next = nil
		}
		b.Saved = next
	}
}

// put copies maps and lists, because callers may hold the old ones.
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

// Over reports whether a question has ended.
func (q *Question) Over() bool { return q.State == Delivered || q.State == Withdrawn }

// Open lists the questions that wait for a person, oldest first; of one agent, or all if agent is empty.
func (b *Questions) Open(agent string) []*Question { return b.in(Open, agent) }

// Undelivered lists answers that are not delivered yet, oldest first.
func (b *Questions) Undelivered(agent string) []*Question { return b.in(Answered, agent) }

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

// Of finds a question by the program's id; nil: unknown, or no longer kept.
func (b *Questions) Of(session, ask string) *Question {
	for _, q := range b.Questions {
		if q.Session == session && q.Ask == ask {
			return q
		}
	}
	return nil
}

// Deadline returns when the next question times out; zero: never.
func (b *Questions) Deadline() time.Time {
	var next time.Time
	for _, q := range b.Questions {
		if q.State == Open {
			next = table.Earliest(next, q.ExpiresAt)
		}
	}
	return next
}

// Covering returns the saved answer for a call; nil: none. A no has priority over a yes.
func (b *Questions) Covering(agent, session, tool, key string) *SavedAnswer {
	var found *SavedAnswer
	if key == "" {
		return nil
	}
	for _, s := range b.Saved {
		if s.Agent != agent || s.Tool != tool || s.Key != key || s.Session != "" && s.Session != session {
			continue
		}
		if found == nil || found.Allow && !s.Allow || found.Allow == s.Allow && s.N < found.N {
			found = s
		}
	}
	return found
}

// List returns the saved answers, oldest first.
func (b *Questions) List() []*SavedAnswer {
	return slices.SortedFunc(maps.Values(b.Saved), func(x, y *SavedAnswer) int { return int(x.N) - int(y.N) }) //nolint:gosec // as above
}

func refusal(id string, event Event, state State, row, reason string) error {
	return &table.Refusal{
		Subject: id, Event: string(event), State: string(state), Row: row, Reason: reason,
		Takes: table.Names(Table[state]),
	}
}

// line is cut applied to the first line.
func line(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return clip.Text(strings.TrimSpace(first), lineMax)
}

func id(letter string, n uint64) string { return fmt.Sprintf("%s%d", letter, n) }
