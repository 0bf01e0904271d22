package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

// Options are what an engine stands on. All seams are given, so that a simulator can give others.
type Options struct {
	Name    string // of the team, for people: the folder that it works in
	Config  *config.Config
	Journal journal.Journal
	Host    Host
	Files   Files
	Drivers map[string]driver.Driver
	Lookup  func(string) (string, bool) // resolves references to the environment
	BootID  string                      // of the machine: a file torn by a reboot is no wish
	Log     *slog.Logger
	Waited  func(InboxItem) // is told, beside the loop, that a person is waited for; nil: nobody is
	Planned func(Plan)      // is told what recovery will do, before it does it; nil: nobody is

	// Offer is where an agent finds our own tools in one session; nil: nowhere.
	Offer func(agent, session string) driver.MCP

	// Elsewhere finds who else has a conversation open, before it is resumed; nil: nobody looks. The
	// function of this name is the real one.
	Elsewhere func(ctx context.Context, conversation string, argv []string) ([]Occupant, error)

	Documents Documents // the files of the team's agents; nil: there are none
	Sessions  Sessions  // session folders (seed 002); nil: none are followed
}

// Files is the live agent_state.json of every agent; agentfile.Files is the real one.
type Files interface {
	Add(agent, folder string) error
	Seen() <-chan agentfile.Seen
	Read(agent string) (agentfile.Seen, error)
	Took(agentfile.Seen)
	Write(ctx context.Context, agent string, content []byte, newest uint64, isOurs func(file.Sum) bool) error
}

// Engine runs one team. Make it with Open, then call Run.
type Engine struct {
	*loop.Loop
	opts    Options
	log     *slog.Logger
	started time.Time

	// Only the loop's goroutine reads or writes these.
	members   map[string]*member
	files     map[string]*agentFile // of agents with a workspace
	parts     map[string]*part      // of agents in channels
	rules     map[string]rulebook   // of agents
	answering map[string]int        // answers that are being told, by slot
	runs      map[string]*runMember
	warned    map[string]bool
	asked     map[string]bool // questions that people were notified of, since this start
	rebooted  bool            // the machine was booted since the last epoch
	writers   int             // files that are being written
	behind    uint64          // the epoch that shims had obeyed although the journal knew less; 0: it knew
	// Sessions that the journal does not know, by agent: at first all, then those that run.
	strangers map[string][]Trace
	unwritten []*agentFile // whose files wait to be written until others are
	dues      dues         // the next moment of every channel

	pumping context.CancelFunc // ends the taking in of looks
	pumped  chan struct{}      // closed when every look that was taken in is in the queue

	logBytesMax int64 // of the transition log; the constant except in tests and benchmarks

	mu     sync.Mutex
	procs  map[string]Process // running sessions by id
	silent map[string]string  // sessions whose shim does not answer, and what it was asked in vain

	talkMu sync.Mutex
	voices map[string]*voice        // of sessions that take part in channels, while they are listened to
	waits  map[string]chan struct{} // closed when there may be something new for an agent that fetches it

	books   books    // where what was said in channels is in the journal
	crew    crewSide // what is kept beside the crew
	boxed   sandboxProof
	folders folderSide    // what is kept beside the dispatch folders
	probes  chan struct{} // limits the probes that run at once
}

// member is a place where a session runs: an agent's, or that of one step of a run, which a wrapper or
// a command plays.
type member struct {
	conf    *config.Agent
	driver  driver.Driver
	run     string          // the run whose step has this slot; empty: it is an agent's
	step    workflow.StepID // of that run
	session string          // whose actions doing holds
	doing   map[string]bool // actions that were started, by key
}

// addMember adds an agent's slot and what is kept of its file.
func (e *Engine) addMember(m *member) {
	e.members[m.conf.Name] = m
	e.files[m.conf.Name] = &agentFile{member: m}
}

func newMember(conf *config.Agent, d driver.Driver) *member {
	return &member{conf: conf, driver: d, doing: map[string]bool{}}
}

// begun notes that an errand of a session was begun, and says whether it was before.
func (m *member) begun(session, key string) bool {
	if m.session != session {
		m.session = session
		clear(m.doing) // those of the session before are over
	}
	before := m.doing[key]
	m.doing[key] = true
	return before
}

// Open replays the journal. Nothing is started, written or told before Run.
func Open(ctx context.Context, opts Options) (*Engine, error) {
	e := &Engine{
		Loop: loop.New(ctx, loop.Options{Journal: opts.Journal, Log: opts.Log, FileSum: renderSum, DocumentSum: documentSum}),
		opts: opts, log: opts.Log,
		members: map[string]*member{}, files: map[string]*agentFile{}, parts: map[string]*part{}, rules: map[string]rulebook{}, answering: map[string]int{},
		runs: map[string]*runMember{}, warned: map[string]bool{}, asked: map[string]bool{},
		procs: map[string]Process{}, silent: map[string]string{}, started: time.Now(),
		voices: map[string]*voice{}, waits: map[string]chan struct{}{}, probes: make(chan struct{}, probesMax),
		books: books{making: make(chan struct{}, 1)}, crew: newCrewSide(), folders: newFolderSide(),
		pumped: make(chan struct{}), logBytesMax: logBytesMax,
	}
	if err := e.Replay(ctx); err != nil {
		return nil, err
	}
	for i := range opts.Config.Agents {
		conf := &opts.Config.Agents[i]
		d, ok := opts.Drivers[conf.Driver]
		if !ok {
			return nil, fmt.Errorf("agent %s: this build of fairlead has no driver %q", conf.Name, conf.Driver)
		}
		m := newMember(conf, d)
		rules, err := bookOf(conf)
		if err != nil {
			return nil, err
		}
		e.addMember(m)
		e.rules[conf.Name] = rules
	}
	e.registerAll()
	return e, nil
}

// Run recovers what was, then serves until ctx ends, the journal fails, or another daemon
// takes over. Agents go on running when it returns: ending them is what Stop is for.
func (e *Engine) Run(ctx context.Context) (err error) {
	defer func() { e.shutdown(err) }()
	switch err := e.recover(ctx); {
	case err != nil && ctx.Err() != nil:
		return nil // it was told to end before the recovery was over; the next start begins again
	case err != nil:
		return fmt.Errorf("recover the team: %w", err)
	}
	return e.Loop.Run(ctx)
}

// shutdown ends the loop, then closes the connections to the sessions; they go on running.
func (e *Engine) shutdown(why error) {
	e.Shutdown(why)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.procs {
		_ = p.Close() // nothing is lost with the connection
	}
}

func (e *Engine) proc(session string) Process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.procs[session]
}

func (e *Engine) setProc(session string, p Process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.silent, session)
	if p == nil {
		delete(e.procs, session)
		return
	}
	e.procs[session] = p
}
