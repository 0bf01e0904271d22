package config

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// TaskBranch is the default name of a task's branch.
const TaskBranch = "fairlead/{id}-{slug}"

// tasks reads the settings for tasks.
func (c *checker) tasks(cfg *Config) {
	n := c.root.Get("tasks")
	cfg.Tasks = Tasks{
		Base: textOf(n.Get("base")), Copy: textsOf(n.Get("copy")), Setup: textsOf(n.Get("setup")), Checks: textsOf(n.Get("checks")),
		Land: cmp.Or(textOf(n.Get("land")), "squash"), Branch: cmp.Or(textOf(n.Get("branch")), TaskBranch),
	}
	cfg.Tasks.Remote = textOf(n.Get("remote"))
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
		c.add(n.Get("branch").Place, n.Get("branch").Path, "has no {id}, so that two tasks would have one branch; the default is %s", TaskBranch)
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
