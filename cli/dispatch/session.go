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
	dispatchctl "github.com/fairlead-dev/fairlead/controller/dispatch"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/shim"
)

// usualPlace is the folder of sessions in a repository (seed 002, Default Values).
const usualPlace = ".claude/agent-state-machine"

// byHand is the actor of entries that the command line writes.
var byHand = dispatchfolder.Actor{Kind: "human", ID: "cli"}

// Orders returns the orders to dispatch folders under the repository's fairlead.yaml, if it has one.
func Orders(a *cli.App) (dispatchctl.Orders, error) {
	conf, err := a.MaybeConfig()
	if err == nil && conf == nil {
		conf = &config.Config{Dir: a.Dir}
	}
	return dispatchctl.NewOrders(conf), err
}

// Session finds the folder that path names; an empty path means the open session that was started
// last.
func Session(a *cli.App, path string) (dispatchfolder.Found, error) {
	var found dispatchfolder.Found
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
	found.Session, err = found.Folder.Session()
	return found, err
}

// SessionPath resolves a session's name: a path, or a name in the list.
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

// Ordering is Session for orders that an agent may not give.
func Ordering(a *cli.App, path, event string) (dispatchfolder.Found, error) {
	found, err := Session(a, path)
	if err != nil {
		return found, err
	}
	return found, outside(a, event, found.Folder.Path(), found.Session.Host)
}

// outside refuses orders that an agent may not give (X10): an agent could name the paths that it may
// write, or lift its own restrictions. Processes that an agent program starts count as the agent.
func outside(a *cli.App, event, folder string, host dispatch.Host) error {
	no := &machine.Refusal{
		Subject: filepath.Base(folder), Event: event, Row: "X10",
		Reason: "an agent may not act as a person, nor start or end the session that it works in; ask the person whose session this is",
	}
	switch at := shim.Here(a.Dir); {
	case at.Session != "":
		no.State = "asked from within " + at.Session
		return no
	case at.Foreign != "":
		no.State = "asked from within " + at.Foreign + " of another repository"
		return no
	}
	is := dispatch.Dispatch{Setup: dispatch.Setup{Host: host}}
	return dispatchctl.Target{Name: no.Subject, Found: dispatchfolder.Found{Session: is}}.MayOrder(event, func() bool { return claudehook.Within(os.Getpid()) })
}

// repoOf returns the repository whose usual folder contains a session; if it is elsewhere, the present one.
func repoOf(a *cli.App, folder *dispatchfolder.Folder) string {
	if folder == nil {
		return a.Dir
	}
	repo, usual := strings.CutSuffix(filepath.Dir(folder.Path()), string(filepath.Separator)+filepath.FromSlash(usualPlace))
	if !usual {
		return a.Dir
	}
	return repo
}
