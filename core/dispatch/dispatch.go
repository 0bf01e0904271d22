// Package dispatch decides which agent is responsible for an input, and when an input is done.
//
// A dispatch (seed 002) has a coordinator, MAIN. Each user input opens a conversation with its own
// number, or waits until the open one is closed. MAIN may read and delegate, but agents do the
// work: MAIN chooses an agent by its description, and the agent reports back. In mode interactive
// an agent may ask another agent for help and gets its report. In mode response there is no MAIN:
// each message of an inbox goes to the agent whose description matches it. A conversation that a
// crash interrupted is closed as interrupted.
//
// The caller journals the changes that Decide returns and applies them with Apply.
//
// The one promise: at most one conversation is open, every input has its own number, and the
// numbers have no gaps.
package dispatch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Main is the state in which no agent has a task (seed 002, State Definitions).
const Main = "MAIN"

// Desk is the state in mode response while no message is being served: there is no MAIN.
const Desk = "QUEUE"

// Mode says to which state an agent returns when it is done (seed 002, Mode Behaviors).
type Mode string

const (
	Orchestrator Mode = "orchestrator" // always back to MAIN
	Interactive  Mode = "interactive"  // it may ask other agents; then back to the agent that asked
	Response     Mode = "response"     // there is no MAIN; messages of an inbox go to agents
)

// Modes lists them, the default first.
func Modes() []Mode { return []Mode{Orchestrator, Interactive, Response} }

// Host says which program executes a dispatch's decisions.
type Host string

const (
	NoHost   Host = ""         // people and programs report events with commands
	Claude   Host = "claude"   // hooks of an agent program report and enforce
	Fairlead Host = "fairlead" // the daemon runs agents of fairlead.yaml
)

// Phase is the state of a dispatch, whichever agents have tasks.
type Phase string

const (
	None    Phase = "none"
	Ready   Phase = "ready"   // no conversation is open
	Talking Phase = "talking" // a conversation is open, and MAIN handles it
	Working Phase = "working" // one or several agents have tasks
	Queue   Phase = "queue"   // mode response: waiting for a message
	Serving Phase = "serving" // mode response: an agent handles a message
	Closed  Phase = "closed"  // normal operation, nothing is enforced
)

// Limits, so that no dispatch grows without bound.
const (
	TextBytesMax   = 64 << 10  // of an input, a task or a result; more does not fit into a line that other programs read
	ResultBytesMax = 4 << 10   // of a result as it is kept for the asking agent; dialogue.md has all of it
	waitingMax     = 64        // queued inputs
	tasksMax       = 64        // parallel tasks
	askedMax       = 1000      // tasks of one hosted conversation: stops agents that ask each other in circles
	wordsMax       = 1000      // of a reason, a name or an ID from outside
	namedMax       = 1000      // paths in an input
	roundsMax      = 20        // rounds in which one agent asks for help
	resultsMax     = 32        // results kept for one conversation; dialogue.md has all
	filesMax       = 200       // files of one conversation, because every line of its history repeats them; further ones are counted
	inputKept      = 4 << 10   // bytes of an input that Fairlead need not pass on; dialogue.md has all of it
	heldBytesMax   = 256 << 10 // of all texts that wait to be passed on, because every line repeats them
	agentsMax      = 2000      // descriptions of a dispatch
)

// Dispatch is the state of one dispatch folder. Its zero value is a dispatch that has not begun.
type Dispatch struct {
	Setup
	Now
}

// Setup is fixed when the dispatch begins.
type Setup struct {
	Mode    Mode            `json:"mode,omitempty"`
	Host    Host            `json:"host,omitempty"`
	Path    string          `json:"path,omitempty"`    // of the folder as given, because the files contain it
	Program string          `json:"program,omitempty"` // the agent program's ID of its session; empty: none
	Lead    string          `json:"lead,omitempty"`    // host fairlead: the agent of fairlead.yaml that is MAIN; empty: none
	Ranker  string          `json:"ranker,omitempty"`  // host fairlead: the agent that assigns inputs to agents; empty: words are counted
	Agents  []Description   `json:"agents,omitempty"`  // the states besides MAIN, by name
	ForMain json.RawMessage `json:"for_main,omitempty"`
	ForAll  json.RawMessage `json:"for_agents,omitempty"` // permissions in the form in which every line repeats them
	Began   time.Time       `json:"began,omitzero"`
}

// Description is one agent, with the text that says when to call it.
type Description struct {
	Name string `json:"name"`
	Text string `json:"description"`
	File string `json:"file,omitempty"` // the file with the description
}

// Now is the current state of a dispatch. Every line of its history contains all of it.
type Now struct {
	Phase   Phase         `json:"phase,omitempty"`
	Line    uint64        `json:"line,omitempty"` // number of changes so far
	Made    int           `json:"made,omitempty"` // highest number of a conversation
	Open    *Conversation `json:"open,omitempty"`
	Waiting []Waiting     `json:"waiting,omitempty"`
	Denied  int           `json:"denied,omitempty"` // number of denied tool calls
	Ended   string        `json:"ended,omitempty"`  // why the dispatch was closed
}

// Conversation is one input that is being handled.
type Conversation struct {
	N       int       `json:"n"`
	Began   time.Time `json:"began"`
	Input   string    `json:"input"`
	Named   []string  `json:"named,omitempty"`   // paths in the user's text: writing there is permitted, too
	Message string    `json:"message,omitempty"` // mode response: the file in the inbox
	Asked   uint64    `json:"asked,omitempty"`   // number of tasks so far
	Tasks   []Task    `json:"tasks,omitempty"`   // open tasks, the newest one last
	Results []Result  `json:"results,omitempty"` // of ended tasks, the oldest first
	Used    []string  `json:"used,omitempty"`    // agents in the order of their first task
	Files   []File    `json:"files,omitempty"`
	More    int       `json:"more_files,omitempty"` // number of further files

	Round  int  `json:"round,omitempty"`  // host fairlead: number of rounds that MAIN has answered
	Called bool `json:"called,omitempty"` // MAIN delegated in this round, so it gets the results
}

// Task is a task of one agent.
type Task struct {
	ID     uint64    `json:"id"`
	Agent  string    `json:"agent"`
	By     uint64    `json:"by,omitempty"`     // the task that asked for it; 0: MAIN, or the input itself
	Text   string    `json:"text,omitempty"`   // the request
	Call   string    `json:"call,omitempty"`   // the agent program's ID of the delegation
	Caller string    `json:"caller,omitempty"` // the agent program's ID of the agent, if known
	Began  time.Time `json:"began"`
	Round  int       `json:"round,omitempty"`  // number of rounds that it has answered
	Called bool      `json:"called,omitempty"` // it asked for help in this round
}

// Result is the result of a task for the agent that asked.
type Result struct {
	Task  uint64 `json:"task"`
	Agent string `json:"agent"`
	By    uint64 `json:"by,omitempty"`
	OK    bool   `json:"ok"`
	Text  string `json:"text,omitempty"`
	Round int    `json:"round,omitempty"` // the round in which the asking agent receives it
}

// File is a file that was created.
type File struct {
	Path    string `json:"path"`
	Summary string `json:"summary"`
}

// Waiting is an input that arrived while a conversation was open.
type Waiting struct {
	Text  string    `json:"text"`
	Named []string  `json:"named,omitempty"`
	Match *Match    `json:"match,omitempty"`
	At    time.Time `json:"at"`
}

// Match is the agent whose description matches, with the reason.
type Match struct {
	Agent string   `json:"agent"`
	Score float64  `json:"score,omitempty"`
	Terms []string `json:"terms,omitempty"`
}

// ID is the name of the conversation and of its folder: conv_001.
func (c *Conversation) ID() string { return ConversationID(c.N) }

// ConversationID returns a conversation's name: three digits or more (seed 002).
func ConversationID(n int) string { return fmt.Sprintf("conv_%03d", n) }

// State returns the state as in the files: MAIN, QUEUE or an agent's name.
func (s *Dispatch) State() string {
	if s.Open != nil && len(s.Open.Tasks) > 0 {
		return s.Open.Tasks[len(s.Open.Tasks)-1].Agent
	}
	if s.Mode == Response {
		return Desk
	}
	return Main
}

// InCharge returns the identity of a caller: the agent with this ID in its program, or MAIN. Mode
// response has no MAIN; a caller without a task has MAIN's permissions there.
func (s *Dispatch) InCharge(caller string) (agent string, main bool) {
	if s.Open != nil && caller != "" {
		for _, task := range s.Open.Tasks {
			if task.Caller == caller {
				return task.Agent, false
			}
		}
	}
	return Main, true
}

// Task finds an open task.
func (c *Conversation) Task(id uint64) (Task, bool) {
	if c == nil {
		return Task{}, false
	}
	i := slices.IndexFunc(c.Tasks, func(t Task) bool { return t.ID == id })
	if i < 0 {
		return Task{}, false
	}
	return c.Tasks[i], true
}

// Knows reports whether a description has this name.
func (s *Dispatch) Knows(agent string) bool {
	return slices.ContainsFunc(s.Agents, func(d Description) bool { return d.Name == agent })
}

// Permissions returns the permissions of the current state, as every line repeats them.
func (s *Dispatch) Permissions() json.RawMessage {
	if s.State() == Main || s.State() == Desk {
		return s.ForMain
	}
	return s.ForAll
}

// Display returns the display form of a state: FULLSTACK_ENGINEER.
func Display(state string) string {
	return strings.ToUpper(strings.ReplaceAll(state, "-", "_"))
}

// Arrow formats a transition as in the seed: [MAIN → FULLSTACK_ENGINEER].
func Arrow(from, to string) string { return "[" + Display(from) + " → " + Display(to) + "]" }

// Action is a prompt that an agent must receive and answer: the work of a host.
type Action struct {
	Conversation int
	Task         uint64 // 0: MAIN itself
	Round        int    // number of rounds answered before
	Agent        string // name in fairlead.yaml
	Text         string // the task, or the input
	Results      []Result
	Rank         bool // the agent only assigns the input: it delegates, or does not
}

// Key identifies the action permanently: conv_002/1/0.
func (w Action) Key() string {
	return fmt.Sprintf("%s/%d/%d", ConversationID(w.Conversation), w.Task, w.Round)
}

// ranks reports whether an agent first assigns the input, in the round before MAIN's.
func (s *Dispatch) ranks() bool {
	return s.Ranker != "" && s.Host == Fairlead && s.Mode != Response && s.Open != nil && s.Open.Round == 0
}

// ActionOf parses a key.
func ActionOf(key string) (Action, bool) {
	var w Action
	id, rest, _ := strings.Cut(key, "/")
	task, round, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(strings.TrimPrefix(id, "conv_"))
	if err != nil {
		return Action{}, false
	}
	w.Conversation = n
	if w.Task, err = strconv.ParseUint(task, 10, 64); err != nil {
		return Action{}, false
	}
	if w.Round, err = strconv.Atoi(round); err != nil {
		return Action{}, false
	}
	return w, w.Key() == key
}

// Wanted reports whether an action still needs an answer.
func (s *Dispatch) Wanted(w Action) bool {
	c := s.Open
	switch {
	case c == nil || c.N != w.Conversation:
		return false
	case w.Task == 0:
		return c.Round == w.Round && (s.Phase == Talking || s.Phase == Working)
	}
	task, ok := c.Task(w.Task)
	return ok && task.Round == w.Round
}

// Due returns the pending actions for a host, the oldest first. An agent that asked for help gets a
// new round when all those that it asked are done. MAIN gets the input if no description matches,
// and the results of what it delegated.
func (s *Dispatch) Due() (due []Action) {
	c := s.Open
	if s.Host != Fairlead || c == nil {
		return nil
	}
	for _, task := range c.Tasks {
		if c.waits(task.ID) {
			continue
		}
		due = append(due,
			Action{
				Conversation: c.N, Task: task.ID, Round: task.Round, Agent: task.Agent, Text: task.Text,
				Results: c.results(task.ID, task.Round),
			})
	}
	agent := s.Lead
	if s.ranks() {
		agent = s.Ranker
	}
	if _, over := s.Answer(); !over && agent != "" && s.Phase == Talking {
		due = append(due,
			Action{Conversation: c.N, Round: c.Round, Agent: agent, Text: c.Input, Results: c.results(0, c.Round), Rank: s.ranks()})
	}
	return due
}

// Answer returns the user's answer in a dispatch without MAIN: the result of the task that the input
// began, or that there is no agent to ask.
func (s *Dispatch) Answer() (Respond, bool) {
	c := s.Open
	if s.Host != Fairlead || s.Phase != Talking || s.ranks() || s.Lead != "" && (c.Round > 0 || c.Called) {
		return Respond{}, false
	}
	if len(c.Results) == 0 {
		return Respond{
			Conversation: c.N,
			Text:         "No agent's description fits this input, and no agent of fairlead.yaml is MAIN. Describe one in .claude/agents, or name the coordinator as session.main.",
		}, s.Lead == ""
	}
	last := c.Results[len(c.Results)-1]
	if !last.OK {
		return Respond{Conversation: c.N, Text: cmp.Or(last.Text, "The task failed, and "+last.Agent+" gave no reason.")}, true
	}
	return Respond{Conversation: c.N, Text: cmp.Or(last.Text, last.Agent+" is done and returned no text.")}, true
}

// waits reports whether a task that this task asked for is still open.
func (c *Conversation) waits(id uint64) bool {
	return slices.ContainsFunc(c.Tasks, func(t Task) bool { return t.By == id && t.ID != id })
}

// results returns the results that the asking agent receives in a round.
func (c *Conversation) results(by uint64, round int) (some []Result) {
	for _, r := range c.Results {
		if r.By == by && r.Round == round {
			some = append(some, r)
		}
	}
	return some
}

// round returns the round in which the asking agent receives a result that arrives now.
func (c *Conversation) round(by uint64) int {
	round, called := c.Round, c.Called
	if t, ok := c.Task(by); ok {
		round, called = t.Round, t.Called
	}
	if called { // it has not answered yet in the round in which it asked
		round++
	}
	return round
}

// roundOf returns the current round of MAIN or of a task.
func (c *Conversation) roundOf(by uint64) int {
	if t, ok := c.Task(by); ok {
		return t.Round
	}
	return c.Round
}

// held returns the size of all texts that wait to be passed on.
func (n *Now) held() (bytes int) {
	for _, w := range n.Waiting {
		bytes += len(w.Text) + size(w.Named)
	}
	if n.Open != nil {
		bytes += size(n.Open.Named)
		for _, t := range n.Open.Tasks {
			bytes += len(t.Text)
		}
	}
	return bytes
}

func size(texts []string) (bytes int) {
	for _, text := range texts {
		bytes += len(text)
	}
	return bytes
}
