package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/cli/daemon/worker"
	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/cli/offline"
	"github.com/fairlead-dev/fairlead/cli/probe"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/termtext"
	"github.com/fairlead-dev/fairlead/process/shim"
)

// Finding is one result of doctor.
type Finding = probe.Finding

// Check is one check of doctor.
type Check struct {
	Name  string // what the terminal says it waits for
	Check func(ctx context.Context) []Finding
}

// ChecksAtOnce limits the checks that run at a time: some start programs, which would only slow each other down.
const ChecksAtOnce = 8

// Doctor checks the installation and the workspace; fix repairs what can be repaired safely.
func Doctor(ctx context.Context, a *cli.App, fix bool) error {
	findings := Run(ctx, a, checks(a), fix)
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

// Run makes the checks in parallel, and prints and returns their findings in the order of the checks. On a terminal, a line says
// which check it waits for. With fix, a finding that can be repaired is not printed: its repair is.
func Run(ctx context.Context, a *cli.App, checks []Check, fix bool) []Finding {
	found, done := make([][]Finding, len(checks)), make([]chan struct{}, len(checks))
	for i := range checks {
		done[i] = make(chan struct{})
	}
	go func() {
		places := make(chan struct{}, ChecksAtOnce)
		for i, c := range checks { // in this order: a check that waits for another one comes after it
			places <- struct{}{}
			go func() {
				found[i] = c.Check(ctx)
				close(done[i])
				<-places
			}()
		}
	}()
	for i, c := range checks {
		erase := waiting(a, fmt.Sprintf("… waits for %s (%d of %d)", c.Name, i+1, len(checks)))
		<-done[i]
		erase()
		for _, f := range found[i] {
			if !a.JSON && !(fix && !f.OK && f.Fix != nil) {
				PrintFinding(a, f)
			}
		}
	}
	return slices.Concat(found...)
}

// waiting prints a line on a terminal, and returns what erases it: with blanks, because not every terminal supports escape
// sequences.
func waiting(a *cli.App, text string) (erase func()) {
	if a.JSON || !cli.Tty(a.Out) {
		return func() {}
	}
	text = cli.Line(text, max(1, cmp.Or(a.Columns(), cli.ScreenWidth)-1))
	fmt.Fprint(a.Out, text)
	return func() { fmt.Fprintf(a.Out, "%s%*s%[1]s", termtext.Own("\r"), len([]rune(text)), "") }
}

// checks are those of doctor, in the order in which they are printed.
func checks(a *cli.App) []Check {
	conf, first := lookAtConfiguration(a)
	checks := []Check{
		{"the system", func(ctx context.Context) []Finding { return append(lookAtSystem(), LookAtSandbox(ctx)) }},
		{"the configuration", func(context.Context) []Finding { return first }},
	}
	var agents []config.Agent
	if conf != nil {
		agents = conf.Agents
	}
	own := sync.OnceValue(func() string { return follower(context.Background(), a) })
	met, all := make([][]Finding, len(agents)), &sync.WaitGroup{}
	for i, agent := range agents {
		all.Add(1)
		checks = append(checks, Check{"agent " + agent.Name, func(ctx context.Context) []Finding {
			defer all.Done()
			met[i] = lookAtAgent(ctx, agent)
			if own() != "" {
				return met[i]
			}
			return slices.Concat(met[i], lookAtFile(agent))
		}})
	}
	checks = append(checks, checkPrograms(agents, func() []Finding { all.Wait(); return slices.Concat(met...) })...)
	checks = append(checks,
		Check{"hooks of Claude Code", func(context.Context) []Finding { return lookAtHooks(a.Dir) }},
		Check{"dispatches", func(context.Context) []Finding { return lookAtDispatches(a.Dir) }},
	)
	if conf != nil && (conf.Tasks.Land == task.PR || len(conf.Tasks.From) > 0) {
		checks = append(checks, Check{"pull requests", func(ctx context.Context) []Finding { return []Finding{lookAtForge(ctx, a, conf)} }})
	}
	return append(checks,
		Check{"the journal and the state that it describes", func(ctx context.Context) []Finding { return lookAtState(ctx, a, conf) }})
}

// lookAtConfiguration reads fairlead.yaml; nil if it is missing or invalid.
func lookAtConfiguration(a *cli.App) (*config.Config, []Finding) {
	conf, err := a.Load()
	_, missing := os.Lstat(filepath.Join(a.Dir, config.FileName))
	switch {
	case err != nil && errors.Is(missing, os.ErrNotExist) && worker.Joined(a.Dir):
		return nil, []Finding{{OK: true, About: "configuration", What: "this machine is a host: the fairlead.yaml of the leader counts"}}
	case err != nil && errors.Is(missing, os.ErrNotExist):
		return nil, []Finding{{
			OK: true, About: "configuration", What: "there is no fairlead.yaml in " + a.Dir + " yet",
			Do: "`fairlead init` writes one; `fairlead demo` shows a team without any",
		}}
	case err != nil:
		return nil, []Finding{{About: "configuration", What: err.Error(), Do: "fix fairlead.yaml; each line above names a position"}}
	}
	findings := []Finding{{
		OK: true, About: "configuration",
		What: "fairlead.yaml names " + cli.HowMany(len(conf.Agents), "agent", "agents"),
	}}
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
		fmt.Fprintln(a.Out, doIndent+cli.Plain(f.Do))
	}
}

// doIndent stands before what a person can do.
const doIndent = "                   "

// lookAtSystem reports what this system supports.
func lookAtSystem() []Finding {
	var findings []Finding
	if path, err := exec.LookPath("git"); err == nil {
		findings = append(findings, Finding{OK: true, About: "git", What: path})
	} else {
		findings = append(findings, Finding{About: "git", What: "git was not found", Do: "install it: worktrees and the demo need it"})
	}
	if runtime.GOOS != "linux" {
		findings = append(findings,
			Finding{
				OK: true, About: "system",
				What: runtime.GOOS +
					" has no subreaper and no parent-death signal: process trees are found only by a mark in their environment",
			})
	}
	return findings
}

// lookAtAgent asks an agent's driver whether the agent can be started, and greets its program.
func lookAtAgent(ctx context.Context, agent config.Agent) []Finding {
	if _, err := os.Stat(agent.Workspace); errors.Is(err, os.ErrNotExist) && cli.Drivers()[agent.Driver] != nil {
		return []Finding{{
			OK: true, About: "agent " + agent.Name,
			What: "its workspace " + agent.Workspace + " will be made at the first start",
		}}
	}
	return probe.Agent(ctx, agent)
}

// lookAtFile reads the state file of an agent as the daemon does.
func lookAtFile(agent config.Agent) []Finding {
	text, err := stateText(agent.Workspace)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	do := "`fairlead up` moves it aside and writes it again; or fix it by hand"
	if err == nil {
		_, err = agentstate.Parse(text)
	} else {
		do = "it is neither read nor replaced until then"
	}
	if err != nil {
		return []Finding{{
			About: "agent " + agent.Name, What: filepath.Join(agent.Workspace, agentstate.FileName) + ": " + err.Error(),
			Do: do,
		}}
	}
	return nil
}

func stateText(workspace string) ([]byte, error) {
	folder, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return nil, err
	}
	dir, _, err := file.OpenFolder(folder)
	if err != nil {
		return nil, err
	}
	defer file.CloseFolder(dir)
	there, err := file.Read(dir, agentstate.FileName, file.BytesMax)
	return there.Bytes, err
}

// lookAtState checks .fairlead: the daemon, the journal, and what was left behind.
func lookAtState(ctx context.Context, a *cli.App, conf *config.Config) (all []Finding) {
	say := func(found ...Finding) { all = append(all, found...) }
	state := filepath.Join(a.Dir, ".fairlead")
	if _, err := os.Stat(state); errors.Is(err, os.ErrNotExist) {
		return []Finding{{OK: true, About: "state", What: "fairlead never ran here"}}
	}
	if err := syscall.Access(state, 2); err != nil {
		say(Finding{About: "state", What: state + " cannot be written: " + err.Error(), Do: "give it back to the user that runs fairlead"})
	}
	say(lookAtModes(a.Dir))
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
	return all
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
	if err != nil || is == nil || ferr != nil || !facts.Stream {
		return found // of keys, which are looked at elsewhere
	}
	if free, err := workspace.Free(a.Dir); err == nil && free { // a server that runs writes these files
		if damage := engine.CheckStore(folder); damage != nil {
			found = append(found,
				sqlite.Finding{
					What: damage.Error(),
					Do:   "start Fairlead here and on all other engine hosts; the damaged files are put aside and fetched again",
				})
		}
	}
	if !engine.HasCopy(folder) {
		return append(found,
			sqlite.Finding{
				OK: len(facts.Engines) > cluster.EnginesMin, What: "the server of this engine host keeps no copy of the journal",
				Do: "start Fairlead here; it is fetched from the other engine hosts",
			})
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
		return Finding{
			About: "daemon",
			What:  fmt.Sprintf("process %d runs host %s, and no leader answers it: %v", client.Daemon().PID, own, err),
			Do:    "it tries again and again; see .fairlead/log/daemon.log",
		}
	case own != "":
		return Finding{
			OK: true, About: "daemon",
			What: fmt.Sprintf("process %d runs host %s; the leader has version %s, and change %d is the last in its journal",
				client.Daemon().PID, own, status.Version, status.Journal.Head),
		}
	case err != nil:
		return Finding{
			About: "daemon", What: "it does not answer: " + err.Error(),
			Do: "see .fairlead/log/daemon.log; if it hangs, end it by its process id and run `fairlead up`: agents keep running",
		}
	}
	return Finding{
		OK: true, About: "daemon",
		What: fmt.Sprintf("process %d, version %s, change %d is the last in its journal", status.PID, status.Version, status.Journal.Head),
	}
}

// lookAtDeadDaemon checks whether a dead daemon left its file behind.
func lookAtDeadDaemon(a *cli.App) Finding {
	path := filepath.Join(a.Dir, ".fairlead", "daemon.json")
	lock := filepath.Join(a.Dir, ".fairlead", "lock")
	switch _, err := os.Lstat(path); {
	case cli.IsLocked(lock):
		return Finding{
			About: "daemon", What: "a daemon holds this folder and does not answer",
			Do: "it may be starting or stopping: run doctor again; if it hangs, `lslocks` names the process that holds " + lock,
		}
	case err != nil:
		return Finding{OK: true, About: "daemon", What: "not running"}
	}
	return Finding{
		About: "daemon", What: "not running, but " + path + " of a killed daemon still exists",
		Do: "`fairlead up` adopts the sessions that it left running; `fairlead doctor --fix` removes the file",
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
		findings = append(findings,
			Finding{
				About: "processes", What: fmt.Sprintf("%d (%s) was left behind by session %s", p.PID, p.Command, p.Session),
				Do: "`fairlead doctor --fix` ends it",
			})
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
