package team

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// The dispatch folders of the world: people who write to them with or without a running Fairlead,
// agents that work for them and delegate in their sessions, and a reader that copies their lines
// into the journal late, in pieces, and sometimes twice.

// TestRandomFolders plays teams with dispatch folders together with all other events: control,
// steps, channels and a lead request the same slots. To repeat a run: -run 'RandomFolders/seed=7$'
func TestRandomFolders(t *testing.T) {
	seeds := testsize.Pick[uint64](20, 60, 3000)
	if testsize.Race {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorldOfFolders(t, seed)
			for i := range 200 {
				if w.rnd.IntN(3) == 0 {
					w.happen(byte(w.rnd.Uint32()), w.rnd.Uint64())
				} else {
					w.foldersHappen(w.rnd.Uint64())
				}
				if i%50 == 49 {
					w.keepSnapshot()
				}
			}
			w.snapshot = nil // the whole journal must give the same team
			w.crash()
			w.settle()
			w.foldersRest()
		})
	}
}

// FuzzFolders applies events that the fuzzer chooses.
func FuzzFolders(f *testing.F) {
	f.Add([]byte("\x00\x01\x0e\x0e\x10\x11\x12\x0e\x01\x02\x0e"))
	f.Add([]byte("\x00\x00\x01\x01\x0e\x10\x0b\x0e\x10\x05\x0e"))
	f.Fuzz(func(t *testing.T, orders []byte) {
		if len(orders) > 300 {
			return
		}
		w := newWorldOfFolders(t, uint64(len(orders)))
		for _, what := range orders {
			w.foldersHappen(uint64(what)%24 + w.rnd.Uint64()>>8/24*24)
		}
		w.snapshot = nil
		w.crash()
		w.settle()
		w.foldersRest()
	})
}

func newWorldOfFolders(t testing.TB, seed uint64) *world {
	lead := crew.LeadConfigured{}
	if seed%3 == 0 {
		lead = crew.LeadConfigured{Agent: "ada", Size: 2}
	}
	w := newWorldOf(t, seed, lead)
	w.folders = newFolderBook()
	return w
}

// folderDisk is a dispatch folder on disk. It is the truth, independent of what the team knows.
type folderDisk struct {
	name, path string
	is         dispatch.Dispatch
	lines      []DispatchEntry
	gone       bool
	back       bool // it was removed: the return is noticed only at the next write to it
}

func (d *folderDisk) end() int64 {
	if len(d.lines) == 0 {
		return 0
	}
	return d.lines[len(d.lines)-1].End
}

// foldersHappen applies one random event of dispatch folders.
func (w *world) foldersHappen(how uint64) {
	w.at = w.at.Add(time.Duration(how>>48%3000) * time.Millisecond)
	d := w.anyDisk(how >> 8)
	if d == nil {
		w.beginFolder(how >> 8)
		return
	}
	agent := from([]string{"ada", "ada", "bob", "bob", "cleo", "ghost"}, how>>16)
	var match *dispatch.Match
	if how>>24%3 > 0 {
		match = &dispatch.Match{Agent: agent, Terms: []string{"do"}}
	}
	switch how % 24 {
	case 0:
		w.beginFolder(how >> 8)
	case 1, 2, 3:
		if d.is.Mode == dispatch.Response {
			w.writeInput(d, dispatch.Message{Name: fmt.Sprint("m", how>>32%50), Text: "do it", Match: match})
			return
		}
		w.writeInput(d, dispatch.UserInput{Text: "do it", Match: match, Over: how>>32%6 == 0})
	case 4:
		w.writeInput(d,
			from([]dispatch.Input{
				dispatch.Respond{Text: "so", Over: true},
				dispatch.Interrupt{Why: "enough"},
				dispatch.Deny{Tool: "Write", Reason: "no"},
				dispatch.Wrote{File: dispatch.File{Path: "f"}},
			}, how>>32))
	case 5:
		w.writeInput(d, dispatch.Delegate{Agent: agent, Text: "by a person"})
	case 6:
		if how>>32%8 == 0 {
			w.writeInput(d, dispatch.End{Why: "enough"})
		}
	case 7:
		if how>>32%4 == 0 {
			d.gone, d.back = !d.gone, d.gone
		}
	case 8:
		if how>>32%6 == 0 { // another folder is in its place
			d.is, d.lines, d.gone = dispatch.Dispatch{}, nil, false
			w.setUp(d, how>>36)
		}
	case 9:
		if how>>32%4 == 0 {
			w.crash()
		}
	case 10:
		w.say("", from([]any{HoldAsked{}, ReleaseAsked{}, ReleaseAsked{}, ReleaseAsked{}}, how>>32))
	case 11:
		w.readAgain(d, how>>32)
	case 12, 13:
		w.say(agent, control.Commanded{Desired: from(anyWord, how>>32), By: "human"})
	default:
		for range how >> 40 % 16 {
			w.work()
		}
		w.workersAct(how >> 32)
	}
	w.actions()
}

func (w *world) anyDisk(how uint64) *folderDisk {
	names := slices.Sorted(maps.Keys(w.folders.disks))
	if len(names) == 0 {
		return nil
	}
	return w.folders.disks[from(names, how)]
}

func (w *world) beginFolder(how uint64) {
	if len(w.folders.disks) >= 3 {
		return
	}
	name := fmt.Sprint("20261121_12000", len(w.folders.disks))
	d := &folderDisk{name: name, path: "/repo/.claude/agent-state-machine/" + name}
	w.folders.disks[name] = d
	w.setUp(d, how)
}

func (w *world) setUp(d *folderDisk, how uint64) {
	w.at = w.at.Add(time.Second)
	setup := dispatch.Setup{
		Mode: from([]dispatch.Mode{dispatch.Orchestrator, dispatch.Interactive, dispatch.Interactive, dispatch.Response}, how),
		Host: from([]dispatch.Host{dispatch.Fairlead, dispatch.Fairlead, dispatch.Fairlead, dispatch.NoHost}, how>>4),
		Lead: from([]string{"ada", "bob", "", "ghost"}, how>>8), Path: d.path,
	}
	for _, name := range []string{"ada", "bob", "cleo", "ghost"} {
		setup.Agents = append(setup.Agents, dispatch.Description{Name: name, Text: "does what " + name + " does"})
	}
	w.writeInput(d, dispatch.Start{Setup: setup})
}

// writeInput makes a writer take the folder's lock and write an input. A refusal is a valid result.
func (w *world) writeInput(d *folderDisk, in dispatch.Input) bool {
	if d.gone {
		return false
	}
	changes, err := d.is.Decide(w.at, in)
	if err != nil {
		return false
	}
	for _, ch := range changes {
		d.is.Apply(ch)
		ch.Actor = change.Actor{Kind: "human", ID: "anna"}
		d.lines = append(d.lines, DispatchEntry{End: d.end() + 100, Change: ch})
		d.back = false
	}
	return true
}

// folderActions makes the reader copy new lines, and reports the results that folders must receive.
func (w *world) folderActions() {
	if w.folders == nil || w.starting {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(w.folders.disks)) {
		d, f := w.folders.disks[name], w.team.Dispatches[name]
		anew := f != nil && !f.State.Began.Equal(d.is.Began)
		switch {
		case d.gone && f != nil && !f.Gone, !d.gone && (f == nil || anew || f.Read < d.end()):
			w.once("read "+name, func() { w.readFolder(d) })
		}
		for _, action := range w.team.DispatchActions(name, w.at) {
			w.once(action.Key, func() {
				if f.State.Began.Equal(d.is.Began) { // otherwise it concerns a folder that was replaced
					w.tellFolder(d, action)
				}
			})
		}
	}
}

// readFolder continues to read where the journal ends, some lines at a time.
func (w *world) readFolder(d *folderDisk) {
	f := w.team.Dispatches[d.name]
	if d.gone {
		if f != nil {
			w.must(Event{What: DispatchGone{Name: d.name}})
			for id := range w.folders.begun { // sessions that work for it are stopped; if it returns, that work is done again
				if strings.HasPrefix(id, folderPrefix+d.name+"/") {
					delete(w.folders.begun, id)
				}
			}
		}
		return
	}
	what := DispatchSeen{Name: d.name, Path: d.path}
	if f != nil {
		what.From, what.Anew = f.Read, !f.State.Began.Equal(d.is.Began)
	}
	if what.Anew {
		what.From = 0
	}
	most := 1 + w.rnd.IntN(5)
	for _, line := range d.lines {
		if line.End > what.From && len(what.Lines) < most {
			what.Lines = append(what.Lines, line)
			what.To = line.End
		}
	}
	w.must(Event{What: what})
	if w.rnd.IntN(6) == 0 && !what.Anew && len(what.Lines) > 0 { // it crashed before it knew that this was in the journal
		lines := len(w.journal)
		w.must(Event{What: what})
		if len(w.journal) != lines {
			w.t.Fatalf("the lines of %s from byte %d were recorded twice", d.name, what.From)
		}
	}
}

// readAgain is a reader that lost its position: repeated lines must have no effect.
func (w *world) readAgain(d *folderDisk, how uint64) {
	f := w.team.Dispatches[d.name]
	if f == nil || len(d.lines) == 0 {
		return
	}
	at := int(how % uint64(len(d.lines)))
	what := DispatchSeen{Name: d.name, Path: d.path, Lines: d.lines[at:], To: d.end()}
	if at > 0 {
		what.From = d.lines[at-1].End
	}
	if what.From == f.Read {
		return
	}
	lines := len(w.journal)
	w.must(Event{What: what})
	if len(w.journal) != lines {
		w.t.Fatalf("%s was read to byte %d, but lines from %d were recorded", d.name, f.Read, what.From)
	}
}

func (w *world) must(ev Event) {
	if err := w.event(ev); err != nil {
		w.t.Fatalf("%T was refused: %v", ev.What, err)
	}
}

// tellFolder reports a result as it was when the action began, regardless of the delay.
func (w *world) tellFolder(d *folderDisk, action Action) {
	if action.Do == AnswerFolder {
		if answer, ok := d.is.Answer(); ok {
			w.writeInput(d, answer)
			w.actions()
		}
		return
	}
	defer w.actions()
	work, _ := dispatch.ActionOf(action.Work)
	id := fmt.Sprint(ForDispatch(action.Folder, action.Work), " since ", d.is.Began.UnixNano())
	wanted := d.is.Wanted(work)
	if wanted && w.folders.delivered[id] {
		w.t.Fatalf("%s received the result of %s but still waits for it", action.Folder, action.Work)
	}
	before := len(d.lines)
	ok, text := action.End.Outcome == control.OK, "it went "+string(action.End.Outcome)
	switch {
	case action.End.Outcome == control.Lost:
		if wanted {
			w.writeInput(d, dispatch.Interrupt{Conversation: work.Conversation, Why: text})
		}
	case work.Task == 0:
		w.writeInput(d, dispatch.MainEnded{Conversation: work.Conversation, Round: work.Round, OK: ok, Result: text})
	default:
		w.writeInput(d, dispatch.TaskEnded{Conversation: work.Conversation, Task: work.Task, Round: work.Round, OK: ok, Result: text})
	}
	switch {
	case d.gone:
	case wanted && d.is.Wanted(work):
		w.t.Fatalf("%s received the result of %s but still waits for it", action.Folder, action.Work)
	case !wanted && len(d.lines) != before:
		w.t.Fatalf("%s did not wait for %s, but its result had an effect", action.Folder, action.Work)
	case wanted:
		w.folders.delivered[id] = true
	}
}

// workersAct makes agents act in their sessions for folders: they delegate, and they end.
func (w *world) workersAct(how uint64) {
	for _, id := range w.alive() {
		p := w.procs[id]
		folder, work, ok := DispatchActionOf(p.what)
		if s := w.sessionOf(p); !ok || s == nil || s.ID != id {
			continue
		}
		switch how % 4 {
		case 0:
			d := w.folders.disks[folder]
			w.writeInput(d, dispatch.Delegate{
				Conversation: work.Conversation, By: work.Task, Agent: from([]string{"ada", "bob", "cleo", "ghost"}, how>>8), Text: "help",
				Call: fmt.Sprint(id, "@", how>>16%4),
			})
		case 1, 2:
			w.ends(id, from(anyEnd, how>>8))
		default:
			if how>>8%4 == 0 {
				w.timer(p.agent, true) // its session may have reached its time limit
			}
		}
		how >>= 3
	}
}

// foldersSettled returns an input of Fairlead's folders that has no answer.
func (w *world) foldersSettled() string {
	if w.folders == nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(w.folders.disks)) {
		d := w.folders.disks[name]
		switch f := w.team.Dispatches[name]; {
		case d.gone || d.back:
		case f == nil || f.Read != d.end() || !f.State.Began.Equal(d.is.Began):
			return fmt.Sprintf("%s was not read to its end: %+v", name, f)
		case d.is.Host == dispatch.Fairlead && (d.is.Open != nil || len(d.is.Waiting) > 0):
			return fmt.Sprintf("%s is not answered: %s", name, w.encode(d.is.Now))
		case len(f.Ends) > 0:
			return fmt.Sprintf("%s is still to be told: %v", name, f.Ends)
		}
	}
	return ""
}

// foldersRest checks that every input is answered, and that a folder that was removed continues
// after its return.
func (w *world) foldersRest() {
	for _, d := range w.folders.disks {
		d.gone = false
		w.writeInput(d, dispatch.Deny{Tool: "Write", Reason: "a person is back"})
	}
	w.actions()
	for range 60 {
		w.workOff()
		if w.foldersSettled() == "" {
			return
		}
		for _, id := range w.alive() {
			if _, _, ok := DispatchActionOf(w.procs[id].what); ok {
				w.ends(id, control.OK)
			}
		}
		for _, name := range w.team.Names() {
			if a := w.team.Agents[name]; a.Session != nil && !a.Session.servesDispatch() && w.procs[a.Session.ID] != nil &&
				w.procs[a.Session.ID].alive {
				w.say(name, control.Commanded{Desired: control.WordPause, By: "human"})
				w.ends(a.Session.ID, control.OK) // the session that has the slot ends
			}
		}
	}
	w.t.Fatalf("the dispatch folders do not become idle: %s", w.foldersSettled())
}
