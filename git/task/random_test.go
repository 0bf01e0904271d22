package task

import (
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

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// Random orders of everything that agents, people and machines do to tasks of one repository. A ledger has every
// line that an agent or a person wrote. After each event:
//
//   - every line is in the base branch, in a task's folder, under a hidden ref, or in the person's checkout;
//   - the base has one commit for each task at most, and no line of a task that was not shown;
//   - after a landing the checks pass on the base, which has moved forward;
//   - no step has changed a file of the person that was not committed.

// give gives one more task.
func (p *play) give() {
	if p.tip() == "" {
		return
	}
	place, err := Place(p.Context(), p.repo, "main")
	if err != nil {
		p.Fatal(err)
	}
	t := &tasked{Task: place, state: "working"}
	t.ID = fmt.Sprintf("T%d", len(p.tasks)+1)
	t.Text, t.How, t.Branch = "Do "+t.ID, one(p, Squash, Merge, Rebase), "fairlead/"+t.ID
	t.Run, t.Tree, t.Checks = filepath.Join(p.dir, "run-"+t.ID), filepath.Join(p.dir, "tree-"+t.ID), []string{checkLine}
	if err := os.Mkdir(t.Run, 0o755); err != nil {
		p.Fatal(err)
	}
	p.tasks = append(p.tasks, t)
	if o := p.step(t, "make"); o.Kind != "" {
		if _, err := os.Lstat(t.Tree); err == nil && o.Kind != "killed" {
			p.wrong("no task %s was made, and its folder is there", t.ID)
		}
		if _, err := t.Remove(p.Context()); err != nil {
			p.wrong("what a killed daemon left of %s cannot be dropped: %v", t.ID, err)
		}
		t.state = "gone"
	}
}

// agent does something in the folder of a task.
func (p *play) agent(t *tasked) {
	what := one(p, "write", "write", "write", "new", "new", "commit", "commit", "break", "pair", "stash", "branch", "force", "lock",
		"person", "update")
	p.note("%s: the agent: %s", t.ID, what)
	mine := line{task: t.ID}
	switch what {
	case "write":
		p.write(t.Tree, "f"+strconv.Itoa(p.rnd.IntN(sharedFiles)), mine)
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
	what := one(p, "edit", "edit", "commit", "commit", "clean", "clean", "untracked", "ignored", "away", "back", "back", "rewind", "amend",
		"revert", "delete", "lock", "gc")
	p.note("the person: %s", what)
	head, _ := p.try(p.repo, "symbolic-ref", "--quiet", "--short", "HEAD")
	switch what {
	case "edit":
		p.write(p.repo, "f"+strconv.Itoa(p.rnd.IntN(sharedFiles)), line{person: true})
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
	if p.rnd.IntN(3) > 0 {
		t.state = "stuck" // until the end, when it is dropped
	}
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
	var open, shown []*tasked
	for _, t := range p.tasks {
		switch t.state {
		case "working":
			open = append(open, t)
		case "shown":
			open, shown = append(open, t), append(shown, t)
		case "landing": // its step was killed, and is to be done again
			open = append(open, t)
		}
	}
	n := p.rnd.IntN(100)
	switch {
	case len(open) < 2 || n < 4:
		p.give()
	case n < 30:
		p.agent(one(p, open...))
		return
	case n < 48:
		p.person()
	case n < 50:
		p.destroy(one(p, open...))
	case n < 55:
		p.step(one(p, open...), "snapshot")
	case n < 58 && len(shown) > 1:
		p.landAll(shown)
	case n < 60:
		p.drop(one(p, p.tasks...))
	default:
		p.on(one(p, open...))
	}
	p.audit()
}

// on does the next step of a task's workflow.
func (p *play) on(t *tasked) {
	if t.state == "shown" || t.state == "landing" {
		if t.state == "shown" && p.rnd.IntN(5) == 0 {
			p.note("%s: changes are requested", t.ID)
			t.state = "working"
			return
		}
		p.landed(t, p.step(t, StepLand))
		return
	}
	switch o := p.step(t, "check"); o.Kind {
	case "failed":
		p.rename(t)
	case "":
		if o := p.step(t, "show"); o.Kind == "" {
			t.state, t.Asked = "shown", o.Asked
		}
	}
}

func (p *play) landed(t *tasked, o outcome) {
	switch o.Kind {
	case "":
		t.state = "done"
	case "killed":
		t.state = "landing"
	case "again":
		t.state = "working"
	case "conflict":
		t.state = "working"
		p.resolve(t)
	case "failed":
		t.state = "working"
		p.resolve(t)
		p.rename(t)
	}
}

// landAll lands several tasks at once.
func (p *play) landAll(all []*tasked) {
	files, _ := p.loose()
	got := make([]outcome, len(all))
	var wg sync.WaitGroup
	for i, t := range all {
		wg.Go(func() { got[i] = doStep(p.Context(), t.Task, StepLand) })
	}
	wg.Wait()
	for i, t := range all {
		p.note("%s land beside others: %s %s %s", t.ID, got[i].Kind, got[i].Err, got[i].Commit)
		p.landed(t, got[i])
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

func (p *play) drop(t *tasked) {
	if o := p.step(t, "remove"); o.Kind == "" {
		if _, err := os.Lstat(t.Tree); err == nil {
			p.wrong("%s is removed and still there", t.ID)
		}
		t.state = "gone"
	} else if o.Kind == "killed" && t.state != "done" && t.state != "landing" {
		t.state = "working"
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
			if out, err := p.try(p.repo, "fsck", "--no-dangling", "--no-progress"); err != nil {
				t.Errorf("the person's repository is damaged: %v\n%s", err, out)
			}
		})
	}
}
