package edit

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// Agent is an agent's entry as a form. An empty field means that the file does not have the key.
type Agent struct {
	Description   string   `json:"description,omitempty" maxLength:"4096" doc:"Its purpose, in one sentence"`
	Driver        string   `json:"driver,omitempty" maxLength:"64" example:"exec" doc:"script, exec, acp, claude or codex"`
	Command       []string `json:"command,omitempty" maxItems:"1024" nullable:"false" doc:"The program and its arguments"`
	Script        string   `json:"script,omitempty" maxLength:"4096" doc:"The file that driver script plays"`
	Workspace     string   `json:"workspace,omitempty" maxLength:"4096" doc:"The folder in which it works"`
	Model         string   `json:"model,omitempty" maxLength:"256" doc:"In the spelling of its program"`
	SessionPrompt string   `json:"session_prompt,omitempty" maxLength:"131072" doc:"What it is told at the start of a session"`
	Instances     int      `json:"instances,omitempty" minimum:"0" maximum:"32" doc:"How many sessions may run at the same time; 0: the default"`
	CanWrite      []string `json:"can_write,omitempty" maxItems:"1024" nullable:"false" doc:"Patterns of the files that it may write: permissions.can_write"`
	Sandbox       string   `json:"sandbox,omitempty" maxLength:"64" doc:"auto, workspace or off; a mapping is in the rest"`
	SessionLimit  string   `json:"session_limit,omitempty" maxLength:"64" example:"2h" doc:"limits.session"`
	TokensPerDay  int64    `json:"tokens_per_day,omitempty" minimum:"0" doc:"limits.tokens_per_day; 0: no limit"`
	CostPerDayUSD float64  `json:"cost_per_day_usd,omitempty" minimum:"0" doc:"limits.cost_per_day_usd; 0: no limit"`
	Env           []string `json:"env,omitempty" maxItems:"256" nullable:"false" doc:"Names of variables. A new one gets the value of Fairlead's own variable of that name; values in the file stay and are never shown"`
	Lead          bool     `json:"lead,omitempty" doc:"It leads the crew: team.lead"`
	Rest          string   `json:"rest,omitempty" maxLength:"262144" doc:"All other keys of the entry, as YAML"`
}

// formKeys are the keys of an entry that are not in its rest.
var formKeys = []string{"description", "driver", "command", "script", "workspace", "model", "session_prompt", "instances", "limits", "env"}

// Describe returns the entry of an agent as a form. found is false if the file has no such agent.
func Describe(b []byte, name string) (a Agent, found bool, err error) {
	s, err := parse(b)
	if err != nil {
		return a, false, err
	}
	entry := s.root.Get("agents").Get(name)
	if entry == nil {
		return a, false, nil
	}
	sp, err := s.find([]string{"agents", name})
	if err != nil {
		return a, true, err
	}
	if tied(entry) {
		return a, true, byHand("%s has an anchor (&), an alias (*) or a merge key (<<), so other keys may share its values", entry.Path)
	}
	limits := entry.Get("limits")
	a = Agent{
		Description: textOf(entry.Get("description")), Driver: textOf(entry.Get("driver")), Command: textsOf(entry.Get("command")),
		Script: textOf(entry.Get("script")), Workspace: textOf(entry.Get("workspace")), Model: textOf(entry.Get("model")),
		SessionPrompt: textOf(entry.Get("session_prompt")), Instances: int(entry.Get("instances").Float(0)),
		CanWrite:     textsOf(entry.Get("permissions").Get("can_write")),
		SessionLimit: textOf(limits.Get("session")), TokensPerDay: int64(limits.Get("tokens_per_day").Float(0)), CostPerDayUSD: limits.Get("cost_per_day_usd").Float(0),
		Lead: textOf(s.root.Get("team").Get("lead")) == name,
	}
	if sandbox := entry.Get("sandbox"); sandbox != nil && sandbox.Kind == file.YAMLText {
		a.Sandbox = sandbox.Text
	}
	if env := entry.Get("env"); env != nil {
		for _, f := range env.Fields {
			a.Env = append(a.Env, f.Name)
		}
	}
	parts, err := s.partsOf(entry, sp)
	a.Rest = restText(parts)
	return a, true, err
}

func textOf(n *file.YAMLNode) string {
	if n == nil || n.Kind == file.YAMLNull {
		return ""
	}
	return n.Text
}

func textsOf(n *file.YAMLNode) (list []string) {
	if n == nil {
		return nil
	}
	for _, item := range n.Items {
		list = append(list, item.Text)
	}
	return list
}

// part is one key of the rest of an entry, with its text.
type part struct {
	path  []string // below the entry
	lines []string // with the key and the comments directly above it, not indented
	flow  string   // its value in one line
}

func (p part) text() string { return strings.Join(p.lines, "\n") }

// partsOf returns the parts of the rest of an entry. sp is the spot of the entry.
func (s *source) partsOf(entry *file.YAMLNode, sp spot) (parts []part, err error) {
	in := spot{in: entry, limit: sp.limit, flow: sp.flow || entry.Style&yaml.FlowStyle != 0}
	if !in.flow && len(entry.Fields) > 0 && entry != s.root {
		c, err := s.chunkOf(sp.in, sp.at, sp.limit)
		if err != nil {
			return nil, err
		}
		in.limit = c.behind
	}
	for i, f := range entry.Fields {
		switch {
		case slices.Contains(formKeys, f.Name) || f.Name == "sandbox" && f.Value.Kind == file.YAMLText:
			continue
		case f.Name == "permissions" && f.Value.Kind == file.YAMLObject && len(f.Value.Fields) > 0:
			below := spot{in: f.Value, limit: in.limit, flow: in.flow || f.Value.Style&yaml.FlowStyle != 0}
			if !below.flow {
				c, err := s.chunkOf(entry, i, in.limit)
				if err != nil {
					return nil, err
				}
				below.limit = c.behind
			}
			for j, g := range f.Value.Fields {
				if g.Name == "can_write" {
					continue
				}
				p, err := s.partOf(below, j, []string{f.Name, g.Name})
				if err != nil {
					return nil, err
				}
				parts = append(parts, p)
			}
			continue
		}
		p, err := s.partOf(in, i, []string{f.Name})
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func (s *source) partOf(in spot, i int, path []string) (part, error) {
	f := in.in.Fields[i]
	p := part{path: path, flow: rendered(f.Value)}
	if in.flow {
		items, _, _, err := s.itemsOf(in.in)
		if err != nil {
			return p, err
		}
		p.lines = []string{quoted(f.Name, false) + ": " + oneLine(s.text[items[i].value:items[i].end])}
		return p, nil
	}
	c, err := s.chunkOf(in.in, i, in.limit)
	if err != nil {
		return p, err
	}
	for n := c.head; n < c.behind; n++ {
		line := s.line(n)
		p.lines = append(p.lines, line[min(indentOf(line), c.indent):])
	}
	return p, nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// restText puts the parts together. Parts of permissions are joined below one such key.
func restText(parts []part) string {
	var lines []string
	inside := ""
	for _, p := range parts {
		if len(p.path) == 1 {
			inside = ""
			lines = append(lines, p.lines...)
			continue
		}
		if inside != p.path[0] {
			inside = p.path[0]
			lines = append(lines, inside+":")
		}
		for _, line := range p.lines {
			lines = append(lines, strings.TrimRight("  "+line, " "))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// readRest reads the rest as a person wrote it. Faults name the agent's keys.
func readRest(name, rest string) ([]part, error) {
	rest = strings.ReplaceAll(rest, "\r\n", "\n")
	at := "agents." + name
	fault := func(line, column int, path, words string) error {
		if line > 0 {
			words = "line " + strconv.Itoa(line) + ": " + words
		}
		return &config.Faults{List: []config.Fault{{File: RestName, Line: line, Column: column, Path: path, Text: words}}}
	}
	if strings.TrimSpace(strings.Join(withoutComments(rest), "")) == "" {
		return nil, nil
	}
	if !strings.HasSuffix(rest, "\n") {
		rest += "\n"
	}
	s, err := parse([]byte(rest))
	if faults, is := err.(*config.Faults); is && len(faults.List) > 0 { //nolint:errorlint // parse returns it as it is
		f := faults.List[0]
		return nil, fault(f.Line, f.Column, "", f.Text)
	}
	switch {
	case err != nil:
		return nil, err
	case s.root.Kind != file.YAMLObject || s.root.Style&yaml.FlowStyle != 0 || s.root.Column != 1:
		return nil, fault(1, 1, "", "write the other keys as in the file, each on a line of its own, such as `resume: always`")
	case tied(s.root):
		return nil, fault(1, 1, "", "anchors (&), aliases (*) and merge keys (<<) are not written here; change fairlead.yaml by hand for them")
	}
	for _, f := range s.root.Fields {
		if slices.Contains(formKeys, f.Name) {
			return nil, fault(f.Line, f.Column, at+"."+f.Name, "is a field of its own; change it there, and remove it here")
		}
		if g := f.Value.Field("can_write"); f.Name == "permissions" && g != nil {
			return nil, fault(g.Line, g.Column, at+".permissions.can_write", "is a field of its own; change it there, and remove it here")
		}
		if f.Name == "sandbox" && f.Value.Kind == file.YAMLText {
			return nil, fault(f.Line, f.Column, at+".sandbox", "is a field of its own; change it there, and remove it here")
		}
	}
	return s.partsOf(s.root, spot{in: s.root, limit: s.end()})
}

// RestName is the name of the file in faults of the rest.
const RestName = "the other keys"

func withoutComments(text string) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if !isComment(line) {
			lines = append(lines, line)
		}
	}
	return lines
}
