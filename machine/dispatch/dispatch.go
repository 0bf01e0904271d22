// Package dispatch decides which agent is responsible for an input, and when an input is done.
//
// A dispatch (seed 002) has a coordinator, MAIN. Each user input opens a conversation with its own
// number, or waits until the open one is closed. MAIN may read and delegate, but agents do the work:
// MAIN chooses an agent by its description, and the agent reports back. In mode interactive an agent may
// ask another agent for help and gets its report. In mode response there is no MAIN: each message of an
// inbox goes to the agent whose description matches it. A conversation that a crash interrupted is closed
// as interrupted.
//
// The caller journals the changes that Decide returns and applies them with Apply.
//
// The promise: at most one conversation is open, every input has its own number, and the numbers have
// no gaps.
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

// Main is the state in which nobody but the coordinator is in charge (seed 002, State Definitions).
const Main = "MAIN"

// Desk is what a session in mode response shows while no message is being served: it has no MAIN.
const Desk = "QUEUE"

// Mode says where an agent goes when it is done (seed 002, Mode Behaviors).
type Mode string

const (
	Orchestrator Mode = "orchestrator" // back to MAIN, always
	Interactive  Mode = "interactive"  // it may ask other agents; then back to who asked
	Response     Mode = "response"     // there is no MAIN; messages of an inbox go to agents
)

// Modes lists them, the default first.
func Modes() []Mode { return []Mode{Orchestrator, Interactive, Response} }

// Host is who carries out what a session decides.
type Host string

const (
	NoHost   Host = ""         // people and programs say what happened, by the command line
	Claude   Host = "claude"   // hooks of an agent program report, and enforce
	Fairlead Host = "fairlead" // the daemon has agents of fairlead.yaml do the work
)

// Phase is how far a session is, whoever is in charge.
type Phase string

const (
	None    Phase = "none"
	Ready   Phase = "ready"   // MAIN, and no conversation is open
	Talking Phase = "talking" // a conversation is open, and MAIN is in charge
	Working Phase = "working" // one agent or several are at work
	Queue   Phase = "queue"   // mode response: waiting for a message
	Serving Phase = "serving" // mode response: an agent has one
	Closed  Phase = "closed"  // normal operation, nothing is enforced any more
)

// Limits, so that no session grows without bound.
const (
	TextBytesMax   = 64 << 10  // of an input, a task or a result; more does not fit into a line that others read
	ResultBytesMax = 4 << 10   // of a result as it is kept for who asked; all of it is in dialogue.md
	waitingMax     = 64        // inputs in line; a person who typed more does not know what he waits for
	tasksMax       = 64        // at work at the same time
	askedMax       = 1000      // tasks of one conversation that we host: agents that ask each other in circles stop there
	wordsMax       = 1000      // of a reason, a name or an id that others gave
	namedMax       = 1000      // paths in an input
	roundsMax      = 20        // in which one agent asks for help: who asks for ever never answers
	resultsMax     = 32        // kept of one conversation; all are in dialogue.md
	filesMax       = 200       // of one conversation: every line of its history repeats them; more are counted
	inputKept      = 4 << 10   // bytes of an input that nobody here has to be told; all of it is in dialogue.md
	heldBytesMax   = 256 << 10 // of everything that is to be told, and waits: it stands in every line
	agentsMax      = 2000      // descriptions of a session
)

// Dispatch is everything that is true of one session folder. Its zero value is one that was not begun.
type Dispatch struct {
	Setup
	Now
}

// Setup is what was said when the session began, and does not change.
type Setup struct {
	Mode    Mode            `json:"mode,omitempty"`
	Host    Host            `json:"host,omitempty"`
	Path    string          `json:"path,omitempty"`    // of the folder, as it was given: it stands in the files
	Program string          `json:"program,omitempty"` // the agent program's own id of its session; empty: none
	Lead    string          `json:"lead,omitempty"`    // host fairlead: the agent of fairlead.yaml that is MAIN; empty: nobody is
	Ranker  string          `json:"ranker,omitempty"`  // host fairlead: the agent that is asked whose work an input is; empty: words are counted
	Agents  []Description   `json:"agents,omitempty"`  // the states beside MAIN, by name
	ForMain json.RawMessage `json:"for_main,omitempty"`
	ForAll  json.RawMessage `json:"for_agents,omitempty"` // permissions as every line repeats them
	Began   time.Time       `json:"began,omitzero"`
}

// Description is one agent, and when it is to be called.
type Description struct {
	Name string `json:"name"`
	Text string `json:"description"`
	File string `json:"file,omitempty"` // where it was found
}

// Now is what is true of a session at the moment. It stands whole in every line of its history.
type Now struct {
	Phase   Phase         `json:"phase,omitempty"`
	Line    uint64        `json:"line,omitempty"` // changes so far
	Made    int           `json:"made,omitempty"` // the highest number of a conversation
	Open    *Conversation `json:"open,omitempty"`
	Waiting []Waiting     `json:"waiting,omitempty"`
	Denied  int           `json:"denied,omitempty"` // tool calls, so far
	Ended   string        `json:"ended,omitempty"`  // why the session is closed
}

// Conversation is one input on its way to its answer.
type Conversation struct {
	N       int       `json:"n"`
	Began   time.Time `json:"began"`
	Input   string    `json:"input"`
	Named   []string  `json:"named,omitempty"`   // paths in the user's words: there may be written, too
	Message string    `json:"message,omitempty"` // mode response: the file in the inbox
	Asked   uint64    `json:"asked,omitempty"`   // tasks so far; the next one's number
	Tasks   []Task    `json:"tasks,omitempty"`   // not over, the one begun last is last
	Results []Result  `json:"results,omitempty"` // of those that are over, the oldest first
	Used    []string  `json:"used,omitempty"`    // agents, in the order in which they were first in charge
	Files   []File    `json:"files,omitempty"`
	More    int       `json:"more_files,omitempty"` // that were made beside these

	Round  int  `json:"round,omitempty"`  // host fairlead: how often MAIN was told of it and has answered
	Called bool `json:"called,omitempty"` // MAIN delegated in this round, so that it is told of the results
}

// Task is an agent in charge of something.
type Task struct {
	ID     uint64    `json:"id"`
	Agent  string    `json:"agent"`
	By     uint64    `json:"by,omitempty"`     // the task that asked for it; 0: MAIN, or the input itself
	Text   string    `json:"text,omitempty"`   // what it is to do
	Call   string    `json:"call,omitempty"`   // the agent program's id of the delegation
	Caller string    `json:"caller,omitempty"` // the agent program's id of the agent, once it was seen
	Began  time.Time `json:"began"`
	Round  int       `json:"round,omitempty"`  // how often it was told something and has answered
	Called bool      `json:"called,omitempty"` // it asked for help in this round
}

// Result is what came of a task, for who asked.
type Result struct {
	Task  uint64 `json:"task"`
	Agent string `json:"agent"`
	By    uint64 `json:"by,omitempty"`
	OK    bool   `json:"ok"`
	Text  string `json:"text,omitempty"`
	Round int    `json:"round,omitempty"` // of who asked, in which it is told
}

// File is one that was made.
type File struct {
	Path    string `json:"path"`
	Summary string `json:"summary"`
}

// Waiting is an input that came while another one was open.
type Waiting struct {
	Text  string    `json:"text"`
	Named []string  `json:"named,omitempty"`
	Match *Match    `json:"match,omitempty"`
	At    time.Time `json:"at"`
}

// Match is the agent whose description fits, and why.
type Match struct {
	Agent string   `json:"agent"`
	Score float64  `json:"score,omitempty"`
	Terms []string `json:"terms,omitempty"`
}

// ID is the conversation's name, and its folder's: conv_001.
func (c *Conversation) ID() string { return ConversationID(c.N) }

// ConversationID names a conversation: three digits or more (seed 002).
func ConversationID(n int) string { return fmt.Sprintf("conv_%03d", n) }

// State is who is in charge, as the files say it: MAIN, QUEUE or an agent's name.
func (s *Dispatch) State() string {
	if s.Open != nil && len(s.Open.Tasks) > 0 {
		return s.Open.Tasks[len(s.Open.Tasks)-1].Agent
	}
	if s.Mode == Response {
		return Desk
	}
	return Main
}

// InCharge says as whom a caller acts: the agent that has this id in its program, or MAIN. In mode
// response nobody is MAIN, and who has no task may do what MAIN may.
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

// Task finds one that is not over.
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

// Knows says whether a description has this name.
func (s *Dispatch) Knows(agent string) bool {
	return slices.ContainsFunc(s.Agents, func(d Description) bool { return d.Name == agent })
}

// Permissions are those of who is in charge, as every line repeats them.
func (s *Dispatch) Permissions() json.RawMessage {
	if s.State() == Main || s.State() == Desk {
		return s.ForMain
	}
	return s.ForAll
}

// Display is how people see a state: FULLSTACK_ENGINEER.
func Display(state string) string {
	return strings.ToUpper(strings.ReplaceAll(state, "-", "_"))
}

// Arrow is a transition as the seed shows it: [MAIN → FULLSTACK_ENGINEER].
func Arrow(from, to string) string { return "[" + Display(from) + " → " + Display(to) + "]" }

// Action is something that somebody has to be told and to answer: what a host does.
type Action struct {
	Conversation int
	Task         uint64 // 0: MAIN itself
	Round        int    // the answers that it gave before
	Agent        string // of fairlead.yaml
	Text         string // the task, or the input
	Results      []Result
	Rank         bool // it is only asked whose work it is, and delegates or does not
}

// Key names it for ever: conv_002/1/0.
func (w Action) Key() string {
	return fmt.Sprintf("%s/%d/%d", ConversationID(w.Conversation), w.Task, w.Round)
}

// ranks says whether an agent is asked first whose work the input is: in the round before MAIN's.
func (s *Dispatch) ranks() bool {
	return s.Ranker != "" && s.Host == Fairlead && s.Mode != Response && s.Open != nil && s.Open.Round == 0
}

// ActionOf reads a key back.
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

// Wanted says whether somebody who was told this is still to answer it.
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

// Due is what a host is to have done now, the oldest first. Who asked for help is told again when
// those that it asked are done; MAIN is told of the input where nobody's description fitted, and of
// what came of what it delegated.
func (s *Dispatch) Due() (due []Action) {
	c := s.Open
	if s.Host != Fairlead || c == nil {
		return nil
	}
	for _, task := range c.Tasks {
		if c.waits(task.ID) {
			continue
		}
		due = append(due, Action{Conversation: c.N, Task: task.ID, Round: task.Round, Agent: task.Agent, Text: task.Text, Results: c.results(task.ID, task.Round)})
	}
	agent := s.Lead
	if s.ranks() {
		agent = s.Ranker
	}
	if _, over := s.Answer(); !over && agent != "" && s.Phase == Talking {
		due = append(due, Action{Conversation: c.N, Round: c.Round, Agent: agent, Text: c.Input, Results: c.results(0, c.Round), Rank: s.ranks()})
	}
	return due
}

// Answer is what the user is answered without MAIN: what came of the task that the input began, or that
// there is nobody who could be asked.
func (s *Dispatch) Answer() (Respond, bool) {
	c := s.Open
	if s.Host != Fairlead || s.Phase != Talking || s.ranks() || s.Lead != "" && (c.Round > 0 || c.Called) {
		return Respond{}, false
	}
	if len(c.Results) == 0 {
		return Respond{Conversation: c.N, Text: "No agent's description fits this input, and no agent of fairlead.yaml is MAIN. Describe one in .claude/agents, or name the coordinator as session.main."}, s.Lead == ""
	}
	last := c.Results[len(c.Results)-1]
	if !last.OK {
		return Respond{Conversation: c.N, Text: cmp.Or(last.Text, "The task failed, and "+last.Agent+" did not say why.")}, true
	}
	return Respond{Conversation: c.N, Text: cmp.Or(last.Text, last.Agent+" is done, and had nothing to say.")}, true
}

// waits says whether somebody works on what a task asked for, and has not told it yet.
func (c *Conversation) waits(id uint64) bool {
	return slices.ContainsFunc(c.Tasks, func(t Task) bool { return t.By == id && t.ID != id })
}

// results are those that who asked for them is told in a round.
func (c *Conversation) results(by uint64, round int) (some []Result) {
	for _, r := range c.Results {
		if r.By == by && r.Round == round {
			some = append(some, r)
		}
	}
	return some
}

// round is the one in which who asked is told a result that comes now.
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

// roundOf is the round that somebody is in: MAIN, or a task.
func (c *Conversation) roundOf(by uint64) int {
	if t, ok := c.Task(by); ok {
		return t.Round
	}
	return c.Round
}

// held is how many bytes of text are kept to be told.
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
