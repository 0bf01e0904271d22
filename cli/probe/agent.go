package probe

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/setup"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/driver"
)

// Finding is one result of a look at something.
type Finding struct {
	OK    bool   `json:"ok"`
	About string `json:"about"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"` // what a person can do; for an OK finding, additional information

	Program *Program `json:"program,omitempty"` // for an agent program

	Fix func(ctx context.Context) (done string, err error) `json:"-"` // nil: only a person can fix it
}

// Program is what is known about an agent program, for JSON.
type Program struct {
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

// Agent asks an agent's driver whether the agent can be started, and greets its program.
func Agent(ctx context.Context, agent config.Agent) []Finding {
	about := "agent " + agent.Name
	if agent.Loop == config.LoopForeign && len(agent.Command) == 0 {
		return []Finding{{OK: true, About: about, What: "its own loop runs elsewhere and reads its agent_state.json"}}
	}
	d, ok := cli.Drivers()[agent.Driver]
	if !ok {
		return []Finding{{About: about, What: "this build has no driver " + agent.Driver, Do: "use one of: " + strings.Join(slices.Sorted(maps.Keys(cli.Drivers())), ", ")}}
	}
	env, err := agent.Env.Resolve(os.LookupEnv)
	if err == nil {
		err = d.Check(driver.Agent{Name: agent.Name, Command: agent.Command, Script: agent.Script, Workspace: agent.Workspace, Env: env, Model: agent.Model, Mode: agent.Mode})
	}
	if err != nil {
		return []Finding{{About: about, What: "it could not be started: " + err.Error(), Do: "fix that, or `fairlead stop " + agent.Name + "`"}}
	}
	findings := []Finding{{OK: true, About: about, What: "driver " + agent.Driver + " finds what it needs; " + sessions.VariablesInWords(d, &agent)}}
	return append(findings, greet(ctx, agent, env)...)
}

// WithoutAgent removes an agent's name from the beginning of a fault, because there is no agent
// here.
func WithoutAgent(fault, name string) string {
	return strings.TrimPrefix(fault, "agent "+name+": ")
}

// Take takes over what the program said of itself.
func (f *Program) Take(p driver.Probed) {
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

// Words describes in one line what a program is and what works.
func (f *Program) Words() string {
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

// greet greets the program of an agent of the file, started like the agent. A program that does
// not answer is a fault, because the team needs it.
func greet(ctx context.Context, agent config.Agent, env []string) []Finding {
	about := "agent " + agent.Name
	if !Can(agent.Driver) || agent.Loop == config.LoopForeign {
		return nil
	}
	reply, err := Ask(ctx, Request{Driver: agent.Driver, Name: agent.Name, Command: agent.Command, Dir: agent.Workspace, Model: agent.Model, Mode: agent.Mode}, env)
	if err == nil && reply.Fault != "" {
		err = fmt.Errorf("%s", WithoutAgent(reply.Fault, agent.Name))
	}
	if err != nil {
		return []Finding{{About: about, What: "its program did not answer: " + err.Error(), Do: "start it once by hand in " + agent.Workspace + "; doc/agents says what each program needs"}}
	}
	name := filepath.Base(reply.Found.Path)
	p := &Program{Name: name, Path: reply.Found.Path, Known: true, Driver: agent.Driver, Command: agent.Command, MCP: []string{}, Warnings: []string{}}
	if i := slices.IndexFunc(setup.AgentPrograms, func(known setup.AgentProgram) bool { return known.File == name }); i >= 0 {
		p.Name, p.Ran, p.Page = setup.AgentPrograms[i].Title, setup.AgentPrograms[i].Ran, "doc/agents/"+setup.AgentPrograms[i].Page
	}
	p.Take(reply.Found)
	what := p.Words()
	if !agent.MCP {
		what += "; it is offered none (`mcp: off`)"
	}
	return []Finding{{OK: true, About: about, What: what, Do: strings.Join(p.Warnings, "; "), Program: p}}
}
