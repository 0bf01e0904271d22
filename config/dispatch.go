package config

import (
	"slices"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// oldDispatchKey is the former name of the key dispatch. It is still read, with a note.
const oldDispatchKey = "session"

// renameOldKeys makes the former names of top-level keys the current ones. The value keeps the
// path that the file uses, so that faults name what the user wrote.
func renameOldKeys(root *file.YAMLNode, found *findings) {
	old := root.Field(oldDispatchKey)
	if old == nil {
		return
	}
	if root.Field("dispatch") != nil {
		found.add(old.Place, oldDispatchKey, "is the old name of dispatch, which this file has too; keep only dispatch")
		old.Name, old.Value.Kind = "dispatch", file.YAMLBroken // reported; checkShape passes over it
		return
	}
	found.note(old.Place, oldDispatchKey, "is the old name of this key; rename it to dispatch")
	old.Name = "dispatch"
}

// dispatch reads the settings for dispatch. The agents that it names must be agents of this file
// that Fairlead can start: those that are only described in .claude/agents run inside another
// program.
func (c *checker) dispatch(cfg *Config) {
	n := c.root.Get("dispatch")
	cfg.Dispatch = Dispatch{
		Main:      textOf(n.Get("main")),
		Ranker:    textOf(n.Get("ranker")),
		Threshold: floatOf(n.Get("threshold"), 0),
		Tools:     textsOf(n.Get("tools")),
		Hooks:     textsOf(n.Get("hooks")),
		Sandbox:   Sandbox(textOf(n.Get("sandbox"))),
		Commits:   boolOf(n.Get("commits"), true),
	}
	if cfg.Dispatch.Sandbox == "" {
		cfg.Dispatch.Sandbox = SandboxAuto
	}
	c.startable(n.Get("main"), cfg, "so it cannot be MAIN")
	if cfg.Dispatch.Ranker != RankerBuiltin {
		c.startable(n.Get("ranker"), cfg, "so it cannot rank agents")
		return
	}
	cfg.Dispatch.Ranker = ""
	if _, is := cfg.Agent(RankerBuiltin); is {
		c.note(n.Get("ranker").Place, n.Get("ranker").Path, "selects the built-in word count, not the agent of that name; rename the agent to use it as the ranker")
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
