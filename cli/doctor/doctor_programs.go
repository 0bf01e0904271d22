package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/cli/setup"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
)

// ProgramFound is what doctor knows about an agent program, for JSON.
type ProgramFound struct {
	Name     string   `json:"name"`
	Path     string   `json:"path"`
	Known    bool     `json:"known"`             // there is a driver for it
	Driver   string   `json:"driver,omitempty"`  // the word in fairlead.yaml
	Command  []string `json:"command,omitempty"` // the same
	Version  string   `json:"version,omitempty"` // its name and version, as it says them
	Speaks   string   `json:"speaks,omitempty"`
	Resumes  bool     `json:"resumes"`
	MCP      []string `json:"mcp"`
	Enforced string   `json:"enforced,omitempty"`
	Warnings []string `json:"warnings"`
	Ran      bool     `json:"ran"` // Fairlead's developers have run it; otherwise the facts are from its documentation
	Page     string   `json:"page,omitempty"`
}

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
		Program: &ProgramFound{Name: p.Title, Path: p.Path, Driver: p.Driver, Command: p.Command, MCP: []string{}, Warnings: []string{}, Ran: p.Ran, Page: "doc/agents/" + p.Page},
	}
	if !probes(p.Driver) {
		f.What = fmt.Sprintf("%s is %s: found, not known", p.Path, p.Title)
		if f.Do = p.Hint; f.Do == "" {
			f.Do = "this build has no driver for it; see " + f.Program.Page
		}
		return f
	}
	f.Program.Known = true
	reply, err := probe(ctx, probeWish{Driver: p.Driver, Name: p.Name, Command: append([]string{p.Path}, p.Command[1:]...)}, nil)
	if err == nil && reply.Fault != "" {
		err = fmt.Errorf("%s", withoutAgent(reply.Fault, p.Name))
	}
	if err != nil {
		f.What = fmt.Sprintf("%s is %s by its name, and did not answer as one: %s", p.Path, p.Title, err)
		f.Do = "start it once by hand; " + f.Program.Page + " says what it needs"
		f.Program.Warnings = append(f.Program.Warnings, err.Error())
		return f
	}
	f.Program.take(reply.Found)
	f.What = f.Program.words()
	f.Do = strings.Join(f.Program.Warnings, "; ")
	return f
}

// withoutAgent removes an agent's name from the beginning of a fault, because there is no agent
// here.
func withoutAgent(fault, name string) string {
	return strings.TrimPrefix(fault, "agent "+name+": ")
}

func (f *ProgramFound) take(p driver.Probed) {
	f.Version, f.Speaks, f.Resumes, f.Enforced = short(p.Program), short(p.Speaks), p.Resumes, short(p.Enforced)
	f.MCP = append(f.MCP, p.MCP...)
	for _, w := range p.Warnings {
		f.Warnings = append(f.Warnings, short(w))
	}
}

// short shortens what a program says about itself to a part of one line.
func short(said string) string {
	const saidBytesMax = 400
	if len(said) > saidBytesMax {
		return strings.ToValidUTF8(said[:saidBytesMax], "") + "…"
	}
	return said
}

// words describes in one line what a program is and what works.
func (f *ProgramFound) words() string {
	said := f.Version
	if said == "" {
		said = f.Name
	}
	resume := "can resume a conversation"
	if !f.Resumes {
		resume = "cannot resume conversations"
	}
	tools := "does not support the team's tools"
	if len(f.MCP) > 0 {
		tools = "supports the team's tools over " + strings.Join(f.MCP, " or ")
	}
	parts := []string{fmt.Sprintf("%s at %s: driver %s (%s)", said, f.Path, f.Driver, f.Speaks), resume, tools}
	if f.Enforced != "" {
		parts = append(parts, f.Enforced)
	}
	return strings.Join(parts, "; ")
}

// probeAgent greets the program of an agent of the file, started like the agent. A program that does
// not answer is a fault, because the team needs it.
func probeAgent(ctx context.Context, agent config.Agent, env []string) []Finding {
	about := "agent " + agent.Name
	if !probes(agent.Driver) || agent.Loop == config.LoopForeign {
		return nil
	}
	reply, err := probe(ctx, probeWish{Driver: agent.Driver, Name: agent.Name, Command: agent.Command, Dir: agent.Workspace, Model: agent.Model, Mode: agent.Mode}, env)
	if err == nil && reply.Fault != "" {
		err = fmt.Errorf("%s", withoutAgent(reply.Fault, agent.Name))
	}
	if err != nil {
		return []Finding{{About: about, What: "its program did not answer: " + err.Error(), Do: "start it once by hand in " + agent.Workspace + "; doc/agents says what each program needs"}}
	}
	name := filepath.Base(reply.Found.Path)
	p := &ProgramFound{Name: name, Path: reply.Found.Path, Known: true, Driver: agent.Driver, Command: agent.Command, MCP: []string{}, Warnings: []string{}}
	if i := slices.IndexFunc(setup.AgentPrograms, func(known setup.AgentProgram) bool { return known.File == name }); i >= 0 {
		p.Name, p.Ran, p.Page = setup.AgentPrograms[i].Title, setup.AgentPrograms[i].Ran, "doc/agents/"+setup.AgentPrograms[i].Page
	}
	p.take(reply.Found)
	what := p.words()
	if !agent.MCP {
		what += "; it is offered none (`mcp: off`)"
	}
	return []Finding{{OK: true, About: about, What: what, Do: strings.Join(p.Warnings, "; "), Program: p}}
}
