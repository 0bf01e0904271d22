package dispatch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/claudehook"
	"github.com/fairlead-dev/fairlead/cli"
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

// openSession is the session that a verb is about, as it stands.
type openSession struct {
	*dispatchfolder.Folder
	Is dispatch.Dispatch
}

// Session finds the folder that path names; where it is empty, the open one that was begun last.
func Session(a *cli.App, path string) (openSession, error) {
	var found openSession
	var err error
	if path == "" {
		found.Folder, err = dispatchfolder.Current(a.Dir)
		if err == nil && found.Folder == nil {
			return found, &cli.Coded{Code: cli.ExitRefused, Err: fmt.Errorf("no dispatch is open in %s; start one with `fairlead dispatch start`, or name its folder with --path", a.Dir)}
		}
	} else {
		found.Folder, err = dispatchfolder.Open(SessionPath(a, path))
	}
	if err != nil {
		var none *dispatchfolder.NotASession
		if errors.As(err, &none) {
			return found, &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("%w; `fairlead dispatch list` shows those there are", err)}
		}
		return found, err
	}
	found.Is, err = found.Session()
	return found, err
}

// SessionPath is the folder that somebody names: by its path, or as the list does.
func SessionPath(a *cli.App, name string) string {
	if !strings.ContainsRune(name, filepath.Separator) && name != "." && name != ".." {
		if usual := filepath.Join(a.Dir, filepath.FromSlash(usualPlace), name); isFolder(usual) && !isFolder(name) {
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

// Ordering is session, for what nobody may do for himself.
func Ordering(a *cli.App, path, event string) (openSession, error) {
	found, err := Session(a, path)
	if err != nil {
		return found, err
	}
	return found, outside(a, event, found.Path(), found.Is.Host)
}

// outside refuses what only a person or the command line outside may do (X10): whoever runs in a
// session of ours would name himself the paths that he may write, or let himself out. What an
// agent program starts is inside of its session too.
func outside(a *cli.App, event, folder string, host dispatch.Host) error {
	no := &machine.Refusal{
		Subject: filepath.Base(folder), Event: event, Row: "X10",
		Reason: "nobody releases himself: an agent says nothing as a person, and neither begins nor ends what it works in; ask the person whose session this is",
	}
	repos := []string{a.Dir}
	if repo := repoOf(folder); repo == "" {
		if mark := os.Getenv("FAIRLEAD_MARK"); mark != "" {
			no.State = "asked from within an agent's session"
			return no
		}
	} else if repo != a.Dir {
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

// describedAgents are the states beside MAIN that a session would have: who is described in
// .claude/agents, and who is in fairlead.yaml. notes are what is wrong with one of them.
func describedAgents(a *cli.App, conf *config.Config) (agents []dispatch.Description, notes []string, err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then there are no agents of the user's
	}
	agents, faults, err := dispatchfolder.Agents(a.Dir, home)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range faults {
		notes = append(notes, f.File+": "+f.Why)
	}
	if conf == nil {
		return agents, notes, nil
	}
	return WithConfigured(agents, conf), notes, nil
}
