package probe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/setup"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// A probe starts an agent program, greets it and ends it. It does so in a process of its own, so
// that all processes of the program end with it: if the kernel allows, that process has its own PID
// namespace and a network without connections.

const (
	probeTimeout  = 40 * time.Second // a program that takes longer to start needs a check by hand
	probeBytesMax = 1 << 20          // of the answer; much more than it needs
)

// Request is the input of the probing process, on its standard input. The agent's environment is
// that process's environment; the input has only the names.
type Request struct {
	Driver  string   `json:"driver"`
	Name    string   `json:"name"`
	Command []string `json:"command"`
	Dir     string   `json:"dir"`
	Model   string   `json:"model,omitempty"`
	Mode    string   `json:"mode,omitempty"`
	// names of those that the agent's configuration sets; their values are in the environment
	Variables []string `json:"variables,omitempty"`
}

// Reply is the answer of the probing process.
type Reply struct {
	Found driver.Probed `json:"found"`
	Fault string        `json:"fault,omitempty"`
}

// errNotApart says that the kernel provided no usable network namespace.
var errNotApart = errors.New("no network of its own")

const exitNotApart = 9 // the probing process exits with this, and is started again without a network of its own

// Can reports whether this build has a driver of this name, and it can examine programs.
func Can(name string) bool {
	d := cli.Drivers()[name]
	return d != nil && d.Capabilities(driver.Agent{}, driver.Work).Probes
}

// Here reads what to probe, probes it and prints the answer.
func Here(ctx context.Context, a *cli.App, apart bool) error {
	if apart {
		if err := raiseLoopback(); err != nil {
			return &cli.Coded{Code: exitNotApart, Err: fmt.Errorf("%w: %w", errNotApart, err)}
		}
	}
	var asked Request
	if err := json.NewDecoder(io.LimitReader(a.In, probeBytesMax)).Decode(&asked); err != nil {
		return fmt.Errorf("read what to probe: %w", err)
	}
	if !Can(asked.Driver) {
		return fmt.Errorf("the driver %s cannot probe programs", asked.Driver)
	}
	var reply Reply
	var err error
	reply.Found, err = cli.Drivers()[asked.Driver].Probe(ctx, driver.Agent{
		Name: asked.Name, Command: asked.Command, Workspace: asked.Dir, Env: environmentOf(asked.Variables), Model: asked.Model,
		Mode: asked.Mode,
	})
	if err != nil {
		reply.Fault = err.Error()
	}
	return json.NewEncoder(a.Out).Encode(reply)
}

// environmentOf returns the variables of this process with these names, as K=V.
func environmentOf(names []string) []string {
	var env []string
	for _, name := range names {
		env = append(env, name+"="+os.Getenv(name))
	}
	return env
}

// Ask examines a program in a process of its own. env is added to the environment.
func Ask(ctx context.Context, asked Request, env []string) (Reply, error) {
	reply, err := probeOnce(ctx, asked, env, true)
	if errors.Is(err, errNotApart) {
		reply, err = probeOnce(ctx, asked, env, false)
	}
	return reply, err
}

func probeOnce(ctx context.Context, asked Request, env []string, apart bool) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return Reply{}, fmt.Errorf("find the fairlead program: %w", err)
	}
	dir, err := os.MkdirTemp("", "fairlead-probe-") // files that the program writes into its working folder are thrown away
	if err != nil {
		return Reply{}, fmt.Errorf("make room for a probe: %w", err)
	}
	defer os.RemoveAll(dir)
	asked.Dir = cmp.Or(asked.Dir, dir)
	env = append(slices.Clip(quiet), env...)
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		asked.Variables = append(asked.Variables, name)
	}
	told, err := json.Marshal(asked)
	if err != nil {
		return Reply{}, fmt.Errorf("write what to probe: %w", err)
	}
	words := []string{"fairlead", "doctor", "--probe"}
	if apart {
		words = append(words, "--apart")
	}
	out, errs := file.Capped{Max: probeBytesMax}, file.Capped{Max: probeBytesMax}
	cmd := &exec.Cmd{
		Path: self, Args: words, Dir: dir, Env: append(os.Environ(), env...),
		Stdin: bytes.NewReader(told), Stdout: &out, Stderr: &errs, SysProcAttr: probeAttr(apart), WaitDelay: time.Second,
	}
	if cmd.SysProcAttr == nil {
		return Reply{}, errNotApart
	}
	if err := cmd.Start(); err != nil {
		if apart {
			return Reply{}, fmt.Errorf("%w: %w", errNotApart, err)
		}
		return Reply{}, fmt.Errorf("start a probe: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // processes of the program that are left in the group; usually none
	var reply Reply
	switch {
	case ctx.Err() != nil:
		return Reply{}, fmt.Errorf("it did not answer within %s", probeTimeout)
	case apart && cmd.ProcessState.ExitCode() == exitNotApart:
		return Reply{}, errNotApart
	case err != nil:
		return Reply{}, fmt.Errorf("the probe ended with %w: %s", err, bytes.TrimSpace(errs.Bytes()))
	}
	if err := json.Unmarshal(out.Bytes(), &reply); err != nil {
		return Reply{}, fmt.Errorf("the probe's answer is invalid: %w", err)
	}
	return reply, nil
}

// quiet are variables that turn off what programs do on their own at start.
var quiet = []string{
	"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "DISABLE_AUTOUPDATER=1",
	"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	"NO_UPDATE_NOTIFIER=1", "DO_NOT_TRACK=1",
}

// Finding is one result of a look at something.
type Finding struct {
	OK    bool   `json:"ok"`
	About string `json:"about"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"` // what a person can do; for an OK finding, additional information

	Program *Program         `json:"program,omitempty"` // for an agent program
	Wall    *sandbox.Ability `json:"wall,omitempty"`    // for the sandbox: what walls are made of here, and why not of more

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
		return []Finding{{
			About: about, What: "this build has no driver " + agent.Driver,
			Do: "use one of: " + strings.Join(slices.Sorted(maps.Keys(cli.Drivers())), ", "),
		}}
	}
	env, err := agent.Env.Resolve(os.LookupEnv)
	if err == nil {
		err = d.Check(driver.Agent{
			Name: agent.Name, Command: agent.Command, Script: agent.Script, Workspace: agent.Workspace, Env: env,
			Model: agent.Model, Mode: agent.Mode,
		})
	}
	switch {
	case err != nil && agent.Host.Any:
		return []Finding{{
			OK: true, About: about, What: "it could not be started on this machine: " + err.Error(),
			Do: "its steps run on the hosts of the team that have what it needs",
		}}
	case err != nil:
		return []Finding{{
			About: about, What: "it could not be started: " + err.Error(),
			Do: "fix that, or `fairlead stop " + agent.Name + "`",
		}}
	}
	findings := []Finding{{
		OK: true, About: about,
		What: "driver " + agent.Driver + " finds what it needs; " + sessions.VariablesInWords(d, &agent),
	}}
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
	said := cmp.Or(f.Version, f.Name)
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
	reply, err := Ask(ctx,
		Request{Driver: agent.Driver, Name: agent.Name, Command: agent.Command, Dir: agent.Workspace, Model: agent.Model, Mode: agent.Mode},
		env)
	if err == nil && reply.Fault != "" {
		err = fmt.Errorf("%s", WithoutAgent(reply.Fault, agent.Name))
	}
	if err != nil {
		return []Finding{{
			About: about, What: "its program did not answer: " + err.Error(),
			Do: "start it once by hand in " + agent.Workspace + "; doc/agents says what each program needs",
		}}
	}
	name := filepath.Base(reply.Found.Path)
	p := &Program{
		Name: name, Path: reply.Found.Path, Known: true, Driver: agent.Driver, Command: agent.Command, MCP: []string{},
		Warnings: []string{},
	}
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
