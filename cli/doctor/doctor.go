package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/fairlead-dev/fairlead/agentfile"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/cli/offline"
	"github.com/fairlead-dev/fairlead/cli/probe"
	"github.com/fairlead-dev/fairlead/cluster"
	"github.com/fairlead-dev/fairlead/cluster/engine"
	"github.com/fairlead-dev/fairlead/cluster/worker"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/journal/sqlite"
	"github.com/fairlead-dev/fairlead/shim"
	"github.com/fairlead-dev/fairlead/task"
)

// Finding is one result of doctor.
type Finding = probe.Finding

// Doctor checks the installation and the workspace; fix repairs what can be repaired safely.
func Doctor(ctx context.Context, a *cli.App, fix bool) error {
	visits := visits(a)
	var hold func(Finding) bool
	if fix { // shown after the repair, with its result
		hold = func(f Finding) bool { return !f.OK && f.Fix != nil }
	}
	b := Board(a, visits, hold)
	findings := Round(ctx, visits, b)
	if fix {
		findings = Repair(ctx, findings, func(f Finding) {
			if !a.JSON {
				PrintFinding(a, f)
			}
		})
	}
	wrong := 0
	for _, f := range findings {
		if !f.OK {
			wrong++
		}
	}
	if a.JSON {
		if err := a.PrintJSON(map[string]any{"ok": wrong == 0, "findings": findings}); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return &cli.Coded{Code: cli.ExitFailed, Err: fmt.Errorf("%d of %d findings need attention", wrong, len(findings))}
	}
	return nil
}

// visits are the checks of doctor, in the order in which they are printed.
func visits(a *cli.App) []Visit {
	visits := []Visit{{About: "the system", Free: true, Look: func(ctx context.Context, say func(...Finding)) { say(append(lookAtSystem(), LookAtSandbox(ctx))...) }}}
	conf, first := lookAtConfiguration(a)
	visits = append(visits, Visit{About: "the configuration", Free: true, Look: func(_ context.Context, say func(...Finding)) { say(first...) }})
	met := &AgentsMet{Paths: map[string]bool{}}
	if conf != nil {
		own := sync.OnceValue(func() string { return follower(context.Background(), a) })
		met.Agents = conf.Agents
		for _, agent := range conf.Agents {
			met.Wait.Add(1)
			visits = append(visits, Visit{About: "agent " + agent.Name, Look: func(ctx context.Context, say func(...Finding)) {
				defer met.Wait.Done()
				found := lookAtAgent(ctx, agent)
				met.Add(found)
				say(found...)
				if own() == "" {
					say(lookAtFile(agent)...)
				}
			}})
		}
	}
	visits = append(visits, visitPrograms(met)...)
	visits = append(visits, Visit{About: "hooks of Claude Code", Free: true, Look: func(_ context.Context, say func(...Finding)) { say(lookAtHooks(a.Dir)...) }})
	if conf != nil && (conf.Tasks.Land == task.PR || len(conf.Tasks.From) > 0) {
		visits = append(visits, Visit{About: "pull requests", Look: func(ctx context.Context, say func(...Finding)) { say(lookAtForge(ctx, a, conf)) }})
	}
	return append(visits, Visit{About: "the journal and the state that it describes", Free: true, Look: func(ctx context.Context, say func(...Finding)) { lookAtState(ctx, a, conf, say) }})
}

// lookAtConfiguration reads fairlead.yaml; nil if it is missing or invalid.
func lookAtConfiguration(a *cli.App) (*config.Config, []Finding) {
	conf, err := a.Load()
	_, missing := os.Lstat(filepath.Join(a.Dir, config.FileName))
	switch {
	case err != nil && errors.Is(missing, os.ErrNotExist) && worker.Joined(a.Dir):
		return nil, []Finding{{OK: true, About: "configuration", What: "this machine is a host: the fairlead.yaml of the leader counts"}}
	case err != nil && errors.Is(missing, os.ErrNotExist):
		return nil, []Finding{{OK: true, About: "configuration", What: "there is no fairlead.yaml in " + a.Dir + " yet", Do: "`fairlead init` writes one; `fairlead demo` shows a team without any"}}
	case err != nil:
		return nil, []Finding{{About: "configuration", What: err.Error(), Do: "fix fairlead.yaml; each line above names a position"}}
	}
	findings := []Finding{{OK: true, About: "configuration", What: "fairlead.yaml names " + cli.HowMany(len(conf.Agents), "agent", "agents")}}
	for _, note := range conf.Notes {
		findings = append(findings, Finding{OK: true, About: "configuration", What: note.Error()})
	}
	return conf, findings
}

// PrintFinding prints one finding for people.
func PrintFinding(a *cli.App, f Finding) {
	mark := a.Paint(cli.Green, "ok ")
	if !f.OK {
		mark = a.Paint(cli.Red, "!! ")
	}
	fmt.Fprintf(a.Out, "%s %-14s %s\n", mark, f.About, cli.Plain(f.What))
	if f.Do != "" {
		fmt.Fprintf(a.Out, "%19s%s\n", "", cli.Plain(f.Do))
	}
}

// lookAtSystem reports what this system supports.
func lookAtSystem() []Finding {
	var findings []Finding
	if path, err := exec.LookPath("git"); err == nil {
		findings = append(findings, Finding{OK: true, About: "git", What: path})
	} else {
		findings = append(findings, Finding{About: "git", What: "git was not found", Do: "install it: worktrees and the demo need it"})
	}
	if runtime.GOOS != "linux" {
		findings = append(findings, Finding{OK: true, About: "system", What: runtime.GOOS + " has no subreaper and no parent-death signal: process trees are found only by a mark in their environment"})
	}
	return findings
}

// lookAtAgent asks an agent's driver whether the agent can be started, and greets its program.
func lookAtAgent(ctx context.Context, agent config.Agent) []Finding {
	if _, err := os.Stat(agent.Workspace); errors.Is(err, os.ErrNotExist) && cli.Drivers()[agent.Driver] != nil {
		return []Finding{{OK: true, About: "agent " + agent.Name, What: "its workspace " + agent.Workspace + " will be made at the first start"}}
	}
	return probe.Agent(ctx, agent)
}

func lookAtFile(agent config.Agent) []Finding {
	path := filepath.Join(agent.Workspace, agentfile.FileName)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = agentfile.Parse(text)
	}
	if err != nil {
		return []Finding{{About: "agent " + agent.Name, What: path + ": " + err.Error(), Do: "`fairlead up` moves it aside and writes it again; or fix it by hand"}}
	}
	return nil
}

// lookAtState checks .fairlead: the daemon, the journal, and what was left behind.
func lookAtState(ctx context.Context, a *cli.App, conf *config.Config, say func(...Finding)) {
	state := filepath.Join(a.Dir, ".fairlead")
	if _, err := os.Stat(state); errors.Is(err, os.ErrNotExist) {
		say(Finding{OK: true, About: "state", What: "fairlead never ran here"})
		return
	}
	if err := syscall.Access(state, 2); err != nil {
		say(Finding{About: "state", What: state + " cannot be written: " + err.Error(), Do: "give it back to the user that runs fairlead"})
	}
	own := follower(ctx, a)
	say(lookAtDaemon(ctx, a, own))
	say(lookAtCluster(ctx, a, own)...)
	looking, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	whole := true
	for _, f := range lookAtJournal(looking, a) {
		whole = whole && f.OK
		say(Finding{OK: f.OK, About: "journal", What: f.What, Do: f.Do})
	}
	say(lookAtDisk(state)...)
	say(lookAtBudget(looking, a, conf)...)
	say(lookAtSockets(ctx, a)...)
	for _, log := range daemon.Logs {
		say(lookAtLog(filepath.Join(state, "log", log.Name), log.Called, cli.IsLocked(filepath.Join(state, "lock")))...)
	}
	if conf != nil && whole {
		say(lookAtTruth(ctx, a, conf, own)...)
		if own == "" {
			say(lookAtFolders(looking, a)...)
		}
	}
	if conf != nil {
		say(lookAtNotices(ctx, a, conf)...)
	}
	say(lookForStrays(a)...)
}

// lookAtJournal checks the journal, and on an engine host the copy that its server keeps. Another host has none.
func lookAtJournal(ctx context.Context, a *cli.App) []sqlite.Finding {
	if worker.Joined(a.Dir) {
		return nil
	}
	folder := worker.Folder(a.Dir)
	is, err := hosts.Load(a.Dir)
	facts, ferr := engine.LoadFacts(folder)
	if err == nil && is != nil && is.Joined() && ferr == nil && !facts.Stream {
		return nil // it is on the leader alone
	}
	found := sqlite.Check(ctx, filepath.Join(a.Dir, ".fairlead", "journal.db"))
	switch {
	case err != nil || is == nil || ferr != nil || !facts.Stream:
		return found // of keys, which are looked at elsewhere
	case !engine.HasCopy(folder):
		return append(found, sqlite.Finding{OK: len(facts.Engines) > cluster.EnginesMin, What: "the server of this engine host keeps no copy of the journal", Do: "start Fairlead here; it is fetched from the other engine hosts"})
	}
	mirror, done, err := offline.Journal(ctx, a.Dir)
	if err != nil {
		return append(found, sqlite.Finding{What: err.Error(), Do: "look again in a moment"})
	}
	defer done() //nolint:errcheck // a copy in a folder for such files
	return append(found, engine.CheckCopy(ctx, folder, is.Name, mirror)...)
}

// lookAtDaemon asks the daemon. That of a host, own, passes the question on to the leader.
func lookAtDaemon(ctx context.Context, a *cli.App, own string) Finding {
	client, err := a.Dial()
	switch {
	case errors.As(err, new(*apiclient.NoDaemon)):
		return lookAtDeadDaemon(a)
	case err != nil:
		return Finding{About: "daemon", What: "it cannot be reached: " + err.Error(), Do: "see .fairlead/log/daemon.log"}
	}
	defer client.Close()
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := client.Status(asking)
	switch {
	case own != "" && err != nil:
		return Finding{About: "daemon", What: fmt.Sprintf("process %d runs host %s, and no leader answers it: %v", client.Daemon().PID, own, err), Do: "it tries again and again; see .fairlead/log/daemon.log"}
	case own != "":
		return Finding{OK: true, About: "daemon", What: fmt.Sprintf("process %d runs host %s; the leader has version %s, and change %d is the last in its journal", client.Daemon().PID, own, status.Version, status.Journal.Head)}
	case err != nil:
		return Finding{About: "daemon", What: "it does not answer: " + err.Error(), Do: "see .fairlead/log/daemon.log; if it hangs, end it by its process id and run `fairlead up`: agents keep running"}
	}
	return Finding{OK: true, About: "daemon", What: fmt.Sprintf("process %d, version %s, change %d is the last in its journal", status.PID, status.Version, status.Journal.Head)}
}

// lookAtDeadDaemon checks whether a dead daemon left its file behind.
func lookAtDeadDaemon(a *cli.App) Finding {
	path := filepath.Join(a.Dir, ".fairlead", "daemon.json")
	lock := filepath.Join(a.Dir, ".fairlead", "lock")
	switch _, err := os.Lstat(path); {
	case cli.IsLocked(lock):
		return Finding{About: "daemon", What: "a daemon holds this folder and does not answer", Do: "it may be starting or stopping: run doctor again; if it hangs, `lslocks` names the process that holds " + lock}
	case err != nil:
		return Finding{OK: true, About: "daemon", What: "not running"}
	}
	return Finding{
		About: "daemon", What: "not running, but " + path + " of a killed daemon still exists", Do: "`fairlead up` adopts the sessions that it left running; `fairlead doctor --fix` removes the file",
		Fix: func(context.Context) (string, error) {
			if cli.IsLocked(lock) {
				return "nothing was removed: a daemon has started meanwhile", nil
			}
			return "removed " + path, os.Remove(path)
		},
	}
}

// lookForStrays checks that no process of a session that is over is left.
func lookForStrays(a *cli.App) []Finding {
	strays, err := shim.Strays(a.Dir)
	if err != nil {
		return []Finding{{About: "processes", What: "cannot be listed: " + err.Error(), Do: "try again as the user that runs fairlead"}}
	}
	if len(strays) == 0 {
		return []Finding{{OK: true, About: "processes", What: "none is left behind"}}
	}
	var findings []Finding
	for _, p := range strays {
		findings = append(findings, Finding{About: "processes", What: fmt.Sprintf("%d (%s) was left behind by session %s", p.PID, p.Command, p.Session), Do: "`fairlead doctor --fix` ends it"})
	}
	// The daemon ends them as it recovers; beside a running daemon this ends only processes without a
	// shim.
	findings[0].Fix = func(ctx context.Context) (string, error) {
		ended, err := shim.EndStrays(ctx, a.Dir)
		return fmt.Sprintf("ended %s left behind", cli.HowMany(len(ended), "process that was", "processes that were")), err
	}
	for i := range findings[1:] {
		findings[i+1].Fix = func(context.Context) (string, error) { return "ended with the first", nil }
	}
	return findings
}

// Repair repairs what can be repaired, and shows each repair in place of its finding.
func Repair(ctx context.Context, findings []Finding, show func(Finding)) []Finding {
	for i, f := range findings {
		if f.OK || f.Fix == nil {
			continue
		}
		if done, err := f.Fix(ctx); err != nil {
			findings[i].Do = "the repair failed: " + err.Error() + "; do it by hand"
		} else {
			findings[i] = Finding{OK: true, About: f.About, What: f.What + ": " + done}
		}
		show(findings[i])
	}
	return findings
}

const (
	VisitsAtOnce = 4               // starting programs; more at once would only slow each other down
	waitTick     = time.Second     // how often the waiting time on a terminal is updated
	waitShown    = time.Second / 5 // a faster answer is not announced, because the line would only flicker
)

// Visit is one check of doctor.
type Visit struct {
	About string // what the terminal says it waits for
	Free  bool   // it starts no program, and is not counted against VisitsAtOnce
	Look  func(ctx context.Context, say func(...Finding))
}

// Round makes all checks, a limited number of those that start programs at a time, and returns the
// findings in the order of the checks. The board gets each result at once.
func Round(ctx context.Context, visits []Visit, b *board) []Finding {
	places := make(chan struct{}, VisitsAtOnce)
	var all sync.WaitGroup
	for i, v := range visits {
		if v.Free {
			all.Go(func() { b.visit(ctx, i, v) })
		}
	}
	for i, v := range visits {
		if v.Free {
			continue
		}
		places <- struct{}{} // in the order of the list: a check that waits for another one comes after it
		all.Go(func() {
			defer func() { <-places }()
			b.visit(ctx, i, v)
		})
	}
	all.Wait()
	return b.end()
}

// board prints findings as they arrive. On a terminal each is printed at once, above a last line
// that says what is waited for; elsewhere they are printed in the order of the checks, each as soon
// as those before it are known.
type board struct {
	show func(Finding) // nil: nothing is printed
	hold func(Finding) bool
	Term io.Writer // nil: not a terminal
	Cols int

	mu    sync.Mutex
	begun time.Time
	about []string
	state []VisitState
	found [][]Finding
	told  []int // of the findings: how many were printed
	line  int   // characters of the current waiting line
	over  chan struct{}
	Gone  sync.WaitGroup
}

// VisitState is how far the check of one program is.
type VisitState int

const (
	VisitAhead VisitState = iota
	VisitUnderWay
	VisitDone
)

// Board makes the board for the output. Findings for which hold is true are not printed.
func Board(a *cli.App, visits []Visit, hold func(Finding) bool) *board {
	b := &board{hold: hold, begun: time.Now(), over: make(chan struct{})}
	b.state, b.found, b.told = make([]VisitState, len(visits)), make([][]Finding, len(visits)), make([]int, len(visits))
	for _, v := range visits {
		b.about = append(b.about, v.About)
	}
	if a.JSON {
		return b
	}
	b.show = func(f Finding) { PrintFinding(a, f) }
	if file, ok := a.Out.(*os.File); ok && cli.Tty(a.Out) {
		b.Term, b.Cols = a.Out, cli.ScreenWidth
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 { //nolint:gosec // a descriptor fits an int
			b.Cols = width
		}
		b.Gone.Go(b.Ticks)
	}
	return b
}

// Ticks updates the waiting line until it ends.
func (b *board) Ticks() {
	first, tick := time.NewTimer(waitShown), time.NewTicker(waitTick)
	defer first.Stop()
	defer tick.Stop()
	for {
		select {
		case <-b.over:
			return
		case <-first.C:
		case <-tick.C:
		}
		b.mu.Lock()
		b.wipe()
		b.wait(time.Since(b.begun))
		b.mu.Unlock()
	}
}

func (b *board) visit(ctx context.Context, i int, v Visit) {
	b.mu.Lock()
	b.state[i] = VisitUnderWay
	b.mu.Unlock()
	v.Look(ctx, func(found ...Finding) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.found[i] = append(b.found[i], found...)
		b.tell()
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state[i] = VisitDone
	b.tell()
}

// tell prints the findings that can be printed now.
func (b *board) tell() {
	if b.show == nil {
		return
	}
	b.wipe()
	for i := range b.found {
		for _, f := range b.found[i][b.told[i]:] {
			if b.hold == nil || !b.hold(f) {
				b.show(f)
			}
		}
		b.told[i] = len(b.found[i])
		if b.Term == nil && b.state[i] != VisitDone {
			return
		}
	}
	b.wait(time.Since(b.begun))
}

// wipe erases the waiting line with blanks, because not every terminal supports escape sequences.
func (b *board) wipe() {
	if b.line > 0 {
		fmt.Fprintf(b.Term, "\r%*s\r", b.line, "")
		b.line = 0
	}
}

// wait prints what is waited for, if the wait is long enough to be read.
func (b *board) wait(past time.Duration) {
	if b.Term == nil || past < waitShown {
		return
	}
	if text := UnderWay(b.about, b.state, past, b.Cols-1); text != "" {
		fmt.Fprint(b.Term, text)
		b.line = len([]rune(text))
	}
}

// UnderWay describes the running checks, in at most so many characters.
func UnderWay(about []string, state []VisitState, past time.Duration, width int) string {
	var under []string
	ahead := 0
	for i, s := range state {
		switch s {
		case VisitUnderWay:
			under = append(under, about[i])
		case VisitAhead:
			ahead++
		}
	}
	if len(under) == 0 {
		return ""
	}
	text := fmt.Sprintf("… %s, waits for %s", cli.Ago(past), strings.Join(under, ", "))
	if ahead > 0 {
		text += fmt.Sprintf("; %d to go", ahead)
	}
	return cli.Line(text, max(1, width))
}

// end erases the waiting line, and returns all findings in the order of the checks.
func (b *board) end() []Finding {
	close(b.over)
	b.Gone.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Term != nil {
		b.wipe()
	}
	var all []Finding
	for _, found := range b.found {
		all = append(all, found...)
	}
	return all
}
