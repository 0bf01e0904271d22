package task

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// Random orders of everything that agents, people and machines do to tasks of one repository. The machine of each task (core/task) decides
// what is done, and git does it, as in work/runs. A ledger has every line that an agent or a person wrote. After each event:
//
//   - every line is in the base branch, in a task's folder, under a hidden ref, or in the person's checkout;
//   - the base has one landing for each approval of a task at most, and brings no line that was not shown with it;
//   - no line has left the base, but those of a task whose landing was taken back;
//   - after a landing or an undo the checks pass on the base, which has moved forward or back in one history;
//   - the result of a job, and the answer to a question, count once;
//   - no step has changed a file of the person that was not committed.

// give gives one more task. of is the one whose landing it reverts with a commit; nil: none.
func (p *play) give(of *tasked, revert string) {
	if p.tip() == "" {
		return
	}
	place, err := Place(p.Context(), p.repo, "main")
	if err != nil {
		p.Fatal(err)
	}
	t := &tasked{Task: place, undoes: of}
	t.ID = fmt.Sprintf("T%d", len(p.tasks)+1)
	t.Text, t.How, t.Branch = "Do "+t.ID, one(p, Squash, Merge, Rebase), "fairlead/"+t.ID
	t.Run, t.Tree, t.Checks = filepath.Join(p.dir, "run-"+t.ID), filepath.Join(p.dir, "tree-"+t.ID), []string{checkLine}
	if err := os.Mkdir(t.Run, 0o755); err != nil {
		p.Fatal(err)
	}
	p.tasks = append(p.tasks, t)
	makes := "make"
	if of != nil {
		makes, t.How, t.commit = "revert "+revert, of.How, of.life.Landed
	}
	if o := p.step(t, makes); o.Kind != "" {
		if _, err := os.Lstat(t.Tree); err == nil && o.Kind != "killed" {
			p.wrong("no task %s was made, and its folder is there", t.ID)
		}
		if _, err := t.Remove(p.Context()); err != nil {
			p.wrong("what a killed daemon left of %s cannot be dropped: %v", t.ID, err)
		}
		t.gone = true
		return
	}
	p.must(t, state.Begin{Plan: state.Plan{Made: of != nil, Reviewer: p.rnd.IntN(4) == 0, RoundsMax: 3}})
}

// agent does something in the folder of a task.
func (p *play) agent(t *tasked) {
	what := one(p, "write", "write", "same", "same", "new", "new", "commit", "commit", "break", "pair", "stash", "branch", "force", "lock",
		"person", "update")
	p.note("%s: the agent: %s", t.ID, what)
	mine := line{task: t.ID}
	switch what {
	case "write":
		p.write(t.Tree, "f"+strconv.Itoa(p.rnd.IntN(sharedFiles)), mine)
	case "same":
		p.change(t.Tree, "f0", mine)
	case "new":
		p.write(t.Tree, one(p, t.ID, "dir/"+t.ID, "new\nline "+t.ID, "bad\xff"+t.ID, "-n", "untracked"), mine)
	case "force":
		p.write(t.Tree, "ignored", mine)
		p.unlock(t) // a file that is not added stays ignored, and is not kept
		_, _ = p.try(t.Tree, "add", "--force", "ignored")
		if p.rnd.IntN(2) == 0 {
			p.commit(t)
		}
	case "commit":
		p.commit(t)
	case "break":
		p.write(t.Tree, "broken", mine)
	case "pair":
		p.write(t.Tree, "x"+one(p, "0", "1")+one(p, "-a", "-b"), mine)
	case "stash":
		_, _ = p.try(t.Tree, "stash", "push", "--quiet", "--include-untracked")
	case "branch":
		p.commit(t)
		_, _ = p.try(t.Tree, "checkout", "--quiet", "-b", "b"+strconv.Itoa(len(p.trace)), one(p, "HEAD", "HEAD~1", "origin/main"))
	case "lock": // a git of the agent that was killed
		if _, err := os.Stat(filepath.Join(t.Tree, ".git")); err == nil {
			p.put(filepath.Join(t.Tree, ".git/index.lock"), "")
		}
	case "person":
		p.write(t.Tree, "f"+strconv.Itoa(p.rnd.IntN(sharedFiles)), line{task: t.ID, person: true})
	case "update":
		p.resolve(t)
	}
}

func (p *play) unlock(t *tasked) { _ = os.Remove(filepath.Join(t.Tree, ".git/index.lock")) }

func (p *play) commit(t *tasked) {
	p.unlock(t)
	_, _ = p.try(t.Tree, "add", "--all")
	_, _ = p.try(t.Tree, "commit", "--quiet", "-m", "work")
}

// resolve brings the base into the folder, unless Fairlead has. Where lines conflict, both stay.
func (p *play) resolve(t *tasked) {
	if _, err := os.Lstat(filepath.Join(t.Tree, ".git", mergeHead)); err != nil {
		p.commit(t)
		if _, err := p.try(t.Tree, "fetch", "--quiet", "origin", "main"); err != nil {
			return
		}
		_, _ = p.try(t.Tree, "merge", "--quiet", "FETCH_HEAD")
	}
	names, _ := p.try(t.Tree, "diff", "--name-only", "-z", "--diff-filter=U")
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(t.Tree, name))
		if err != nil {
			continue
		}
		rows := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(row string) bool {
			return strings.HasPrefix(row, "<<<<<<<") || strings.HasPrefix(row, "=======") || strings.HasPrefix(row, ">>>>>>>")
		})
		p.put(filepath.Join(t.Tree, name), strings.Join(rows, ""))
	}
	p.commit(t)
}

// rename renames what the checks object to.
func (p *play) rename(t *tasked) {
	for _, name := range []string{"broken", "x0-a", "x1-b"} {
		_ = os.Rename(filepath.Join(t.Tree, name), filepath.Join(t.Tree, fmt.Sprintf("was-%s-%s-%d", name, t.ID, len(p.trace))))
	}
}

// clean commits what the person has.
func (p *play) clean() {
	_ = os.Remove(filepath.Join(p.repo, ".git/index.lock"))
	if _, tracked := p.loose(); tracked {
		p.git("commit", "--quiet", "--all", "-m", "the person's")
	}
}

// person does something in the checkout.
func (p *play) person() {
	what := one(p, "edit", "same", "commit", "commit", "clean", "clean", "untracked", "ignored", "away", "back", "back", "rewind", "amend",
		"revert", "delete", "lock", "gc")
	if p.tip() == "" && p.rnd.IntN(3) > 0 {
		what = "back"
	}
	p.note("the person: %s", what)
	head, _ := p.try(p.repo, "symbolic-ref", "--quiet", "--short", "HEAD")
	switch what {
	case "edit":
		p.write(p.repo, "f"+strconv.Itoa(p.rnd.IntN(sharedFiles)), line{person: true})
	case "same":
		p.change(p.repo, "f0", line{person: true})
	case "commit":
		p.write(p.repo, "f"+strconv.Itoa(p.rnd.IntN(sharedFiles)), line{person: true})
		p.clean()
	case "clean":
		p.clean()
	case "untracked":
		p.write(p.repo, one(p, "untracked", "T"+strconv.Itoa(1+p.rnd.IntN(4))), line{person: true})
	case "ignored":
		p.write(p.repo, "ignored", line{person: true})
	case "away":
		if p.tip() != "" && head == "main" {
			p.clean()
			p.git("checkout", "--quiet", "-b", "aside/"+strconv.Itoa(len(p.trace)))
		}
	case "back":
		if p.tip() == "" {
			p.git("branch", "main", one(p, strings.Fields(p.git("for-each-ref", "--format=%(refname)", "refs/heads/backup"))...))
		}
		p.clean()
		if head == "" { // commits on no branch are the person's own to keep
			p.git("branch", "backup/"+strconv.Itoa(len(p.trace)), "HEAD")
		}
		_, _ = p.try(p.repo, "checkout", "--quiet", "--no-overwrite-ignore", "main") // a file that is not committed may be in the way
	case "rewind": // another program does it, by force
		p.clean()
		p.backup()
		if head == "main" {
			_, _ = p.try(p.repo, "reset", "--keep", "--quiet", "main~1")
		} else if p.tip() != "" {
			_, _ = p.try(p.repo, "branch", "--force", "main", "main~1")
		}
	case "amend":
		if head == "main" {
			p.clean()
			p.git("commit", "--amend", "--quiet", "--allow-empty", "-m", p.git("log", "-1", "--format=%B")+"\nPerson: amended")
		}
	case "revert":
		if head == "main" && p.git("log", "-1", "--format=%P") != "" && !strings.Contains(p.git("log", "-1", "--format=%P"), " ") {
			p.clean()
			if strings.Contains(p.git("log", "-1", "--format=%B"), "Task: ") {
				p.git("revert", "--no-edit", "HEAD")
			}
		}
	case "delete":
		if head == "main" && p.rnd.IntN(2) == 0 {
			p.clean()
			p.backup()
			p.git("checkout", "--quiet", "--detach")
			p.git("branch", "--quiet", "-D", "main")
		}
	case "lock":
		if _, err := os.Stat(filepath.Join(p.repo, ".git/index.lock")); err != nil {
			p.put(filepath.Join(p.repo, ".git/index.lock"), "")
		}
	case "gc":
		if p.rnd.IntN(4) == 0 {
			_, _ = p.try(p.repo, "gc", "--quiet", "--prune=now")
		}
	}
}

func (p *play) backup() {
	if p.tip() != "" {
		p.git("branch", "backup/"+strconv.Itoa(len(p.trace)), "main")
	}
}

// destroy is what a person or a disk does to the folder of a task.
func (p *play) destroy(t *tasked) {
	what := one(p, "folder", "HEAD", "refs", "objects", "config", "alternates", "git")
	p.note("%s: destroyed by hand: %s", t.ID, what)
	p.excuse(t)
	t.stuck = p.rnd.IntN(3) > 0
	git := filepath.Join(t.Tree, ".git")
	for w, l := range filesOf(p, t) {
		if what != "folder" {
			p.ledger[w] = l // its files are still there
		}
	}
	switch what {
	case "folder":
		_ = os.RemoveAll(t.Tree)
	case "git":
		_ = os.RemoveAll(git)
	case "HEAD", "config":
		_ = os.WriteFile(filepath.Join(git, what), []byte("nonsense\x00"), 0o600)
	case "alternates":
		_ = os.Remove(filepath.Join(git, "objects/info/alternates"))
	default:
		_ = os.RemoveAll(filepath.Join(git, what))
	}
}

// filesOf are the lines in the files of a task's folder.
func filesOf(p *play, t *tasked) map[string]line {
	found, lines := map[string]bool{}, map[string]line{}
	words(t.Tree, found)
	for w := range found {
		n, _ := strconv.Atoi(strings.Trim(w, "L."))
		if l := p.wrote[n]; l.task == t.ID {
			lines[w] = l
		}
	}
	return lines
}

// next lets something happen.
func (p *play) next() {
	var open, asked, done, dropped []*tasked
	for _, t := range p.tasks {
		switch {
		case t.gone, t.stuck:
		case t.life.Status == state.Done:
			done = append(done, t)
		case t.life.Status == state.Dropped:
			dropped = append(dropped, t)
		default:
			if open = append(open, t); t.life.Job == state.Approve || t.life.Job == state.Land {
				asked = append(asked, t)
			}
		}
	}
	n := p.rnd.IntN(100)
	switch {
	case len(open) < 2 || n < 4:
		p.give(nil, "")
	case n < 16:
		if t := one(p, open...); t.life.Job != state.Prepare { // its agent has begun
			p.agent(t)
		}
		return
	case n < 30:
		p.person()
	case n < 32:
		p.destroy(one(p, open...))
	case n < 34:
		p.step(one(p, open...), "snapshot")
	case n < 40 && len(asked) > 1:
		p.landAll(asked)
	case n < 42:
		p.drop(one(p, p.tasks...))
	case n < 44 && len(dropped) > 0:
		p.restore(one(p, dropped...))
	case n < 56 && len(done) > 0:
		p.undo(one(p, done...))
	default:
		for t := one(p, open...); p.job(t) && !t.over() && p.rnd.IntN(4) > 0 && !p.lost; {
			p.audit()
		}
	}
	p.audit()
}

// tell gives an input to a task's machine. What it keeps is read again from its text, as a daemon does that has just started.
func (p *play) tell(t *tasked, in state.Input) error {
	p.clock = p.clock.Add(time.Second)
	was := t.life
	changes, err := t.life.Decide(t.ID, p.clock, change.Actor{Kind: "human", ID: "ann"}, in)
	if err != nil {
		return err
	}
	for _, ch := range changes {
		t.life.Apply(ch)
	}
	text, err := json.Marshal(t.life)
	if t.life = (state.Task{}); err == nil {
		err = json.Unmarshal(text, &t.life)
	}
	if err != nil {
		p.Fatal(err)
	}
	p.note("%s is %s, job %d %s: %T", t.ID, t.life.Status, t.life.N, t.life.Job, in)
	if was.Status != state.Done && t.life.Status == state.Done && t.life.Landed != "" {
		t.landed++
		p.count["landings"]++
	}
	return nil
}

func (p *play) must(t *tasked, in state.Input) {
	p.Helper()
	if err := p.tell(t, in); err != nil {
		p.wrong("%v", err)
	}
}

// job does the job of a task, or what a person does for it if it has none. It reports whether more may follow at once.
func (p *play) job(t *tasked) (more bool) {
	k := t.life
	t.Asked = k.Shown.Asked
	switch k.Job {
	case state.Nothing:
		return p.help(t)
	case state.Work:
		for range 1 + p.rnd.IntN(3) {
			p.agent(t)
		}
		p.must(t, state.JobEnded{N: k.N, Outcome: state.OK})
		return true
	case state.Reviews:
		p.must(t, state.JobEnded{N: k.N, Outcome: one(p, state.OK, state.OK, state.Back), Why: "the reviewer says so"})
		return true
	case state.Approve:
		return p.answer(t)
	}
	o := p.step(t, map[state.Job]string{
		state.Prepare: "prepare", state.Checks: "check", state.Show: "show", state.Land: StepLand + " elsewhere", state.Merged: StepMerged,
	}[k.Job])
	if o.Kind == "killed" {
		p.count["kills"]++
		return false // the next daemon does it again
	}
	p.ended(t, o)
	return o.Kind == ""
}

// ended gives the result of a step to the task's machine, as work/runs does, and lets the agent work if it is sent back.
func (p *play) ended(t *tasked, o outcome) {
	p.Helper()
	k := t.life
	in := state.JobEnded{N: k.N, Outcome: state.OK, Why: cmp.Or(o.Asks, o.Err), Shown: o.Shown, Landed: o.Commit, Failure: o.Failure}
	switch {
	case o.Kind == "":
	case k.Job == state.Land && o.Kind == "unchecked":
		in.Outcome = state.Recheck
	case k.Job == state.Land && o.Asks != "":
		in.Outcome = state.Again
	case k.Job == state.Land:
		in.Outcome = state.Room
	case o.Kind == "failed":
		in.Outcome = state.Back
	default:
		in.Outcome = state.Fails
	}
	p.must(t, in)
	was := t.life
	if p.must(t, in); t.life.N != was.N || t.life.Status != was.Status { // the report of a process that was late
		p.wrong("the result of job %d of %s counts twice", in.N, t.ID)
	}
	if k.Job == state.Checks && o.Kind == "failed" {
		p.rename(t)
		p.resolve(t)
	}
	if of := t.undoes; of != nil && k.Job == state.Land && t.life.Landed != "" && of.life.Status == state.Done && of.life.Landed == t.commit {
		of.Asked = of.life.Shown.Asked
		if p.step(of, "reverted "+t.commit).Kind == "" { // otherwise a person takes it back once more
			p.must(of, state.Undo{Why: "its landing was taken back by " + t.ID})
			p.count["reverts"]++
		}
	}
}

// answer is a person's answer about what is shown.
func (p *play) answer(t *tasked) (more bool) {
	k := t.life
	t.Asked = k.Shown.Asked
	if was := t.life; p.rnd.IntN(8) == 0 {
		if p.must(t, state.Answer{N: k.N - 1, By: "human/ann"}); t.life.Status != was.Status {
			p.wrong("the answer to an earlier question of %s counts", t.ID)
		}
		if err := p.tell(t, state.Try{}); err == nil {
			p.wrong("%s is to land, and its question is open", t.ID)
		}
	}
	unlanded := k.Failure.Kind == state.FailedConflict || k.Failure.Kind == state.FailedChecks
	if p.rnd.IntN(5) > 0 != unlanded {
		p.must(t, state.Answer{N: k.N, By: "human/ann"})
		return true
	}
	if unlanded {
		if o := p.step(t, "sendback "+k.Failure.Kind); o.Kind != "" {
			return false // nothing was sent
		}
	}
	p.must(t, state.Answer{N: k.N, By: "human/ann", Sent: true, Why: "no"})
	if unlanded {
		p.resolve(t)
		p.rename(t)
	}
	return true
}

// help is what a person does for a task that has no job.
func (p *play) help(t *tasked) (more bool) {
	if t.life.Status == state.NeedsYou {
		if p.rnd.IntN(2) == 0 && p.tip() != "" {
			p.clean()
		}
		p.must(t, one[state.Input](p, state.Try{}, state.Try{}, state.Try{}, state.Resume{Job: state.Show}))
	} else if p.rnd.IntN(4) > 0 {
		p.must(t, state.Resume{})
	} else {
		p.drop(t)
	}
	return true
}

// undo takes a landing back, as work/runs does.
func (p *play) undo(t *tasked) {
	if t.life.Landed == "" || p.tip() == "" {
		return
	}
	for _, other := range p.tasks {
		if other.life.Status == state.Landing || other.undoes == t && other.commit == t.life.Landed && !other.over() {
			return
		}
	}
	t.Asked = t.life.Shown.Asked
	switch o := p.step(t, "undo "+t.life.Landed); {
	case o.Kind != "": // the same order finishes it
	case o.Back.Revert != "":
		p.give(t, o.Back.Revert)
	default:
		p.must(t, state.Undo{Why: "its landing was taken back"})
		p.count["undos"]++
	}
}

// landAll lands several tasks at once.
func (p *play) landAll(all []*tasked) {
	files, _ := p.loose()
	for _, t := range all {
		if t.life.Job == state.Approve {
			p.must(t, state.Answer{N: t.life.N, By: "human/ann"})
		}
		t.Asked = t.life.Shown.Asked
	}
	got := make([]outcome, len(all))
	var wg sync.WaitGroup
	for i, t := range all {
		wg.Go(func() { got[i] = doStep(p.Context(), t.Task, StepLand+" elsewhere") })
	}
	wg.Wait()
	for i, t := range all {
		p.note("%s land beside others: %s %s %s", t.ID, got[i].Kind, got[i].Err, got[i].Commit)
		p.ended(t, got[i])
	}
	for name, text := range files {
		if now, _ := os.ReadFile(filepath.Join(p.repo, name)); string(now) != text {
			p.wrong("the person's file %q was %q and is %q", name, text, now)
		}
	}
	if tip := p.tip(); tip != "" {
		p.green(tip)
	}
}

// drop ends a task, and removes its folder.
func (p *play) drop(t *tasked) {
	if !t.gone && t.life.Status != state.Done {
		p.must(t, state.Drop{Why: "no"})
	}
	if o := p.step(t, "remove"); o.Kind == "" {
		if _, err := os.Lstat(t.Tree); err == nil {
			p.wrong("%s is removed and still there", t.ID)
		}
	}
}

// restore brings a task back that was dropped.
func (p *play) restore(t *tasked) {
	if o := p.step(t, "restore"); o.Kind == "" {
		p.must(t, state.Resume{})
		p.count["restores"]++
	}
}

// TestRandomOrders plays one order, and .ci/run days six longer ones. FAIRLEAD_LONG=1 plays new ones, and begins none after half of
// the time that -timeout gives: it ends with a result, on a slow machine with that of fewer orders.
func TestRandomOrders(t *testing.T) {
	t.Parallel()
	first, seeds, events := uint64(1), testsize.Pick(1, 6, 400), testsize.Pick(25, 80, 200)
	mayBegin := func() bool { return true }
	if testsize.Long() {
		began := time.Now()
		first = uint64(began.UnixNano())
		if until, limited := t.Deadline(); limited {
			last := began.Add(until.Sub(began) / 2)
			mayBegin = func() bool { return time.Now().Before(last) }
		}
	}
	var played, done atomic.Int64
	t.Cleanup(func() { t.Logf("%d orders with %d events were played", played.Load(), done.Load()) })
	if s := os.Getenv("FAIRLEAD_TASK_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, seeds = n, 1
	}
	for seed := first; seed < first+uint64(seeds); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			if !mayBegin() {
				t.SkipNow()
			}
			played.Add(1)
			p := newPlay(t, seed)
			for range events {
				done.Add(1)
				if p.next(); p.lost {
					return
				}
			}
			p.note("the end")
			for _, one := range p.tasks {
				p.drop(one)
			}
			p.audit()
			t.Logf("%d tasks: %v", len(p.tasks), p.count)
			if out, err := p.try(p.repo, "fsck", "--no-dangling", "--no-progress"); err != nil {
				t.Errorf("the person's repository is damaged: %v\n%s", err, out)
			}
		})
	}
}
