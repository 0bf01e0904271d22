package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/agentfile"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/journal/sqlite"
	"github.com/fairlead-dev/fairlead/shim"
)

// finding is one thing that doctor looked at.
type finding struct {
	OK    bool   `json:"ok"`
	About string `json:"about"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"` // what a person can do; where OK, what is worth knowing

	Program *programFound `json:"program,omitempty"` // of an agent program that was looked at

	fix func(ctx context.Context) (done string, err error) // nil: only a person can mend it
}

func (a *app) doctorVerb() *cobra.Command {
	var fix bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find problems in this workspace, and say how to fix them",
		Long: `It checks the configuration, the agents' programs, the workspace, the whole hash chain of the
journal, the agents' files against the journal, the process beside each open session, the session
folders, the sockets, the daemon, the disk, the clock, and leftover processes.

It starts the agent programs that it finds in PATH and knows, four at a time, and asks each for its
version, whether it can resume conversations, how it takes the team's tools, and what sandbox holds
it. It starts no conversation, and without network where the kernel allows that. On a terminal each
line appears as soon as it is known; elsewhere the order of lines is always the same.

It changes nothing. --fix fixes what it can and prints each step: it removes stale sockets and the
file of a dead daemon, ends leftover processes, and cuts off a torn last line of a transition log.
It never changes the journal. Exit code 1 means that there is a problem.`,
		Example: `  fairlead doctor
  fairlead doctor --fix`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), fix) },
	}
	a.probeFlags(cmd)
	cmd.Flags().BoolVar(&fix, "fix", false, "mend what can be mended, and say each thing that is done; the journal is never touched")
	return cmd
}

func (a *app) doctor(ctx context.Context, fix bool) error {
	visits := a.visits()
	var hold func(finding) bool
	if fix { // shown when it was mended, in the words that it has then
		hold = func(f finding) bool { return !f.OK && f.fix != nil }
	}
	b := a.board(visits, hold)
	findings := round(ctx, visits, b)
	if fix {
		findings = mend(ctx, findings, func(f finding) {
			if !a.json {
				a.printFinding(f)
			}
		})
	}
	wrong := 0
	for _, f := range findings {
		if !f.OK {
			wrong++
		}
	}
	if a.json {
		if err := a.printJSON(map[string]any{"ok": wrong == 0, "findings": findings}); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return &coded{exitFailed, fmt.Errorf("%d of %d findings want looking at", wrong, len(findings))}
	}
	return nil
}

// visits are what doctor goes to see here, in the order in which it is told of.
func (a *app) visits() []visit {
	visits := []visit{{about: "the system", free: true, look: func(_ context.Context, say func(...finding)) { say(lookAtSystem()...) }}}
	conf, first := a.lookAtConfiguration()
	visits = append(visits, visit{about: "the configuration", free: true, look: func(_ context.Context, say func(...finding)) { say(first...) }})
	met := &agentsMet{paths: map[string]bool{}}
	if conf != nil {
		met.agents = conf.Agents
		for _, agent := range conf.Agents {
			met.wait.Add(1)
			visits = append(visits, visit{about: "agent " + agent.Name, look: func(ctx context.Context, say func(...finding)) {
				defer met.wait.Done()
				found := lookAtAgent(ctx, agent)
				met.add(found)
				say(found...)
			}})
		}
	}
	visits = append(visits, visitPrograms(met)...)
	return append(visits, visit{about: "the journal and what it tells of", free: true, look: func(ctx context.Context, say func(...finding)) { a.lookAtState(ctx, conf, say) }})
}

// lookAtConfiguration reads fairlead.yaml; nil where it is not there, or wrong.
func (a *app) lookAtConfiguration() (*config.Config, []finding) {
	conf, err := a.load()
	_, missing := os.Lstat(filepath.Join(a.dir, config.FileName))
	switch {
	case err != nil && errors.Is(missing, os.ErrNotExist):
		return nil, []finding{{OK: true, About: "configuration", What: "there is no fairlead.yaml in " + a.dir + " yet", Do: "`fairlead init` writes one; `fairlead demo` shows a team without any"}}
	case err != nil:
		return nil, []finding{{About: "configuration", What: err.Error(), Do: "mend fairlead.yaml; each line above names a place"}}
	}
	findings := []finding{{OK: true, About: "configuration", What: "fairlead.yaml names " + howMany(len(conf.Agents), "agent", "agents")}}
	for _, note := range conf.Notes {
		findings = append(findings, finding{OK: true, About: "configuration", What: note.Error()})
	}
	return conf, findings
}

// printFinding shows one finding to a person.
func (a *app) printFinding(f finding) {
	mark := a.paint(green, "ok ")
	if !f.OK {
		mark = a.paint(red, "!! ")
	}
	fmt.Fprintf(a.out, "%s %-14s %s\n", mark, f.About, plain(f.What))
	if f.Do != "" {
		fmt.Fprintf(a.out, "%19s%s\n", "", plain(f.Do))
	}
}

// lookAtSystem says what this machine allows.
func lookAtSystem() []finding {
	var findings []finding
	if path, err := exec.LookPath("git"); err == nil {
		findings = append(findings, finding{OK: true, About: "git", What: path})
	} else {
		findings = append(findings, finding{About: "git", What: "there is no git", Do: "install it: worktrees and the demo need it"})
	}
	if runtime.GOOS != "linux" {
		findings = append(findings, finding{OK: true, About: "system", What: runtime.GOOS + " has no subreaper and no parent-death signal: process trees are found by their mark alone"})
	}
	return findings
}

// lookAtAgent asks an agent's driver whether it could be started, and greets its program.
func lookAtAgent(ctx context.Context, agent config.Agent) []finding {
	about := "agent " + agent.Name
	d, ok := drivers()[agent.Driver]
	if !ok {
		return []finding{{About: about, What: "this build has no driver " + agent.Driver, Do: "use one of those that it has: " + strings.Join(slices.Sorted(maps.Keys(drivers())), ", ")}}
	}
	if _, err := os.Stat(agent.Workspace); errors.Is(err, os.ErrNotExist) {
		return []finding{{OK: true, About: about, What: "its workspace " + agent.Workspace + " will be made at the first start"}}
	}
	env, err := agent.Env.Resolve(os.LookupEnv)
	if err == nil {
		err = d.Check(driver.Agent{Name: agent.Name, Command: agent.Command, Script: agent.Script, Workspace: agent.Workspace, Env: env, Model: agent.Model, Mode: agent.Mode})
	}
	if err != nil {
		return []finding{{About: about, What: "it could not be started: " + err.Error(), Do: "mend that, or `fairlead stop " + agent.Name + "`"}}
	}
	findings := []finding{{OK: true, About: about, What: "driver " + agent.Driver + " finds what it needs"}}
	findings = append(findings, probeAgent(ctx, agent, env)...)
	return append(findings, lookAtFile(agent)...)
}

func lookAtFile(agent config.Agent) []finding {
	path := filepath.Join(agent.Workspace, agentfile.FileName)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = agentfile.Parse(text)
	}
	if err != nil {
		return []finding{{About: "agent " + agent.Name, What: path + ": " + err.Error(), Do: "with fairlead up it is kept aside and written anew; or mend it by hand"}}
	}
	return nil
}

// lookAtState looks at .fairlead: the daemon, the journal, and what was left behind.
func (a *app) lookAtState(ctx context.Context, conf *config.Config, say func(...finding)) {
	state := filepath.Join(a.dir, ".fairlead")
	if _, err := os.Stat(state); errors.Is(err, os.ErrNotExist) {
		say(finding{OK: true, About: "state", What: "fairlead never ran here"})
		return
	}
	if err := syscall.Access(state, 2); err != nil {
		say(finding{About: "state", What: state + " cannot be written: " + err.Error(), Do: "give it back to the user that runs fairlead"})
	}
	say(a.lookAtDaemon(ctx))
	looking, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	whole := true
	for _, f := range sqlite.Check(looking, filepath.Join(state, "journal.db")) {
		whole = whole && f.OK
		say(finding{OK: f.OK, About: "journal", What: f.What, Do: f.Do})
	}
	say(lookAtDisk(state)...)
	say(a.lookAtSockets(ctx)...)
	for _, log := range logs {
		say(lookAtLog(filepath.Join(state, "log", log.name), log.called, isLocked(filepath.Join(state, "lock")))...)
	}
	if conf != nil && whole {
		say(a.lookAtTruth(ctx, conf)...)
	}
	say(a.lookForStrays()...)
}

func (a *app) lookAtDaemon(ctx context.Context) finding {
	client, err := a.dial()
	var none *apiclient.NoDaemon
	switch {
	case errors.As(err, &none):
		return a.lookAtDeadDaemon()
	case err != nil:
		return finding{About: "daemon", What: "it cannot be reached: " + err.Error(), Do: "see .fairlead/log/daemon.log"}
	}
	defer client.Close()
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := client.Status(asking)
	if err != nil {
		return finding{About: "daemon", What: "it does not answer: " + err.Error(), Do: "see .fairlead/log/daemon.log; if it hangs, end it by its process id and run `fairlead up`: agents go on"}
	}
	return finding{OK: true, About: "daemon", What: fmt.Sprintf("process %d, version %s, %d changes in its journal", status.PID, status.Version, status.Journal.Head)}
}

// lookAtDeadDaemon looks whether a daemon that is gone has left word that it is there.
func (a *app) lookAtDeadDaemon() finding {
	path := filepath.Join(a.dir, ".fairlead", "daemon.json")
	lock := filepath.Join(a.dir, ".fairlead", "lock")
	switch _, err := os.Lstat(path); {
	case isLocked(lock):
		return finding{About: "daemon", What: "a daemon holds this folder and does not answer", Do: "it may be starting or stopping: look again; if it hangs, `lslocks` names the process that holds " + lock}
	case err != nil:
		return finding{OK: true, About: "daemon", What: "it does not run"}
	}
	return finding{
		About: "daemon", What: "it does not run, and " + path + " of one that was killed is still there", Do: "`fairlead up` finds again what it left at work; `fairlead doctor --fix` removes the file",
		fix: func(context.Context) (string, error) {
			if isLocked(lock) {
				return "nothing was removed: a daemon has come", nil
			}
			return "removed " + path, os.Remove(path)
		},
	}
}

// lookForStrays proves that nothing is left of sessions that are over.
func (a *app) lookForStrays() []finding {
	strays, err := shim.Strays(a.dir)
	if err != nil {
		return []finding{{About: "processes", What: "they cannot be looked through: " + err.Error(), Do: "try again as the user that runs fairlead"}}
	}
	if len(strays) == 0 {
		return []finding{{OK: true, About: "processes", What: "none is left behind"}}
	}
	var findings []finding
	for _, p := range strays {
		findings = append(findings, finding{About: "processes", What: fmt.Sprintf("%d (%s) was left behind by session %s", p.PID, p.Command, p.Session), Do: "`fairlead doctor --fix` ends it"})
	}
	// The daemon sweeps as it recovers; beside a living one this takes only what has no shim.
	findings[0].fix = func(ctx context.Context) (string, error) {
		ended, err := shim.EndStrays(ctx, a.dir)
		return fmt.Sprintf("ended %d processes that were left behind", len(ended)), err
	}
	for i := range findings[1:] {
		findings[i+1].fix = func(context.Context) (string, error) { return "ended with the first", nil }
	}
	return findings
}

// mend does what can be done, and says so in the place of what was wrong. Each is shown as it is done.
func mend(ctx context.Context, findings []finding, show func(finding)) []finding {
	for i, f := range findings {
		if f.OK || f.fix == nil {
			continue
		}
		if done, err := f.fix(ctx); err != nil {
			findings[i].Do = "it could not be mended: " + err.Error() + "; do it by hand"
		} else {
			findings[i] = finding{OK: true, About: f.About, What: f.What + ": " + done}
		}
		show(findings[i])
	}
	return findings
}
