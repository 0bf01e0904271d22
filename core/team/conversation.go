package team

import (
	"maps"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Conversed is a program's description of a conversation.
type Conversed struct {
	ID       string `json:"id"`
	Model    string `json:"model,omitempty"`
	Mode     string `json:"mode,omitempty"`
	Program  string `json:"program,omitempty"`
	Enforced string `json:"enforced,omitempty"`
	Resumed  bool   `json:"resumed,omitempty"`
}

// Conversation is the newest conversation that an agent has with its program for one purpose.
type Conversation struct {
	Conversed
	Session string        `json:"session"` // the last session that used it
	For     Purpose       `json:"for"`     // of that session
	At      time.Time     `json:"at"`
	Launch  *LaunchRecord `json:"launch,omitempty"`
	Before  string        `json:"before,omitempty"` // its previous ID, if the program changed it
}

// Says is an agent's own status.
type Says struct {
	Text    string    `json:"text"`
	Session string    `json:"session"`
	At      time.Time `json:"at"`
}

const (
	conversationsMax  = 16      // of each instance of an agent: the newest one of a purpose; old steps of runs are forgotten
	conversationIDMax = 1 << 10 // bytes
	statusMax         = 200     // bytes of a status
)

// keepConversation keeps the newest conversation of each purpose, and forgets the oldest ones above the limit.
func (a *Agent) keepConversation(c Conversation) {
	next := maps.Clone(a.Conversations)
	if next == nil {
		next = map[Purpose]*Conversation{}
	}
	next[c.For] = &c
	for len(next) > conversationsMax*a.instances() {
		oldest := Purpose{}
		for key, is := range next {
			if key != c.For &&
				(oldest == Purpose{} || is.At.Before(next[oldest].At) || is.At.Equal(next[oldest].At) && key.Compare(oldest) < 0) {
				oldest = key
			}
		}
		delete(next, oldest)
	}
	a.Conversations = next
}

// sessionStarted records that a process was first seen, and how it was started.
func (d *decision) sessionStarted(a *Agent, what SessionStarted) error {
	if a.Session != nil && a.Session.ID == what.Session && what.Launch != nil {
		s := *a.Session
		s.Launch = what.Launch.Cut()
		a.setOpen(s.Slot, &s)
	}
	return d.sessionSeen(a, what, what.PID)
}

// tokensMax limits the tokens of one session. A session gets another token only if its start is repeated after a crash.
const tokensMax = 4

// tokenGiven records the hash of a token before a process can have it.
func (d *decision) tokenGiven(a *Agent, what TokenGiven) error {
	s, err := d.ours(a, what)
	if err != nil {
		return err
	}
	s.TokenHashes = append(slices.Clone(s.TokenHashes), what.Hash)
	s.TokenHashes = s.TokenHashes[max(0, len(s.TokenHashes)-tokensMax):]
	return d.setSession(a, session.TokenGiven, s)
}

// conversationNamed records how the program describes a session's conversation, at first and when that changes.
func (d *decision) conversationNamed(a *Agent, what ConversationNamed) error {
	s, err := d.ours(a, what)
	if err != nil {
		return err
	}
	rule, err := d.look(a, session.Named)
	if err != nil || a.step() != "" {
		return err
	}
	c := Conversation{Conversed: what.cut(), Session: s.ID, For: s.For, At: d.ev.At, Launch: s.Launch}
	if was := a.Conversations[s.For]; was != nil && was.Session == s.ID {
		if was.Conversed == c.Conversed {
			return nil // reported twice
		}
		if c.Before = was.Before; was.ID != c.ID {
			c.Before = was.ID
		}
	}
	if c.ID == "" {
		return nil
	}
	d.add(a.entity(), "session", rule.ID, string(s.Phase), string(rule.To), string(session.Named), &c)
	a.keepConversation(c)
	return nil
}

// cut limits the texts of a description to what the journal keeps.
func (c Conversed) cut() Conversed {
	c.Model, c.Mode, c.Program, c.Enforced = cutLine(c.Model), cutLine(c.Mode), cutLine(c.Program), cutLine(c.Enforced)
	if len(c.ID) > conversationIDMax {
		c.ID = "" // a shortened ID would be a different one
	}
	c.ID = cutLine(c.ID)
	return c
}

// statusSaid records an agent's own status. An unchanged status has no effect.
func (d *decision) statusSaid(a *Agent, what StatusSaid) error {
	s, err := d.ours(a, what)
	if err != nil {
		return err
	}
	rule, err := d.look(a, session.StatusSaid)
	if err != nil || a.step() != "" {
		return err
	}
	says := Says{Text: clip.To(cutLine(what.Text), statusMax), Session: s.ID, At: d.ev.At}
	if a.Says != nil && a.Says.Text == says.Text && a.Says.Session == says.Session {
		return nil
	}
	d.add(a.entity(), "session", rule.ID, string(s.Phase), string(rule.To), string(session.StatusSaid), &says)
	a.Says = &says
	return nil
}
