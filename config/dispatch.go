package config

import "slices"

// oldDispatchKey is the former name of the key dispatch. It is still read, with a note.
const oldDispatchKey = "session"

// renameOldKeys makes the former names of top-level keys the current ones. The value keeps the
// path that the file uses, so that faults name what the user wrote.
func renameOldKeys(root *node, found *findings) {
	old := root.field(oldDispatchKey)
	if old == nil {
		return
	}
	if root.field("dispatch") != nil {
		found.add(old.place, oldDispatchKey, "is the old name of dispatch, which this file has too; keep only dispatch")
		old.name, old.value.kind = "dispatch", broken // reported; checkShape passes over it
		return
	}
	found.note(old.place, oldDispatchKey, "is the old name of this key; rename it to dispatch")
	root.index["dispatch"] = root.index[oldDispatchKey]
	delete(root.index, oldDispatchKey)
	old.name = "dispatch"
}

// dispatch reads the settings for dispatch. The agents that it names must be agents of this file
// that Fairlead can start: those that are only described in .claude/agents run inside another
// program.
func (c *checker) dispatch(cfg *Config) {
	n := c.root.get("dispatch")
	cfg.Dispatch = Dispatch{
		Main:      textOf(n.get("main")),
		Ranker:    textOf(n.get("ranker")),
		Threshold: floatOf(n.get("threshold"), 0),
		Tools:     textsOf(n.get("tools")),
		Sandbox:   Sandbox(textOf(n.get("sandbox"))),
		Commits:   boolOf(n.get("commits"), true),
	}
	if cfg.Dispatch.Sandbox == "" {
		cfg.Dispatch.Sandbox = SandboxAuto
	}
	c.startable(n.get("main"), cfg, "so nobody can make it MAIN")
	if cfg.Dispatch.Ranker != RankerBuiltin {
		c.startable(n.get("ranker"), cfg, "so nobody can ask it")
		return
	}
	cfg.Dispatch.Ranker = ""
	if _, is := cfg.Agent(RankerBuiltin); is {
		c.note(n.get("ranker").place, n.get("ranker").path, "means the counting of words, and not the agent of that name; give the agent another one to have it asked")
	}
}

// startable reports a name that is not an agent of this file, or is one that runs its own loop.
func (c *checker) startable(n *node, cfg *Config, so string) {
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
		c.add(n.place, n.path, "%s stands in .claude/agents and is no agent of this file, %s; add it under agents", shown(n), so)
	case !is:
		c.add(n.place, n.path, "there is no agent %s%s", shown(n), didYouMean(name, agents))
	case a.Loop == LoopForeign:
		c.add(n.place, n.path, "%s runs its own loop, %s; give it loop fairlead, or name another agent", shown(n), so)
	}
}
