package uitest

import (
	"fmt"
	"slices"
	"time"
)

// Channel is one channel as the API shows it.
type Channel struct {
	Name       string        `json:"name"`
	Queue      []string      `json:"queue"`
	Holder     string        `json:"holder"`
	State      string        `json:"state"`
	Deadline   *time.Time    `json:"deadline"`
	Messages   uint64        `json:"messages"`
	Turn       uint64        `json:"turn"`
	Since      *time.Time    `json:"since"`
	Why        string        `json:"why"`
	Parked     string        `json:"parked"`
	Mode       string        `json:"mode"`
	Lead       string        `json:"lead"`
	RoundsMax  int           `json:"rounds_max"`
	TimeoutMS  int64         `json:"timeout_ms"`
	Aside      *Aside        `json:"aside"`
	Agents     []*Member     `json:"agents"`
	Open       []OpenMessage `json:"open"`
	Last       *Entry        `json:"last"`
	Configured bool          `json:"configured"`

	entries []*Entry
}

// Aside is a person's interruption that somebody is answering.
type Aside struct {
	Agent    string     `json:"agent"`
	Message  uint64     `json:"message"`
	Deadline *time.Time `json:"deadline"`
}

// Member is one agent of a channel.
type Member struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Connected bool   `json:"connected"`
	Disabled  bool   `json:"disabled"`
	Crashed   bool   `json:"crashed"`
	Foreign   bool   `json:"foreign"`
	Limit     string `json:"limit"`
	Took      int    `json:"took"`
	Owed      bool   `json:"owed"`
	Working   bool   `json:"working"`
}

// OpenMessage is a person's message that nobody has answered.
type OpenMessage struct {
	N     uint64 `json:"n"`
	By    string `json:"by"`
	Mode  string `json:"mode"`
	State string `json:"state"`
}

// Entry is one line of a conversation.
type Entry struct {
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"`
	N       uint64    `json:"n,omitempty"`
	By      string    `json:"by,omitempty"`
	Text    string    `json:"text,omitempty"`
	Turn    uint64    `json:"turn,omitempty"`
	Re      uint64    `json:"re,omitempty"`
	Mode    string    `json:"mode,omitempty"`
	State   string    `json:"state,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	From    string    `json:"from,omitempty"`
	To      string    `json:"to,omitempty"`
	Row     string    `json:"row,omitempty"`
	Trigger string    `json:"trigger,omitempty"`
}

// turnTimeout is how long a turn of the fake may last; nothing ends it but TimeOut.
const turnTimeout = 60 * time.Second

// AddChannel makes a channel with these agents in its queue; nobody has the turn.
func (f *Fake) AddChannel(c Channel, agents ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Mode == "" {
		c.Mode, c.RoundsMax = "inject", 3
	}
	c.TimeoutMS, c.Configured, c.State, c.Parked = turnTimeout.Milliseconds(), true, "PARKED", "nobody"
	c.Queue, c.Open = []string{}, []OpenMessage{}
	f.channels = append(f.channels, &c)
	for _, a := range agents {
		f.join(&c, a)
	}
}

func (f *Fake) channel(name string) *Channel {
	i := slices.IndexFunc(f.channels, func(c *Channel) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return f.channels[i]
}

// EditChannel changes a channel behind the journal's back, as passing time does.
func (f *Fake) EditChannel(name string, change func(*Channel)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f.channel(name))
}

func (c *Channel) member(name string) *Member {
	i := slices.IndexFunc(c.Agents, func(m *Member) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return c.Agents[i]
}

// tellTurn is a change of a channel, with the entries that it makes.
func (f *Fake) tellTurn(c *Channel, row, agent, from, to, trigger string, entries ...*Entry) {
	seq := uint64(len(f.changes) + 1)
	messages := []map[string]any{}
	for _, e := range entries {
		e.Seq, e.At = seq, f.now()
		c.entries = append(c.entries, e)
		if e.N > 0 {
			last := *e
			c.Last = &last
		}
	}
	for _, m := range c.Open {
		messages = append(messages, map[string]any{"n": m.N, "state": m.State, "mode": m.Mode})
	}
	if from != to {
		c.entries = append(c.entries, &Entry{Seq: seq, At: f.now(), Kind: "moved", Agent: agent, From: from, To: to, Row: row, Trigger: trigger, Turn: c.Turn, Text: c.Why})
	}
	if a := f.find(agent); a != nil && to != "" {
		turns := map[string]string{c.Name: to}
		for k, v := range a.Turn {
			if k != c.Name {
				turns[k] = v
			}
		}
		if c.member(agent) == nil {
			delete(turns, c.Name)
		}
		a.Turn = turns
	}
	f.append(Change{
		Machine: "turn", Entity: "channel/" + c.Name, Row: row, From: from, To: to, Trigger: trigger, Actor: Actor{"engine", "turn"},
		Data: map[string]any{"turn": map[string]any{"agent": agent, "body": map[string]any{"messages": messages}}},
	})
}

// move brings a member into a state.
func (f *Fake) moveIn(c *Channel, row, agent, to, trigger string, entries ...*Entry) {
	m := c.member(agent)
	from := m.State
	m.State, m.Working = to, to == "ACTIVE"
	f.tellTurn(c, row, agent, from, to, trigger, entries...)
}

func (f *Fake) join(c *Channel, agent string) {
	c.Agents = append(c.Agents, &Member{Name: agent, State: "IDLE", Connected: true})
	c.Queue = append(c.Queue, agent)
	if c.Parked == "nobody" {
		c.Parked = "quiet"
	}
	f.moveIn(c, "T2", agent, "QUEUED", "assigned")
}

// post is something said, with its number.
func (c *Channel) post(e Entry) *Entry {
	c.Messages++
	e.N = c.Messages
	return &e
}

// settle brings people's messages from one state to another; what is answered leaves the list.
func (c *Channel) settle(from, to string, which func(OpenMessage) bool) {
	for i := range c.Open {
		if m := &c.Open[i]; m.State == from && which(*m) {
			m.State = to
		}
	}
	for _, e := range c.entries {
		for _, m := range c.Open {
			if e.Kind == "human" && e.N == m.N {
				e.State = m.State
			}
		}
	}
}

func (c *Channel) forgetAnswered() {
	c.Open = slices.DeleteFunc(c.Open, func(m OpenMessage) bool { return m.State == "answered" || m.State == "lapsed" })
}

// give is T4: the turn goes to the first in the queue, or to nobody.
func (f *Fake) give(c *Channel, parked string) {
	at := f.now()
	c.Holder, c.Since, c.Deadline, c.Why = "", nil, nil, ""
	if len(c.Queue) == 0 || c.RoundsMax > 0 && c.member(c.Queue[0]).Took >= c.RoundsMax {
		if len(c.Queue) > 0 {
			parked = "rounds"
		}
		c.State, c.Parked = "PARKED", parked
		return
	}
	next := c.Queue[0]
	end := at.Add(turnTimeout)
	c.Queue = c.Queue[1:]
	c.Turn++
	c.Holder, c.State, c.Parked, c.Since, c.Deadline = next, "ACTIVE", "", &at, &end
	c.member(next).Took++
	c.settle("queued", "delivered", func(OpenMessage) bool { return true })
	f.moveIn(c, "T4", next, "ACTIVE", "granted")
}

// end takes the turn from its holder and gives it on.
func (f *Fake) end(c *Channel, row, to, trigger string, entries ...*Entry) {
	holder := c.Holder
	if to == "QUEUED" {
		c.Queue = append(c.Queue, holder)
	}
	if row == "T7" {
		c.settle("delivered", "answered", func(OpenMessage) bool { return true })
	} else {
		c.settle("delivered", "queued", func(m OpenMessage) bool { return m.Mode != "parallel" })
	}
	c.Aside = nil
	f.moveIn(c, row, holder, to, trigger, entries...)
	c.forgetAnswered()
	f.give(c, "quiet")
}

// Words are said by whoever has the turn, and the turn goes on.
func (f *Fake) Words(channel, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.channel(channel)
	f.tellTurn(c, "N2", c.Holder, "", "", "said", c.post(Entry{Kind: "turn", By: c.Holder, Turn: c.Turn, Text: text}))
}

// Done is TURN_COMPLETE behind these words: T7.
func (f *Fake) Done(channel, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.channel(channel)
	f.end(c, "T7", "QUEUED", "completed", c.post(Entry{Kind: "turn", By: c.Holder, Turn: c.Turn, Text: text}))
}

// AsideDone answers the person who interrupted, or one who spoke to all; then the turn goes on.
func (f *Fake) AsideDone(channel, agent string, re uint64, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.channel(channel)
	said := c.post(Entry{Kind: "aside", By: agent, Re: re, Text: text})
	c.settle("delivered", "answered", func(m OpenMessage) bool { return m.N == re })
	f.tellTurn(c, "N4", agent, "", "", "answered", said)
	c.forgetAnswered()
	if c.Aside != nil && c.Aside.Message == re {
		end := f.now().Add(turnTimeout)
		c.Aside, c.State, c.Deadline, c.Why = nil, "ACTIVE", &end, ""
		if agent != c.Holder {
			f.moveIn(c, "T12", c.Holder, "ACTIVE", "wait_resolved")
		}
	}
}

// TimeOut is T9.
func (f *Fake) TimeOut(channel string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.channel(channel)
	f.end(c, "T9", "QUEUED", "timed_out", &Entry{Kind: "notice", Text: "\u23f1\ufe0f " + c.Holder + " turn timed out"})
}

// Passes is T22.
func (f *Fake) Passes(channel string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end(f.channel(channel), "T22", "QUEUED", "passed")
}

// WaitsFor is T10.
func (f *Fake) WaitsFor(channel, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.channel(channel)
	end := f.now().Add(5 * time.Minute)
	c.State, c.Why, c.Deadline = "WAITING", why, &end
	f.moveIn(c, "T10", c.Holder, "WAITING", "wait_asked")
}

// Late is what somebody says whose turn is over.
func (f *Fake) Late(channel, agent string, turn uint64, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.channel(channel)
	f.tellTurn(c, "N3", agent, "", "", "said_late", c.post(Entry{Kind: "late", By: agent, Turn: turn, Text: text}),
		&Entry{Kind: "warning", Text: fmt.Sprintf("TURN_COMPLETE without the turn: %d is over or was never its", turn)})
}

// Heard is a person's message from somewhere else: the command line, another page.
func (f *Fake) Heard(channel, by, text, mode string) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hear(f.channel(channel), by, text, mode).N
}

func (f *Fake) hear(c *Channel, by, text, mode string) *Entry {
	if mode == "" {
		mode = c.Mode
	}
	state := "queued"
	if c.Holder != "" && mode != "queue" || mode == "parallel" {
		state = "delivered"
	}
	said := c.post(Entry{Kind: "human", By: by, Text: text, Mode: mode, State: state})
	c.Open = append(c.Open, OpenMessage{N: said.N, By: by, Mode: mode, State: state})
	for _, m := range c.Agents {
		m.Took = 0
	}
	f.tellTurn(c, "M1", "", "", "", "spoken", said)
	switch {
	case c.Holder == "":
		f.give(c, "nobody")
	case mode == "interrupt" && c.State == "ACTIVE":
		agent := c.Lead
		if agent == "" {
			agent = c.Holder
		}
		end := f.now().Add(turnTimeout)
		c.Aside = &Aside{Agent: agent, Message: said.N, Deadline: &end}
		c.State, c.Why, c.Deadline = "WAITING", "a person interrupted", nil
		f.moveIn(c, "T17", c.Holder, "WAITING", "interrupted")
		if agent == c.Holder {
			c.State, c.Why = "ACTIVE", ""
			f.moveIn(c, "T17", c.Holder, "ACTIVE", "asked_aside")
		}
	}
	return said
}

// Converse fills a channel with so many words of its agents, as if they had talked for long.
func (f *Fake) Converse(channel string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.channel(channel)
	for i := range n {
		by := c.Agents[i%len(c.Agents)].Name
		c.Turn++
		e := c.post(Entry{Kind: "turn", By: by, Turn: c.Turn, Text: fmt.Sprintf("word %d of many, said by %s", i, by)})
		f.appendQuiet(Change{Machine: "turn", Entity: "channel/" + c.Name, Row: "T7", Trigger: "completed", Actor: Actor{"engine", "turn"}, Data: map[string]any{"turn": map[string]any{"agent": by}}})
		e.Seq, e.At = uint64(len(f.changes)), f.now()
		c.entries = append(c.entries, e)
		c.Last = e
	}
	f.tell()
}
