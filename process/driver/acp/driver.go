package acp

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// Driver starts programs that speak the Agent Client Protocol on their standard streams, each behind
// an adapter (package adapter). Its zero value is ready.
type Driver struct {
	adapter.Behind

	limits limits // zero: the usual ones
}

var (
	_ driver.Driver    = Driver{}
	_ adapter.Protocol = Driver{}
)

// Name is the word that fairlead.yaml uses.
func (Driver) Name() string { return "acp" }

// Check returns an error if the program does not exist or the workspace is unusable. It starts
// nothing.
func (Driver) Check(a driver.Agent) error { return adapter.Check(a) }

// Launch starts the adapter, which starts the program.
func (d Driver) Launch(a driver.Agent, s driver.Session) (spawn.Launch, error) {
	return adapter.Launch(d.Name(), a, s)
}

func (d Driver) times() limits {
	return limits{
		greeting: cmp.Or(d.limits.greeting, greetingTime), opening: cmp.Or(d.limits.opening, openingTime),
		cancel: cmp.Or(d.limits.cancel, cancelTime), patience: cmp.Or(d.limits.patience, patience),
	}
}

// Probe starts the program, initializes it and ends it. It opens no conversation.
func (d Driver) Probe(ctx context.Context, a driver.Agent) (driver.Probed, error) {
	env := driver.Environment(a, driver.Session{})
	path, err := driver.FindProgram(a, env)
	if err != nil {
		return driver.Probed{}, err
	}
	part := adapter.Part{Kind: d.Name(), Name: a.Name, Command: append([]string{path}, a.Command[1:]...), Dir: a.Workspace, Mode: a.Mode}
	if part.Dir == "" {
		part.Dir = os.TempDir()
	}
	p := newPlay(d, part, adapter.NewStage(speech.NewWriter(io.Discard), part.Dir, env))
	if end := p.start(); end != nil {
		return driver.Probed{}, fmt.Errorf("agent %s: %s", a.Name, end.Detail)
	}
	defer p.child.End()
	if end := p.greet(ctx); end != nil {
		return driver.Probed{}, fmt.Errorf("agent %s: %s", a.Name, end.Detail)
	}
	found := driver.Probed{
		Program: p.conversation.program, Path: path, Speaks: fmt.Sprintf("acp %d", p.conversation.version),
		Resumes: p.conversation.resume || p.conversation.load, MCP: []string{"stdio"},
	}
	if p.conversation.http {
		found.MCP = []string{"http", "stdio"}
	}
	if why := p.known.toolsIgnored(part.Dir, part.Command, env); why != "" && a.Workspace != "" {
		found.MCP, found.Warnings = nil, append(found.Warnings, why)
	} else if p.known.trusts != nil && a.Workspace == "" {
		found.Warnings = append(found.Warnings, "it connects to the team's tools only in a folder that it trusts")
	}
	switch {
	case p.part.Mode != "":
		found.Enforced = "mode " + p.part.Mode + ", as the agent's configuration says"
	case p.known.asks != "" && (len(p.known.env) == 0 || p.conversation.asks):
		found.Enforced = p.known.asks
	default:
		found.Enforced = p.enforced()
		found.Warnings = append(found.Warnings,
			"it is unknown what this program asks before it acts; set `mode` if it has one that asks, or run it in a sandbox")
	}
	if !found.Resumes {
		found.Warnings = append(found.Warnings,
			"it cannot resume an earlier conversation; after a crash, a new one begins only if you confirm it")
	}
	return found, nil
}
