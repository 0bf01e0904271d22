package team

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/session"
)

// folderRecord records the sessions that work for a dispatch folder.
type folderRecord struct {
	disks     map[string]*folderDisk
	begun     map[string]string // work, with the start of its folder → the session whose process began for it
	delivered map[string]bool   // works whose result a folder received
}

func newFolderBook() *folderRecord {
	return &folderRecord{disks: map[string]*folderDisk{}, begun: map[string]string{}, delivered: map[string]bool{}}
}

// workID distinguishes works of one name whose folder was replaced by another one.
func (w *world) workID(forWhom Purpose) string {
	folder, _, _ := DispatchActionOf(forWhom)
	return fmt.Sprint(forWhom, " since ", w.team.Dispatches[folder].State.Began.UnixNano())
}

// started checks a process when it starts for a folder.
func (b *folderRecord) started(w *world, action Action) {
	s, a := action.Session, w.team.Agents[action.Agent]
	folder, work, _ := DispatchActionOf(s.For)
	if other := b.begun[w.workID(s.For)]; other != "" {
		w.t.Fatalf("%s begins for %s, for which %s began before", s.ID, s.For, other)
	}
	b.begun[w.workID(s.For)] = s.ID
	over := w.ledger.over(w, a.Name)
	if due, ok := w.team.Dispatches[folder].due(work.Key()); !ok || due.Agent != a.Name || w.team.Hold.On || w.team.Stopping || a.Removed ||
		a.Settings.Policy.Foreign || over != "" {
		w.t.Fatalf("%s is started for %s: due %v for %q, hold %v, stopping %v, removed %v, foreign %v, over %q", s.ID, s.For, ok, due.Agent,
			w.team.Hold.On, w.team.Stopping, a.Removed, a.Settings.Policy.Foreign, over)
	}
}

// check checks the invariants after every event.
func (b *folderRecord) check(w *world) {
	if b == nil {
		return
	}
	for name, f := range w.team.Dispatches {
		d := b.disks[name]
		at := slices.IndexFunc(d.lines, func(l DispatchEntry) bool { return l.End == f.Read })
		if !f.State.Began.Equal(d.is.Began) {
			continue // it was replaced and not read since
		}
		same := func(line DispatchEntry) bool {
			return string(w.encode(change.As[dispatch.Body](line.Change.Body).Now)) == string(w.encode(f.State.Now))
		}
		if at < 0 || !same(d.lines[at]) || f.Path != d.path {
			w.t.Fatalf("%s was read to byte %d, but the team has %s of %s", name, f.Read, w.encode(f.State.Now), f.Path)
		}
		for key, end := range f.Ends {
			if work, ok := dispatch.ActionOf(key); !ok || !f.State.Wanted(work) || end.Outcome == control.Withdrawn {
				w.t.Fatalf("a result of %[2]s is pending for %[1]s, which does not wait for it: %+[3]v", name, key, end)
			}
		}
		keys := map[string]bool{}
		for _, action := range w.team.DispatchActions(name, w.at) {
			if keys[action.Key] || f.Gone || f.State.Host != dispatch.Fairlead || action.Folder != name {
				w.t.Fatalf("an action of a folder: %+v, removed %v", action, f.Gone)
			}
			keys[action.Key] = true
		}
		for _, work := range f.State.Due() {
			b.waits(w, f, work)
		}
	}
	b.slots(w)
}

// waits checks that due work is done, is a pending action, or has a stated reason to wait.
func (b *folderRecord) waits(w *world, f *Dispatch, work dispatch.Action) {
	forWhom := ForDispatch(f.Name, work.Key())
	_, ended := f.Ends[work.Key()]
	a := w.team.Agents[work.Agent]
	if f.Gone || ended || w.starting || w.team.hasSessionFor(work.Agent, forWhom) || a != nil && isIn(a.Queue, forWhom) ||
		w.team.cannotServe(work.Agent, w.at) != "" {
		return
	}
	w.t.Fatalf("%s is due in %s, but %s neither works on it nor is queued: %+v", work.Key(), f.Name, work.Agent, a)
}

// slots checks that a session that works for a folder is wanted there or was asked to end, and that
// no request is queued for work that has ended.
func (b *folderRecord) slots(w *world) {
	if w.starting {
		return
	}
	for _, name := range w.team.Names() {
		a := w.team.Agents[name]
		if s := a.Session; s.servesDispatch() && s.Phase == session.Running && s.Ending == "" {
			if !w.team.wanted(s) {
				w.t.Fatalf("%s works on %s, which is no longer wanted", s.ID, s.For)
			}
		}
		for _, c := range a.Queue {
			if _, _, ok := DispatchActionOf(c.For); ok {
				if ok, why := w.team.mayServeDispatch(a, c.For, w.at); !ok {
					w.t.Fatalf("%s waits in the queue for %s: %s", name, c.For, why)
				}
				if folder, work, _ := DispatchActionOf(c.For); w.team.DispatchWaits(folder, work.Key(), w.at) == "" {
					w.t.Fatalf("%s waits without a reason", c.For)
				}
			}
		}
	}
}

// sameFolders compares the pending results for folders with those of the replayed team.
func (w *world) sameFolders(live, again *Team) {
	for name := range live.Dispatches {
		if a, b := live.DispatchActions(name, w.at), again.DispatchActions(name, w.at); !reflect.DeepEqual(a, b) {
			w.t.Fatalf("%s has other pending results in the replayed team:\n%+v\n%+v", name, a, b)
		}
	}
}

// TestFoldersGetSomewhere checks that the random tests reach all these cases, because their
// invariants prove nothing otherwise.
func TestFoldersGetSomewhere(t *testing.T) {
	sum := map[string]int{}
	for seed := range uint64(40) {
		w := newWorldOfFolders(t, seed)
		w.rnd = rand.New(rand.NewPCG(seed, 9))
		for range 200 {
			w.foldersHappen(w.rnd.Uint64())
		}
		for _, ch := range w.changes {
			switch set := change.As[DispatchSet](ch.Body); {
			case set == nil:
				if change.As[Session](ch.Body).servesDispatch() {
					sum["work "+ch.Trigger]++
				}
			case set.End != nil:
				sum["ended "+string(set.End.Outcome)]++
			case set.Anew, set.Gone:
				sum[fmt.Sprint("anew ", set.Anew, ", gone ", set.Gone)]++
			default:
				sum[ch.Row+" "+ch.Trigger]++
			}
		}
		for key := range w.folders.delivered {
			if key != "" {
				sum["told"]++
			}
		}
	}
	for _, what := range []string{
		"D1 started", "D1 started_queue", "D2 input", "D2 input_waits", "D3 delegated", "D4 task_over", "D5 help_asked", "D5 round_over",
		"D5 task_over_asker",
		"D6 message_taken", "D6 message_done", "D7 responded", "D7 round_over", "D8 call_denied", "D9 file_written", "D10 end_asked",
		"D11 interrupted",
		"work opened", "work started", "work adopted", "work end_asked", "work ended", "work lost", "work withdrawn",
		"ended ok", "ended failed", "ended lost", "ended cancelled", "ended cannot_start", "anew true, gone false", "anew false, gone true",
		"told",
	} {
		if sum[what] == 0 {
			t.Errorf("none of forty worlds reached %q", what)
		}
	}
	t.Logf("%v", sum)
}
