package dispatch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
)

// Started is a dispatch that began. Notes are remarks about its agents and about other open dispatches.
type Started struct {
	*dispatchfolder.Folder
	Is    dispatch.Dispatch
	Notes []string
}

// StartDispatch creates a dispatch folder (D1). Empty arguments take the values of fairlead.yaml; a
// relative path starts at the repository. If the path exists, the error is a *machine.Refusal.
func (o Orders) StartDispatch(by change.Actor, mode, host, path string) (Started, error) {
	setup := dispatch.Setup{Mode: dispatch.Mode(mode), Host: o.host(host), Path: path}
	agents, notes, err := o.described()
	if err != nil {
		return Started{}, err
	}
	setup.Agents = agents
	if setup.Host == dispatch.Fairlead {
		setup.Lead, setup.Ranker = o.conf.Dispatch.Main, o.conf.Dispatch.Ranker
		notes = append(notes, o.unstartable(agents)...)
	}
	if len(agents) == 0 {
		notes = append(notes,
			"no agent is described, so MAIN cannot delegate; describe agents in .claude/agents/NAME.md (name: and description: in its front matter)")
	}
	notes = append(notes, o.othersOpen()...)
	if path = dispatchfolder.InHome(path, o.home); path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(o.conf.Dir, path)
	}
	f, is, err := dispatchfolder.Create(path, setup, dispatchfolder.Options{
		Repo: o.conf.Dir, Home: o.home, Actor: by, Tools: o.conf.Dispatch.Tools,
		NoCommits: o.conf.File != "" && !o.conf.Dispatch.Commits,
	})
	return Started{f, is, notes}, err
}

// NewDispatch returns a dispatch as it would start now. No folder is created.
func (o Orders) NewDispatch() (dispatch.Dispatch, error) {
	agents, _, err := o.described()
	return dispatch.Dispatch{Setup: dispatch.Setup{Mode: dispatch.Orchestrator, Host: o.host(""), Agents: agents}}, err
}

// described returns the agents of a dispatch that starts now, by name: those of .claude/agents, and those of
// fairlead.yaml, whose description counts if both have one, because they can be started. MAIN is not
// among them. The notes are problems with the descriptions.
func (o Orders) described() (agents []dispatch.Description, notes []string, err error) {
	agents, faults, err := dispatchfolder.Agents(o.conf.Dir, o.home)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range faults {
		notes = append(notes, f.File+": "+f.Why)
	}
	for _, a := range o.conf.Agents {
		if a.Description == "" || a.Name == o.conf.Dispatch.Ranker {
			continue
		}
		agents = slices.DeleteFunc(agents, func(d dispatch.Description) bool { return d.Name == a.Name })
		agents = append(agents, dispatch.Description{Name: a.Name, Text: a.Description, File: o.conf.File})
	}
	agents = slices.DeleteFunc(agents, func(d dispatch.Description) bool { return d.Name == o.conf.Dispatch.Main })
	slices.SortFunc(agents, func(a, b dispatch.Description) int { return strings.Compare(a.Name, b.Name) })
	return agents, notes, nil
}

// host returns who carries out a dispatch; an empty word is the default of fairlead.yaml.
func (o Orders) host(asked string) dispatch.Host {
	if asked == string(dispatch.Fairlead) || asked == "" && o.CanHost() {
		return dispatch.Fairlead
	}
	return dispatch.NoHost
}

// CanHost reports whether fairlead.yaml has an agent that an input could go to.
func (o Orders) CanHost() bool {
	return o.conf.Dispatch.Main != "" || slices.ContainsFunc(o.conf.Agents, func(a config.Agent) bool { return a.Description != "" })
}

// unstartable names the described agents that fairlead.yaml does not have.
func (o Orders) unstartable(agents []dispatch.Description) []string {
	var names []string
	for _, d := range agents {
		if _, ok := o.conf.Agent(d.Name); !ok {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("described only in .claude/agents, so fairlead cannot start them and a task for them fails: %s; add them to %s", strings.Join(names, ", "), o.conf.File)}
}

// othersOpen names dispatches that are open already: they stay open, and commands without --path now
// mean the new one.
func (o Orders) othersOpen() []string {
	found, err := dispatchfolder.List(o.conf.Dir)
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
	return []string{"already open, and from now on only reachable with --path: " + strings.Join(names, ", ") +
		"; `fairlead dispatch end --path NAME` ends one"}
}
