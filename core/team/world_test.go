package team

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// world simulates everything around a team. It does the actions that the team requires, late, twice
// or not at all. Processes run and end by themselves, foreign loops read and write their file, and
// sometimes Fairlead is killed and starts again.
type world struct {
	t    testing.TB
	rnd  *rand.Rand
	at   time.Time
	conf Configured
	team *Team

	procs  map[string]*proc // every process so far, by session: they outlive Fairlead
	flight []job            // work in progress in Fairlead, which is lost in a crash
	doing  map[string]bool  // keys of actions that have begun
	disks  map[string]*disk // files of foreign agents
	ledger *ledger
	words  *messageRecord
	crew   *crewRecord // nil: the crew has no lead

	folders *folderRecord // for dispatch sessions; nil: there are none

	touched  Touched
	runs     int             // number of runs so far
	starting bool            // during a start nothing follows until all sessions were checked
	journal  [][]byte        // every change so far, as the journal stores it
	changes  []change.Change // the same as it was decided
	snapshot []byte
	taken    int // number of changes in the snapshot
}

// proc is one session's process.
type proc struct {
	id     string // its session
	agent  string // empty: a step in the worker pool
	run    string
	what   Purpose
	lease  uint64
	kind   control.Kind
	alive  bool
	how    control.Outcome // how it ended
	offset int64           // of its last report
	input  int64           // bytes written to it
	label  string          // label of the last input that reached the shim
}

// job is work in progress in Fairlead. It is done some time later, unless Fairlead crashes.
type job struct {
	name string
	do   func()
}

// disk is a foreign agent's file, with its loop.
type disk struct {
	file, seen, before control.FileRead // the current content; as the team last saw it; before Fairlead's last write
	busy               string           // the loop's current work: a word of the seed, or empty
}

// identity replaces the hash of a projection's bytes.
func identity(f control.File) string { return fmt.Sprintf("%+v", f) }

func newWorld(t testing.TB, seed uint64) *world {
	return newWorldOf(t, seed, crew.LeadConfigured{})
}

// newWorldOf returns a world in which an agent may lead.
func newWorldOf(t testing.TB, seed uint64, lead crew.LeadConfigured) *world {
	w := &world{
		t: t, rnd: rand.New(rand.NewPCG(seed, 0)), at: machinetest.Noon, team: New(identity),
		procs: map[string]*proc{}, disks: map[string]*disk{}, doing: map[string]bool{}, ledger: newLedger(), words: newWords(),
	}
	policy := control.Policy{FailuresMax: 3, BackoffFirst: time.Second, BackoffMax: time.Minute}
	cleaner, foreign, program := policy, policy, policy
	cleaner.CleanupEvery = 2
	foreign.Foreign = true
	program.Foreign, program.Program = true, true
	w.conf = Configured{
		Limits: Limits{CostPerDayUSD: 40}, Places: 2, Lead: lead,
		Agents: map[string]Settings{
			"ada":  {Policy: policy, Limits: Limits{Session: 10 * time.Minute, TokensPerDay: 500}, Driver: "script"},
			"bob":  {Policy: cleaner, Driver: "exec", Instances: int(seed % 4)},
			"cleo": {Policy: foreign, Driver: "exec"},
			"dora": {Policy: program, Driver: "exec", Limits: Limits{CostPerDayUSD: 10}},
		},
	}
	inChannels(&w.conf)
	if lead.Agent != "" {
		w.crew = newCrewBook()
	}
	w.start()
	return w
}

// tell makes the team decide and apply one event, and checks all resulting changes.
func (w *world) tell(agent string, what any) error {
	return w.event(Event{Agent: agent, What: what})
}

// event returns the changes of one event with all that follows: the batch of one append.
func (w *world) event(ev Event) error {
	ev.At, ev.Actor = w.at, change.Actor{Kind: "human", ID: "test"}
	err := w.decide(ev)
	for n := 0; !w.starting; n++ {
		next, ok := w.team.Next(&w.touched, w.at)
		if !ok {
			break
		}
		lines := len(w.journal)
		if refused := w.decide(next); refused != nil || len(w.journal) == lines || n > 1000 {
			w.t.Fatalf("an event that follows (%T of %q%q) is refused, has no effect, or never ends: %v", next.What, next.Agent, next.Run,
				refused)
		}
	}
	w.ledger.check(w)
	w.words.check(w)
	w.crew.check(w)
	w.folders.check(w)
	w.actions()
	return err
}

func (w *world) decide(ev Event) error {
	var before []byte
	if w.rnd.IntN(16) == 0 {
		before = w.encode(w.team)
	}
	changes, err := w.team.Decide(ev)
	if before != nil && string(before) != string(w.encode(w.team)) {
		w.t.Fatalf("deciding %T changed the team", ev.What)
	}
	if err != nil && len(changes) > 0 {
		w.t.Fatalf("%T was refused but had an effect: %v", ev.What, err)
	}
	for _, ch := range changes {
		w.journal = append(w.journal, encoded(w.t, ch))
		w.changes = append(w.changes, ch)
		w.touched.Note(ch)
		w.ledger.judge(w, ch, ev)
		w.crew.judge(w, ch)
		w.team.Apply(ch)
	}
	if command, ok := ev.What.(control.Commanded); ok && err == nil {
		if desired := w.team.Agents[ev.Agent].Control.Desired; desired.State != command.Desired || desired.By != command.By {
			w.t.Fatalf("%s was commanded %+v, but its desired state is %+v", ev.Agent, command, desired)
		}
	}
	return err
}

func (w *world) encode(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		w.t.Fatalf("cannot encode the change: %v", err)
	}
	return line
}

// actions begins the pending actions that have not begun.
func (w *world) actions() {
	for _, name := range w.team.Names() {
		a := w.team.Agents[name]
		if len(a.Sessions()) == 0 {
			maps.DeleteFunc(w.doing, func(key string, _ bool) bool { return w.owner(key) == name })
		}
		for _, action := range slices.Collect(w.team.Actions(a)) {
			switch {
			case action.Do == WriteFile:
				w.writeFile(name)
			case w.doing[name+" "+action.Key]:
			case action.Do == StartSession:
				w.doing[name+" "+action.Key] = true
				w.later("start "+action.Session.ID, func() { w.startSession(action) })
			case action.Do == EndSession:
				w.doing[name+" "+action.Key] = true
				w.later("end "+action.Session.ID, func() { w.endSession(action) })
			}
		}
	}
	w.runActions()
	w.channelActions()
	w.folderActions()
}

func (w *world) owner(key string) string {
	for i := range len(key) {
		if key[i] == ' ' {
			return key[:i]
		}
	}
	return key
}

// later adds a job; sometimes it is done twice.
func (w *world) later(name string, do func()) {
	w.flight = append(w.flight, job{name, do})
	if w.rnd.IntN(10) == 0 {
		w.flight = append(w.flight, job{name + ", again", do})
	}
}

// work does one random job that is in progress.
func (w *world) work() bool {
	if len(w.flight) == 0 {
		return false
	}
	i := w.rnd.IntN(len(w.flight))
	next := w.flight[i]
	w.flight = slices.Delete(w.flight, i, i+1)
	next.do()
	return true
}

func (w *world) startSession(action Action) {
	id := action.Session.ID
	if w.procs[id] != nil {
		return // the shim knows this session already
	}
	ok, why := w.team.MayStart(action.Agent, id, w.at)
	if action.Agent == "" {
		ok, why = w.team.MayStartRun(action.Run, id, w.at)
	}
	if !ok {
		w.of(action.Agent, action.Run, SessionEnded{Session: id, Outcome: control.Withdrawn, Why: why})
		return
	}
	if w.rnd.IntN(12) == 0 {
		w.of(action.Agent, action.Run, SessionEnded{Session: id, Outcome: control.CannotStart, Why: "no such program"})
		return
	}
	w.ledger.started(w, action)
	w.procs[id] = &proc{
		id: id, agent: action.Agent, run: action.Run, what: action.Session.For, lease: action.Session.Lease,
		kind: action.Session.Kind, alive: true,
	}
	if delivery := action.Session.Delivery; delivery != nil {
		w.words.delivered(w, delivery.Key, id)
		w.procs[id].input = 50
	}
	w.later("started "+id, func() {
		w.of(action.Agent, action.Run, SessionStarted{Session: id, PID: 4711, Input: w.procs[id].input})
	})
}

// of reports what happened to a session of an agent or in the worker pool.
func (w *world) of(agent, run string, what any) {
	if agent != "" {
		run = ""
	}
	_ = w.event(Event{Agent: agent, Run: run, What: what})
}

// say reports what happened to a session. A refusal because it has ended is a valid result.
func (w *world) say(agent string, what any) { _ = w.tell(agent, what) }

func (w *world) endSession(action Action) {
	if p := w.procs[action.Session.ID]; p != nil && p.alive {
		w.ends(action.Session.ID, control.Failed)
	}
}

// ends ends a process, and queues the report of it.
func (w *world) ends(id string, how control.Outcome) {
	p := w.procs[id]
	p.alive, p.how = false, how
	report := w.reportOf(p)
	w.later("ended "+id, func() {
		if s := w.sessionOf(p); s != nil && s.ID == id && s.Phase == session.Open {
			w.of(p.agent, p.run, SessionStarted{Session: id, PID: 4711, Input: p.input}) // the follower reports it in order
		}
		w.of(p.agent, p.run, SessionEnded{Session: id, Outcome: how, Why: "so it went", Exit: session.Exit{SpoolBytes: p.offset}, Report: report})
	})
}

// sessionOf returns the session in the slot of a process.
func (w *world) sessionOf(p *proc) *Session {
	if p.agent == "" {
		return w.team.Pool.Sessions[p.what.Run+"/"+p.what.Step]
	}
	return w.team.Agents[p.agent].Open(p.id)
}

// alive lists the sessions whose process runs, in order.
func (w *world) alive() []string {
	var ids []string
	for id, p := range w.procs {
		if p.alive {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// start is a start of the daemon: it looks first, and acts last.
func (w *world) start() {
	w.flight, w.doing, w.touched, w.starting = nil, map[string]bool{}, Touched{}, true
	w.crew.forget()
	w.touched.All()
	started := DaemonStarted{BootID: "boot"}
	if leader := w.rnd.IntN(4); leader > 0 { // another machine, with paths of its own
		started.Leader, started.Root = []string{"a", "b", "c"}[leader-1], []string{"/w", "/w/w", "/x"}[leader-1]
	}
	w.say("", started)
	w.say("", w.conf)
	for _, name := range w.team.Names() {
		a := w.team.Agents[name]
		if !a.Removed {
			w.firstLook(a)
		}
	}
	for _, name := range w.team.Names() {
		for _, s := range w.team.Agents[name].Sessions() {
			w.adopt(name, "", *s)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.team.Pool.Sessions)) {
		if s := w.team.Pool.Sessions[key]; s != nil {
			run, _, _ := strings.Cut(key, "/")
			w.adopt("", run, *s)
		}
	}
	for i, name := range w.team.Names() {
		w.starting = i < len(w.team.Agents)-1
		w.say(name, control.Started{})
	}
}

func (w *world) firstLook(a *Agent) {
	if a.Control.Policy.Foreign {
		d := w.disks[a.Name]
		if d == nil {
			d = &disk{}
			w.disks[a.Name] = d
		}
		if d.file.Desired == "" {
			w.say(a.Name, control.FileGone{})
			return
		}
		d.seen = d.file
		in := d.file
		in.First = true
		w.say(a.Name, in)
		return
	}
	delete(w.disks, a.Name)
	if a.Control.State == control.Absent {
		w.say(a.Name, control.FileGone{})
	}
}

func (w *world) adopt(name, run string, s Session) {
	p := w.procs[s.ID]
	switch {
	case p == nil && s.Phase == session.Open:
	case p != nil && p.alive:
		w.doing[name+run+" start/"+s.ID] = true
		w.of(name, run, SessionAdopted{Session: s.ID, PID: 4711, Input: p.input})
	case p != nil && w.rnd.IntN(2) == 0: // its exit was kept
		w.of(name, run, SessionAdopted{Session: s.ID, PID: 4711, Input: p.input})
		w.of(name, run, SessionEnded{Session: s.ID, Outcome: p.how, Why: "while fairlead was down", AtStart: true, Report: w.reportOf(p)})
	default:
		w.of(name, run, SessionEnded{Session: s.ID, Outcome: control.Lost, Why: "nothing is left of it", AtStart: true})
	}
}

// crash kills Fairlead: work in progress is lost, and the team is rebuilt from the journal.
func (w *world) crash() {
	for _, id := range w.alive() {
		if w.rnd.IntN(3) == 0 {
			w.procs[id].alive, w.procs[id].how = false, control.OK
		}
	}
	again, first := New(identity), 0
	if w.snapshot != nil {
		if err := json.Unmarshal(w.snapshot, again); err != nil {
			w.t.Fatal(err)
		}
		first = w.taken
	}
	for i := first; i < len(w.journal); i++ {
		again.Apply(w.read(i))
	}
	w.same(again)
	w.team = again
	w.start()
}

// read decodes a change of the journal, which must be the one that was decided.
func (w *world) read(i int) change.Change {
	ch := decoded(w.t, w.journal[i])
	if !reflect.DeepEqual(ch, w.changes[i]) {
		w.t.Fatalf("the decoded change differs:\n%s", cmp.Diff(w.changes[i], ch))
	}
	return ch
}

// same compares the live team with a replayed one, including their pending actions.
func (w *world) same(again *Team) {
	w.t.Helper()
	live := *w.team
	live.Render, again.Render = nil, nil
	w.sameRuns(&live, again)
	runs, floor := again.Runs, again.Channels
	if a, b := w.encode(live.Channels), w.encode(again.Channels); string(a) != string(b) {
		w.t.Fatalf("the replayed channels differ:\n%s", cmp.Diff(string(a), string(b)))
	}
	live.Hosts, again.Hosts = live.Hosts.Clone(), again.Hosts.Clone() // without what is counted on demand
	live.Runs, again.Runs = nil, nil                                  // the derived data of a run is compared by its results
	live.Channels, again.Channels = channel.Channels{}, channel.Channels{}
	if !reflect.DeepEqual(&live, again) {
		w.t.Fatalf("the replayed team differs:\n%s", cmp.Diff(&live, again, cmpopts.IgnoreUnexported(Agent{}, Team{})))
	}
	live.Runs, again.Runs = w.team.Runs, runs
	live.Channels, again.Channels = w.team.Channels, floor
	w.sameChannels(&live, again)
	w.sameFolders(&live, again)
	for _, name := range live.Names() {
		if a, b := slices.Collect(live.Actions(live.Agents[name])),
			slices.Collect(again.Actions(again.Agents[name])); !reflect.DeepEqual(a, b) {
			w.t.Fatalf("the replayed team has other actions:\n%s", cmp.Diff(a, b))
		}
	}
	again.Render = identity
}

func (w *world) keepSnapshot() {
	w.snapshot, w.taken = w.encode(w.team), len(w.journal)
	again := New(nil)
	if err := json.Unmarshal(w.snapshot, again); err != nil {
		w.t.Fatal(err)
	}
	w.same(again)
}
