package dispatch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// The words for what carries out a session.
const (
	HostNone     = "none"
	HostFairlead = "fairlead"
)

// SessionBegun is what `fairlead dispatch start --json` prints.
type SessionBegun struct {
	Path   string   `json:"path"`
	State  string   `json:"state"`
	Mode   string   `json:"mode"`
	Name   string   `json:"name"`
	Host   string   `json:"host"`
	Agents int      `json:"agents"`
	Notes  []string `json:"notes,omitempty"`
}

// SessionStart starts a dispatch folder and prints its initial status.
func SessionStart(ctx context.Context, a *cli.App, path string, mode dispatch.Mode, host string) error {
	now := time.Now()
	where := filepath.Join(a.Dir, filepath.FromSlash(usualPlace), "new")
	if path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("find %s: %w", path, err)
		}
		path, where = abs, abs
	}
	if err := outside(a, "session_start", where, dispatch.NoHost); err != nil {
		return err
	}
	conf, err := a.MaybeConfig()
	if err != nil {
		return err
	}
	setup := dispatch.Setup{Mode: mode}
	options := dispatchfolder.Options{Repo: a.Dir, At: now, Actor: byHand}
	if conf != nil {
		options.Tools, options.NoCommits = conf.Dispatch.Tools, !conf.Dispatch.Commits
	}
	if setup.Host, err = hostOf(a, conf, host); err != nil {
		return err
	}
	var notes []string
	if setup.Agents, notes, err = describedAgents(a, conf); err != nil {
		return err
	}
	if setup.Host == dispatch.Fairlead {
		setup.Lead, setup.Ranker = conf.Dispatch.Main, conf.Dispatch.Ranker
		notes = append(notes, Unstartable(setup.Agents, conf)...)
	}
	if len(setup.Agents) == 0 {
		notes = append(notes, "no agent is described, so MAIN cannot delegate; describe agents in .claude/agents/NAME.md (name: and description: in its front matter)")
	}
	notes = append(notes, otherOpen(a)...)
	folder, is, err := dispatchfolder.Create(path, setup, options)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(SessionBegun{
			Path: folder.Path(), State: is.State(), Mode: string(is.Mode), Name: folder.Name(),
			Host: hostWord(is.Host), Agents: len(is.Agents), Notes: notes,
		})
	}
	for _, note := range notes {
		fmt.Fprintln(a.Err, "note: "+cli.Line(note, cli.ErrorWidth))
	}
	_, err = fmt.Fprint(a.Out, cli.Plain(strings.TrimRight(dispatchfolder.Status(is, len(is.Agents)), "\n"))+"\n")
	return err
}

// hostOf determines what carries out the session.
func hostOf(a *cli.App, conf *config.Config, host string) (dispatch.Host, error) {
	if host == HostNone || host == "" && !CanHost(conf) {
		return dispatch.NoHost, nil
	}
	if host == HostFairlead && conf == nil {
		_, err := a.Load() // its error says how to make a fairlead.yaml
		return "", err
	}
	client, err := a.Dial()
	var none *apiclient.NoDaemon
	switch {
	case err == nil:
		_ = client.Close() // the connection only shows that a daemon runs
		return dispatch.Fairlead, nil
	case host == "" && errors.As(err, &none):
		return dispatch.NoHost, nil
	default:
		return "", err
	}
}

// CanHost reports whether fairlead.yaml has an agent that an input could go to.
func CanHost(conf *config.Config) bool {
	return conf != nil && (conf.Dispatch.Main != "" || slices.ContainsFunc(conf.Agents, func(c config.Agent) bool { return c.Description != "" }))
}

func hostWord(h dispatch.Host) string {
	if h == dispatch.NoHost {
		return HostNone
	}
	return string(h)
}

// WithConfigured adds the agents of fairlead.yaml to those of .claude/agents. An agent in both has
// the description of fairlead.yaml, because that one can be started. MAIN is not among them.
func WithConfigured(agents []dispatch.Description, conf *config.Config) []dispatch.Description {
	agents = slices.DeleteFunc(agents, func(d dispatch.Description) bool { return d.Name == conf.Dispatch.Main })
	for _, c := range conf.Agents {
		if c.Description == "" || c.Name == conf.Dispatch.Main || c.Name == conf.Dispatch.Ranker {
			continue
		}
		d := dispatch.Description{Name: c.Name, Text: c.Description, File: conf.File}
		if i := slices.IndexFunc(agents, func(d dispatch.Description) bool { return d.Name == c.Name }); i >= 0 {
			agents[i] = d
		} else {
			agents = append(agents, d)
		}
	}
	slices.SortFunc(agents, func(a, b dispatch.Description) int { return strings.Compare(a.Name, b.Name) })
	return agents
}

// Unstartable names described agents that cannot be started.
func Unstartable(agents []dispatch.Description, conf *config.Config) []string {
	var names []string
	for _, d := range agents {
		if _, ok := conf.Agent(d.Name); !ok {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("described only in .claude/agents, so fairlead cannot start them and a task for them fails: %s; add them to %s", strings.Join(names, ", "), conf.File)}
}

// otherOpen names sessions that are open already: they stay open, and commands without --path now
// mean the new one.
func otherOpen(a *cli.App) []string {
	found, err := dispatchfolder.List(a.Dir)
	if err != nil {
		return nil // `fairlead dispatch list` reports the error
	}
	var names []string
	for _, f := range found {
		if f.Open() {
			names = append(names, f.Folder.Name())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"already open, and from now on only reachable with --path: " + strings.Join(names, ", ") + "; `fairlead dispatch end --path NAME` ends one"}
}
