package config

import (
	"cmp"
	"path/filepath"
	"strings"
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
