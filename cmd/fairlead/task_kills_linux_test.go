package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// mortalGit is a git of which a test ends a call: the first one that finds the file "kill" is killed after the seconds that it has, and
// so is the process that waits for it, so that its parent sees what it sees of a git that was killed. "struck" lists these calls.
const mortalGit = `#!/bin/sh
at=%[2]s
if [ -e "$at/kill" ] && mv "$at/kill" "$at/kill.$$" 2> /dev/null && read -r after < "$at/kill.$$"; then
	exec 9<&0
	%[1]s "$@" <&9 9<&- &
	sleep "$after"
	kill -9 $! 2> /dev/null
	rm "$at/kill.$$"
	echo "$*" >> "$at/struck"
	kill -9 $$
fi
exec %[1]s "$@"
`

// killer ends processes of a team at random moments: the daemon, what it has started, and what has the marks of its sessions.
type killer struct {
	*rig
	rnd   *rand.Rand
	at    string // has the git that is killed
	marks load   // of the team's sessions
	dealt map[string]int

	resumed int            // how often a task that had given up was
	swept   map[string]int // locks that a person had to remove, by kind
	looked  time.Time      // for such locks
}

// newKiller prepares a team whose git can be killed, in a repository with some commits. begin starts it.
func newKiller(t *testing.T, ignore string) (k *killer, git func(...string) string) {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("FAIRLEAD_TASK_KILLS_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("FAIRLEAD_TASK_KILLS_SEED=%d draws the same kills, at other moments", seed)
	dir, git := taskRepo(t, ignore)
	k = &killer{rnd: newRand(seed), at: t.TempDir(), marks: load{mark: markOf(dir)}, dealt: map[string]int{}, swept: map[string]int{}}
	if err := os.WriteFile(filepath.Join(k.at, "git"), fmt.Appendf(nil, mortalGit, real, k.at), 0o700); err != nil { //nolint:gosec // it runs
		t.Fatal(err)
	}
	k.rig = &rig{t: t, dir: dir, path: k.at}
	t.Cleanup(func() { // after the daemon's end
		if struck, _ := os.ReadFile(filepath.Join(k.at, "struck")); t.Failed() {
			t.Logf("killed calls of git:\n%s", struck)
		}
		if left := processesIn(dir); len(left) > 0 {
			t.Errorf("processes were left: %q", left)
		}
	})
	return k, git
}

// upTo draws a moment.
func (k *killer) upTo(most time.Duration) time.Duration {
	return time.Duration(k.rnd.Int64N(int64(most)))
}

// processes are those of the team, without the daemon itself.
func (k *killer) processes() []body {
	all := map[int]body{}
	for _, b := range k.marks.census() {
		all[b.pid] = b
	}
	if k.daemon != nil {
		for _, pid := range descendants(k.daemon.Process.Pid) {
			b := body{pid: pid}
			if b.command, _, b.start = statOf(pid); b.start != "" && all[pid].start == "" {
				all[pid] = b
			}
		}
	}
	found := slices.Collect(maps.Values(all))
	slices.SortFunc(found, func(a, b body) int { return a.pid - b.pid })
	k.rnd.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	return found
}

// descendants are the children of a process, and theirs.
func descendants(of int) []int {
	children := map[int][]int{}
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		text, _ := os.ReadFile(name) // it may have ended
		_, rest, _ := strings.Cut(string(text), ") ")
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if f := strings.Fields(rest); err == nil && len(f) > 1 {
			parent, _ := strconv.Atoi(f[1])
			children[parent] = append(children[parent], pid)
		}
	}
	found := children[of]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// processesIn are the command lines of processes that work in a folder or name it.
func processesIn(dir string) (left []string) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		line, _ := os.ReadFile(filepath.Join(name, "cmdline")) // it may have ended
		at, _ := os.Readlink(filepath.Join(name, "cwd"))
		if strings.HasPrefix(at, dir) || strings.Contains(string(line), dir) {
			left = append(left, string(line))
		}
	}
	return left
}

// one ends a process of a kind, if one appears within a moment.
func (k *killer) one(which func(body) bool) bool {
	for until := time.Now().Add(200 * time.Millisecond); time.Now().Before(until); wait.Pause(time.Millisecond) {
		for _, b := range k.processes() {
			if which(b) && b.lives() {
				return syscall.Kill(b.pid, syscall.SIGKILL) == nil
			}
		}
	}
	return false
}

// git ends a call of git, if one begins within a moment.
func (k *killer) git() bool {
	kill := filepath.Join(k.at, "kill")
	making := kill + ".new"
	if err := errors.Join(os.WriteFile(making, fmt.Appendf(nil, "0.%04d\n", k.rnd.IntN(120)), 0o600), os.Rename(making, kill)); err != nil {
		k.t.Fatal(err)
	}
	for until := time.Now().Add(200 * time.Millisecond); time.Now().Before(until); wait.Pause(time.Millisecond) {
		if _, err := os.Lstat(kill); err != nil {
			return true
		}
	}
	return os.Remove(kill) != nil // the last moment
}

// all sends a signal to every process of the team. With SIGKILL none is left: one that was just being started is met by the next look.
func (k *killer) all(sig syscall.Signal) {
	if sig == syscall.SIGKILL {
		_ = k.daemon.Process.Signal(syscall.SIGSTOP) // its children can be found as long as it is there
	}
	for range 100 {
		found := k.processes()
		for _, b := range found {
			if b.lives() {
				_ = syscall.Kill(b.pid, sig)
			}
		}
		if sig != syscall.SIGKILL || len(found) == 0 {
			break
		}
	}
	if err := k.daemon.Process.Signal(sig); err != nil {
		k.t.Fatal(err)
	}
}

// ended waits for the end of the daemon, and starts it again.
func (k *killer) ended() {
	k.ends()
	wait.Pause(k.upTo(50 * time.Millisecond))
	k.up()
}

func (k *killer) ends() {
	over := make(chan error, 1)
	go func() { over <- k.daemon.Wait() }()
	wait.For(k.t, "the daemon ends", over)
	k.daemon = nil
}

// fatal are the ways to end processes, by name.
var fatal = map[string]func(*killer) bool{
	"daemon": func(k *killer) bool { k.kill(); wait.Pause(k.upTo(100 * time.Millisecond)); k.up(); return true },
	"git":    (*killer).git,
	"shim":   func(k *killer) bool { return k.one(func(b body) bool { return b.shim }) },
	"step":   func(k *killer) bool { return k.one(func(b body) bool { return !b.shim && b.command == "fairlead" }) },
	"agent":  func(k *killer) bool { return k.one(func(b body) bool { return !b.shim && b.command != "fairlead" }) },
	"all":    func(k *killer) bool { k.all(syscall.SIGKILL); k.ended(); return true },
	"freeze": func(k *killer) bool {
		k.all(syscall.SIGSTOP)
		wait.Pause(k.upTo(100 * time.Millisecond))
		k.all(syscall.SIGKILL)
		k.ended()
		return true
	},
	"term": func(k *killer) bool { k.all(syscall.SIGTERM); k.ended(); return true },
}

// strike ends processes in one of these ways.
func (k *killer) strike() {
	names := slices.Sorted(maps.Keys(fatal))
	for {
		name := names[k.rnd.IntN(len(names))]
		if fatal[name](k) {
			k.dealt[name]++
			return
		}
	}
}

// asks does something with a daemon, if there is one. A kill of the daemon may meet it, and an error says nothing.
func (k *killer) asks(do func(context.Context, *apiclient.Client) error) error {
	client, err := apiclient.Dial(k.dir)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := contextFor(rigWait)
	defer cancel()
	err = do(ctx, client)
	if ctx.Err() != nil {
		k.t.Errorf("the daemon does not answer: %v", err)
	}
	return err
}

// tasks are all that there are.
func (k *killer) tasks() (all []view.TaskView, err error) {
	err = k.asks(func(ctx context.Context, c *apiclient.Client) error {
		runs, err := c.Runs.List(ctx)
		for _, r := range runs {
			all = append(all, *r.Task)
		}
		return err
	})
	return all, err
}

// appends is an agent's work: a line in a file that other tasks change, too, and one in a file of its own. Where lines of two tasks
// conflict, it keeps both. It was killed before, perhaps, so it writes what is not there, and removes locks of its own git.
const appends = `find .git -name "*.lock" -delete
for f in shared*.txt; do
	if grep -q "^>>>>>>> " $f; then sed -i "/^<<<<<<< /d; /^=======$/d; /^>>>>>>> /d" $f; fi
done
f=shared$(( ${RUN_ID#T} % 3 )).txt
grep -qx "line $RUN_ID" $f || echo "line $RUN_ID" >> $f
grep -qsx "own $RUN_ID" $RUN_ID.txt || echo "own $RUN_ID" >> $RUN_ID.txt
git add -A
git commit -q -m work || git diff --quiet HEAD
`

// Real processes are killed at random moments while tasks are worked on, checked, shown, landed and dropped: any of them, or all. Each
// task that was approved lands once, with each line that its agent wrote, and no other task lands. FAIRLEAD_TASK_KILLS is the number of
// kills; .ci/run tasks makes a thousand.
func TestTaskKills(t *testing.T) {
	t.Parallel()
	const most = 60 // kills until the next look at everything
	k, git := newKiller(t, "*\n!*.txt\n!.gitignore\n")
	for i := range 3 {
		k.put(fmt.Sprintf("shared%d.txt", i), "top\n")
	}
	git("add", ".")
	git("commit", "--quiet", "-m", "shared")
	k.begin(map[string]string{
		"work.sh": appends,
		"fairlead.yaml": fmt.Sprintf(`version: 1
agents:
  ada: {driver: exec, command: [sh, %[1]q], workspace: ada, instances: 2}
  bob: {driver: exec, command: [sh, %[1]q], workspace: bob, instances: 2}
tasks: {checks: ["grep -qx \"own $RUN_ID\" $RUN_ID.txt && ! grep '^<<<<<<< ' *.txt"]}
`, filepath.Join(k.dir, "work.sh")),
		"ada/.keep": "", "bob/.keep": "",
	})
	var tasks []string
	for left := numberOf(t, "FAIRLEAD_TASK_KILLS", 6); left > 0 && !t.Failed(); {
		settled := make(chan []string, 1)
		upTo := len(tasks) + min(10, 1+left/3)
		go func() { settled <- k.person(upTo) }()
		until := max(0, left-most)
		for ; left > until && len(settled) == 0; left-- {
			wait.Pause(k.upTo(300 * time.Millisecond))
			k.strike()
		}
		if !wait.Poll(func() bool { return len(settled) > 0 }) {
			t.Fatalf("tasks come to no end: %s", k.statuses())
		}
		tasks = <-settled
		k.audit(git, tasks)
	}
	t.Logf("%d tasks, %d times one that had given up was resumed; kills: %v; locks of a killed git, removed by hand: %v", len(tasks),
		k.resumed, k.dealt, k.swept)
}

// numberOf is a number of the environment.
func numberOf(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// number is that of a task's id.
func number(id string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "T"))
	return n
}

// leftByGit are locks that a killed git leaves in the person's repository, and that Fairlead does not remove: git holds them while it
// writes one of Fairlead's refs, or deletes one.
var leftByGit = regexp.MustCompile(`/\.git/(packed-refs|refs/fairlead)(/.*)?\.lock$`)

const lockAge = 3 * time.Second // git holds a lock for milliseconds

// sweep removes such locks, as the message of git tells a person, if they are that old.
func (k *killer) sweep(age time.Duration) {
	k.looked = time.Now()
	_ = filepath.WalkDir(filepath.Join(k.dir, ".git"), func(path string, e fs.DirEntry, err error) error {
		kind := leftByGit.FindStringSubmatch(path)
		if err != nil || kind == nil {
			return nil //nolint:nilerr // it is gone
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) >= age && os.Remove(path) == nil {
			k.swept[kind[1]]++
		}
		return nil
	})
}

// dropped reports whether a person ends a task without an approval.
func dropped(id string) bool { return number(id)%6 == 0 }

// person gives tasks until there are so many, and does what they ask for until all are done. It returns their ids.
func (k *killer) person(upTo int) (ids []string) {
	answered := map[string]bool{}
	for ; !k.t.Failed(); wait.Pause(10 * time.Millisecond) {
		if time.Since(k.looked) > lockAge {
			k.sweep(lockAge)
		}
		all, err := k.tasks()
		if err != nil {
			continue
		}
		ids = ids[:0]
		open := 0
		for _, one := range all {
			ids = append(ids, one.ID)
			delete(answered, one.ID)
			if one.Status != view.TaskDone && one.Status != view.TaskDropped {
				open++
				_ = k.asks(func(ctx context.Context, c *apiclient.Client) (err error) {
					switch {
					case one.Status == view.TaskFailed:
						k.resumed++
						_, err = c.Runs.Resume(ctx, one.ID, view.RunFlags{})
					case one.Status != view.TaskNeedsYou:
					case dropped(one.ID):
						_, err = c.Runs.Drop(ctx, one.ID)
					case one.Unlanded():
						_, err = c.Runs.Request(ctx, one.ID, api.RequestBody{})
					default:
						_, err = c.Runs.Merge(ctx, one.ID, api.MergeBody{})
					}
					return err
				})
			}
		}
		if len(answered) > 0 {
			k.t.Errorf("given, and not there: %v", answered)
		}
		if len(all) >= upTo && open == 0 {
			return ids
		}
		if len(all) < upTo {
			_ = k.asks(func(ctx context.Context, c *apiclient.Client) error {
				give := &view.TaskFlags{Text: "Append a line", Agent: []string{"ada", "bob"}[len(all)%2]}
				is, err := c.Runs.Start(ctx, view.RunFlags{Task: give})
				if err == nil {
					answered[is.ID] = true
				}
				return err
			})
		}
	}
	return ids
}

// statuses are those of all tasks that are not done, with what runs and what was last, for messages.
func (k *killer) statuses() string {
	all, err := k.tasks()
	if err != nil {
		return err.Error()
	}
	var words []string
	for _, one := range all {
		if one.Status != view.TaskDone && one.Status != view.TaskDropped {
			shown, _ := k.fairlead("run", "show", one.ID)
			words = append(words, fmt.Sprintf("%s %s %s: %s", one.ID, one.Status, one.Why, shown))
		}
	}
	for _, b := range k.processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", b.pid))
		_, state, _ := statOf(b.pid)
		words = append(words, fmt.Sprintf("process %d of %s, %s: %s", b.pid, b.session, state, strings.ReplaceAll(string(line), "\x00", " ")))
	}
	events, _ := k.fairlead("events")
	lines := strings.Split(events, "\n")
	return strings.Join(append(words, lines[max(0, len(lines)-60):]...), "\n")
}

// audit compares the branch, the checkout and what lies beside them with what was approved.
func (k *killer) audit(git func(...string) string, tasks []string) {
	t := k.t
	t.Helper()
	wait.Until(t, "nothing runs", func() bool { return len(k.processes()) == 0 })
	k.sweep(0)
	got, want := map[string]int{}, map[string]int{}
	for _, line := range strings.Split(git("log", "--format=%B", "main"), "\n") {
		if strings.HasPrefix(line, "Task: ") {
			got[line]++
		}
	}
	// an error: there is none
	lines, _ := exec.Command("git", "-C", k.dir, "grep", "-h", "-e", "^line ", "-e", "^own ", "main", "--", "*.txt").Output()
	for line := range strings.Lines(string(lines)) {
		got[strings.TrimSpace(line)]++
	}
	for _, id := range tasks {
		if !dropped(id) {
			want["Task: "+id], want["line "+id], want["own "+id] = 1, 1, 1
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("on main: %v, and not %v", got, want)
	}
	for _, id := range tasks { // the folder of a task whose drop was killed stays until a person drops it again
		if _, err := os.Lstat(filepath.Join(k.dir, ".agents", "worktrees", id)); err == nil && !dropped(id) {
			t.Errorf("%s has landed, and its folder is there", id)
		}
	}
	k.wholeCheckout(git)
	k.nothingHalf()
}

// wholeCheckout wants the person's checkout to be as its branch says.
func (k *killer) wholeCheckout(git func(...string) string) {
	k.t.Helper()
	if got := git("symbolic-ref", "HEAD"); got != "refs/heads/main\n" {
		k.t.Errorf("the checkout is on %s", got)
	}
	if got := git("status", "--porcelain"); got != "" {
		k.t.Errorf("the checkout: %s", got)
	}
	if got := git("diff", "--stat", "HEAD"); got != "" {
		k.t.Errorf("the checkout differs from its branch: %s", got)
	}
	if out, err := exec.Command("git", "-C", k.dir, "fsck", "--no-dangling", "--no-progress").CombinedOutput(); err != nil {
		k.t.Errorf("git fsck: %v: %s", err, out)
	}
}

// ofAll are the locks that stay: files that a process locks while it is alive.
var ofAll = regexp.MustCompile(`/fairlead/landing-[0-9a-f]{16}(\.git)?\.lock$|/\.fairlead/git\.lock$`)

// nothingHalf looks for locks, notes of a landing and half-written files.
func (k *killer) nothingHalf() {
	k.t.Helper()
	for _, top := range []string{".git", ".fairlead", ".agents"} {
		if err := filepath.WalkDir(filepath.Join(k.dir, top), func(path string, e fs.DirEntry, err error) error {
			name := filepath.Base(path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case ofAll.MatchString(path):
			case strings.Contains(path, "/fairlead/landing-"), strings.HasSuffix(name, ".lock"):
				k.t.Errorf("left: %s", path)
			case strings.HasSuffix(name, ".json"):
				if text, err := os.ReadFile(path); err == nil && !json.Valid(text) {
					k.t.Errorf("half written: %s: %q", path, text)
				}
			}
			return nil
		}); err != nil {
			k.t.Error(err)
		}
	}
}

// manyOld is a repository with many files, and manyNew a task's work that changes, adds and removes them.
const (
	manyFiles = 400
	manyNew   = `[ -e gone ] || exit 0
for f in old/*; do sed "s/old/new/" $f > $f.new; mv $f.new $f; done
mkdir new && for f in gone/*; do echo new > new/${f#gone/}; done
rm -r gone
`
)

// Everything is stopped at a random moment while a checkout of many files moves, for a landing or for one that is taken back. The next
// daemon brings it to its end: the checkout is as its branch says, and nothing of the move is left. FAIRLEAD_MOVE_STOPS is the number of
// stops within moves; .ci/run tasks makes two hundred.
func TestMoveStops(t *testing.T) {
	t.Parallel()
	stops := numberOf(t, "FAIRLEAD_MOVE_STOPS", 2)
	k, git := newKiller(t, "/*\n!/old/\n!/new/\n!/gone/\n!.gitignore\n")
	for _, name := range []string{"old", "gone"} {
		if err := os.Mkdir(filepath.Join(k.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range manyFiles / 2 {
		k.put(fmt.Sprintf("old/%03d.txt", i), strings.Repeat(fmt.Sprintf("old %d\n", i), 200))
		k.put(fmt.Sprintf("gone/%03d.txt", i), "gone\n")
	}
	git("add", ".")
	git("commit", "--quiet", "-m", "many")
	k.begin(map[string]string{
		"work.sh": manyNew,
		"fairlead.yaml": fmt.Sprintf("version: 1\nagents:\n  ada: {driver: exec, command: [sh, %q], workspace: ada}\n",
			filepath.Join(k.dir, "work.sh")),
		"ada/.keep": "",
	})
	before := git("rev-parse", "main")
	k.must("task", "Change all", "--agent", "ada")
	is := func(status string) func() bool {
		return func() bool {
			all, err := k.tasks()
			return err == nil && len(all) == 1 && all[0].Status == status
		}
	}
	wait.Until(t, "T1 is shown", is(view.TaskNeedsYou))
	sum := sha256.Sum256([]byte("main"))
	note := filepath.Join(k.dir, ".git", "fairlead", "landing-"+hex.EncodeToString(sum[:8])+".json")
	moving := func() bool { _, err := os.Lstat(note); return err == nil }
	most := 50 * time.Millisecond // a little more than a move takes
	within, began, ways := 0, 0, []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGTERM}
	for ; within < stops && !t.Failed(); began++ {
		if began > 3*stops+10 {
			t.Fatalf("only %d of %d stops met a move", within, began)
		}
		landing := began%2 == 0
		order := func(ctx context.Context, c *apiclient.Client) (err error) {
			if landing {
				_, err = c.Runs.Merge(ctx, "T1", api.MergeBody{})
			} else {
				_, err = c.Runs.Undo(ctx, "T1")
			}
			return err
		}
		answered := make(chan error, 1)
		go func() { answered <- k.asks(order) }()
		for begins := time.Now(); !moving() && time.Since(begins) < wait.Patience; {
			wait.Pause(100 * time.Microsecond)
		}
		wait.Pause(k.upTo(most))
		sig := ways[k.rnd.IntN(len(ways))]
		k.all(sig)
		if sig == syscall.SIGSTOP {
			k.all(syscall.SIGKILL)
		}
		k.ends()
		if <-answered; moving() {
			within++
			most += time.Millisecond
		} else {
			most = max(5*time.Millisecond, most*9/10)
		}
		k.up()
		want := view.TaskNeedsYou
		if landing {
			want = view.TaskDone
		}
		wait.Until(t, "T1 has landed, or it is taken back: "+want, func() bool {
			all, err := k.tasks()
			if err != nil || len(all) != 1 || all[0].Status == want {
				return err == nil
			}
			if landing == (all[0].Status == view.TaskNeedsYou) { // the order was not taken, or what it did has failed
				_ = k.asks(order)
			}
			return false
		})
		if at := git("rev-parse", "main"); (at == before) == landing {
			t.Errorf("main is at %s", at)
		}
		wait.Until(t, "nothing runs", func() bool { return len(k.processes()) == 0 })
		k.sweep(0)
		k.wholeCheckout(git)
		k.nothingHalf()
	}
	t.Logf("%d stops of everything, %d of them within a move, which takes up to %s", began, within, most)
}
