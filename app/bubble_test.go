package app

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/agents"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
	"github.com/fairlead-dev/fairlead/process/driver"
	driverexec "github.com/fairlead-dev/fairlead/process/driver/exec"
)

// bubble is a simulated environment in one process with simulated time. Supervisors start and stop
// in it; the disk, the host and the journal stay.
type bubble struct {
	t      *testing.T
	conf   *config.Config
	disk   *fakeDisk
	host   *fakeHost
	slate  *memory.Journal
	faults *journaltest.Faults // wraps the journal in memory
	driver *fakeDriver
	boot   string
	logged *logBuffer

	engine     *App // the running supervisor
	files      *fakeFiles
	crashPoint *crashPoint
	cancel     context.CancelFunc
	ran        chan error

	crashed bool // a supervisor has died

	arrange func(*fakeFiles) // called before each start

	unsaving bool // the journal refuses snapshots

	sessions outside.Sessions // dispatch folders; nil: none

	began   time.Time        // when the machine began
	cluster *outside.Cluster // nil: there are no other hosts

	conflicts func(context.Context, string, []string) ([]sessionhost.ProcessConflict, error) // finds processes that have a conversation open
	tellers   *outside.Notices
	room      func() string                     // of outside.Options
	proxy     func() (outside.ProxyConn, error) // nil: there is none
}

// inBubble runs a test in its own bubble.
func inBubble(t *testing.T, agents string, test func(t *testing.T, b *bubble)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, dir, strings.Fields(agents)...)
		defer b.end()
		test(t, b)
	})
}

func newBubble(t *testing.T, dir string, agents ...string) *bubble {
	b := &bubble{
		t: t, disk: newFakeDisk(), host: newFakeHost(), slate: memory.New(), driver: &fakeDriver{}, boot: "boot-1",
		conf: &config.Config{}, logged: &logBuffer{}, began: time.Now(),
	}
	b.faults = journaltest.Faulty(b.slate)
	for _, name := range agents {
		b.conf.Agents = append(b.conf.Agents, bubbleAgent(dir, name))
	}
	return b
}

func bubbleAgent(dir, name string) config.Agent {
	return config.Agent{
		Name: name, Driver: "fake", Workspace: filepath.Join(dir, name), Loop: config.LoopFairlead,
		FailuresMax: 5, Backoff: config.Backoff{First: time.Second, Max: time.Minute}, Grace: 10 * time.Second,
	}
}

// agent returns an agent's settings, to be changed before a start.
func (b *bubble) agent(name string) *config.Agent {
	for i := range b.conf.Agents {
		if b.conf.Agents[i].Name == name {
			return &b.conf.Agents[i]
		}
	}
	b.t.Fatalf("no agent %s", name)
	return nil
}

// open creates a supervisor that crashes after a number of acts (0: never), and does not run it.
func (b *bubble) open(last int, undone bool) {
	b.t.Helper()
	b.crashPoint = newCrashPoint(last, undone)
	b.files = newFakeFiles(b.disk, b.crashPoint)
	if b.arrange != nil {
		b.arrange(b.files)
	}
	conf := *b.conf
	var history journal.Journal = crashingJournal{b.faults, b.crashPoint}
	if b.unsaving {
		history = unsaving{history}
	}
	e, err := Open(b.t.Context(), outside.Options{
		Name: "test", Config: &conf, Journal: history, Files: b.files, Host: hostHandle{b.host, b.crashPoint},
		Drivers: map[string]driver.Driver{"fake": b.driver, "exec": driverexec.Driver{}},
		Lookup:  func(string) (string, bool) { return "", false }, Offer: tokenIn,
		BootID: b.boot, Sessions: b.sessions, ProcessConflicts: b.conflicts, Notices: b.tellers, Cluster: b.cluster, Proxy: b.proxy,
		Room: b.room,
		Log:  slog.New(slog.NewTextHandler(b.logged, nil)),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	began := b.began
	e.Cluster.Clock = func() host.BootTime { return host.BootTime(time.Since(began)) }
	b.engine = e
}

// run runs the supervisor that was opened.
func (b *bubble) run() {
	ctx, cancel := context.WithCancel(b.t.Context())
	ran, e := make(chan error, 1), b.engine
	b.cancel, b.ran = cancel, ran
	go func() { ran <- e.Run(ctx) }()
}

// start starts a supervisor and returns when it is ready.
func (b *bubble) start() {
	b.t.Helper()
	b.open(0, false)
	b.run()
	synctest.Wait()
	select {
	case <-b.engine.Loop.Ready():
	case err := <-b.ran:
		b.t.Fatalf("the start failed: %v", err)
	case <-time.After(time.Minute):
		b.t.Fatal("the engine was not ready after a minute")
	}
	synctest.Wait()
}

// stop stops the supervisor and returns its error.
func (b *bubble) stop() error {
	if b.engine == nil {
		return nil
	}
	b.cancel()
	err := <-b.ran
	b.files.close()
	b.engine = nil
	return err
}

func (b *bubble) end() {
	if err := b.stop(); err != nil {
		b.t.Errorf("the engine failed: %v", err)
	}
	b.host.killAll()
	for _, fault := range b.host.faults {
		b.t.Error(fault)
	}
	if b.t.Failed() {
		b.t.Logf("the log:\n%s", b.logged)
	}
}

// command gives a command that must be accepted.
func (b *bubble) command(agent, desired string) {
	b.t.Helper()
	if _, err := b.engine.Agents.Command(b.t.Context(), human, agent, desired, ""); err != nil {
		b.t.Fatal(err)
	}
}

// settle waits until all goroutines are blocked.
func (b *bubble) settle() { synctest.Wait() }

// after lets time pass.
func (b *bubble) after(d time.Duration) {
	wait.Elapse(d)
	synctest.Wait()
}

func (b *bubble) view(agent string) view.AgentView {
	b.t.Helper()
	view, err := b.engine.Status.Agent(b.t.Context(), agent)
	if err != nil {
		b.t.Fatal(err)
	}
	return view
}

// is checks desired_state and current_state in the view and in the file.
func (b *bubble) is(agent, desired, current string) view.AgentView {
	b.t.Helper()
	view := b.view(agent)
	if view.DesiredState != desired || view.CurrentState != current {
		b.t.Errorf("%s is %s/%s (%s), want %s/%s", agent, view.DesiredState, view.CurrentState, view.Note, desired, current)
	}
	if s := b.disk.state(agent); s.DesiredState != desired || s.CurrentState != current {
		b.t.Errorf("the file of %s says %s/%s, want %s/%s", agent, s.DesiredState, s.CurrentState, desired, current)
	}
	return view
}

// history returns all changes of the journal.
func (b *bubble) history() []journal.Change {
	b.t.Helper()
	var all []journal.Change
	for ch, err := range b.slate.Again().Read(b.t.Context(), journal.Query{}) {
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, ch)
	}
	return all
}

// rows lists the rows of one entity, or of all.
func (b *bubble) rows(entity string) string {
	var rows []string
	for _, ch := range b.history() {
		if entity == "" || ch.Entity == entity {
			rows = append(rows, ch.Row)
		}
	}
	return strings.Join(rows, " ")
}

// replayed is the team according to the whole journal.
func (b *bubble) replayed() *team.Team {
	b.t.Helper()
	t := team.New(agents.RenderSum)
	t.Crew.Render = crewdocs.DocumentSum
	for _, rec := range b.history() {
		ch, err := loop.ChangeOf(rec)
		if err != nil {
			b.t.Fatal(err)
		}
		t.Apply(ch)
	}
	return t
}

// logBook keeps log lines.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var (
	_ outside.Files       = (*fakeFiles)(nil)
	_ sessionhost.Host    = hostHandle{}
	_ sessionhost.Process = (*fakeProc)(nil)
)
