package config

import "slices"

// session reads how sessions go in which one agent coordinates. Whom it names has to be an agent
// of this file that somebody can start: those that are only described in .claude/agents live
// inside of a program of their own.
func (c *checker) session(cfg *Config) {
	n := c.root.get("session")
	cfg.Session = Session{
		Main:      textOf(n.get("main")),
		Ranker:    textOf(n.get("ranker")),
		Threshold: floatOf(n.get("threshold"), 0),
		Tools:     textsOf(n.get("tools")),
		Sandbox:   Sandbox(textOf(n.get("sandbox"))),
		Commits:   boolOf(n.get("commits"), true),
	}
	if cfg.Session.Sandbox == "" {
		cfg.Session.Sandbox = SandboxAuto
	}
	c.startable(n.get("main"), cfg, "so nobody can make it MAIN")
	if cfg.Session.Ranker != RankerBuiltin {
		c.startable(n.get("ranker"), cfg, "so nobody can ask it")
		return
	}
	cfg.Session.Ranker = ""
	if _, is := cfg.Agent(RankerBuiltin); is {
		c.note(n.get("ranker").place, n.get("ranker").path, "means the counting of words, and not the agent of that name; give the agent another one to have it asked")
	}
}

// startable reports a name that is no agent's of this file, or one's that runs its own loop.
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
