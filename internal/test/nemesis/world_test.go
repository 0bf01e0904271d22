package nemesis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

const leader = "a" // at first, and always without other engine hosts

// world is a team on some hosts: a, which leads it, and others, which run the agent's sessions.
type world struct {
	*testing.T
	*Net
	dir     string // has a folder for each host
	disk    *disk  // of the engine host c
	hosts   []string
	engines []*mirror // the engine hosts with a, if they keep the journal together
	daemons map[string]*exec.Cmd

	paused map[string]bool   // it was stopped once
	done   map[string]string // runs whose work has ended, with the result
	homes  map[string]string // the host that has the files of a run

	given int // orders of an agent; only one goroutine gives them

	mu      sync.Mutex
	ordered []change // that were acknowledged
}

// change is one of the leader's journal.
type change struct {
	Seq             uint64
	Time            time.Time
	Entity, Trigger string
	Note            string // that its text has
}

// newWorld makes a team whose journal is on the leader alone.
func newWorld(t *testing.T, hosts ...string) *world {
	t.Helper()
	w := makeWorld(t, hosts...)
	for _, host := range hosts {
		w.join(host)
		w.up(host)
		w.is(host, "joined")
	}
	return w
}

// makeWorld makes the folders of all hosts, and starts the leader.
func makeWorld(t *testing.T, hosts ...string) *world {
	t.Helper()
	if !testsize.CI() {
		t.Skip("real hosts under faults take minutes: set FAIRLEAD_LONG=ci")
	}
	t.Parallel()
	dir, disk := t.TempDir(), &disk{T: t} // removed after the processes have ended
	t.Cleanup(disk.remove)
	w := &world{
		T: t, Net: newNet(t, append([]string{leader}, hosts...)...), dir: dir, disk: disk, hosts: hosts,
		daemons: map[string]*exec.Cmd{}, paused: map[string]bool{}, done: map[string]string{}, homes: map[string]string{},
	}
	for _, dir := range append([]string{leader, holds, finish}, hosts...) {
		w.ok(os.MkdirAll(filepath.Join(w.dir, dir), 0o700))
	}
	w.folders(leader)
	self, err := os.Executable()
	w.ok(err)
	for name, text := range map[string]string{
		".gitignore": ".fairlead/\n.agents/\nagent_state.json\nidle/\nkeeper/\nasker/\n",
		"fairlead.yaml": fmt.Sprintf(`version: 1
agents:
  coder: {description: Works, driver: exec, command: [%[1]q, __agent, %[2]q], workspace: ., instances: 4, host: {labels: [away]}}
  asker: {description: Works, driver: exec, command: [%[1]q, __agent, %[2]q], workspace: asker, host: {labels: [away]}, on_lost: ask}
  keeper: {description: Works on the leader's machine, driver: exec, command: [%[1]q, __agent, %[2]q], workspace: keeper}
  idle: {description: Takes orders, driver: exec, command: [sleep, "60"], workspace: idle}
channels:
  large: {agents: [idle, keeper]}
`, self, w.dir),
	} {
		w.ok(os.WriteFile(filepath.Join(w.dir, leader, name), []byte(text), 0o600))
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "."},
		{"-c", "user.name=A Person", "-c", "user.email=person@example.org", "commit", "-qm", "first"},
	} {
		git := exec.CommandContext(t.Context(), "git", args...)
		git.Dir = filepath.Join(w.dir, leader)
		out, err := git.CombinedOutput()
		w.ok(err, string(out))
	}
	w.fairlead(leader, "cluster", "init", "--name", leader, "--listen", w.Address(leader)+":4222")
	w.up(leader)
	return w
}

// folders makes those of the agents of the leader's machine.
func (w *world) folders(host string) {
	w.Helper()
	for _, dir := range []string{"idle", "keeper", "asker"} {
		w.ok(os.MkdirAll(filepath.Join(w.dir, host, dir), 0o700))
	}
}

// join makes a folder that of a host.
func (w *world) join(host string, flags ...string) {
	w.Helper()
	invite := []string{"host", "invite", "--label", "away", "--json"}
	if len(flags) > 0 {
		invite = append(invite, "--engine")
	}
	var invited struct{ Token string }
	wait.Until(w, "the leader invites", func() bool {
		out, err := w.try(leader, invite...)
		return err == nil && json.Unmarshal([]byte(out), &invited) == nil
	})
	w.fairlead(host, append([]string{"host", "join", invited.Token, "--name", host}, flags...)...)
}

func (w *world) ok(err error, more ...string) {
	w.Helper()
	if err != nil {
		w.Fatal(err, more)
	}
}

// command is the program on a host, in its folder.
func (w *world) command(ctx context.Context, host string, args ...string) *exec.Cmd {
	cmd := w.Command(ctx, host, append([]string{program}, args...)...)
	cmd.Dir = filepath.Join(w.dir, host)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "FAIRLEAD_") }),
		"GIT_AUTHOR_NAME=A Person", "GIT_AUTHOR_EMAIL=person@example.org", "GIT_COMMITTER_NAME=A Person",
		"GIT_COMMITTER_EMAIL=person@example.org")
	return cmd
}

// answerWait is for the answer of a daemon that is stopped, or waits for others.
const answerWait = 20 * time.Second

func (w *world) try(host string, args ...string) (string, error) {
	return w.within(answerWait, host, args...)
}

// within is a command that is killed if it takes longer.
func (w *world) within(limit time.Duration, host string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(w.Context(), limit)
	defer cancel()
	var out, said bytes.Buffer
	cmd := w.command(ctx, host, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("fairlead %s on %s: %w: %s", strings.Join(args, " "), host, err, said.String())
	}
	return out.String(), nil
}

func (w *world) fairlead(host string, args ...string) string {
	w.Helper()
	out, err := w.try(host, args...)
	w.ok(err)
	return out
}

// up starts the daemon of a host.
func (w *world) up(host string) {
	w.Helper()
	args := []string{"up"}
	if host == leader || w.engine(host) != nil {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	cmd := w.command(context.WithoutCancel(w.Context()), host, args...)
	log, err := os.OpenFile(filepath.Join(w.dir, host+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	w.ok(err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	w.ok(cmd.Start())
	w.daemons[host] = cmd
	w.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// kill ends the daemon of a host, and nothing else.
func (w *world) kill(host string) {
	w.Helper()
	w.ok(w.daemons[host].Process.Kill())
	_ = w.daemons[host].Wait()
}

// journal reads the leader's journal. It is empty while the leader does not answer. That of engine hosts is the longest of theirs.
func (w *world) journal() (all []change) {
	if w.engines != nil {
		return w.longest().changes
	}
	out, _ := w.try(leader, "events", "--json", "--after", "0")
	for line := range strings.Lines(out) {
		var c change
		w.ok(json.Unmarshal([]byte(line), &c), line)
		c.Note = line
		all = append(all, c)
	}
	return all
}

// after waits for a change of an entity, after the one of this number.
func (w *world) after(seq uint64, entity, trigger string) (c change) {
	w.Helper()
	wait.Until(w, entity+" "+trigger, func() bool {
		all := w.journal()
		i := slices.IndexFunc(all, func(c change) bool { return c.Seq > seq && c.Entity == entity && c.Trigger == trigger })
		if i >= 0 {
			c = all[i]
		}
		return i >= 0
	})
	return c
}

func (w *world) last() uint64 {
	w.Helper()
	all := w.journal()
	if len(all) == 0 {
		w.Fatal("the leader does not answer")
	}
	return all[len(all)-1].Seq
}

type hostView struct {
	Name, State string
	Connected   bool
	Sessions    []struct{ Session string }
	Missing     []json.RawMessage
	Late        []late
}

// late is what came of a session after its host was lost.
type late struct{ Session, Run, Ref, Lacks string }

func (w *world) host(name string) (h hostView) {
	out, _ := w.ask("hosts", "--json")
	var said struct{ Hosts []hostView }
	_ = json.Unmarshal([]byte(out), &said)
	for _, h = range said.Hosts {
		if h.Name == name {
			return h
		}
	}
	return hostView{}
}

// is waits until a host has a state, and is connected if it has joined.
func (w *world) is(name, state string) {
	w.Helper()
	wait.Until(w, name+" is "+state, func() bool {
		h := w.host(name)
		return h.State == state && (h.Connected || state != "joined")
	})
}

// task gives a task.
func (w *world) task(title string) (run string) { return w.taskOf("coder", title) }

func (w *world) taskOf(agent, title string) (run string) {
	w.Helper()
	var said struct{ ID string }
	wait.Until(w, "a task is taken", func() bool {
		out, err := w.ask("task", title, "--agent", agent, "--json")
		return err == nil && json.Unmarshal([]byte(out), &said) == nil
	})
	w.acknowledged(change{Entity: "run/" + said.ID, Trigger: "run_started"})
	w.homes[said.ID] = leader
	if w.engines != nil {
		w.homes[said.ID] = w.leads()
	}
	return said.ID
}

func (w *world) acknowledged(c change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ordered = append(w.ordered, c)
}

// works waits for a process of a run other than those of some sessions.
func (w *world) works(run string, other ...string) (n note) {
	w.Helper()
	wait.Until(w, "a session works on "+run, func() bool {
		for _, n = range notes(w, w.dir) {
			if n.What == began && n.Run == run && !slices.Contains(other, n.Session) {
				return true
			}
		}
		return false
	})
	return n
}

// lastSign is the last that a process has noted.
func (w *world) lastSign(of note) (n note) {
	for _, is := range notes(w, w.dir) {
		if is.PID == of.PID && is.Session == of.Session {
			n = is
		}
	}
	return n
}

// finish lets a run end, waits until its work is in the leader's checkout, and returns the session that did it.
func (w *world) finish(run string) string {
	w.Helper()
	w.ok(os.WriteFile(filepath.Join(w.dir, finish, run), nil, 0o600))
	wait.Until(w, run+" was worked on", func() bool {
		if home := w.homes[run]; w.engines != nil && w.leads() != home { // after two hosts are back the lead may move once more
			_, _ = w.ask("cluster", "lead", home)
		}
		return slices.ContainsFunc(w.journal(),
			func(c change) bool { return c.Entity == "run/"+run+"/approve" && c.Trigger == "reported_asking" })
	})
	wait.Until(w, "the work of "+run+" is on "+w.homes[run], func() bool { return w.work(run) != "" })
	w.done[run] = w.work(run)
	lines := strings.Fields(w.done[run])
	return lines[len(lines)-1]
}

// work is what the checkout of a run has on the machine that led when it began.
func (w *world) work(run string) string {
	text, err := os.ReadFile(filepath.Join(w.dir, w.homes[run], ".agents", "worktrees", run, "work.txt"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	return string(text)
}

// orders gives an agent orders until stop is called, whatever happens to the leader meanwhile. With engine hosts they are given on a
// host that is none, and gap is the longest time between two that were acknowledged.
func (w *world) orders() (stop func() (gap time.Duration)) {
	ctx, cancel := context.WithCancel(w.Context())
	host, every, limit := leader, time.Second, answerWait
	if w.engines != nil {
		host, every, limit = plain, 300*time.Millisecond, 5*time.Second
	}
	var running sync.WaitGroup
	var gap time.Duration
	running.Go(func() {
		last := now()
		for ctx.Err() == nil {
			w.given++
			note := fmt.Sprintf("order %d;", w.given)
			if _, err := w.within(limit, host, []string{"start", "stop"}[w.given%2], "idle", "--note", note); err == nil {
				w.acknowledged(change{Entity: "control/idle", Note: note})
				gap, last = max(gap, now()-last), now()
			}
			wait.Pause(every)
		}
		gap = max(gap, now()-last)
	})
	return func() time.Duration { cancel(); running.Wait(); return gap }
}

// check compares the process log with the rules, and the journal with what was acknowledged.
func (w *world) check() {
	w.Helper()
	all := notes(w, w.dir)
	for _, n := range all {
		if n.What == two && !w.paused[n.Other] {
			w.Errorf("two processes at one time, of run %s: on host %s, and %+v", n.Run, n.Other, n)
		}
	}
	w.mu.Lock()
	ordered := slices.Clone(w.ordered) // before the journal is read: orders are given meanwhile
	w.mu.Unlock()
	if w.engines != nil {
		w.checkEngines(ordered)
	} else {
		w.checkLeader(ordered)
	}
	for run, text := range w.done {
		lines := strings.Fields(text)
		slices.Sort(lines)
		again := len(lines) != len(slices.Compact(lines)) // a session has written twice
		// What a lost session wrote in the folder of the run itself, on an engine host, is there for the next one.
		if is := w.work(run); is != text || again || w.engines == nil && strings.Count(text, "\n") != 1 {
			w.Errorf("the work of %s in the leader's checkout is %q, and was %q", run, is, text)
		}
	}
}

// checkLeader compares the journal of a leader without other engine hosts with what was acknowledged.
func (w *world) checkLeader(ordered []change) {
	w.Helper()
	var journal []change
	wait.Until(w, "the leader answers", func() bool { journal = w.journal(); return len(journal) > 0 })
	for _, o := range ordered {
		if !slices.ContainsFunc(journal, o.in) {
			w.Errorf("an acknowledged order is not in the journal: %s %s %s", o.Entity, o.Trigger, o.Note)
		}
	}
	// It exits with 1 for a warning, too.
	if out, _ := w.try(leader, "doctor"); !strings.Contains(out, "the history is whole") {
		w.Errorf("the chain of the journal does not verify:\n%s", out)
	}
}

// in reports whether a change is the one that an order made.
func (o change) in(c change) bool {
	return c.Entity == o.Entity && (c.Trigger == o.Trigger || o.Trigger == "" && strings.HasPrefix(c.Trigger, "wanted_")) &&
		strings.Contains(c.Note, o.Note)
}

// show prints the logs and the journal of a test that failed. Defer it: at the time of a cleanup, the daemons have ended.
func (w *world) show() {
	if !w.Failed() && os.Getenv("FAIRLEAD_NEMESIS_SHOW") == "" {
		return
	}
	for _, n := range notes(w, w.dir) {
		if n.What != beat {
			w.Logf("%+v", n)
		}
	}
	for _, host := range append([]string{leader}, w.hosts...) {
		text, _ := os.ReadFile(filepath.Join(w.dir, host+".log"))
		if len(text) > 8000 {
			text = text[len(text)-8000:]
		}
		w.Logf("log of %s:\n%s", host, text)
		if w.engine(host) != nil {
			out, _ := w.within(answerWait, host, "doctor")
			w.Log(out)
		}
	}
	out, _ := w.ask("events", "--tail", "60")
	w.Log(out)
	out, _ = w.ask("hosts")
	w.Log(out)
}

// powerLost ends all processes of a host at once.
func (w *world) powerLost(host string) {
	w.Signal(host, syscall.SIGSTOP) // none sees the end of another
	w.Signal(host, syscall.SIGKILL)
	_ = w.daemons[host].Wait()
}
