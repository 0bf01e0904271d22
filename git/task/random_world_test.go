package task

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	state "github.com/fairlead-dev/fairlead/core/task"
)

// stepOfChild names, in the environment of a process of this test, the step that it does and dies in.
const stepOfChild = "FAIRLEAD_TASK_TEST_STEP"

// outcome is the result of a step.
type outcome struct {
	Landed
	Shown   state.Shown // by the step show
	Back    TookBack    // by the step undo
	Failure Failure     // of the steps land and merged
	Asks    string      // why a landing asks again
	Kind    string      // "", "conflict", "failed", "again", "blocked", "unchecked", "error" or "killed"
	Err     string
}

// doStep does a step. A second word of its name is what it is given: a commit, or elsewhere for a landing that runs no checks.
func doStep(ctx context.Context, t Task, name string) (o outcome) {
	var err error
	name, given, _ := strings.Cut(name, " ")
	switch name {
	case "make":
		err = t.Make(ctx)
	case "revert":
		err = t.MakeRevert(ctx, given)
	case "prepare":
		err = t.Prepare(ctx, io.Discard)
	case "snapshot":
		_, err = t.Snapshot(ctx)
	case "check":
		err = t.Check(ctx, io.Discard)
	case "show":
		var s Shown
		s, err = t.Show(ctx, t.Run)
		o.Shown = state.Shown{Asked: s.Asked, Files: s.Files, Round: s.Round}
	case StepLand:
		if given == "" {
			o.Landed, err = lands(ctx, t, io.Discard)
		} else if o.Landed, err = t.Land(ctx); err == nil && !o.Later {
			_, _ = t.RemoveLanded(ctx) // what stays is looked for
		}
	case StepMerged:
		err = t.CheckMerged(ctx, io.Discard)
	case "sendback":
		_, err = t.SendBack(ctx, Failure{Kind: given})
	case "undo":
		if o.Back, err = t.TakeBack(ctx, given); err == nil && o.Back.Revert == "" {
			err = t.Reopen(ctx)
		}
	case "reverted":
		err = cmp.Or(t.NoteTakenBack(ctx, given), t.Reopen(ctx))
	case "restore":
		if t.There() != nil {
			_, err = t.Restore(ctx, 0)
		}
	case "remove":
		_, err = t.Remove(ctx)
	case "checkout":
		_, err = t.CheckOut(ctx, "", "")
	case "done":
		_, _, err = t.TakeByHand(ctx)
	default:
		panic(name)
	}
	if err == nil {
		return o
	}
	o.Err, o.Kind, o.Failure, o.Asks = err.Error(), "error", FailureOf(err), AsksAgain(err, t.Base)
	switch {
	case errors.As(err, new(*Unchecked)):
		o.Kind = "unchecked"
	case errors.As(err, new(*Conflict)):
		o.Kind = "conflict"
	case errors.As(err, new(*CheckFailed)):
		o.Kind = "failed"
	case errors.As(err, new(*Again)):
		o.Kind = "again"
	case errors.As(err, new(*Blocked)):
		o.Kind = "blocked"
	}
	return o
}

// child does one step in a process that a test has started, to be killed or to run against a limit.
func child() {
	name, file := os.Getenv(stepOfChild), os.Getenv(File)
	if name == "" {
		return
	}
	if os.Getenv("FAIRLEAD_TASK_TEST_FULL") != "" {
		signal.Ignore(syscall.SIGXFSZ) // git inherits it: its writes fail, as on a full disk
		limit := syscall.Rlimit{Cur: 40, Max: 40}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			panic(err)
		}
	}
	if global := os.Getenv("FAIRLEAD_TASK_TEST_GLOBAL"); global != "" {
		if err := os.Setenv("GIT_CONFIG_GLOBAL", global); err != nil {
			panic(err)
		}
	}
	t, err := Load(file)
	if err != nil {
		panic(err)
	}
	t.Asked = ParseAsked(os.Getenv(AskedEnv))
	if err := json.NewEncoder(os.Stdout).Encode(doStep(context.Background(), t, name)); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// killer is a git that kills the process that called it, at its call number AT or at the call that has the word
// AT: before it does something, after that, amid, or when the branch that is locked then has moved. In a view it is git: no
// process of outside can be killed from there.
const killer = `#!/bin/sh
[ -n "$COUNT" ] || exec %[1]s "$@"
echo >> "$COUNT"
case " $(wc -l < "$COUNT") $* " in *" $AT "*) ;; *) exec %[1]s "$@" ;; esac
case $HOW in
before) kill -9 $PPID; exit 1 ;;
after) %[1]s "$@"; kill -9 $PPID; exit 1 ;;
moved) mv -f "$GIT_DIR/refs/heads/main.lock" "$GIT_DIR/refs/heads/main"; kill -9 $PPID; exit 1 ;;
esac
exec 3<&0
%[1]s "$@" <&3 &
sleep 0.00$HOW
kill -9 $PPID
kill -9 0
`

// line is a line of the ledger.
type line struct {
	person bool
	task   string // whose folder it was written in; empty: the person's checkout
}

type tasked struct {
	Task
	life   state.Task
	landed int     // how often an approval of it has landed
	undoes *tasked // whose landing it reverts; nil: none
	commit string  // of that landing
	gone   bool    // it was not made
	stuck  bool    // its folder was destroyed by hand, so it is only dropped
}

// over reports whether nothing of it goes on by itself.
func (t *tasked) over() bool {
	return t.gone || t.stuck || t.life.Status == state.Done || t.life.Status == state.Dropped
}

// mayRemove reports whether its landing, or that of its landing, removes a line of a task from the base.
func (t *tasked) mayRemove(id string) bool {
	return t.undoes != nil && (t.undoes.ID == id || t.undoes.mayRemove(id))
}

type play struct {
	*testing.T
	rnd    *rand.Rand
	dir    string
	repo   string
	bin    string // with the git that kills
	tasks  []*tasked
	ledger map[string]line
	wrote  map[int]line // all lines, also those that a person has destroyed
	trace  []string
	number int
	disk   bool // dir is a small disk of its own
	lost   bool // something was found to be wrong
	clock  time.Time
	count  map[string]int // what has happened how often
}

var token = regexp.MustCompile(`L[0-9]+\.`)

const (
	sharedFiles = 3
	checkLine   = `test ! -e broken && for i in 0 1; do test ! -e x$i-a || test ! -e x$i-b || exit 1; done`
	diskBytes   = 48 << 20
)

func (p *play) note(format string, args ...any) {
	p.trace = append(p.trace, fmt.Sprintf(format, args...))
}

func (p *play) wrong(format string, args ...any) {
	p.Helper()
	p.lost = true
	p.Errorf(format, args...)
}

// try runs git as an agent or a person does.
func (p *play) try(dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(p.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE=", "LC_ALL=C", "GIT_EDITOR=true", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	out, err := cmd.Output()
	return strings.TrimSuffix(string(out), "\n"), err
}

// git is try for a person, whose repository is never broken.
func (p *play) git(args ...string) string {
	p.Helper()
	out, err := p.try(p.repo, args...)
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		p.Fatalf("git %v: %v", args, err)
	}
	return out
}

func newPlay(t *testing.T, seed uint64) *play {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &play{
		T: t, rnd: rand.New(rand.NewPCG(seed, 0)), dir: dir, repo: filepath.Join(dir, "repo"), bin: filepath.Join(dir, "bin"),
		ledger: map[string]line{}, wrote: map[int]line{}, clock: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), count: map[string]int{},
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+strconv.Itoa(diskBytes)); err == nil { // only root may
		p.disk = true
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"bin/git": fmt.Sprintf(killer, real), "repo/.gitignore": "ignored*\n", "repo/f0": "top\n",
		"repo/f1": "top\n", "repo/f2": "top\n",
	} {
		p.put(filepath.Join(dir, name), text)
	}
	if err := os.Chmod(filepath.Join(p.bin, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.git("init", "--quiet", "-b", "main")
	p.git("config", "user.name", "A Person")
	p.git("config", "user.email", "person@example.org")
	p.git("add", ".")
	p.git("commit", "--quiet", "-m", "first")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d:\n%s", seed, strings.Join(p.trace, "\n"))
		}
	})
	return p
}

func (p *play) put(path, text string) {
	p.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		p.Fatal(err)
	}
}

// one chooses one of several names.
func one[V any](p *play, of ...V) V { return of[p.rnd.IntN(len(of))] }

// write writes a new line somewhere in a file, and into the ledger.
func (p *play) write(dir, name string, l line) string {
	p.number++
	word := fmt.Sprintf("L%d.", p.number)
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Fatal(err)
	}
	rows := strings.SplitAfter(string(text), "\n")
	at := one(p, 0, len(rows)-1, p.rnd.IntN(len(rows)))
	p.put(path, strings.Join(slices.Insert(rows, at, word+"\n"), ""))
	p.ledger[word], p.wrote[p.number] = l, l
	return word
}

// change adds a new word to the first line of a file, and to the ledger.
func (p *play) change(dir, name string, l line) {
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	p.number++
	word := fmt.Sprintf("L%d.", p.number)
	p.put(path, first+" "+word+"\n"+rest)
	p.ledger[word], p.wrote[p.number] = l, l
}

// words are the lines of the ledger in files below a folder, git's own excepted.
func words(dir string, found map[string]bool) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || !e.Type().IsRegular():
			return nil //nolint:nilerr // what cannot be read has no words
		case strings.Contains(path, "/.git/"):
			return fs.SkipDir
		}
		text, _ := os.ReadFile(path)
		for _, w := range token.FindAllString(string(text), -1) {
			found[w] = true
		}
		return nil
	})
}

// inRefs are the lines in the newest content of refs.
func (p *play) inRefs(dir string, found map[string]bool, patterns ...string) {
	list, err := p.try(dir, append([]string{"for-each-ref", "--format=%(objectname) %(refname)"}, patterns...)...)
	if err != nil {
		return
	}
	var commits []string
	for row := range strings.Lines(list) {
		commits = append(commits, strings.Fields(row)[0])
	}
	if dir != p.repo {
		stashes, _ := p.try(dir, "reflog", "--format=%H", "refs/stash")
		commits = append(commits, strings.Fields(stashes)...)
	}
	if dir != p.repo || strings.Contains(list, "stash") {
		parents, _ := p.try(dir, append([]string{"log", "--no-walk=unsorted", "--format=%P"}, commits...)...)
		for of := range strings.Lines(parents) { // a stash has its untracked files in its third parent
			if f := strings.Fields(of); len(f) == 3 {
				commits = append(commits, f[2])
			}
		}
	}
	slices.Sort(commits)
	if commits = slices.Compact(commits); len(commits) == 0 {
		return
	}
	text, _ := p.try(dir, append([]string{"grep", "-h", "-o", "-a", "-E", token.String()}, commits...)...)
	for _, w := range token.FindAllString(text, -1) {
		found[w] = true
	}
}

// kept are the lines that do not depend on the folder of a task.
func (p *play) kept() (refs, here map[string]bool) {
	refs, here = map[string]bool{}, map[string]bool{}
	p.inRefs(p.repo, refs, "refs/fairlead/tasks", "refs/heads/main")
	p.inRefs(p.repo, here, "refs/heads")
	words(p.repo, here)
	return refs, here
}

// audit looks for every line of the ledger.
func (p *play) audit() {
	p.Helper()
	refs, here := p.kept()
	folders := map[string]map[string]bool{}
	inFolder := func(id, w string) bool {
		at := slices.IndexFunc(p.tasks, func(t *tasked) bool { return t.ID == id })
		if at < 0 {
			return false
		}
		found, looked := folders[id]
		if !looked {
			found = map[string]bool{}
			folders[id] = found
			words(p.tasks[at].Tree, found)
		}
		if _, err := os.Stat(p.tasks[at].Tree); err == nil && !found[w] {
			p.inRefs(p.tasks[at].Tree, found, "refs/heads")
		}
		return found[w]
	}
	for w, l := range p.ledger {
		if !refs[w] && !inFolder(l.task, w) && !(l.person && here[w]) {
			p.wrong("line %s (%+v) is lost", w, l)
			delete(p.ledger, w)
		}
	}
	// Only the first parents: when a person rewinds the base, the merge of a task that was made before brings the
	// old commits in again, beside their copies. Landing itself always adds to the line of first parents.
	text, err := p.try(p.repo, "log", "--first-parent", "--format=%(trailers:key=Task,valueonly,separator=%x2C)", "refs/heads/main", "--")
	if err != nil {
		return // it is deleted
	}
	for _, t := range p.tasks {
		most := t.landed
		if t.life.Status == state.Landing {
			most++ // its job was killed after that
		}
		if n := strings.Count(","+strings.Join(strings.Fields(text), "")+",", ","+t.ID+","); n > max(1, most) {
			p.wrong("%s has landed %d times, and %d approvals have", t.ID, n, most)
		}
	}
}

// excuse removes those lines from the ledger that only the folder of a task has, because a person destroys it.
func (p *play) excuse(t *tasked) {
	refs, here := p.kept()
	for w, l := range p.ledger {
		if l.task == t.ID && !refs[w] && !(l.person && here[w]) {
			delete(p.ledger, w)
		}
	}
}

// loose are the person's files that are not committed, and their content.
func (p *play) loose() (files map[string]string, tracked bool) {
	files = map[string]string{}
	for _, e := range strings.Split(strings.TrimSuffix(p.git("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all",
		"--ignored"), "\x00"), "\x00") {
		if len(e) > 3 && !strings.HasPrefix(e[3:], ".fairlead/") {
			text, _ := os.ReadFile(filepath.Join(p.repo, e[3:]))
			files[e[3:]] = string(text)
			tracked = tracked || e[:2] != "??" && e[:2] != "!!"
		}
	}
	return files, tracked
}

func (p *play) tip() string {
	commit, _ := p.try(p.repo, "rev-parse", "--verify", "--quiet", "refs/heads/main")
	return commit
}

// step does a step of a task, with or without a fault, and looks at what it did to the base and the checkout.
func (p *play) step(t *tasked, name string) outcome {
	p.Helper()
	tip := p.tip()
	files, dirty := p.loose()
	_, locked := os.Lstat(filepath.Join(p.repo, ".git/index.lock"))
	var o outcome
	fault, of := "", 40 // faults are rare where little can be lost
	if strings.HasPrefix(name, StepLand) || slices.Contains([]string{"show", "undo", "reverted"}, strings.Fields(name)[0]) {
		of = 10
	}
	switch p.rnd.IntN(of) {
	case 0, 1, 2:
		how := one(p, "before", "after", strconv.Itoa(p.rnd.IntN(10)))
		at := 1 + p.rnd.IntN(24)
		fault = fmt.Sprintf(" killed %s call %d of git", how, at)
		o = p.child(t, name, "PATH="+p.bin+":"+os.Getenv("PATH"), "COUNT="+filepath.Join(t.Run, "calls"), "HOW="+how,
			"AT="+strconv.Itoa(at))
		_ = os.Remove(filepath.Join(t.Run, "calls"))
	case 3:
		fault = " with a full disk"
		if p.disk && p.rnd.IntN(2) == 0 {
			o = p.full(t, name)
		} else {
			fault = " with a limit for files"
			o = p.child(t, name, "FAIRLEAD_TASK_TEST_FULL=1")
		}
	default:
		o = doStep(p.Context(), t.Task, name)
	}
	p.note("%s %s%s: %s %s %s", t.ID, name, fault, o.Kind, o.Err, o.Commit)
	p.looked(t, name, tip, files, dirty, o)
	if fault != "" {
		if locked != nil && strings.HasPrefix(fault, " killed") {
			p.settled(t, dirty)
		}
		p.repair(files, dirty)
	}
	return o
}

// settled does what the next landing begins with, and looks for what a killed one has left in the checkout.
func (p *play) settled(t *tasked, dirty bool) {
	p.Helper()
	if err := t.repair(p.Context()); err != nil {
		p.wrong("what a killed landing has left is not repaired: %v", err)
	}
	if _, half := p.loose(); half && !dirty {
		p.wrong("the checkout was left half moved: %s", p.git("status", "--porcelain"))
	}
	for _, name := range []string{"index.lock", "HEAD.lock", "refs/heads/main.lock"} {
		if _, err := os.Lstat(filepath.Join(p.repo, ".git", name)); err == nil {
			p.wrong("left: %s", name)
		}
	}
}

// looked compares the base and the checkout with what they were before a step.
func (p *play) looked(t *tasked, name, tip string, files map[string]string, dirty bool, o outcome) {
	p.Helper()
	for name, text := range files {
		if now, _ := os.ReadFile(filepath.Join(p.repo, name)); string(now) != text {
			p.wrong("the person's file %q was %q and is %q", name, text, now)
		}
	}
	now := p.tip()
	if now == tip {
		return
	}
	from, to := tip, now
	switch name, _, _ := strings.Cut(name, " "); name {
	case StepLand:
	case "undo":
		from, to = now, tip
	default:
		p.wrong("%s has moved the base from %s to %s", name, tip, now)
	}
	if _, err := p.try(p.repo, "merge-base", "--is-ancestor", from, to); err != nil {
		p.wrong("%s has moved the base from %s to %s, which is another history", name, tip, now)
	}
	if on, _ := p.try(p.repo, "symbolic-ref", "--quiet", "HEAD"); on == "refs/heads/main" {
		if dirty {
			p.wrong("it has landed in a checkout with changes")
		}
		if _, after := p.loose(); after && o.Kind != "killed" {
			p.wrong("after landing the checkout is not clean: %s", p.git("status", "--porcelain"))
		}
	}
	p.green(now)
	before, shown, after := p.inCommit(tip), p.inCommit(t.Asked.Commit), p.inCommit(now)
	for w, l := range p.ledger {
		switch removes := t.mayRemove(l.task) || from == now && l.task == t.ID; {
		case after[w] && !before[w] && from == tip && !shown[w]:
			p.wrong("line %s (%+v) has landed with %s and was not shown", w, l, t.ID)
		case after[w] && !before[w] && from == now && t.undoes == nil:
			p.wrong("line %s (%+v) is on the base since %s was taken back", w, l, t.ID)
		case before[w] && !after[w] && !removes:
			p.wrong("line %s (%+v) is not on the base since %s of %s", w, l, name, t.ID)
		case l.task == t.ID && from == tip && shown[w] && !after[w]:
			p.wrong("line %s of %s was shown and has not landed", w, t.ID)
		}
	}
}

// inCommit are the lines in the content of a commit of the person's repository.
func (p *play) inCommit(commit string) map[string]bool {
	found := map[string]bool{}
	text, _ := p.try(p.repo, "grep", "-h", "-o", "-a", "-E", token.String(), commit)
	for _, w := range token.FindAllString(text, -1) {
		found[w] = true
	}
	return found
}

// green runs the checks on a commit.
func (p *play) green(commit string) {
	p.Helper()
	dir := filepath.Join(p.dir, "green")
	defer os.RemoveAll(dir)
	p.put(filepath.Join(dir, ".keep"), "")
	for _, args := range [][]string{{"read-tree", commit}, {"checkout-index", "--all", "--force"}} {
		cmd := exec.CommandContext(p.Context(), "git", args...)
		cmd.Dir, cmd.Env = dir,
			append(os.Environ(), "GIT_DIR="+filepath.Join(p.repo, ".git"), "GIT_WORK_TREE="+dir,
				"GIT_INDEX_FILE="+filepath.Join(p.dir, "green.index"))
		if out, err := cmd.CombinedOutput(); err != nil {
			p.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	check := exec.CommandContext(p.Context(), "sh", "-c", checkLine)
	check.Dir = dir
	if err := check.Run(); err != nil {
		p.wrong("the checks do not pass on the base, %s", commit)
	}
}

// child does a step in a process of its own.
func (p *play) child(t *tasked, name string, env ...string) (o outcome) {
	p.Helper()
	if err := t.Save(); err != nil {
		p.Fatal(err)
	}
	cmd := exec.CommandContext(p.Context(), os.Args[0])
	cmd.Env = append(os.Environ(),
		append(env, stepOfChild+"="+name, File+"="+filepath.Join(t.Run, FileName), AskedEnv+"="+t.Asked.String())...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the git that kills its group kills no more than this step
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	if json.Unmarshal(out.Bytes(), &o) == nil {
		return o
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Exited() && exit.ExitCode() != 0 && !strings.Contains(strings.Join(env, " "), "FULL") {
		p.Fatalf("%v: %s", err, &out)
	}
	return outcome{Kind: "killed"}
}
