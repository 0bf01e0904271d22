package uitest

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Agent is one agent as the API shows it.
type Agent struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Driver      string            `json:"driver"`
	Loop        string            `json:"loop"`
	Desired     string            `json:"desired_state"`
	Current     string            `json:"current_state"`
	Badge       string            `json:"badge"`
	Presence    string            `json:"presence"`
	Turn        map[string]string `json:"turn"` // by channel: its state there
	SetBy       string            `json:"set_by"`
	Note        string            `json:"note"`
	Timestamp   time.Time         `json:"timestamp"`
	Session     *OpenSession      `json:"session"`
	EvidenceAge *int64            `json:"evidence_age_ms"` // milliseconds
	Doubt       string            `json:"doubt"`
	Failures    int               `json:"failures"`
	RetryAt     *time.Time        `json:"retry_at"`
	Behind      string            `json:"waiting_behind"`
	Usage       Usage             `json:"usage_today"`
	Limits      Limits            `json:"limits"`
	Removed     bool              `json:"removed"`

	LimitedUntil *time.Time `json:"limited_until"`
	LimitedWhy   string     `json:"limited_why,omitempty"`
	Denied       int        `json:"denied"`
	Asks         int        `json:"asks"` // the fake counts
	AsksWhat     string     `json:"asks_what,omitempty"`
}

// OpenSession is the session an agent is in.
type OpenSession struct {
	ID        string    `json:"id"`
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
	Kind      string    `json:"kind"`
	For       string    `json:"for"`
	Phase     string    `json:"phase"`
}

// Usage is what an agent reported today.
type Usage struct {
	In   int64   `json:"input_tokens"`
	Out  int64   `json:"output_tokens"`
	Cost float64 `json:"cost_usd"`
}

// Limits are an agent's; zero means none.
type Limits struct {
	Session string  `json:"session"` // a Go duration
	Tokens  int64   `json:"tokens_per_day"`
	Cost    float64 `json:"cost_per_day_usd"`
}

// Change is one line of the feed.
type Change struct {
	Seq     uint64         `json:"seq"`
	Time    time.Time      `json:"time"`
	Machine string         `json:"machine"`
	Entity  string         `json:"entity"`
	Row     string         `json:"row"`
	From    string         `json:"from"`
	To      string         `json:"to"`
	Trigger string         `json:"trigger"`
	Actor   Actor          `json:"actor"`
	Data    map[string]any `json:"data,omitempty"`
}

// Actor is who made a change happen.
type Actor struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// Session is one session as the history lists it.
type Session struct {
	ID        string     `json:"id"`
	Kind      string     `json:"kind"`
	OpenedAt  time.Time  `json:"opened_at"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	Outcome   string     `json:"outcome"`
	Why       string     `json:"why"`
	Bytes     int        `json:"bytes"`

	agent  string
	output []byte
	grown  chan struct{} // closed and made anew when there is more
}

// Evidence is one reason to believe what is shown.
type Evidence struct {
	What   string    `json:"what"`
	Source string    `json:"source"`
	At     time.Time `json:"at"`
	Age    int64     `json:"age_ms"`
	Holds  bool      `json:"holds"`
}

// Fake is a server that speaks the API from memory and does what a test says.
// It follows the control machine's table as far as a page can see it.
type Fake struct {
	mu       sync.Mutex
	team     string
	hold     bool
	agents   []*Agent
	sessions map[string]*Session
	changes  []Change
	grown    chan struct{}
	refusals map[string]string // verb and agent → reason
	runs     []*Run            // the newest first
	channels []*Channel
	answers  map[string]string // run/step → approve or reject, and the input
	desks    []*Desk
	number   int
	now      func() time.Time
}

// NewFake returns an empty team.
func NewFake(team string) *Fake {
	return &Fake{team: team, sessions: map[string]*Session{}, grown: make(chan struct{}), refusals: map[string]string{}, answers: map[string]string{}, now: func() time.Time { return time.Now().UTC() }}
}

// Add puts an agent at the end of the team; what is not set gets a default.
func (f *Fake) Add(a Agent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.Driver == "" {
		a.Driver = "exec"
	}
	if a.Loop == "" {
		a.Loop = "fairlead"
	}
	if a.Desired == "" {
		a.Desired, a.Current = "pause", "pause"
	}
	if a.Timestamp.IsZero() {
		a.Timestamp = f.now()
	}
	a.Badge = badge(a.Current)
	f.agents = append(f.agents, &a)
}

// Edit changes an agent, and tells the page so by a change of its settings, which makes the page
// ask for a snapshot.
func (f *Fake) Edit(name string, change func(*Agent)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f.agent(name))
	f.append(Change{Machine: "team", Entity: "agent/" + name, From: "known", To: "known", Trigger: "configured", Actor: Actor{"engine", "engine"}, Data: map[string]any{"agent": map[string]any{}}})
}

// Say appends to the output of the agent's open session.
func (f *Fake) Say(name, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.agent(name)
	if a.Session == nil {
		return
	}
	s := f.sessions[a.Session.ID]
	s.output = append(s.output, text...)
	s.Bytes = len(s.output)
	close(s.grown)
	s.grown = make(chan struct{})
}

// Finish ends the agent's session; what follows is C5 to C9.
func (f *Fake) Finish(name, outcome, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finish(f.agent(name), outcome, why)
}

// Past puts an ended session into the history, so many ago and so long.
func (f *Fake) Past(name, kind, outcome, why string, ago, took time.Duration, output string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	began := f.now().Add(-ago)
	ended := began.Add(took)
	s := f.newSession(name, kind, began)
	s.EndedAt, s.Outcome, s.Why, s.output, s.Bytes = &ended, outcome, why, []byte(output), len(output)
	f.append(Change{Time: began, Machine: "session", Entity: "session/" + name, Row: "S1", From: "opened", To: "running", Trigger: "started", Actor: Actor{"engine", "holder"}, Data: sessionData(s, "running")})
	f.append(Change{Time: ended, Machine: "session", Entity: "session/" + name, Row: "S4", From: "running", To: "none", Trigger: "ended", Actor: Actor{"engine", "holder"}, Data: sessionData(s, "none")})
}

// Refuse makes the next order of this verb to this agent a refusal.
func (f *Fake) Refuse(verb, name, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusals[verb+" "+name] = reason
}

// Storm appends n changes in a row, spread over all agents.
func (f *Fake) Storm(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range n {
		a := f.agents[i%len(f.agents)]
		f.appendQuiet(Change{Machine: "control", Entity: "control/" + a.Name, Row: "C5", From: "continuous", To: "continuous", Trigger: "session_ended", Actor: Actor{"engine", "control"}})
	}
	f.tell()
}

// Head is the sequence of the newest change.
func (f *Fake) Head() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(len(f.changes))
}

func badge(current string) string {
	if current == "pause" {
		return "IDLE"
	}
	return "RUNNING"
}

func machineState(current string) string {
	if current == "pause" {
		return "resting"
	}
	return current
}

func (f *Fake) agent(name string) *Agent {
	i := slices.IndexFunc(f.agents, func(a *Agent) bool { return a.Name == name })
	if i < 0 {
		panic("uitest: there is no agent " + name)
	}
	return f.agents[i]
}

func (f *Fake) newSession(agent, kind string, began time.Time) *Session {
	f.number++
	s := &Session{ID: fmt.Sprintf("%s-%d", agent, f.number), Kind: kind, OpenedAt: began, StartedAt: began, agent: agent, grown: make(chan struct{})}
	f.sessions[s.ID] = s
	return s
}

// sessionData and controlData are the bodies of changes as the journal keeps them.
func sessionData(s *Session, phase string) map[string]any {
	return map[string]any{"session": map[string]any{"id": s.ID, "kind": s.Kind, "phase": phase, "started_at": s.StartedAt, "outcome": s.Outcome}}
}

func controlData(a *Agent) map[string]any {
	return map[string]any{"control": map[string]any{"value": map[string]any{"state": machineState(a.Current), "wish": map[string]any{"desired": a.Desired, "by": a.SetBy, "note": a.Note}}}}
}

func (f *Fake) appendQuiet(c Change) {
	c.Seq = uint64(len(f.changes) + 1)
	if c.Time.IsZero() {
		c.Time = f.now()
	}
	f.changes = append(f.changes, c)
}

func (f *Fake) append(c Change) {
	f.appendQuiet(c)
	f.tell()
}

func (f *Fake) tell() {
	close(f.grown)
	f.grown = make(chan struct{})
}

// order is what the four buttons do: C2, C3, C4 at rest, C11 in a session.
func (f *Fake) order(a *Agent, verb, note string) {
	a.Desired = map[string]string{"start": "continuous", "stop": "pause", "once": "run_once", "cleanup": "run_cleanup"}[verb]
	a.SetBy, a.Timestamp, a.Note = "human", f.now(), note
	if note == "" {
		a.Note = map[string]string{"start": "Started", "stop": "Stopped", "once": "Single session", "cleanup": "Cleanup session"}[verb] + " via Mission Control"
	}
	state := machineState(a.Current)
	f.append(Change{Machine: "control", Entity: "control/" + a.Name, Row: "C11", From: state, To: state, Trigger: "wanted_" + a.Desired, Actor: Actor{"human", "you"}, Data: controlData(a)})
	if a.Session == nil && !f.hold {
		f.obey(a, state)
	}
}

// obey brings current to desired while no session is open.
func (f *Fake) obey(a *Agent, from string) {
	row := map[string]string{"continuous": "C2", "run_once": "C3", "run_cleanup": "C4", "pause": "C6"}[a.Desired]
	a.Current = a.Desired
	a.Badge = badge(a.Current)
	if from != machineState(a.Current) {
		f.append(Change{Machine: "control", Entity: "control/" + a.Name, Row: row, From: from, To: machineState(a.Current), Trigger: "due_" + a.Desired, Actor: Actor{"engine", "control"}, Data: controlData(a)})
	}
	if a.Current == "pause" {
		return
	}
	kind := "session"
	if a.Current == "run_cleanup" {
		kind = "cleanup"
	}
	s := f.newSession(a.Name, kind, f.now())
	a.Session = &OpenSession{ID: s.ID, PID: 4000 + f.number, StartedAt: s.StartedAt, Kind: kind, For: "control", Phase: "running"}
	age := int64(120)
	a.EvidenceAge = &age
	f.append(Change{Machine: "session", Entity: "session/" + a.Name, Row: "S1", From: "opened", To: "running", Trigger: "started", Actor: Actor{"engine", "holder"}, Data: sessionData(s, "running")})
}

func (f *Fake) finish(a *Agent, outcome, why string) {
	if a.Session == nil {
		return
	}
	s := f.sessions[a.Session.ID]
	ended := f.now()
	s.EndedAt, s.Outcome, s.Why = &ended, outcome, why
	close(s.grown)
	s.grown = make(chan struct{})
	a.Session = nil
	f.append(Change{Machine: "session", Entity: "session/" + a.Name, Row: "S4", From: "running", To: "none", Trigger: "ended", Actor: Actor{"engine", "holder"}, Data: sessionData(s, "none")})
	was := machineState(a.Current)
	if a.Current != "continuous" && a.Desired == a.Current { // C8, C9
		a.Desired, a.SetBy, a.Note = "pause", "agent", "the single session is done"
	}
	if f.hold {
		a.Current, a.Badge = "pause", "IDLE"
		f.append(Change{Machine: "control", Entity: "control/" + a.Name, Row: "C18", From: was, To: "resting", Trigger: "ended_held", Actor: Actor{"engine", "control"}, Data: controlData(a)})
		return
	}
	f.obey(a, was)
}

func (f *Fake) setHold(on bool) uint64 {
	f.hold = on
	trigger := "hold_asked"
	if !on {
		trigger = "release_asked"
	}
	f.append(Change{Machine: "team", Entity: "team/team", Row: "X8", Trigger: trigger, Actor: Actor{"human", "you"}, Data: map[string]any{"team": map[string]any{"hold": map[string]any{"on": on}}}})
	if !on {
		for _, a := range f.agents {
			if a.Session == nil && a.Desired != "pause" {
				f.obey(a, machineState(a.Current))
			}
		}
	}
	return uint64(len(f.changes))
}
