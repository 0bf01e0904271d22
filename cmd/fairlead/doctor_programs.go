package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
)

// programFound is what is known of an agent program, for programs.
type programFound struct {
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
	Ran      bool     `json:"ran"` // it was driven when this was built; else what is known is from its documentation
	Page     string   `json:"page,omitempty"`
}

// agentsMet are the agents of the file, and which programs they turned out to be.
type agentsMet struct {
	agents []config.Agent
	wait   sync.WaitGroup // for the visits to them

	mu    sync.Mutex
	paths map[string]bool
}

func (m *agentsMet) add(found []finding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range found {
		if f.Program != nil {
			m.paths[f.Program.Path] = true
		}
	}
}

// has says whether a program is an agent's. Where it may be, it waits for the visits to the agents.
func (m *agentsMet) has(p foundProgram) bool {
	mayBe := func(agent config.Agent) bool {
		return agent.Driver == p.driver && (len(agent.Command) == 0 || filepath.Base(agent.Command[0]) == p.file)
	}
	if !slices.ContainsFunc(m.agents, mayBe) {
		return false
	}
	m.wait.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.paths[p.path]
}

// visitPrograms finds the agent programs in the PATH, and goes to see those that no agent of the
// file is. No conversation is begun. What is wrong with one that no agent uses is no fault.
func visitPrograms(met *agentsMet) []visit {
	found := findPrograms(os.Getenv("PATH"))
	if len(found) == 0 {
		none := finding{OK: true, About: "programs", What: "no agent program that is known is in the PATH; doc/agents names them"}
		return []visit{{about: "programs", free: true, look: func(_ context.Context, say func(...finding)) { say(none) }}}
	}
	var visits []visit
	for _, p := range found {
		visits = append(visits, visit{about: "program " + p.name, look: func(ctx context.Context, say func(...finding)) {
			if !met.has(p) {
				say(lookAtProgram(ctx, p))
			}
		}})
	}
	return visits
}

func lookAtProgram(ctx context.Context, p foundProgram) finding {
	f := finding{
		OK: true, About: "program " + p.name,
		Program: &programFound{Name: p.title, Path: p.path, Driver: p.driver, Command: p.command, MCP: []string{}, Warnings: []string{}, Ran: p.ran, Page: "doc/agents/" + p.page},
	}
	_, can := drivers()[p.driver].(driver.Prober)
	if p.driver == "" || !can {
		f.What = fmt.Sprintf("%s is %s: found, not known", p.path, p.title)
		if f.Do = p.hint; f.Do == "" {
			f.Do = "this build has no driver for it; see " + f.Program.Page
		}
		return f
	}
	f.Program.Known = true
	reply, err := probe(ctx, probeWish{Driver: p.driver, Name: p.name, Command: append([]string{p.path}, p.command[1:]...)}, nil)
	if err == nil && reply.Fault != "" {
		err = fmt.Errorf("%s", withoutAgent(reply.Fault, p.name))
	}
	if err != nil {
		f.What = fmt.Sprintf("%s is %s by its name, and did not answer as one: %s", p.path, p.title, err)
		f.Do = "start it once by hand; " + f.Program.Page + " says what it needs"
		f.Program.Warnings = append(f.Program.Warnings, err.Error())
		return f
	}
	f.Program.take(reply.Found)
	f.What = f.Program.words()
	f.Do = strings.Join(f.Program.Warnings, "; ")
	return f
}

// withoutAgent takes an agent's name from the beginning of a fault: here there is none.
func withoutAgent(fault, name string) string {
	return strings.TrimPrefix(fault, "agent "+name+": ")
}

func (f *programFound) take(p driver.Probed) {
	f.Version, f.Speaks, f.Resumes, f.Enforced = short(p.Program), short(p.Speaks), p.Resumes, short(p.Enforced)
	f.MCP = append(f.MCP, p.MCP...)
	for _, w := range p.Warnings {
		f.Warnings = append(f.Warnings, short(w))
	}
}

// short cuts what a program says of itself: it is one line of many.
func short(said string) string {
	const saidBytesMax = 400
	if len(said) > saidBytesMax {
		return strings.ToValidUTF8(said[:saidBytesMax], "") + "…"
	}
	return said
}

// words say in one line what a program is and what works.
func (f *programFound) words() string {
	said := f.Version
	if said == "" {
		said = f.Name
	}
	resume := "goes on with a conversation"
	if !f.Resumes {
		resume = "begins every conversation anew"
	}
	tools := "does not take the team's tools"
	if len(f.MCP) > 0 {
		tools = "takes the team's tools over " + strings.Join(f.MCP, " or ")
	}
	parts := []string{fmt.Sprintf("%s at %s: driver %s (%s)", said, f.Path, f.Driver, f.Speaks), resume, tools}
	if f.Enforced != "" {
		parts = append(parts, f.Enforced)
	}
	return strings.Join(parts, "; ")
}

// probeAgent greets the program of an agent of the file, as it would be started. A program that
// does not answer is a fault: somebody counts on it.
func probeAgent(ctx context.Context, agent config.Agent, env []string) []finding {
	about := "agent " + agent.Name
	if _, can := drivers()[agent.Driver].(driver.Prober); !can || agent.Loop == config.LoopForeign {
		return nil
	}
	reply, err := probe(ctx, probeWish{Driver: agent.Driver, Name: agent.Name, Command: agent.Command, Dir: agent.Workspace, Model: agent.Model, Mode: agent.Mode}, env)
	if err == nil && reply.Fault != "" {
		err = fmt.Errorf("%s", withoutAgent(reply.Fault, agent.Name))
	}
	if err != nil {
		return []finding{{About: about, What: "its program did not answer: " + err.Error(), Do: "start it once by hand in " + agent.Workspace + "; doc/agents says what each program needs"}}
	}
	name := filepath.Base(reply.Found.Path)
	p := &programFound{Name: name, Path: reply.Found.Path, Known: true, Driver: agent.Driver, Command: agent.Command, MCP: []string{}, Warnings: []string{}}
	if i := slices.IndexFunc(agentPrograms, func(known agentProgram) bool { return known.file == name }); i >= 0 {
		p.Name, p.Ran, p.Page = agentPrograms[i].title, agentPrograms[i].ran, "doc/agents/"+agentPrograms[i].page
	}
	p.take(reply.Found)
	what := p.words()
	if !agent.MCP {
		what += "; it is offered none (`mcp: off`)"
	}
	return []finding{{OK: true, About: about, What: what, Do: strings.Join(p.Warnings, "; "), Program: p}}
}
