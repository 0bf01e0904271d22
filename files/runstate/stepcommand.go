package runstate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	valueBytesMax = 100 << 10 // of a loop's value and of a list of artifacts; a larger one is in a file
	envOneMax     = 128 << 10 // of one variable with its name: the limit of Linux
	envAllMax     = 1 << 20   // of all variables together: Linux allows 2 MiB with the arguments and the existing environment
	python        = "python3" // for .py wrappers, which need no executable bit, as in the seed's tool
)

// StepCommand is what is needed to start a step's process (SPEC Workflow, the wrappers' contract): facts
// about the step, and one of three ways to start it. Paths are absolute; an empty one is absent.
type StepCommand struct {
	Command     []string // the step's own command
	Template    string   // --command-template; like --wrapper it was named on the command line, and wins over the step's command
	Wrapper     string   // --wrapper
	WrapperArgs []string // --wrapper-arg; also appended to a template, as in the seed's tool

	RunID, StepID, Agent, Model                     string
	Repo, Prompt, Report, ManualInput, ArtifactsDir string
	ValuesDir                                       string // the folder for values that are too large for the environment
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
		Command: s.Command, RunID: string(r.ID), StepID: string(step), Agent: s.Agent, Model: s.Model, Repo: r.RepoDir,
		Report: r.ReportFile(step), Attempt: attempt,
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
		argv = append(argv, "--run-id", c.RunID, "--step-id", c.StepID, "--agent", c.Agent, "--prompt", c.Prompt, "--repo", c.Repo,
			"--report", c.Report)
		return append(argv, c.WrapperArgs...), nil
	case len(c.Command) > 0:
		return slices.Clone(c.Command), nil
	}
	return nil, fmt.Errorf("step %s: nothing plays it; give the step a command, name an agent of the team, or run with --wrapper or --command-template", c.StepID)
}

// ValueFile is the content of a variable that is too large for an environment. NAME_FILE has its path, and NAME is empty.
type ValueFile struct{ Path, Value string }

// Environ returns the step's additional environment, each name once, and the files that must exist before the step starts: a loop
// value, or a list of artifacts, of more than 100 KiB. The error says which variables are too large for any process.
func (c StepCommand) Environ() ([]string, []ValueFile, error) {
	e := environ{at: map[string]int{}, file: filepath.Join(c.ValuesDir, c.StepID) + "__"}
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
	issue := ""
	for _, dep := range c.Deps {
		paths := e.dep(c.Repo, dep)
		if i := slices.IndexFunc(paths, isIssueFile); i >= 0 {
			issue = cmp.Or(issue, paths[i])
		}
	}
	e.issue(issue, c.ArtifactsDir)
	return e.list, e.files, e.fault(c.StepID)
}

type environ struct {
	list  []string
	at    map[string]int
	file  string // the beginning of the files' paths
	files []ValueFile
}

func (e *environ) set(name, value string) {
	if i, again := e.at[name]; again {
		e.list[i] = name + "=" + value
		return
	}
	e.at[name] = len(e.list)
	e.list = append(e.list, name+"="+value)
}

// large sets a value of the run, which may be of any size.
func (e *environ) large(name, value string) {
	if len(value) > valueBytesMax || strings.ContainsRune(value, 0) {
		e.files = append(e.files, ValueFile{Path: e.file + name, Value: value})
		e.set(name+"_FILE", e.files[len(e.files)-1].Path)
		value = ""
	}
	e.set(name, value)
}

// fault says what no process could be started with.
func (e *environ) fault(step string) error {
	all := 0
	for _, kv := range e.list {
		name, value, _ := strings.Cut(kv, "=")
		all += len(kv) + 1
		switch {
		case len(kv) >= envOneMax:
			return fmt.Errorf("step %s: the variable %s has %d bytes, and a process takes %d KiB; put it in a file, and give its path",
				step, clip.Text(name, quoteMax), len(value), envOneMax>>10)
		case strings.ContainsRune(kv, 0):
			name = clip.Text(strings.ReplaceAll(name, "\x00", "?"), quoteMax)
			return fmt.Errorf("step %s: the variable %s has a zero byte, which no process takes", step, name)
		}
	}
	if all > envAllMax {
		return fmt.Errorf("step %s: its variables have %d KiB, %d at most; give less with --env, or let the steps that it needs report fewer artifacts",
			step, all>>10, envAllMax>>10)
	}
	return nil
}

func (e *environ) loop(l *StepLoop) {
	item, index := l.ItemVar, l.IndexVar
	item = cmp.Or(item, "ITEM")
	index = cmp.Or(index, "INDEX")
	if l.Item != "" {
		e.large("LOOP_"+variable(item), plainText([]byte(l.Item)))
		e.large("LOOP_"+variable(item)+"_JSON", compacted(l.Item))
	}
	e.set("LOOP_"+variable(index), strconv.Itoa(l.Index))
}

// isIssueFile reports whether an artifact is the text of a GitHub issue, by the name that the seed's tool gives it.
func isIssueFile(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, "gh_issue_") && filepath.Ext(name) == ".md"
}

// issue names the file of a GitHub issue, as in the seed's tool: the artifact of a needed step, or else ISSUE_MARKDOWN_PATH of --env,
// or else where ISSUE_NUMBER of --env says that a step is to write it.
func (e *environ) issue(artifact, artifactsDir string) {
	path, number := cmp.Or(artifact, e.value("ISSUE_MARKDOWN_PATH")), e.value("ISSUE_NUMBER")
	if path == "" && number != "" && !strings.ContainsRune(number, filepath.Separator) {
		path = filepath.Join(artifactsDir, "gh_issue_"+number+".md")
	}
	if path != "" {
		e.set("ISSUE_MARKDOWN_PATH", path)
		e.set("ISSUE_MARKDOWN_DIR", filepath.Dir(path))
		e.set("ISSUE_MARKDOWN_FILENAME", filepath.Base(path))
	}
}

// value is what was set; empty: nothing.
func (e *environ) value(name string) string {
	if i, ok := e.at[name]; ok {
		return e.list[i][len(name)+1:]
	}
	return ""
}

// dep adds the artifacts of a needed step: each by its number from 0, and all of them separated by commas, as
// absolute paths. It returns the paths.
func (e *environ) dep(repo string, dep StepDep) []string {
	prefix := "DEP_" + variable(dep.StepID) + "_ARTIFACT"
	paths := make([]string, len(dep.Artifacts))
	for i, path := range dep.Artifacts {
		if !filepath.IsAbs(path) {
			path = filepath.Join(repo, path)
		}
		paths[i] = path
		e.large(prefix+"_"+strconv.Itoa(i), path)
	}
	if len(paths) > 0 {
		e.large(prefix+"S", strings.Join(paths, ","))
	}
	return paths
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
