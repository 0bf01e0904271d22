package config

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/governing"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// TaskBranch is the default name of a task's branch.
const TaskBranch = "fairlead/{id}-{slug}"

// TeamDiskBytes is the default of team.disk: the search index takes up to 4 GiB of it, and the output of one session up
// to 1 GiB.
const TeamDiskBytes = 20e9

// Defaults of tasks.
const (
	TaskTimeout   = 30 * time.Minute // longer than most test suites
	TaskDiskBytes = 20e9             // about a hundred folders of a large repository

	taskTimeoutMax = 24 * time.Hour
)

// tasks reads the settings for tasks.
func (c *checker) tasks(cfg *Config) {
	n := c.root.Get("tasks")
	cfg.Tasks = Tasks{
		Base: textOf(n.Get("base")), Copy: textsOf(n.Get("copy")), Setup: textsOf(n.Get("setup")), Checks: textsOf(n.Get("checks")),
		Land: cmp.Or(textOf(n.Get("land")), "squash"), Branch: cmp.Or(textOf(n.Get("branch")), TaskBranch),
		Reviewer: textOf(n.Get("reviewer")), Timeout: c.bounded(n.Get("timeout"), TaskTimeout, taskTimeoutMax),
		DiskBytes: c.disk(n.Get("disk"), TaskDiskBytes),
	}
	cfg.Tasks.Governing = textsOf(n.Get("governing"))
	for _, item := range itemsOf(n.Get("governing")) {
		if why := governing.PatternFault(textOf(item)); why != "" {
			c.add(item.Place, item.Path, "%s %s", shown(item), why)
		}
	}
	cfg.Tasks.Remote = textOf(n.Get("remote"))
	c.startable(n.Get("reviewer"), cfg, "so it cannot review tasks")
	c.pullRequests(cfg, n)
	if f := n.Get("workflow"); f != nil && textOf(f) != "" {
		cfg.Tasks.Flow = c.existingFile(f)
	}
	for _, item := range itemsOf(n.Get("copy")) {
		if name := textOf(item); !filepath.IsLocal(name) || name == "." {
			c.add(item.Place, item.Path, "%s is not below the folder of this file; name files and folders in it", shown(item))
		}
	}
	if !strings.Contains(cfg.Tasks.Branch, "{id}") {
		c.add(n.Get("branch").Place, n.Get("branch").Path, "has no {id}, so that two tasks would have one branch; the default is %s",
			TaskBranch)
	}
}

// pullRequests reads how pull requests are looked after, and which issues become tasks.
func (c *checker) pullRequests(cfg *Config, n *file.YAMLNode) {
	pr := n.Get("pr")
	cfg.Tasks.PR = PullRequests{Poll: PollDefault, Ask: cmp.Or(textOf(pr.Get("ask")), AskOnce)}
	poll := pr.Get("poll")
	if cfg.Tasks.PR.Poll = c.duration(poll, PollDefault, false); cfg.Tasks.PR.Poll > 0 && cfg.Tasks.PR.Poll < PollLeast {
		c.add(poll.Place, poll.Path, "%s is too often for the forges; take %s or more", shown(poll), short(PollLeast))
	}
	cfg.Tasks.Most = intOf(n.Get("most"), MostDefault)
	for _, f := range fieldsOf(n.Get("from")) {
		c.startable(f.Value, cfg, "so it cannot get tasks")
		cfg.Tasks.From = append(cfg.Tasks.From, Intake{Label: f.Name, Agent: textOf(f.Value)})
	}
}

var diskPattern = regexp.MustCompile(`^([1-9][0-9]{0,5}) ?(MB|GB|TB)$`)

// disk reads a size. 0 is no limit.
func (c *checker) disk(n *file.YAMLNode, otherwise int64) int64 {
	if n == nil {
		return otherwise
	}
	if n.Kind == file.YAMLNumber && n.Text == "0" || textOf(n) == "0" {
		return 0
	}
	part := diskPattern.FindStringSubmatch(textOf(n))
	if part == nil {
		c.add(n.Place, n.Path, "%s is not a size; write it like 500MB, 20GB or 1TB, or 0 for no limit", shown(n))
		return otherwise
	}
	bytes, _ := strconv.ParseInt(part[1], 10, 64) // of at most six digits
	return bytes * map[string]int64{"MB": 1e6, "GB": 1e9, "TB": 1e12}[part[2]]
}

// dispatch reads the settings for dispatch. The agents that it names must be agents of this file
// that Fairlead can start: those that are only described in .claude/agents run inside another
// program.
func (c *checker) dispatch(cfg *Config) {
	n := c.root.Get("dispatch")
	cfg.Dispatch = Dispatch{
		Main:      textOf(n.Get("main")),
		Ranker:    textOf(n.Get("ranker")),
		Threshold: n.Get("threshold").Float(0),
		Tools:     textsOf(n.Get("tools")),
		Hooks:     textsOf(n.Get("hooks")),
		Sandbox:   c.sandbox(n.Get("sandbox"), SandboxAuto),
		Commits:   boolOf(n.Get("commits"), true),
	}
	c.startable(n.Get("main"), cfg, "so it cannot be MAIN")
	if cfg.Dispatch.Ranker != RankerBuiltin {
		c.startable(n.Get("ranker"), cfg, "so it cannot rank agents")
		return
	}
	cfg.Dispatch.Ranker = ""
	if _, is := cfg.Agent(RankerBuiltin); is {
		c.note(n.Get("ranker").Place, n.Get("ranker").Path,
			"selects the built-in word count, not the agent of that name; rename the agent to use it as the ranker")
	}
}

// startable reports a name that is not an agent of this file, or is one that runs its own loop.
func (c *checker) startable(n *file.YAMLNode, cfg *Config, so string) {
	name := textOf(n)
	if name == "" {
		return
	}
	var agents []string
	for _, a := range cfg.Agents {
		agents = append(agents, a.Name)
	}
	a, is := cfg.Agent(name)
	switch {
	case !is && slices.Contains(c.subagents(), name):
		c.add(n.Place, n.Path, "%s is described in .claude/agents and is not an agent of this file, %s; add it under agents", shown(n), so)
	case !is:
		c.add(n.Place, n.Path, "there is no agent %s%s", shown(n), didYouMean(name, agents))
	case a.Loop == LoopForeign:
		c.add(n.Place, n.Path, "%s runs its own loop, %s; give it loop fairlead, or name another agent", shown(n), so)
	}
}
