// Package team is a whole team of agents as one value.
//
// Every agent has its machines, and a seat for one session at a time, whichever
// machine asked for it; whoever finds it taken stands in line. Runs have their steps
// carried out by agents, each in its seat, or by a command on a bench with so many
// places. In channels agents take turns; one that has to be told something there needs
// its seat, too. The lead answers for a team of which nobody else is seen (the crew), in a
// session that stays. An event about one agent or one run is decided by its machines; one about the
// team (hold, stop, a limit that all share) reaches everybody in one batch. What must be
// done in the world is not remembered but read off the value: a session that is opened
// and not running is to be started, a seat that is free goes to who is first in its line,
// a deadline that has passed is due. So a crash loses no errand, and a repeated one is
// the same errand.
//
// The one promise: the same changes give the same team, and an agent has at most one session.
package team

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

// Team is everything that is true of a team. Its zero value is an empty one.
type Team struct {
	Agents   map[string]*Agent `json:"agents"`
	Hold     Hold              `json:"hold"`
	Stopping bool              `json:"stopping,omitempty"` // C14
	Epoch    uint64            `json:"epoch"`              // starts of the daemon: the fencing token
	BootID   string            `json:"boot_id,omitempty"`  // of the machine at the last start
	Limits   Limits            `json:"limits"`
	Usage    Usage             `json:"usage"` // of all agents together

	Runs    map[string]*workflow.Run `json:"runs,omitempty"`      // by id
	Notes   map[string]RunNote       `json:"run_notes,omitempty"` // what is true of a run beside its machine
	Archive map[string]time.Time     `json:"archive,omitempty"`   // runs that are in the journal alone, and since when: their names stay taken (X5)
	Pool    WorkerPool               `json:"bench,omitzero"`

	Channels       channel.Channels         `json:"floor,omitzero"`    // who may speak, in every channel
	ChannelConfigs map[string]ChannelConfig `json:"circles,omitempty"` // by channel: what fairlead.yaml says of it

	Crew crew.Crew `json:"crew,omitzero"` // who of the team exists, and who is awake

	Dispatches map[string]*Dispatch `json:"folders,omitempty"` // session folders, by name

	Questions question.Questions `json:"book,omitzero"` // what agents ask, and what stands for the next time

	guests map[string][]string                     // channels by agent; found out when it is asked for (outside)
	asks   map[channel.AgentID][]channel.ChannelID // the same (asking)

	// Render gives the identity of the bytes that a projection is written as, so that it is
	// in the journal before the file is on disk (X3). It must be pure. Nil: no identities.
	Render func(control.File) string `json:"-"`
}

// Agent is one member.
type Agent struct {
	Name     string          `json:"name"`
	Control  control.Control `json:"control"`
	Session  *Session        `json:"session,omitempty"` // the one that is open; J1
	Queue    []Request       `json:"line,omitempty"`    // who waits for the seat, first come first
	Opened   uint64          `json:"opened,omitempty"`  // sessions so far; the next id
	Past     []Session       `json:"past,omitempty"`    // ended ones, oldest first, pastMax at most
	Sums     []string        `json:"sums,omitempty"`    // identities of our last projections, newest last
	Seen     string          `json:"seen,omitempty"`    // the last write of somebody else that was taken in
	Before   []string        `json:"before,omitempty"`  // those before it, and those found swapped out, newest last
	Usage    Usage           `json:"usage"`
	Days     []Usage         `json:"days,omitempty"` // what was used on each day, the newest last, daysMax at most
	Settings Settings        `json:"settings"`
	Removed  bool            `json:"removed,omitempty"` // gone from the configuration; never from here (X5)

	Limited       *Limited                  `json:"limited,omitempty"`       // what its provider said last; nil: nothing yet
	Conversations map[Purpose]*Conversation `json:"conversations,omitempty"` // with its program, by whom they were for; the newest of each
	Says          *Says                     `json:"says,omitempty"`          // of itself

	step string // of a seat made for one decision: RUN/STEP, a step that is its own seat
}

// Settings is what the configuration says of an agent, as far as decisions depend on it.
type Settings struct {
	Policy control.Policy `json:"policy"`
	Limits Limits         `json:"limits"`
	Driver string         `json:"driver"`
}

// Hold is the one switch that stops everything from starting (X8).
type Hold struct {
	On   bool      `json:"on,omitempty"`
	By   string    `json:"by,omitempty"`
	Note string    `json:"note,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// Limits are those of X9; zero is none.
type Limits struct {
	Session       time.Duration `json:"session,omitempty"` // wall-clock of one session
	TokensPerDay  int64         `json:"tokens_per_day,omitempty"`
	CostPerDayUSD float64       `json:"cost_per_day_usd,omitempty"`
}

// Usage is what was used on one day (UTC), by the agents' own reports.
type Usage struct {
	Day          string  `json:"day,omitempty"` // 2026-11-20
	InputTokens  int64   `json:"input_tokens,omitempty"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
	CostUSD      float64 `json:"cost_usd,omitempty"`

	Sessions int `json:"sessions,omitempty"` // that were opened; of Agent.Days alone
}

const (
	pastMax = 20 // older sessions are in the journal; the page shows these without asking it
	seenMax = 64 // as many as are watched when they were swapped out; after a crash all of them are met again
	daysMax = 31 // a bill is of a month
	sumsMax = 16 // a restored file older than so many writes is taken for somebody else's
)

// New is an empty team.
func New(render func(control.File) string) *Team {
	return &Team{Agents: map[string]*Agent{}, Render: render}
}

// Names lists the agents by name.
func (t *Team) Names() []string {
	names := make([]string, 0, len(t.Agents))
	for name := range t.Agents {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Idle says whether nothing runs any more, so that a daemon that stops may go.
func (t *Team) Idle() bool {
	for _, a := range t.Agents {
		if a.Session != nil {
			return false
		}
	}
	return len(t.Pool.Sessions) == 0
}

// RunIDs lists the runs by id.
func (t *Team) RunIDs() []string {
	ids := make([]string, 0, len(t.Runs))
	for id := range t.Runs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Copy is a team of its own, for trying out what would come of something.
func (t *Team) Copy() *Team {
	c := *t
	c.Agents = make(map[string]*Agent, len(t.Agents))
	for name, a := range t.Agents {
		agent := *a
		agent.Sums = slices.Clip(a.Sums) // setControl writes behind them
		c.Agents[name] = &agent
	}
	c.Runs = nil
	for id, r := range t.Runs {
		put(&c.Runs, id, copyRun(r))
	}
	c.Notes, c.Archive, c.Pool.Sessions = maps.Clone(t.Notes), maps.Clone(t.Archive), maps.Clone(t.Pool.Sessions)
	c.Channels, c.ChannelConfigs, c.guests, c.asks = *cloneJSON(&t.Channels), maps.Clone(t.ChannelConfigs), nil, nil
	c.Crew.Docs = maps.Clone(t.Crew.Docs)
	c.Dispatches = maps.Clone(t.Dispatches) // each is replaced whole
	return &c
}

func copyRun(r *workflow.Run) *workflow.Run { return cloneJSON(r) }

// cloneJSON copies by the snapshot: what is derived is found out anew.
func cloneJSON[T any](is *T) *T {
	text, err := json.Marshal(is)
	next := new(T)
	if err == nil {
		err = json.Unmarshal(text, next)
	}
	if err != nil {
		panic(fmt.Sprintf("team: a %T that does not fit its own snapshot: %v", is, err))
	}
	return next
}

// put and drop keep a map nil while nothing is in it: a team that was read back is the same then.
func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}

func drop[V any](m *map[string]V, key string) {
	if delete(*m, key); len(*m) == 0 {
		*m = nil
	}
}

// WroteSum says whether a content of this identity was projected by us: it is no news then.
func (a *Agent) WroteSum(sum string) bool { return slices.Contains(a.Sums, sum) }

// TookIn says whether a write of somebody else, found swapped out, was taken in before: it
// is met again after a crash, and an old wish must not go over a newer one for that.
func (a *Agent) TookIn(ident string) bool {
	return ident != "" && (ident == a.Seen || slices.Contains(a.Before, ident))
}

// File is what the agent's agent_state.json is to say now.
func (t *Team) File(a *Agent) control.File { return a.Control.File(t.Hold.On) }

// on gives the usage of a day: what was used on another day does not count.
func (u Usage) on(day string) Usage {
	if u.Day != day {
		return Usage{Day: day}
	}
	return u
}

// usageMax bounds one report and a sum: what agents say of themselves may be anything, and
// a sum that runs over would be below every limit.
const usageMax = 1 << 53

func (u Usage) plus(more Usage) Usage {
	u.InputTokens = min(u.InputTokens+more.InputTokens, usageMax)
	u.OutputTokens = min(u.OutputTokens+more.OutputTokens, usageMax)
	u.CostUSD = min(u.CostUSD+more.CostUSD, usageMax)
	u.Sessions += more.Sessions
	return u
}

// sumOfDays adds a report to its day. Days come in order: one that is before the newest counts for that.
func sumOfDays(days []Usage, more Usage) []Usage {
	if more.InputTokens == 0 && more.OutputTokens == 0 && more.CostUSD == 0 && more.Sessions == 0 {
		return days
	}
	last := len(days) - 1
	if last >= 0 && days[last].Day >= more.Day {
		next := append(days[:last:last], days[last].plus(more))
		return next
	}
	days = append(days[:len(days):len(days)], more)
	return days[max(0, len(days)-daysMax):]
}

// sane is a report without what no agent can have used.
func (u Usage) sane() Usage {
	u.Sessions = 0
	u.InputTokens = min(max(u.InputTokens, 0), usageMax)
	u.OutputTokens = min(max(u.OutputTokens, 0), usageMax)
	if !(u.CostUSD > 0) { // not a number is not more than nothing either
		u.CostUSD = 0
	}
	u.CostUSD = min(u.CostUSD, usageMax)
	return u
}

func dayOf(at time.Time) string { return at.UTC().Format(time.DateOnly) }
