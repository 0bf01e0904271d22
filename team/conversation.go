package team

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/machine/session"
)

// LaunchRecord describes how a process was started, without secrets: names of environment variables
// but no values. A conversation is resumed under the same conditions, or a person is asked.
type LaunchRecord struct {
	Driver string   `json:"driver"`
	Argv   []string `json:"argv,omitempty"` // of the program, without the parts specific to one session
	Env    []string `json:"env,omitempty"`  // names of the configured variables, sorted
	Dir    string   `json:"dir,omitempty"`
	Model  string   `json:"model,omitempty"`
	Mode   string   `json:"mode,omitempty"`
	Resume string   `json:"resume,omitempty"` // the conversation to resume
	Host   string   `json:"host,omitempty"`   // on which it runs; empty: the machine of the daemon
}

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
	conversationsMax = 16  // of one agent: the newest of each purpose, but not of every step of every run
	launchWordsMax   = 256 // of a command line, or of an environment
	launchWordMax    = 1 << 10
	statusMax        = 200 // bytes of a status
)

// cut limits the size of a record. Because omissions could make different records look equal, the
// record says that it was cut.
func (r *LaunchRecord) cut() *LaunchRecord {
	if r == nil {
		return nil
	}
	next := *r
	next.Argv, next.Env = cutWords(r.Argv), cutWords(r.Env)
	return &next
}

func cutWords(words []string) []string {
	var out []string
	for i, word := range words {
		if i == launchWordsMax {
			return append(out, fmt.Sprintf("… %d more", len(words)-i))
		}
		if len(word) > launchWordMax {
			word = clip.To(word, launchWordMax) + fmt.Sprintf("… (%d bytes)", len(word))
		}
		out = append(out, word)
	}
	return out
}

// Differs describes how a session would be started differently than before; empty: no difference.
// Properties of one session (which conversation it resumes) do not count.
func (r *LaunchRecord) Differs(now *LaunchRecord) []string {
	if r == nil || now == nil {
		return nil
	}
	var list []string
	changed := func(what, was, is string) {
		if was != is {
			list = append(list, fmt.Sprintf("%s: %s is now %s", what, orNone(was), orNone(is)))
		}
	}
	changed("driver", r.Driver, now.Driver)
	changed("model", r.Model, now.Model)
	changed("mode", r.Mode, now.Mode)
	changed("folder", r.Dir, now.Dir)
	list = append(list, differ("argument", r.Argv, now.Argv)...)
	return append(list, differ("variable", r.Env, now.Env)...)
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// differ describes which words were added and removed or, if only the order changed, that.
func differ(what string, was, is []string) []string {
	if slices.Equal(was, is) {
		return nil
	}
	var list []string
	gone, came := map[string]int{}, map[string]int{}
	for _, word := range was {
		gone[word]++
	}
	for _, word := range is {
		if gone[word] > 0 {
			gone[word]--
			continue
		}
		came[word]++
	}
	for _, word := range slices.Sorted(maps.Keys(gone)) {
		if gone[word] > 0 {
			list = append(list, what+" "+word+" is gone")
		}
	}
	for _, word := range slices.Sorted(maps.Keys(came)) {
		list = append(list, what+" "+word+" was added")
	}
	if len(list) == 0 {
		list = append(list, what+"s are in a different order")
	}
	return list
}

// converses keeps the newest conversation of each purpose.
func (a *Agent) converses(c Conversation) {
	next := maps.Clone(a.Conversations)
	if next == nil {
		next = map[Purpose]*Conversation{}
	}
	next[c.For] = &c
	for len(next) > conversationsMax*a.instances() {
		oldest := Purpose{}
		for key, is := range next {
			if key != c.For && (oldest == Purpose{} || is.At.Before(next[oldest].At) || is.At.Equal(next[oldest].At) && key.Compare(oldest) < 0) {
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
		s.Launch = what.Launch.cut()
		a.setOpen(s.Slot, &s)
	}
	return d.sessionSeen(a, session.Started, what.Session, what.PID)
}

// tokensMax limits the tokens of one session: its start is tried again after a crash only.
const tokensMax = 4

// tokenGiven records the hash of a token before a process can have it.
func tokenGiven(d *decision, a *Agent, what TokenGiven) error {
	s, err := d.ours(a, session.TokenGiven, what.Session)
	if err != nil {
		return err
	}
	s.TokenHashes = append(slices.Clone(s.TokenHashes), what.Hash)
	s.TokenHashes = s.TokenHashes[max(0, len(s.TokenHashes)-tokensMax):]
	return d.setSession(a, session.TokenGiven, s)
}

// conversationNamed records the program's name for a session's conversation, and its changes.
func (d *decision) conversationNamed(a *Agent, what ConversationNamed) error {
	s, err := d.ours(a, session.Named, what.Session)
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
	d.add(a.entity(), "session", rule.ID, string(s.Phase), string(rule.To), string(session.Named), Body{Conversation: &c})
	a.converses(c)
	return nil
}

func (c Conversed) cut() Conversed {
	c.Model, c.Mode, c.Program, c.Enforced = cutLine(c.Model), cutLine(c.Mode), cutLine(c.Program), cutLine(c.Enforced)
	if len(c.ID) > launchWordMax {
		c.ID = "" // a shortened ID would be a different one
	}
	c.ID = cutLine(c.ID)
	return c
}

// statusSaid records an agent's own status. An unchanged status has no effect.
func (d *decision) statusSaid(a *Agent, what StatusSaid) error {
	s, err := d.ours(a, session.StatusSaid, what.Session)
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
	d.add(a.entity(), "session", rule.ID, string(s.Phase), string(rule.To), string(session.StatusSaid), Body{Says: &says})
	a.Says = &says
	return nil
}
