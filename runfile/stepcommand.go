package runfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

const (
	envOneMax = 120 << 10 // of one variable: Linux allows 128 KiB
	envAllMax = 512 << 10 // of all variables together: Linux allows 2 MiB with the arguments and the existing environment
	python    = "python3" // for .py wrappers, which need no executable bit, as in the seed's tool
)

// StepCommand is what is needed to start a step's process (SPEC Workflow, the wrappers' contract): facts
// about the step, and one of three ways to start it. Paths are absolute; an empty one is absent.
type StepCommand struct {
	Command     []string // the step's own command; wins over the other two
	Template    string   // --command-template; wins over the wrapper
	Wrapper     string   // --wrapper
	WrapperArgs []string // --wrapper-arg; also appended to a template, as in the seed's tool

	RunID, StepID, Agent, Model                     string
	Repo, Prompt, Report, ManualInput, ArtifactsDir string
	Attempt                                         int
	Env                                             []string // --env, each K=V; the step's own variables win
	Deps                                            []StepDep
	Loop                                            *StepLoop // nil: no loop
}

// StepDep is a step that this one needs, and its artifacts.
type StepDep struct {
	StepID    string
	Artifacts []string // as reported: relative to the repository, or absolute
}

// StepLoop is the position of a loop.
type StepLoop struct {
	ItemVar, IndexVar string // empty: ITEM and INDEX
	Item              string // as JSON
	Index             int    // from 0
}

// StepCommandOf fills in what a run knows of an attempt. item is the loop's item, from 0; answered means that
// a person's answer exists. It returns false if there is no such step.
func StepCommandOf(r *workflow.Run, step workflow.StepID, attempt, item int, answered bool) (StepCommand, bool) {
	s, _, ok := r.Find(step)
	if !ok {
		return StepCommand{}, false
	}
	c := StepCommand{
		Command: s.Command, RunID: string(r.ID), StepID: string(step), Agent: s.Agent, Model: s.Model, Repo: r.RepoDir, Report: r.ReportFile(step), Attempt: attempt,
	}
	if answered {
		c.ManualInput = r.InputFile(step)
	}
	for _, id := range s.Needs {
		if _, p, ok := r.Find(id); ok && len(p.Artifacts) > 0 {
			c.Deps = append(c.Deps, StepDep{string(id), p.Artifacts})
		}
	}
	if s.Loop != nil {
		c.Loop = &StepLoop{ItemVar: s.Loop.ItemVar, IndexVar: s.Loop.IndexVar, Index: item}
		if items := r.LoopItems(step); item < len(items) {
			c.Loop.Item = items[item]
		}
	}
	return c, true
}

// StepLogName is the name of an attempt's log (seed 004's tool).
func StepLogName(runID, stepID string, attempt int) string {
	return runID + "__" + stepID + "__attempt" + strconv.Itoa(attempt) + ".log"
}

// Argv returns the program and its arguments. No shell interprets them.
func (c StepCommand) Argv() ([]string, error) {
	switch {
	case len(c.Command) > 0:
		return slices.Clone(c.Command), nil
	case c.Template != "":
		argv, err := c.fromTemplate()
		if err != nil {
			return nil, fmt.Errorf("step %s: %w", c.StepID, err)
		}
		return append(argv, c.WrapperArgs...), nil
	case c.Wrapper != "":
		argv := []string{c.Wrapper}
		if strings.EqualFold(filepath.Ext(c.Wrapper), ".py") {
			argv = []string{python, c.Wrapper}
		}
		argv = append(argv, "--run-id", c.RunID, "--step-id", c.StepID, "--agent", c.Agent, "--prompt", c.Prompt, "--repo", c.Repo, "--report", c.Report)
		return append(argv, c.WrapperArgs...), nil
	}
	return nil, fmt.Errorf("step %s: nothing plays it; give the step a command, name an agent of the team, or run with --wrapper or --command-template", c.StepID)
}

// Environ returns the step's additional environment, each name once. A variable that is too large or invalid
// is left out, and FAIRLEAD_LEFT_OUT names it.
func (c StepCommand) Environ() []string {
	e := environ{at: map[string]int{}}
	for _, kv := range c.Env {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			e.set(name, value)
		}
	}
	e.set("RUN_ID", c.RunID)
	e.set("STEP_ID", c.StepID)
	e.set("AGENT_ID", c.Agent)
	e.set("REPO_DIR", c.Repo)
	e.set("PROMPT_PATH", c.Prompt)
	e.set("REPORT_PATH", c.Report)
	e.set("MANUAL_RESULT_PATH", c.ManualInput)
	e.set("STEP_ATTEMPT", strconv.Itoa(c.Attempt))
	e.set("ARTIFACTS_DIR", c.ArtifactsDir)
	if c.Model != "" {
		e.set("STEP_MODEL", c.Model)
	}
	if c.Loop != nil {
		e.loop(c.Loop)
	}
	for _, dep := range c.Deps {
		e.dep(c.Repo, dep)
	}
	if len(e.out) > 0 {
		const shown = 20 // names; more would not help
		more := ""
		if len(e.out) > shown {
			more = fmt.Sprintf(",and %d more", len(e.out)-shown)
		}
		e.list = append(e.list, "FAIRLEAD_LEFT_OUT="+strings.Join(e.out[:min(shown, len(e.out))], ",")+more)
	}
	return e.list
}

type environ struct {
	list  []string
	at    map[string]int
	bytes int
	out   []string // names that were left out
}

func (e *environ) set(name, value string) {
	size := len(name) + len(value) + 2
	if size > envOneMax || e.bytes+size > envAllMax || strings.ContainsRune(name+value, 0) {
		e.out = append(e.out, clip.Text(strings.ReplaceAll(name, "\x00", "?"), 64))
		return
	}
	e.bytes += size
	if i, again := e.at[name]; again {
		e.list[i] = name + "=" + value
		return
	}
	e.at[name] = len(e.list)
	e.list = append(e.list, name+"="+value)
}

func (e *environ) loop(l *StepLoop) {
	item, index := l.ItemVar, l.IndexVar
	item = cmp.Or(item, "ITEM")
	index = cmp.Or(index, "INDEX")
	if l.Item != "" {
		e.set("LOOP_"+variable(item), plainText([]byte(l.Item)))
		e.set("LOOP_"+variable(item)+"_JSON", compacted(l.Item))
	}
	e.set("LOOP_"+variable(index), strconv.Itoa(l.Index))
}

// dep adds the artifacts of a needed step: each by its number from 0, and all of them separated by commas, as
// absolute paths.
func (e *environ) dep(repo string, dep StepDep) {
	prefix := "DEP_" + variable(dep.StepID) + "_ARTIFACT"
	paths := make([]string, len(dep.Artifacts))
	for i, path := range dep.Artifacts {
		if !filepath.IsAbs(path) {
			path = filepath.Join(repo, path)
		}
		paths[i] = path
		e.set(prefix+"_"+strconv.Itoa(i), path)
	}
	if len(paths) > 0 {
		e.set(prefix+"S", strings.Join(paths, ","))
	}
}

// variable converts a name for the environment.
func variable(name string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// compacted is a JSON value without white space; other text stays as it is.
func compacted(text string) string {
	var out bytes.Buffer
	if json.Compact(&out, []byte(text)) != nil {
		return text
	}
	return out.String()
}
