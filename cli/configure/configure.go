package configure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/probe"
	"github.com/fairlead-dev/fairlead/cli/setup"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/config/edit"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// testMax bounds a look at a program; the probe has a shorter limit of its own.
const testMax = 100 * time.Second

// Editor changes the agents of the fairlead.yaml in a folder. Its errors are *api.Problem.
type Editor struct {
	Dir    string
	Lookup func(string) (string, bool)
	// Reload makes the daemon load the file; nil: no daemon runs.
	Reload func(context.Context, api.ReloadBody) (changes []string, err error)
	// Sessions lists the sessions of an agent that are at work; nil: not known.
	Sessions func(ctx context.Context, agent string) []string

	writing  sync.Mutex
	confirms api.ReloadBody // by the last Write
}

// written confirms what a person has just written over the files with the sum before. If something else stands there by now, it
// confirms nothing.
func written(now *config.Source, before string, text []byte) api.ReloadBody {
	if len(now.Files) == 0 || !bytes.Equal(now.Files[0].Text, text) {
		return api.ReloadBody{}
	}
	return api.ReloadBody{Governing: now.Sum(), Over: before}
}

// List returns what a form offers.
func (e *Editor) List(context.Context) (*api.ConfigAgents, error) {
	b, sum, err := edit.Read(e.Dir)
	if err != nil {
		return nil, problem(err)
	}
	list := &api.ConfigAgents{Sum: string(sum), Names: []string{}, Programs: []api.ConfigProgram{}}
	if root, err := config.Tree(b); err == nil && root.Get("agents") != nil {
		for _, f := range root.Get("agents").Fields {
			list.Names = append(list.Names, f.Name)
		}
	}
	if err := edit.MayWrite(e.Dir); err != nil {
		list.Why = err.Error()
	}
	found := setup.FindPrograms(os.Getenv("PATH"))
	for _, p := range setup.AgentPrograms {
		if cli.Drivers()[p.Driver] == nil {
			continue
		}
		one := api.ConfigProgram{Name: p.Name, Title: p.Title, Driver: p.Driver, Command: p.Command, Page: "doc/agents/" + p.Page}
		if i := slices.IndexFunc(found, func(f setup.FoundProgram) bool { return f.Name == p.Name }); i >= 0 {
			one.Path = found[i].Path
		}
		list.Programs = append(list.Programs, one)
	}
	return list, nil
}

// Entry returns the entry of an agent as a form.
func (e *Editor) Entry(_ context.Context, name string) (*api.ConfigEntry, error) {
	b, sum, err := edit.Read(e.Dir)
	if err != nil {
		return nil, problem(err)
	}
	a, there, err := edit.Describe(b, name)
	if err == nil && !there {
		err = &edit.NoSuchAgent{Name: name}
	}
	if err != nil {
		return nil, problem(err)
	}
	return &api.ConfigEntry{Name: name, Agent: a, Sum: string(sum)}, nil
}

// Preview returns what a change would make of the file, and writes nothing.
func (e *Editor) Preview(ctx context.Context, c *api.AgentChange) (*api.AgentPreview, error) {
	p, _, _, err := e.preview(ctx, c)
	if err != nil {
		return nil, problem(err)
	}
	return p, nil
}

func (e *Editor) preview(ctx context.Context, c *api.AgentChange) (*api.AgentPreview, []byte, *config.Config, error) {
	before, sum, err := edit.Read(e.Dir)
	if err != nil {
		return nil, nil, nil, err
	}
	was, err := config.Parse(config.FileName, e.Dir, before, e.Lookup)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("fairlead.yaml has faults already; fix them by hand first: %w", err)
	}
	after, err := edit.Apply(before, edit.Change{Op: edit.Op(c.Op), Name: c.Name, Agent: c.Agent})
	if err != nil {
		return nil, nil, nil, err
	}
	now, err := config.Parse(config.FileName, e.Dir, after, e.Lookup)
	if err == nil {
		err = app.Check(now, cli.Drivers())
	}
	if err != nil {
		return nil, nil, nil, err
	}
	p := &api.AgentPreview{Sum: string(sum), Changes: config.Changes(was, now), Notes: []string{}}
	if p.Diff, err = edit.Diff(before, after); err != nil {
		return nil, nil, nil, err
	}
	if c.Op == string(edit.Remove) && e.Sessions != nil {
		for _, id := range e.Sessions(ctx, c.Name) {
			p.Notes = append(p.Notes, id+" is at work: it may finish, and then "+c.Name+" starts nothing more")
		}
	}
	for _, note := range now.Notes {
		if !slices.ContainsFunc(was.Notes, func(n config.Fault) bool { return n.Path == note.Path && n.Text == note.Text }) {
			p.Notes = append(p.Notes, note.Path+": "+note.Text)
		}
	}
	return p, after, now, nil
}

// Write makes a change that Preview showed. c.Sum is that of the file then.
func (e *Editor) Write(ctx context.Context, c *api.AgentChange) (*api.AgentWritten, error) {
	e.writing.Lock()
	defer e.writing.Unlock()
	if err := edit.MayWrite(e.Dir); err != nil {
		return nil, problem(err)
	}
	if _, sum, err := edit.Read(e.Dir); err != nil || string(sum) != c.Sum {
		return nil, problem(errors.Join(err, &edit.Changed{}))
	}
	before := config.ReadSource(e.Dir, e.Lookup).Sum()
	p, after, _, err := e.preview(ctx, c)
	if err == nil && p.Diff != "" {
		err = edit.Write(e.Dir, after, file.Sum(c.Sum))
	}
	if err != nil {
		return nil, problem(err)
	}
	done := &api.AgentWritten{Changes: p.Changes}
	e.confirms = written(config.ReadSource(e.Dir, e.Lookup), before, after)
	if e.Reload != nil && len(p.Changes) > 0 {
		if done.Changes, err = e.Reload(ctx, e.confirms); err != nil {
			done.Changes, done.Fault = p.Changes,
				"fairlead.yaml was written, and the daemon did not load it: "+err.Error()+"; try `fairlead reload`"
		}
	}
	done.Changes = append([]string{}, done.Changes...)
	return done, nil
}

// Test looks at the program of the agent as the change would make it.
func (e *Editor) Test(ctx context.Context, c *api.AgentChange) (*api.AgentTest, error) {
	ctx, cancel := context.WithTimeout(ctx, testMax)
	defer cancel()
	_, _, now, err := e.preview(ctx, c)
	if err != nil {
		return nil, problem(err)
	}
	agent, ok := now.Agent(c.Name)
	if !ok {
		return nil, problem(&edit.NoSuchAgent{Name: c.Name})
	}
	if _, err := os.Stat(agent.Workspace); errors.Is(err, os.ErrNotExist) {
		agent.Workspace = e.Dir // the folder is made at the first start
	}
	result := &api.AgentTest{OK: true, Findings: []api.AgentFinding{}}
	for _, f := range probe.Agent(ctx, agent) {
		result.OK = result.OK && f.OK
		result.Findings = append(result.Findings, api.AgentFinding{OK: f.OK, What: f.What, Do: f.Do})
	}
	return result, nil
}

// problem makes an error a problem of the API.
func problem(err error) error {
	var (
		known   *api.Problem
		faults  *config.Faults
		refused *edit.Refused
		changed *edit.Changed
		none    *edit.NoSuchAgent
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &faults):
		p := api.NewProblem(http.StatusUnprocessableEntity, "%s", api.Shorten(err.Error()))
		for _, f := range faults.List {
			at := f.Path
			if at == "" && f.Line > 0 {
				at = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
			}
			p.Errors = append(p.Errors, api.Fault{Message: f.Text, Location: at})
		}
		return p
	case errors.As(err, &refused):
		return api.NewProblem(http.StatusUnprocessableEntity, "%s", refused)
	case errors.As(err, &changed):
		return api.NewProblem(http.StatusPreconditionFailed, "%s", changed)
	case errors.As(err, &none):
		return api.NewProblem(http.StatusNotFound, "%s", none)
	}
	return api.NewProblem(http.StatusInternalServerError, "%s", err)
}
