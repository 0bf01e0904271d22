// Package team holds the state of a whole team of agents as one value.
//
// Every agent has its state machines and a slot for one session at a time, or several slots if it has
// instances. Requests for an occupied slot are queued, whichever machine makes them. Steps of runs use the slots of their agents or,
// without an agent, a worker pool with a number of places. An agent that has to receive something in
// a channel needs its slot, too. The lead runs in a session that stays open and reports for the
// crew, whose other agents Fairlead cannot observe. An event about one agent or one run is decided
// by its machines; one about the team (hold, stop, a shared limit) is decided for all agents in one
// batch.
//
// Actions are not stored but derived from the value: an opened session without a process is to be
// started, a free slot goes to the first request, a deadline that has passed is due. So a crash
// loses no action, and a repeated action has the same key.
//
// The one promise: the same changes give the same team, and a slot has at most one session.
package team

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// Team is the state of a team. Its zero value is an empty team.
type Team struct {
	Agents   map[string]*Agent `json:"agents"`
	Hold     Hold              `json:"hold"`
	Stopping bool              `json:"stopping,omitempty"` // C14
	Epoch    uint64            `json:"epoch"`              // number of daemon starts: the fencing token
	BootID   string            `json:"boot_id,omitempty"`  // of the machine at the last start
	Leader   string            `json:"leader,omitempty"`   // the host that leads, if another one can, too
	Root     string            `json:"root,omitempty"`     // the folder of the repository there; empty: it is not known
	Config   string            `json:"config,omitempty"`   // the identity of the fairlead.yaml there; empty: it is not known
	Led      Led               `json:"led,omitzero"`       // before that
	Limits   Limits            `json:"limits"`
	Usage    DayUsage          `json:"usage"` // total of all agents

	RunUsage map[string]RepoDay `json:"run_usage,omitempty"` // of all runs of a repository, archived ones too, on its last day

	Runs  map[string]*workflow.Run `json:"runs,omitempty"`      // by id
	Notes map[string]RunMeta       `json:"run_notes,omitempty"` // state of runs outside of their machines
	Tasks map[string]*task.Task    `json:"tasks,omitempty"`     // by id, which is that of their run; each is replaced as a whole
	// runs that are only in the journal, with the time of archiving: their names stay reserved (X5)
	Archive map[string]time.Time `json:"archive,omitempty"`
	Pool    WorkerPool           `json:"pool,omitzero"`

	Channels       channel.Channels         `json:"channels,omitzero"`         // turns in all channels
	ChannelConfigs map[string]ChannelConfig `json:"channel_configs,omitempty"` // by channel: its configuration in fairlead.yaml

	Crew crew.Crew `json:"crew,omitzero"` // which agents of the crew exist and are alive

	Dispatches map[string]*Dispatch `json:"dispatches,omitempty"` // dispatch folders, by name

	Questions question.Questions `json:"questions,omitzero"` // questions of agents, and saved answers

	Hosts     host.Hosts  `json:"hosts,omitzero"`     // machines that run sessions, and which session runs where
	Governing ConfigState `json:"governing,omitzero"` // which fairlead.yaml is in force

	Notices map[string]notice.Record `json:"notices,omitempty"` // what was sent, by the name of the target

	// RunsOnly is set in a process that only does runs: sessions for control, channels, the crew and dispatch
	// folders do not begin, as during a hold.
	RunsOnly bool `json:"-"`

	// Zone is the time zone of the days that begin in RunUsage; nil: UTC.
	Zone *time.Location `json:"-"`

	// Render returns the identity of a file's content, so that it is in the journal before the file is
	// on disk (X3). It must be pure. Nil: no identities.
	Render func(control.File) string `json:"-"`
}

// Agent is one agent of the team.
type Agent struct {
	Name           string           `json:"name"`
	Control        control.Control  `json:"control"`
	Session        *Session         `json:"session,omitempty"` // the open one; J1. With instances, that of slot 0
	Extra          map[int]*Session `json:"extra,omitempty"`   // the open ones of the slots above 0
	Queue          []Request        `json:"queue,omitempty"`   // requests for the slot, in order
	Opened         uint64           `json:"opened,omitempty"`  // number of sessions so far
	Past           []Session        `json:"past,omitempty"`    // ended ones, oldest first, pastMax at most
	OwnSums        []string         `json:"sums,omitempty"`    // identities of the last written files, newest last
	LastForeign    string           `json:"seen,omitempty"`    // identity of the last write of another program that was taken in
	EarlierForeign []string         `json:"before,omitempty"`  // earlier ones, including those found in replaced files, newest last
	Usage          DayUsage         `json:"usage"`
	Days           []DayUsage       `json:"days,omitempty"`   // usage of each day, the newest last
	Models         []DayUsage       `json:"models,omitempty"` // the parts of Days whose model was reported; of the same days
	Settings       Settings         `json:"settings"`
	Removed        bool             `json:"removed,omitempty"` // no longer configured; never removed from here (X5)

	Limited       *Limited                  `json:"limited,omitempty"`       // the provider's last rate limit; nil: none yet
	Conversations map[Purpose]*Conversation `json:"conversations,omitempty"` // with its program, by purpose; the newest of each
	Says          *Says                     `json:"says,omitempty"`          // its own status

	Contacts []Contact `json:"contacts,omitempty"` // hosts of the network that it reached, or was refused, the newest last

	Tells    []Tell `json:"tells,omitempty"` // what it is still to be told
	LastTell uint64 `json:"last_tell,omitempty"`

	place *place // of a copy made for one decision; nil: slot 0
}

// place says what an Agent that was made for one decision decides about.
type place struct {
	step  string   // RUN/STEP, for a step without an agent
	slot  int      // the slot that Session belongs to
	first *Session // of a slot above 0: the session of slot 0
}

func (a *Agent) step() string {
	if a.place == nil {
		return ""
	}
	return a.place.step
}

func (a *Agent) slot() int {
	if a.place == nil {
		return 0
	}
	return a.place.slot
}

// Settings is the part of an agent's configuration on which decisions depend.
type Settings struct {
	Policy control.Policy `json:"policy"`
	Limits Limits         `json:"limits"`
	Driver string         `json:"driver"`

	Instances int `json:"instances,omitempty"` // number of slots; 0: one
}

// Hold is the switch that stops everything from starting (X8).
type Hold struct {
	On   bool      `json:"on,omitempty"`
	By   string    `json:"by,omitempty"`
	Note string    `json:"note,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// Limits are those of X9; zero means no limit.
type Limits struct {
	Session       time.Duration `json:"session,omitempty"` // wall-clock time of one session
	TokensPerDay  int64         `json:"tokens_per_day,omitempty"`
	CostPerDayUSD float64       `json:"cost_per_day_usd,omitempty"`
}

const (
	pastMax = 20 // shown on the page; the journal has the older ones
	seenMax = 64 // number of replaced files that are watched; after a crash all are seen again
	sumsMax = 16 // a restored file older than this many writes counts as another program's
)

// New returns an empty team.
func New(render func(control.File) string) *Team {
	return &Team{Agents: map[string]*Agent{}, Render: render}
}

// Names lists the agents by name.
func (t *Team) Names() []string {
	return slices.Sorted(maps.Keys(t.Agents))
}

// Idle reports whether nothing runs any more, so that a stopping daemon may exit.
func (t *Team) Idle() bool {
	for _, a := range t.Agents {
		if a.Session != nil || len(a.Extra) > 0 {
			return false
		}
	}
	return len(t.Pool.Sessions) == 0
}

// RunIDs lists the runs by id.
func (t *Team) RunIDs() []string {
	return slices.Sorted(maps.Keys(t.Runs))
}

// Copy returns an independent copy, for trying out decisions.
func (t *Team) Copy() *Team {
	c := *t
	c.Agents = make(map[string]*Agent, len(t.Agents))
	for name, a := range t.Agents {
		agent := *a
		agent.OwnSums = slices.Clip(a.OwnSums) // setControl appends to them
		c.Agents[name] = &agent
	}
	c.Runs = nil
	for id, r := range t.Runs {
		put(&c.Runs, id, cloneJSON(r))
	}
	c.Notes, c.Archive, c.Pool.Sessions = maps.Clone(t.Notes), maps.Clone(t.Archive), maps.Clone(t.Pool.Sessions)
	c.Channels, c.ChannelConfigs = *cloneJSON(&t.Channels), maps.Clone(t.ChannelConfigs)
	c.Hosts, c.Tasks = t.Hosts.Clone(), maps.Clone(t.Tasks)
	c.Crew.Docs = maps.Clone(t.Crew.Docs)
	c.Dispatches, c.Notices = maps.Clone(t.Dispatches), maps.Clone(t.Notices) // each is replaced as a whole
	return &c
}

// cloneJSON copies a value through its snapshot form, and so computes the derived fields again.
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

// put and drop keep an empty map nil, as in a team that was read from a snapshot.
func put[K comparable, V any](m *map[K]V, key K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = v
}

func drop[K comparable, V any](m *map[K]V, key K) {
	if delete(*m, key); len(*m) == 0 {
		*m = nil
	}
}

// WroteSum reports whether Fairlead wrote content of this identity, so that it is not a change.
func (a *Agent) WroteSum(sum string) bool { return slices.Contains(a.OwnSums, sum) }

// Imported reports whether another program's write in a replaced file was taken in before. After a
// crash it is seen again, and must not overwrite a newer desired state.
func (a *Agent) Imported(ident string) bool {
	return ident != "" && (ident == a.LastForeign || slices.Contains(a.EarlierForeign, ident))
}

// File returns the current content of the agent's agent_state.json.
func (t *Team) File(a *Agent) control.File { return a.Control.File(t.Hold.On) }

// held reports whether sessions other than those of runs may not begin.
func (t *Team) held() bool { return t.Hold.On || t.RunsOnly }

func dayOf(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// RepoDay is the day of --daily-cost-limit in a run's repository, with what was used on it.
func (t *Team) RepoDay(r *workflow.Run, at time.Time) RepoDay {
	return t.RunUsage[r.RepoDir].At(at, t.Zone)
}
