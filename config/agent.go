package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// agents reads the agents in file order.
func (c *checker) agents(cfg *Config) {
	var nodes []*file.YAMLNode
	fields := fieldsOf(c.root.Get("agents"))
	cfg.Agents = slices.Grow(cfg.Agents, len(fields))
	for _, f := range fields {
		c.name(f)
		if f.Value.Kind != file.YAMLObject {
			continue
		}
		cfg.Agents = append(cfg.Agents, c.agent(f, cfg))
		nodes = append(nodes, f.Value)
	}
	c.workspaces(cfg, nodes)
	c.hidden(cfg, nodes)
}

func (c *checker) agent(f file.YAMLField, cfg *Config) Agent {
	n := f.Value
	backoff := n.Get("backoff")
	a := Agent{
		Name:          f.Name,
		Line:          f.Line,
		Description:   textOf(n.Get("description")),
		Driver:        textOf(n.Get("driver")),
		Command:       textsOf(n.Get("command")),
		Loop:          Loop(textOf(n.Get("loop"))),
		Env:           c.env(n),
		SessionPrompt: textOf(n.Get("session_prompt")),
		CleanupPrompt: textOf(n.Get("cleanup_prompt")),
		CleanupEvery:  intOf(n.Get("cleanup_every"), 0),
		TurnTimeout: c.duration(n.Get("turn_timeout"),
			time.Duration(cfg.TurnConfig.DefaultTimeoutSeconds)*time.Second, false),
		Model:       textOf(n.Get("model")),
		Seat:        intOf(n.Get("seat"), NoSeat),
		Limits:      c.limits(n.Get("limits")),
		Mode:        textOf(n.Get("mode")),
		Resume:      Resume(textOf(n.Get("resume"))),
		MCP:         textOf(n.Get("mcp")) != mcpOff,
		Permissions: c.permissions(n.Get("permissions")),
		FailuresMax: intOf(n.Get("failures_max"), FailuresMaxDefault),
		Backoff: Backoff{
			First: c.duration(backoff.Get("first"), BackoffFirst, false),
			Max:   c.duration(backoff.Get("max"), BackoffMax, false),
		},
		Instances:    intOf(n.Get("instances"), 1),
		Ports:        intOf(n.Get("ports"), 0),
		Host:         c.host(n),
		Grace:        c.duration(n.Get("grace"), GraceDefault, true),
		ReportWithin: c.duration(n.Get("report_within"), ReportWithinDefault, false),
	}
	a.Limits.Session = cmp.Or(a.Limits.Session, cfg.Team.Limits.Session)
	a.Loop = cmp.Or(a.Loop, LoopFairlead)
	a.Resume = cmp.Or(a.Resume, ResumeInterrupted)
	c.backoff(n, &a)
	c.driver(f, &a)
	c.conversation(n, a)
	a.Sandbox = c.sandbox(n.Get("sandbox"), defaultSandbox(a))
	c.loop(n, a)
	return a
}

// backoff ensures that first is not longer than max. If only first is given and exceeds the default max, max
// is raised to it.
func (c *checker) backoff(n *file.YAMLNode, a *Agent) {
	b := n.Get("backoff")
	switch first, longest := b.Get("first"), b.Get("max"); {
	case a.Backoff.First <= a.Backoff.Max:
	case longest == nil:
		a.Backoff.Max = a.Backoff.First
	case first == nil:
		a.Backoff.First = a.Backoff.Max
	default:
		c.add(first.Place, first.Path, "%s is longer than max, %s", shown(first), shown(longest))
	}
}

// driver determines how the agent is started and reports what is missing for it.
func (c *checker) driver(f file.YAMLField, a *Agent) {
	n := f.Value
	command, script := n.Get("command"), n.Get("script")
	if n.Get("driver") == nil {
		switch {
		case script != nil:
			a.Driver = DriverScript
		case command != nil || a.Loop == LoopForeign:
			a.Driver = DriverExec
		default:
			c.add(f.Place, n.Path, "has neither a command nor a script; give it one of them, or a driver")
			return
		}
	}
	switch a.Driver {
	case DriverScript:
		if script == nil {
			c.add(n.Get("driver").Place, join(n.Path, "script"), "is missing; driver script plays a file")
		}
		if command != nil {
			c.add(n.Field("command").Place, command.Path, "has no effect with driver script; remove it, or use driver exec")
		}
		a.Script = c.existingFile(script)
	case DriverExec, DriverACP:
		if command == nil && a.Loop != LoopForeign {
			c.add(n.Get("driver").Place, join(n.Path, "command"), "is missing; driver %s starts a program", a.Driver)
		}
	}
	if command == nil && a.Loop != LoopForeign && (a.Driver == DriverClaude || a.Driver == DriverCodex) {
		a.Command = []string{a.Driver} // the program has the driver's name
	}
	if script != nil && a.Driver != DriverScript {
		c.add(n.Field("script").Place, script.Path, "has no effect with driver %s; remove it, or use driver script", a.Driver)
	}
	if first := itemsOf(command); len(first) > 0 && first[0].Kind == file.YAMLText && strings.TrimSpace(first[0].Text) == "" {
		c.add(first[0].Place, first[0].Path, "names no program")
	}
	for _, item := range itemsOf(command) {
		if strings.ContainsRune(item.Text, 0) {
			c.add(item.Place, item.Path, "holds a zero byte, which cannot be passed to a process")
		}
	}
}

// loop reports settings that have no effect on an agent that runs its own loop.
func (c *checker) loop(n *file.YAMLNode, a Agent) {
	if f := n.Field("report_within"); f != nil && (a.Loop != LoopForeign || len(a.Command) > 0) {
		c.add(f.Place, f.Value.Path,
			"has an effect only with loop foreign and without a command: otherwise the process shows whether the agent works")
	}
	if a.Loop != LoopForeign {
		return
	}
	if a.Driver == DriverScript {
		c.add(n.Get("loop").Place, n.Get("loop").Path, "a script does not follow agent_state.json by itself; use loop fairlead")
	}
	for _, key := range []string{"cleanup_every", "session_prompt", "cleanup_prompt", "failures_max", "backoff", "instances", "host"} {
		f := n.Field(key)
		if f == nil || key == "cleanup_every" && a.CleanupEvery == 0 {
			continue
		}
		c.add(f.Place, f.Value.Path, "has no effect with loop foreign: the agent's own program decides when its sessions begin")
	}
}

// host reads on which machines an agent's steps may run.
func (c *checker) host(agent *file.YAMLNode) AgentHost {
	n, lost := agent.Get("host"), agent.Field("on_lost")
	if n == nil {
		if lost != nil {
			c.add(lost.Place, lost.Value.Path, "has an effect only with host: without it, the agent runs on the machine of the daemon")
		}
		return AgentHost{}
	}
	if n.Kind == file.YAMLText && n.Text != agentHostAny {
		c.add(n.Place, n.Path, "is %s; it should be %s, or a mapping with labels%s", shown(n), agentHostAny,
			didYouMean(n.Text, []string{agentHostAny}))
	}
	is := AgentHost{Any: true, Labels: textsOf(n.Get("labels"))}
	if lost != nil {
		is.OnLost = textOf(lost.Value)
	}
	return is
}

// env reads an agent's variables. One with host takes those that it refers to from the machine on which it runs.
func (c *checker) env(agent *file.YAMLNode) Env {
	if agent.Get("host") != nil {
		defer func(lookup func(string) (string, bool)) { c.lookupEnv = lookup }(c.lookupEnv)
		c.lookupEnv = nil
	}
	var env Env
	for _, f := range fieldsOf(agent.Get("env")) {
		v := f.Value
		switch {
		case v.Kind != file.YAMLText && v.Kind != file.YAMLNumber && v.Kind != file.YAMLBool:
			continue
		case !envName.MatchString(f.Name):
			c.add(f.Place, v.Path, "is not the name of a variable: letters, digits and underscore, not beginning with a digit")
			continue
		case strings.HasPrefix(f.Name, "FAIRLEAD_"):
			c.add(f.Place, v.Path, "begins with FAIRLEAD_, which is reserved; choose another name")
			continue
		case strings.ContainsRune(v.Text, 0):
			c.add(v.Place, v.Path, "holds a zero byte, which cannot be passed to a process")
			continue
		}
		value, _, _ := c.reference(v, v.Path)
		env.vars = append(env.vars, variable{f.Name, value})
	}
	return env
}

// seats reports a seat that two agents have, and reserves seat 4 for the lead.
func (c *checker) seats(cfg *Config) {
	taken := map[int]string{}
	for _, a := range cfg.Agents {
		n := c.root.Get("agents").Get(a.Name).Get("seat")
		if n == nil || n.Kind != file.YAMLNumber {
			continue
		}
		lead := a.Name == cfg.Team.Lead
		switch other, is := taken[a.Seat]; {
		case is:
			c.add(n.Place, n.Path, "seat %d is taken by %s", a.Seat, other)
		case a.Seat == LeadSeat && !lead:
			c.add(n.Place, n.Path, "seat %d is the lead's; choose another, or name %s as team.lead", LeadSeat, a.Name)
		case a.Seat != LeadSeat && lead:
			c.add(n.Place, n.Path, "the lead has seat %d; remove this line", LeadSeat)
		}
		taken[a.Seat] = a.Name
	}
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
// agent_state.json.
func (c *checker) workspaces(cfg *Config, nodes []*file.YAMLNode) {
	taken := &folders{byPath: map[string]string{}}
	for i := range cfg.Agents {
		a, n := &cfg.Agents[i], nodes[i].Get("workspace")
		if n == nil {
			continue
		}
		if a.Workspace = c.workspace(n); a.Workspace == "" {
			continue
		}
		if other := taken.take(a.Workspace, a.Name); other != "" {
			c.add(n.Place, n.Path,
				"is the folder of agents.%s too; each agent needs its own for its agent_state.json, such as workspace: %s", other, a.Name)
		}
	}
	for i := range cfg.Agents {
		a, n := &cfg.Agents[i], nodes[i]
		if n.Field("workspace") != nil {
			continue
		}
		if a.Workspace = c.dir; taken.take(c.dir, a.Name) == "" {
			continue
		}
		a.Workspace, _ = settle(filepath.Join(c.dir, a.Name))
		if other := taken.take(a.Workspace, a.Name); other != "" {
			c.add(n.Place, join(n.Path, "workspace"), "is missing, and the folder %s, its default, belongs to agents.%s",
				quoteShort(a.Name), other)
		}
	}
}

// hidden reports an agent whose wall hides its own workspace.
func (c *checker) hidden(cfg *Config, nodes []*file.YAMLNode) {
	for i, a := range cfg.Agents {
		for _, item := range itemsOf(nodes[i].Get("sandbox").Get("hide")) {
			if p, why := c.place(item.Text); why == "" && p == a.Workspace {
				c.add(item.Place, item.Path, "%s is the agent's own workspace; hide a folder in it, or give the agent another workspace",
					shown(item))
			}
		}
	}
}

func (c *checker) workspace(n *file.YAMLNode) string {
	s := textOf(n)
	if s == "" {
		return ""
	}
	p := s
	if !filepath.IsAbs(p) {
		p = filepath.Join(c.dir, p)
	}
	p, err := settle(p)
	if err != nil {
		c.add(n.Place, n.Path, "%s contains a symbolic link whose target does not exist", quoteShort(s))
		return ""
	}
	rel, err := filepath.Rel(c.dir, p)
	inside := err == nil && filepath.IsLocal(rel)
	if !inside && !filepath.IsAbs(s) {
		c.add(n.Place, n.Path, "%s is outside of the repository; write an absolute path for such a folder", quoteShort(s))
		return ""
	}
	if inside {
		for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
			if slices.Contains([]string{".fairlead", ".git", ".claude"}, strings.ToLower(part)) {
				c.add(n.Place, n.Path, "no agent may write in %s; choose another folder", part)
				return ""
			}
		}
	}
	if info, err := os.Stat(p); err == nil && !info.IsDir() {
		c.add(n.Place, n.Path, "%s is a file, not a folder", quoteShort(s))
		return ""
	}
	return p
}

// settle resolves the links of the part of a path that exists, so that one folder has one spelling. A
// dangling link is an error, because the folder would later be created somewhere else.
func settle(path string) (string, error) {
	path = filepath.Clean(path)
	rest := ""
	for p := path; ; p = filepath.Dir(p) {
		if found, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(found, rest), nil
		}
		if info, err := os.Lstat(p); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return path, fmt.Errorf("the target of the symbolic link %s does not exist", p)
		}
		if p == filepath.Dir(p) {
			return path, nil
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}

// Permissions say what an agent may do. Its bounds are the fields of seed 002 (policy.Within explains them);
// Allow and Deny answer its program's questions. A nil list sets no bound; an empty list of what it can do
// permits nothing.
type Permissions struct {
	CanWrite      []string
	CannotWrite   []string
	CanExecute    []string
	CannotExecute []string

	Allow     []string      // patterns (policy.ParsePattern) that are answered with yes
	Deny      []string      // patterns that are answered with no; Deny wins over Allow
	Timeout   time.Duration // how long to wait for a person if no pattern matches; 0: without limit
	Otherwise Otherwise     // the answer after Timeout
}

// Bounds returns the four lists as rules of package policy.
func (p Permissions) Bounds() policy.Rules {
	return policy.Rules{CanWrite: p.CanWrite, CannotWrite: p.CannotWrite, CanExecute: p.CanExecute, CannotExecute: p.CannotExecute}
}

// Otherwise is the answer to a question that no person answered in time.
type Otherwise string

// The values of Otherwise.
const (
	OtherwiseDeny  Otherwise = "deny"
	OtherwiseAllow Otherwise = "allow"
)

// Resume says when a session continues the agent's last conversation.
type Resume string

// The values of Resume.
const (
	ResumeInterrupted Resume = "interrupted" // channel and crew sessions, and sessions that a crash or a reboot interrupted
	ResumeAlways      Resume = "always"      // also sessions of the control loop that ended normally
	ResumeNever       Resume = "never"
)

const mcpOff = "off"

func (c *checker) permissions(n *file.YAMLNode) Permissions {
	p := Permissions{
		CanWrite:      c.bound(n.Get("can_write"), false),
		CannotWrite:   c.bound(n.Get("cannot_write"), false),
		CanExecute:    c.bound(n.Get("can_execute"), true),
		CannotExecute: c.bound(n.Get("cannot_execute"), true),
		Allow:         c.rules(n.Get("allow")),
		Deny:          c.rules(n.Get("deny")),
		Timeout:       c.duration(n.Get("timeout"), PermissionTimeout, true),
		Otherwise:     Otherwise(textOf(n.Get("otherwise"))),
	}
	p.Otherwise = cmp.Or(p.Otherwise, OtherwiseDeny)
	if p.Otherwise == OtherwiseAllow && p.Timeout == 0 {
		c.note(n.Get("otherwise").Place, n.Get("otherwise").Path,
			"has no effect: with timeout 0s, the agent waits for a person without a limit")
	}
	return p
}

// bound reads one list of an agent's bounds and reports entries that cannot be checked against a call. An
// empty list is returned as an empty, non-nil list.
func (c *checker) bound(n *file.YAMLNode, executes bool) []string {
	if n == nil || n.Kind != file.YAMLList {
		return nil
	}
	entries := []string{}
	for _, item := range itemsOf(n) {
		if err := policy.ParseBound(item.Text, executes); err != nil && item.Kind == file.YAMLText {
			c.add(item.Place, item.Path, "%s", err)
		}
	}
	return append(entries, textsOf(n)...)
}

// rules reads a list of patterns and reports those that cannot be checked against a call.
func (c *checker) rules(n *file.YAMLNode) []string {
	for _, item := range itemsOf(n) {
		if item.Kind != file.YAMLText {
			continue
		}
		if _, err := policy.ParsePattern(item.Text); err != nil {
			c.add(item.Place, item.Path, "%s", err)
		} else if tool, _, _ := strings.Cut(item.Text, "("); !slices.Contains(tools, tool) {
			if hint := didYouMean(tool, tools); hint != "" {
				c.note(item.Place, item.Path, "no supported program has a tool %s%s", quoteShort(tool), hint)
			}
		}
	}
	return textsOf(n)
}

// tools are the tool names that are common to the supported programs.
var tools = []string{"Write", "Edit", "MultiEdit", "NotebookEdit", "Read", "Bash", "Glob", "Grep", "LS", "WebFetch", "WebSearch", "Task"}

// conversation reports settings that need a program with conversations.
func (c *checker) conversation(n *file.YAMLNode, a Agent) {
	what := "driver " + a.Driver
	switch {
	case a.Loop == LoopForeign:
		what = "loop foreign"
	case a.Driver == DriverACP, a.Driver == DriverClaude, a.Driver == DriverCodex, a.Driver == "":
		return
	}
	for _, key := range []string{"mode", "resume"} {
		if f := n.Field(key); f != nil {
			c.add(f.Place, f.Value.Path, "has no effect with %s; remove it, or use driver acp, claude or codex", what)
		}
	}
}

// AgentSandbox is the wall around a program's processes: the agent's, or MAIN's. The zero value is none.
type AgentSandbox struct {
	Mode    string   // one of the Sandbox constants
	Read    []string // more folders that can be read; all paths are absolute and clean
	Write   []string // more folders that can be written
	Hide    []string // folders that are not there
	Sockets []string // single unix sockets that can be reached
}

// The modes of a wall.
const (
	SandboxWorkspace = "workspace" // with what this machine holds; not started where writes are not held
	SandboxRequired  = "required"  // only if this machine holds every row
	SandboxAuto      = "auto"      // with what this machine holds; started in any case
	SandboxOff       = "off"       // none
)

// On reports whether there is to be a wall.
func (s AgentSandbox) On() bool { return s.Mode != "" && s.Mode != SandboxOff }

// ReadsOnly reports whether the mode of the agent's program lets it write nothing. Inside a wall, where codex has no sandbox
// of its own, the wall holds that.
func (a *Agent) ReadsOnly() bool { return a.Driver == DriverCodex && a.Mode == "read-only" }

// agentHostAny is the word for any host.
const agentHostAny = "any"

// defaultSandbox is the mode of an agent whose entry has no key for it.
func defaultSandbox(a Agent) string {
	switch {
	case a.Loop == LoopForeign: // it writes its agent_state.json
		return SandboxOff
	case a.Driver == DriverACP, a.Driver == DriverClaude, a.Driver == DriverCodex, a.Permissions.CanWrite != nil:
		return SandboxAuto
	}
	return SandboxOff
}

// sandbox reads a wall. usual is its mode if there is no key; a mapping without a mode means workspace.
func (c *checker) sandbox(n *file.YAMLNode, usual string) AgentSandbox {
	word := n
	box := AgentSandbox{Mode: usual}
	if n != nil && n.Kind == file.YAMLObject {
		word, box.Mode = n.Get("mode"), SandboxWorkspace
	}
	if word != nil && word.Kind == file.YAMLText {
		words := []string{SandboxWorkspace, SandboxRequired, SandboxAuto, SandboxOff}
		if !slices.Contains(words, word.Text) {
			c.add(word.Place, word.Path, "is %s; it should be %s%s", shown(word), strings.Join(words, ", "), didYouMean(word.Text, words))
		}
		box.Mode = word.Text
	}
	in := map[string]string{}
	box.Read = c.folders(n.Get("read"), "read", in)
	box.Write = c.folders(n.Get("write"), "write", in)
	box.Hide = c.folders(n.Get("hide"), "hide", in)
	for _, item := range itemsOf(n.Get("sockets")) {
		p, why := c.place(item.Text)
		if why != "" {
			c.add(item.Place, item.Path, "%s %s", shown(item), why)
			continue
		}
		box.Sockets = append(box.Sockets, p)
	}
	if word != n && box.Mode == SandboxOff && len(in)+len(box.Sockets) > 0 {
		c.note(word.Place, n.Path, "has no effect with mode off: there is no wall then")
	}
	return box
}

// folders reads one list of folders of a wall. in has the list of each folder that was read before.
func (c *checker) folders(n *file.YAMLNode, key string, in map[string]string) (list []string) {
	for _, item := range itemsOf(n) {
		p, why := c.place(item.Text)
		switch info, err := os.Stat(p); {
		case why != "":
		case err == nil && !info.IsDir():
			why = "is a file; a wall holds whole folders, so name the folder that it is in"
		case p == c.dir && key == "write":
			why = "is the folder of fairlead.yaml; an agent that may write there can change its own limits"
		case in[p] != "" && in[p] != key:
			why = "is in " + in[p] + " too; keep one of them"
		}
		if why != "" {
			c.add(item.Place, item.Path, "%s %s", shown(item), why)
			continue
		}
		in[p], list = key, append(list, p)
	}
	return list
}

// place resolves a path of a wall to an absolute, clean path. why says what is wrong with it.
func (c *checker) place(p string) (abs, why string) {
	if strings.ContainsAny(p, `*?[{`) {
		return "", "is a pattern; a wall holds whole folders and single sockets, so write the path without * ? [ {, or use permissions.can_write and cannot_write for patterns"
	}
	if p == "~" || strings.HasPrefix(p, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", "cannot be resolved, because the home folder is unknown; write an absolute path"
		}
		p = home + p[1:]
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(c.dir, p)
	}
	p = filepath.Clean(p)
	for _, whole := range []string{"/dev", "/proc", "/sys"} {
		if p == "/" || p == whole || strings.HasPrefix(p, whole+"/") {
			return "", "cannot be opened in a wall: a program reaches everything through /, /dev, /proc and /sys; name a folder to work in"
		}
	}
	return p, ""
}
