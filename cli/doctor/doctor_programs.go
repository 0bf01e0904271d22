package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/cli/probe"
	"github.com/fairlead-dev/fairlead/cli/setup"
	"github.com/fairlead-dev/fairlead/config"
)

// AgentsMet are the agents of the file, and the programs that they run.
type AgentsMet struct {
	Agents []config.Agent
	Wait   sync.WaitGroup // for the checks of them

	mu    sync.Mutex
	Paths map[string]bool
}

// Add records the agent programs of findings.
func (m *AgentsMet) Add(found []Finding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range found {
		if f.Program != nil {
			m.Paths[f.Program.Path] = true
		}
	}
}

// Has reports whether a program is an agent's. If it may be, it waits for the checks of the agents.
func (m *AgentsMet) Has(p setup.FoundProgram) bool {
	mayBe := func(agent config.Agent) bool {
		return agent.Driver == p.Driver && (len(agent.Command) == 0 || filepath.Base(agent.Command[0]) == p.File)
	}
	if !slices.ContainsFunc(m.Agents, mayBe) {
		return false
	}
	m.Wait.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Paths[p.Path]
}

// visitPrograms finds the agent programs in the PATH, and probes those that no agent of the file
// uses. No conversation is started. A problem with an unused program is not a fault.
func visitPrograms(met *AgentsMet) []Visit {
	found := setup.FindPrograms(os.Getenv("PATH"))
	if len(found) == 0 {
		none := Finding{OK: true, About: "programs", What: "no agent program that is known is in the PATH; doc/agents names them"}
		return []Visit{{About: "programs", Free: true, Look: func(_ context.Context, say func(...Finding)) { say(none) }}}
	}
	var visits []Visit
	for _, p := range found {
		visits = append(visits, Visit{About: "program " + p.Name, Look: func(ctx context.Context, say func(...Finding)) {
			if !met.Has(p) {
				say(lookAtProgram(ctx, p))
			}
		}})
	}
	return visits
}

func lookAtProgram(ctx context.Context, p setup.FoundProgram) Finding {
	f := Finding{
		OK: true, About: "program " + p.Name,
		Program: &probe.Program{Name: p.Title, Path: p.Path, Driver: p.Driver, Command: p.Command, MCP: []string{}, Warnings: []string{}, Ran: p.Ran, Page: "doc/agents/" + p.Page},
	}
	if !probe.Can(p.Driver) {
		f.What = fmt.Sprintf("%s is %s: found, not known", p.Path, p.Title)
		if f.Do = p.Hint; f.Do == "" {
			f.Do = "this build has no driver for it; see " + f.Program.Page
		}
		return f
	}
	f.Program.Known = true
	reply, err := probe.Ask(ctx, probe.Request{Driver: p.Driver, Name: p.Name, Command: append([]string{p.Path}, p.Command[1:]...)}, nil)
	if err == nil && reply.Fault != "" {
		err = fmt.Errorf("%s", probe.WithoutAgent(reply.Fault, p.Name))
	}
	if err != nil {
		f.What = fmt.Sprintf("%s is %s by its name, and did not answer as one: %s", p.Path, p.Title, err)
		f.Do = "start it once by hand; " + f.Program.Page + " says what it needs"
		f.Program.Warnings = append(f.Program.Warnings, err.Error())
		return f
	}
	f.Program.Take(reply.Found)
	f.What = f.Program.Words()
	f.Do = strings.Join(f.Program.Warnings, "; ")
	return f
}
