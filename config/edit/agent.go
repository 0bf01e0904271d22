package edit

import (
	"slices"
	"strconv"
	"strings"

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
	Sandbox       string   `json:"sandbox,omitempty" maxLength:"64" doc:"workspace, required, auto or off; a mapping is in the rest"`
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
	m, limit, _, err := s.follow([]string{"agents", name, ""})
	if err != nil && !tied(entry) {
		return a, true, err
	}
	if tied(entry) {
		return a, true, shared(entry)
	}
	if m != entry {
		limit = 0 // it is within braces
	}
	limits := entry.Get("limits")
	a = Agent{
		Description: textOf(entry.Get("description")), Driver: textOf(entry.Get("driver")), Command: textsOf(entry.Get("command")),
		Script: textOf(entry.Get("script")), Workspace: textOf(entry.Get("workspace")), Model: textOf(entry.Get("model")),
		SessionPrompt: textOf(entry.Get("session_prompt")), Instances: int(entry.Get("instances").Float(0)),
		CanWrite:     textsOf(entry.Get("permissions").Get("can_write")),
		SessionLimit: textOf(limits.Get("session")), TokensPerDay: int64(limits.Get("tokens_per_day").Float(0)),
		CostPerDayUSD: limits.Get("cost_per_day_usd").Float(0),
		Lead:          textOf(s.root.Get("team").Get("lead")) == name,
	}
	if sandbox := entry.Get("sandbox"); sandbox != nil && sandbox.Kind == file.YAMLText {
		a.Sandbox = sandbox.Text
	}
	if env := entry.Get("env"); env != nil {
		for _, f := range env.Fields {
			a.Env = append(a.Env, f.Name)
		}
	}
	parts, err := s.partsOf(entry, limit)
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

// isField reports whether a key of an entry is in a field of the form, and not in its rest.
func isField(f *file.YAMLField, under []string) bool {
	if len(under) > 0 {
		return f.Name == "can_write"
	}
	return slices.Contains(formKeys, f.Name) || f.Name == "sandbox" && f.Value.Kind == file.YAMLText
}

// partsOf returns the parts of the rest of an entry, or of its key permissions: under. If the mapping is not within braces, limit is
// the line behind it; otherwise it is 0.
func (s *source) partsOf(m *file.YAMLNode, limit int, under ...string) (parts []part, err error) {
	for i := range m.Fields {
		f := &m.Fields[i]
		if isField(f, under) {
			continue
		}
		p := part{path: append(slices.Clone(under), f.Name), flow: rendered(f.Value)}
		p.lines = []string{quoted(f.Name, false) + ": " + p.flow}
		below := 0
		if limit > 0 {
			b, err := s.blockOf(m, i, limit)
			if err != nil {
				return nil, err
			}
			p.lines = nil
			for n := b.head; n < b.behind; n++ {
				line := s.line(n)
				p.lines = append(p.lines, line[min(indentOf(line), len(b.indent)):])
			}
			if !inBraces(f.Value) {
				below = b.behind
			}
		}
		if len(under) > 0 || f.Name != "permissions" || len(f.Value.Fields) == 0 {
			parts = append(parts, p)
			continue
		}
		inside, err := s.partsOf(f.Value, below, "permissions")
		if err != nil {
			return nil, err
		}
		parts = append(parts, inside...)
	}
	return parts, nil
}

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
	if !slices.ContainsFunc(strings.Split(rest, "\n"), func(line string) bool { return !blank(line) && !isComment(line) }) {
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
	case s.root.Kind != file.YAMLObject || inBraces(s.root) || s.root.Column != 1:
		return nil, fault(1, 1, "", "write the other keys as in the file, each on a line of its own, such as `resume: always`")
	case tied(s.root):
		return nil, fault(1, 1, "",
			"anchors (&), aliases (*) and merge keys (<<) are not written here; change fairlead.yaml by hand for them")
	}
	own := "is a field of its own; change it there, and remove it here"
	for i := range s.root.Fields {
		f := &s.root.Fields[i]
		if isField(f, nil) {
			return nil, fault(f.Line, f.Column, at+"."+f.Name, own)
		}
		if g := f.Value.Field("can_write"); f.Name == "permissions" && g != nil {
			return nil, fault(g.Line, g.Column, at+".permissions.can_write", own)
		}
	}
	return s.partsOf(s.root, s.end())
}

// RestName is the name of the file in faults of the rest.
const RestName = "the other keys"
