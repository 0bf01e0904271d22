package agents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

// reach is where the sessions of an agent in a sandbox may write.
type reach struct {
	agent   string
	folders []string
}

// reachesOf lists the agents in a sandbox.
func reachesOf(conf *config.Config) (all []reach) {
	home, _ := os.UserHomeDir() // without one, no sandbox is made for a folder in it
	for _, a := range conf.Agents {
		if !a.Sandbox.On() {
			continue
		}
		r := reach{agent: a.Name}
		for _, folder := range places.WriteFolders(a.Permissions.CanWrite) {
			if folder = dispatchfolder.InHome(folder, home); !filepath.IsAbs(folder) {
				folder = filepath.Join(a.Workspace, folder)
			}
			r.folders = append(r.folders, settled(folder))
		}
		for _, folder := range a.Sandbox.Write {
			r.folders = append(r.folders, settled(folder))
		}
		all = append(all, r)
	}
	return all
}

// settled resolves the links of a path that exists.
func settled(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// writersOf lists the agents in a sandbox whose sessions can write the file of an agent: its own sessions, unless it is foreign, because
// such a program writes its own orders, and those whose folders contain it (SPEC X10).
func (c *Controller) writersOf(m *AgentFile) (names []string) {
	folder := settled(m.Conf.Workspace)
	for _, r := range c.reaches() {
		own := r.agent == m.Conf.Name
		if own && m.Conf.Loop != config.LoopForeign || !own && slices.ContainsFunc(r.folders, func(f string) bool {
			return f == folder || strings.HasPrefix(folder, strings.TrimSuffix(f, "/")+"/")
		}) {
			names = append(names, r.agent)
		}
	}
	return names
}
