package config

import (
	"cmp"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// config reads the tree and reports what the rules of single keys cannot express. The rules have already reported values that are
// wrong by themselves; here these count as absent.
func (c *checker) config() *Config {
	cfg := &Config{File: c.file, Dir: c.dir}
	c.read(c.root, c.root.Place, configRule(), reflect.ValueOf(cfg).Elem())
	for _, a := range cfg.Agents {
		c.names = append(c.names, a.Name)
	}
	c.agents(cfg)
	c.channels(cfg)
	c.lead(cfg)
	c.dispatch(cfg)
	c.targets(&cfg.Notify)
	tasks := c.root.Get("tasks")
	cfg.Tasks.Network = c.network(tasks.Get("network"), cfg.Tasks.NetworkWords, network.Setting{Packages: true})
	if cfg.Tasks.Network.Model {
		c.fault(tasks.Get("network"), "names model, and setup and checks have no model; remove it, or name the host")
	}
	c.startable(tasks.Get("reviewer"), cfg, "so it cannot review tasks")
	for _, f := range fieldsOf(tasks.Get("from")) {
		c.startable(f.Value, cfg, "so it cannot get tasks")
	}
	return cfg
}

// fieldsOf, itemsOf and textOf read a node that may be absent or of the wrong kind.
func fieldsOf(n *file.YAMLNode) []file.YAMLField {
	if n == nil {
		return nil
	}
	return n.Fields
}

func itemsOf(n *file.YAMLNode) []*file.YAMLNode {
	if n == nil {
		return nil
	}
	return n.Items
}

func textOf(n *file.YAMLNode) string {
	if n == nil || n.Kind != file.YAMLText {
		return ""
	}
	return n.Text
}

// agents completes the agents, and reports seats that two of them have.
func (c *checker) agents(cfg *Config) {
	fields := make(map[string]file.YAMLField, len(cfg.Agents))
	for _, f := range fieldsOf(c.root.Get("agents")) {
		fields[f.Name] = f
	}
	seats, nodes := map[int]string{}, make([]*file.YAMLNode, len(cfg.Agents))
	for i := range cfg.Agents {
		a := &cfg.Agents[i]
		f := fields[a.Name]
		nodes[i] = f.Value
		c.agent(&f, a, cfg)
		seat, lead, other := f.Value.Get("seat"), a.Name == cfg.Team.Lead, seats[a.Seat]
		switch {
		case seat == nil:
			a.Seat = NoSeat
			continue
		case other != "":
			c.fault(seat, "seat %d is taken by %s", a.Seat, other)
		case a.Seat == LeadSeat && !lead:
			c.fault(seat, "seat %d is the lead's; choose another, or name %s as team.lead", LeadSeat, a.Name)
		case a.Seat != LeadSeat && lead:
			c.fault(seat, "the lead has seat %d; remove this line", LeadSeat)
		}
		seats[a.Seat] = a.Name
	}
	c.workspaces(cfg, nodes)
}

func (c *checker) agent(f *file.YAMLField, a *Agent, cfg *Config) {
	n := f.Value
	a.TurnTimeout = cmp.Or(a.TurnTimeout, time.Duration(cfg.TurnConfig.DefaultTimeoutSeconds)*time.Second)
	a.Limits.Session = cmp.Or(a.Limits.Session, cfg.Team.Limits.Session)
	lookup := c.lookupEnv
	if a.Host.Any = n.Get("host") != nil; a.Host.Any {
		lookup = nil // the machine on which it runs has them
	} else if lost := n.Field("on_lost"); lost != nil {
		c.keyFault(lost, "has an effect only with host: without it, the agent runs on the machine of the daemon")
	}
	for _, variable := range fieldsOf(n.Get("env")) {
		c.reference(variable.Value, lookup)
	}
	c.driver(f, a)
	c.effects(n, a)
	c.backoff(n.Get("backoff"), &a.Backoff)
	if n.Get("sandbox") == nil {
		a.Sandbox.Mode = defaultSandbox(a)
	}
	c.sandbox(n.Get("sandbox"), &a.Sandbox)
	c.agentNetwork(n, a, cfg)
	if a.Permissions.Otherwise == OtherwiseAllow && a.Permissions.Timeout == 0 {
		c.note(n.Get("permissions").Get("otherwise"), "has no effect: with timeout 0s, the agent waits for a person without a limit")
	}
}

// driver determines how the agent is started and reports what is missing for it.
func (c *checker) driver(f *file.YAMLField, a *Agent) {
	n, foreign := f.Value, a.Loop == LoopForeign
	driver, command, script := n.Get("driver"), n.Get("command"), n.Get("script")
	switch {
	case driver != nil:
	case script != nil:
		a.Driver = DriverScript
	case command != nil || foreign:
		a.Driver = DriverExec
	default:
		c.keyFault(f, "has neither a command nor a script; give it one of them, or a driver")
	}
	switch a.Driver {
	case DriverScript:
		if script == nil {
			c.add(driver.Place, join(n.Path, "script"), "is missing; driver script plays a file")
		}
		if foreign {
			c.fault(n.Get("loop"), "a script does not follow agent_state.json by itself; use loop fairlead")
		}
	case DriverExec, DriverACP:
		if command == nil && !foreign {
			c.add(driver.Place, join(n.Path, "command"), "is missing; driver %s starts a program", a.Driver)
		}
	case DriverClaude, DriverCodex:
		if command == nil && !foreign {
			a.Command = []string{a.Driver} // the program has the driver's name
		}
	}
	if len(a.Command) > 0 && strings.TrimSpace(a.Command[0]) == "" {
		c.fault(command.Items[0], "names no program")
	}
}

// effects reports keys that have no effect with the agent's driver or loop. A default that is written down needs none.
func (c *checker) effects(n *file.YAMLNode, a *Agent) {
	for _, r := range configRule().field("agents").item.fields {
		f := n.Field(r.key)
		if f == nil || r.standard != nil && f.Value.Text == r.standard.Text {
			continue
		}
		loop, drivers := r.tag.Get("loop"), strings.ReplaceAll(r.tag.Get("drivers"), ",", ", ")
		switch {
		case loop != "" && a.Loop == LoopForeign:
			c.keyFault(f, "has no effect with loop foreign: the agent's own program decides when its sessions begin")
		case drivers != "" && !strings.Contains(drivers, a.Driver):
			c.keyFault(f, "has no effect with driver %s; remove it, or use driver %s", a.Driver, drivers)
		}
	}
	if f := n.Field("report_within"); f != nil && (a.Loop != LoopForeign || len(a.Command) > 0) {
		c.keyFault(f, "has an effect only with loop foreign and without a command: otherwise the process shows whether the agent works")
	}
}

// backoff ensures that first is not longer than max. If only one is given, the other follows it.
func (c *checker) backoff(n *file.YAMLNode, b *Backoff) {
	switch first, longest := n.Get("first"), n.Get("max"); {
	case b.First <= b.Max:
	case longest == nil:
		b.Max = b.First
	case first == nil:
		b.First = b.Max
	default:
		c.fault(first, "is %s, which is longer than max, %s", shown(first), shown(longest))
	}
}

// defaultSandbox is the mode of an agent whose entry has no key for it.
func defaultSandbox(a *Agent) string {
	switch {
	case a.Loop == LoopForeign: // it writes its agent_state.json
		return SandboxOff
	case a.Driver == DriverACP, a.Driver == DriverClaude, a.Driver == DriverCodex, a.Permissions.CanWrite != nil:
		return SandboxAuto
	}
	return SandboxOff
}

// sandbox reports folders of a wall that cannot be what their list says.
func (c *checker) sandbox(n *file.YAMLNode, box *AgentSandbox) {
	in := map[string]string{} // the list of each folder
	check := func(key string, paths []string) {
		for i, p := range paths {
			item := n.Get(key).Items[i]
			switch info, err := os.Stat(p); {
			case p == "": // already reported
			case err == nil && !info.IsDir():
				c.fault(item, "%s is a file; a wall holds whole folders, so name the folder that it is in", shown(item))
			case p == c.dir && key == "write":
				c.fault(item, "%s is the folder of fairlead.yaml; an agent that may write there can change its own limits", shown(item))
			case in[p] != "" && in[p] != key:
				c.fault(item, "%s is in %s too; keep one of them", shown(item), in[p])
			}
			in[p] = key
		}
	}
	check("read", box.Read)
	check("write", box.Write)
	check("hide", box.Hide)
	for i, port := range box.Local {
		if network.Reserved(port) {
			c.fault(n.Get("local").Items[i], "port %d of a session is its way into the network; let the service listen at another one too", port)
		}
	}
	if box.Mode == SandboxOff && len(in)+len(box.Sockets)+len(box.Local) > 0 {
		c.note(n, "has no effect with mode off: there is no wall then")
	}
}

// agentNetwork reports the key where no wall holds it, and the word model where it allows nothing.
func (c *checker) agentNetwork(n *file.YAMLNode, a *Agent, cfg *Config) {
	key := n.Field("network")
	a.Network = c.network(n.Get("network"), a.NetworkWords, network.Default())
	if key == nil {
		return
	}
	_, known := network.ProviderOf(a.Driver, a.Command, a.Env.Names())
	switch main := a.Name == cfg.Dispatch.Main && cfg.Dispatch.Sandbox.On(); {
	case a.Sandbox.On() || main:
		if a.Network.Model && !known {
			c.note(key.Value, "names model, which allows no host: the service of this program's model is not known; name its host here")
		}
	case n.Get("sandbox") != nil:
		c.keyFault(key, "is held by the wall, and sandbox is off; remove one of the two keys")
	default:
		c.keyFault(key, "is held by the wall, and this agent has none; add sandbox: workspace, or remove this key")
	}
}

// network reads the items of a network. Items that are wrong alone are already reported.
func (c *checker) network(n *file.YAMLNode, words []string, standard network.Setting) network.Setting {
	for _, word := range words {
		if _, err := network.Parse([]string{word}); err != nil {
			return standard
		}
	}
	if len(words) == 0 {
		return standard
	}
	setting, err := network.Parse(words)
	c.checked(n, err)
	return setting
}

// folders records which agent has which folder.
type folders struct {
	byPath map[string]string
	infos  []os.FileInfo // of folders that exist; owners holds their agents
	owners []string
}

// take gives a folder to an agent, or returns the agent that already has it. It compares file identities too,
// because letter case and bind mounts give one folder several paths.
func (f *folders) take(path, agent string) (other string) {
	if other, is := f.byPath[path]; is {
		return other
	}
	if info, err := os.Stat(path); err == nil {
		for i, known := range f.infos {
			if os.SameFile(known, info) {
				return f.owners[i]
			}
		}
		f.infos, f.owners = append(f.infos, info), append(f.owners, agent)
	}
	f.byPath[path] = agent
	return ""
}

// workspaces gives every agent its folder and reports folders that two agents share: each agent needs its own
// agent_state.json. It also reports an agent whose wall hides its own workspace.
func (c *checker) workspaces(cfg *Config, nodes []*file.YAMLNode) {
	taken := &folders{byPath: map[string]string{}}
	for i := range cfg.Agents {
		a, n := &cfg.Agents[i], nodes[i].Get("workspace")
		if a.Workspace == "" {
			continue
		}
		if other := taken.take(a.Workspace, a.Name); other != "" {
			c.fault(n, "is the folder of agents.%s too; each agent needs its own for its agent_state.json, such as workspace: %s", other, a.Name)
		}
	}
	for i := range cfg.Agents {
		a, n := &cfg.Agents[i], nodes[i]
		if n.Get("workspace") == nil {
			if a.Workspace = c.dir; taken.take(c.dir, a.Name) != "" {
				a.Workspace, _ = settle(filepath.Join(c.dir, a.Name))
				if other := taken.take(a.Workspace, a.Name); other != "" {
					c.add(n.Place, join(n.Path, "workspace"), "is missing, and the folder %s, its default, belongs to agents.%s",
						quoteShort(a.Name), other)
				}
			}
		}
		if hidden := slices.Index(a.Sandbox.Hide, a.Workspace); hidden >= 0 && a.Workspace != "" {
			item := n.Get("sandbox").Get("hide").Items[hidden]
			c.fault(item, "%s is the agent's own workspace; hide a folder in it, or give the agent another workspace", shown(item))
		}
	}
}

// channels completes the channels. An agent of the file, an agent described in .claude/agents and the team's lead
// are known names; only agents of the file get turns.
func (c *checker) channels(cfg *Config) {
	for i := range cfg.Channels {
		ch := &cfg.Channels[i]
		ch.HumanInterruptMode = cmp.Or(ch.HumanInterruptMode, cfg.TurnConfig.HumanInterruptMode)
		n := c.root.Get("channels").Get(ch.Name)
		for _, item := range itemsOf(n.Get("agents")) {
			c.known(item, "", "%s is described in .claude/agents and is not an agent of this file, so it gets no turn; to give it some, add it under agents")
		}
		ch.Agents = slices.DeleteFunc(ch.Agents, func(name string) bool { return !slices.Contains(c.names, name) })
		c.known(n.Get("lead"), cfg.Team.Lead, "%s is not an agent of this file, so the agent that has the turn answers a person who interrupts")
	}
}

// known reports the name of an agent that is nowhere described. note is about one that is not an agent of this file.
func (c *checker) known(n *file.YAMLNode, other, note string) {
	name, members := textOf(n), append(c.subagents(), c.names...)
	switch {
	case name == "" || slices.Contains(c.names, name):
	case name == other || slices.Contains(members, name):
		c.note(n, note, shown(n))
	default:
		c.fault(n, "there is no agent %s%s", shown(n), didYouMean(name, append(members, other)))
	}
}

// lead checks that the lead can receive input during a session, such as a request to summon or wake agents.
func (c *checker) lead(cfg *Config) {
	l := c.root.Get("team").Get("lead")
	name := textOf(l) // an unnamed agent must not count as the lead when team.lead is absent
	a, here := cfg.Agent(name)
	switch {
	case name == "":
	case !here:
		if members := append(c.subagents(), c.names...); !slices.Contains(members, name) {
			c.note(l, "%s is not an agent of this file, so Fairlead does not start it%s", shown(l), didYouMean(name, members))
		}
	case a.Loop == LoopForeign:
		c.fault(l, "%s runs its own loop, so it cannot receive requests to summon or wake; give it loop fairlead, or name another agent", shown(l))
	case a.Driver == DriverExec:
		c.fault(l, "%s has driver exec, which accepts no input while it runs; a lead needs driver script, acp, claude or codex", shown(l))
	}
}

// subagents returns the agents that are described in .claude/agents.
func (c *checker) subagents() (names []string) {
	entries, _ := os.ReadDir(filepath.Join(c.dir, ".claude", "agents")) // usually there is none
	for _, e := range entries {
		if name, is := strings.CutSuffix(e.Name(), ".md"); is {
			names = append(names, name)
		}
	}
	return names
}

// dispatch checks the agents that dispatch names.
func (c *checker) dispatch(cfg *Config) {
	n := c.root.Get("dispatch")
	c.sandbox(n.Get("sandbox"), &cfg.Dispatch.Sandbox)
	c.startable(n.Get("main"), cfg, "so it cannot be MAIN")
	if cfg.Dispatch.Ranker != RankerBuiltin {
		c.startable(n.Get("ranker"), cfg, "so it cannot rank agents")
		return
	}
	cfg.Dispatch.Ranker = ""
	if ranker := n.Get("ranker"); ranker != nil && slices.Contains(c.names, RankerBuiltin) {
		c.note(ranker, "selects the built-in word count, not the agent of that name; rename the agent to use it as the ranker")
	}
}

// startable reports a name that is not an agent of this file, or is one that runs its own loop. Those that are only described in
// .claude/agents run inside another program.
func (c *checker) startable(n *file.YAMLNode, cfg *Config, so string) {
	name := textOf(n)
	a, here := cfg.Agent(name)
	switch {
	case name == "":
	case !here && slices.Contains(c.subagents(), name):
		c.fault(n, "%s is described in .claude/agents and is not an agent of this file, %s; add it under agents", shown(n), so)
	case !here:
		c.fault(n, "there is no agent %s%s", shown(n), didYouMean(name, c.names))
	case a.Loop == LoopForeign:
		c.fault(n, "%s runs its own loop, %s; give it loop fairlead, or name another agent", shown(n), so)
	}
}

// targets adds the short forms to the targets of notices, and reports what does not fit together.
func (c *checker) targets(cfg *Notify) {
	var all []NotifyTarget
	if !cfg.Webhook.Empty() {
		all = append(all, NotifyTarget{Name: "webhook", URL: cfg.Webhook})
	}
	if cfg.Desktop {
		all = append(all, NotifyTarget{Name: "desktop", URL: Secret{raw: desktopURL}})
	}
	for _, t := range cfg.Targets {
		f := c.root.Get("notify").Get("targets").Field(t.Name)
		if slices.ContainsFunc(all, func(other NotifyTarget) bool { return other.Name == t.Name }) {
			c.keyFault(f, "is there twice: notify.%s makes a target of this name; remove one of them", t.Name)
		}
		if t.URL.Empty() == (t.URLFile == "") {
			c.keyFault(f, "needs either url or url_file")
		}
		if zone := f.Value.Get("zone"); zone != nil && f.Value.Get("quiet") == nil {
			c.fault(zone, "is of no use without quiet; remove it, or add quiet hours")
		}
		all = append(all, t)
	}
	cfg.Targets = all
}
