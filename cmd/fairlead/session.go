package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/claudehook"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/shim"
)

// usualPlace is where sessions lie in a repository (seed 002, Default Values).
const usualPlace = ".claude/agent-state-machine"

// byHand is who writes into a session's folder from the command line.
var byHand = dispatchfolder.Actor{Kind: "human", ID: "cli"}

// dispatchVerb groups the commands about a dispatch; subs names those that it has, or all where
// there are none.
func (a *app) dispatchVerb(subs ...string) *cobra.Command {
	var path string
	cmd := noun(&cobra.Command{
		Use:   "dispatch",
		Short: "Send requests to the agents whose descriptions fit, through a coordinator",
		Long: `A dispatch is a folder, by default in .claude/agent-state-machine. Its coordinator (MAIN) changes no
code. Each input starts a conversation with a folder of its own, and goes to the agent whose
description fits best. All state is in the folder, so these commands work without a daemon too; if
a daemon runs, agents of fairlead.yaml do the work.

The commands act on the open dispatch that was started last; --path names another one.`,
		Example: `  fairlead dispatch start
  fairlead dispatch input "write a hello world in Python" --wait
  fairlead dispatch status`,
	}, only(
		subs, a.sessionStartVerb(&path), a.sessionInputVerb(&path), a.sessionDelegateVerb(&path), a.sessionDoneVerb(&path), a.sessionRespondVerb(&path),
		a.sessionStatusVerb(&path), a.sessionListVerb(), a.sessionEndVerb(&path), a.sessionLogVerb(&path), a.routeVerb(&path), a.policyVerb(&path),
	)...)
	cmd.PersistentFlags().StringVar(&path, "path", "", "the dispatch `folder`, or its name (default: the open one that was started last)")
	return cmd
}

// oldPath adds --session, which some commands had in place of --path.
func oldPath(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "session", "", "the dispatch folder, or its name")
	if err := cmd.Flags().MarkHidden("session"); err != nil {
		panic("fairlead: " + err.Error())
	}
}

// openSession is the session that a verb is about, as it stands.
type openSession struct {
	*dispatchfolder.Folder
	is dispatch.Dispatch
}

// session finds the folder that path names; where it is empty, the open one that was begun last.
func (a *app) session(path string) (openSession, error) {
	var found openSession
	var err error
	if path == "" {
		found.Folder, err = dispatchfolder.Current(a.dir)
		if err == nil && found.Folder == nil {
			return found, &coded{exitRefused, fmt.Errorf("no dispatch is open in %s; start one with `fairlead dispatch start`, or name its folder with --path", a.dir)}
		}
	} else {
		found.Folder, err = dispatchfolder.Open(a.sessionPath(path))
	}
	if err != nil {
		var none *dispatchfolder.NotASession
		if errors.As(err, &none) {
			return found, &coded{exitUsage, fmt.Errorf("%w; `fairlead dispatch list` shows those there are", err)}
		}
		return found, err
	}
	found.is, err = found.Session()
	return found, err
}

// sessionPath is the folder that somebody names: by its path, or as the list does.
func (a *app) sessionPath(name string) string {
	if !strings.ContainsRune(name, filepath.Separator) && name != "." && name != ".." {
		if usual := filepath.Join(a.dir, filepath.FromSlash(usualPlace), name); isFolder(usual) && !isFolder(name) {
			return usual
		}
	}
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// ordering is session, for what nobody may do for himself.
func (a *app) ordering(path, event string) (openSession, error) {
	found, err := a.session(path)
	if err != nil {
		return found, err
	}
	return found, a.outside(event, found.Path(), found.is.Host)
}

// outside refuses what only a person or the command line outside may do (X10): whoever runs in a
// session of ours would name himself the paths that he may write, or let himself out. What an
// agent program starts is inside of its session too.
func (a *app) outside(event, folder string, host dispatch.Host) error {
	no := &machine.Refusal{
		Subject: filepath.Base(folder), Event: event, Row: "X10",
		Reason: "nobody releases himself: an agent says nothing as a person, and neither begins nor ends what it works in; ask the person whose session this is",
	}
	repos := []string{a.dir}
	if repo := repoOf(folder); repo == "" {
		if mark := os.Getenv("FAIRLEAD_MARK"); mark != "" {
			no.State = "asked from within an agent's session"
			return no
		}
	} else if repo != a.dir {
		repos = append(repos, repo)
	}
	for _, repo := range repos {
		if id, inside := shim.SessionOf(repo, os.Getpid()); inside {
			no.State = "asked from within " + id
			return no
		}
	}
	if host == dispatch.Claude && claudehook.Within(os.Getpid()) {
		no.State = "asked from within the agent program"
		no.Reason += ", which types /agent-state-machine there, or this in a terminal of its own"
		return no
	}
	return nil
}

// repoOf is the repository in whose usual place a session's folder lies; empty: it lies elsewhere.
func repoOf(folder string) string {
	repo, usual := strings.CutSuffix(filepath.Dir(folder), string(filepath.Separator)+filepath.FromSlash(usualPlace))
	if !usual {
		return ""
	}
	return repo
}

// maybeConfig is fairlead.yaml where there is one, and nil where there is none.
func (a *app) maybeConfig() (*config.Config, error) {
	conf, err := config.Load(a.dir, os.LookupEnv)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return conf, err
}

// describedAgents are the states beside MAIN that a session would have: who is described in
// .claude/agents, and who is in fairlead.yaml. notes are what is wrong with one of them.
func (a *app) describedAgents(conf *config.Config) (agents []dispatch.Description, notes []string, err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then there are no agents of the user's
	}
	agents, faults, err := dispatchfolder.Agents(a.dir, home)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range faults {
		notes = append(notes, f.File+": "+f.Why)
	}
	if conf == nil {
		return agents, notes, nil
	}
	return withConfigured(agents, conf), notes, nil
}
