package edit

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// Agent is an agent's entry as a form. An empty field means that the file does not have the key. The tag yaml is the path of the key
// in the entry.
type Agent struct {
	Description   string   `json:"description,omitempty" yaml:"description" maxLength:"4096" doc:"Its purpose, in one sentence"`
	Driver        string   `json:"driver,omitempty" yaml:"driver" maxLength:"64" example:"exec" doc:"script, exec, acp, claude or codex"`
	Command       []string `json:"command,omitempty" yaml:"command" maxItems:"1024" nullable:"false" doc:"The program and its arguments"`
	Script        string   `json:"script,omitempty" yaml:"script" maxLength:"4096" doc:"The file that driver script plays"`
	Workspace     string   `json:"workspace,omitempty" yaml:"workspace" maxLength:"4096" doc:"The folder in which it works"`
	Model         string   `json:"model,omitempty" yaml:"model" maxLength:"256" doc:"In the spelling of its program"`
	SessionPrompt string   `json:"session_prompt,omitempty" yaml:"session_prompt" maxLength:"131072" doc:"What it is told at the start of a session"`
	Instances     int      `json:"instances,omitempty" yaml:"instances" minimum:"0" maximum:"32" doc:"How many sessions may run at the same time; 0: the default"`
	CanWrite      []string `json:"can_write,omitempty" yaml:"permissions.can_write" maxItems:"1024" nullable:"false" doc:"Patterns of the files that it may write: permissions.can_write"`
	Sandbox       string   `json:"sandbox,omitempty" yaml:"sandbox" maxLength:"64" doc:"workspace, required, auto or off; a mapping is in the rest"`
	SessionLimit  string   `json:"session_limit,omitempty" yaml:"limits.session" maxLength:"64" example:"2h" doc:"limits.session"`
	TokensPerDay  int64    `json:"tokens_per_day,omitempty" yaml:"limits.tokens_per_day" minimum:"0" doc:"limits.tokens_per_day; 0: no limit"`
	CostPerDayUSD float64  `json:"cost_per_day_usd,omitempty" yaml:"limits.cost_per_day_usd" minimum:"0" doc:"limits.cost_per_day_usd; 0: no limit"`
	Env           []string `json:"env,omitempty" yaml:"env" maxItems:"256" nullable:"false" doc:"Names of variables. A new one gets the value of Fairlead's own variable of that name; values in the file stay and are never shown"`
	Lead          bool     `json:"lead,omitempty" doc:"It leads the crew: team.lead"`
	Rest          string   `json:"rest,omitempty" maxLength:"262144" doc:"All other keys of the entry, as YAML"`
}

// field is a field of the form that is a key of the entry.
type field struct {
	index int
	path  []string
}

var fields = func() (all []field) {
	t := reflect.TypeFor[Agent]()
	for i := range t.NumField() {
		if path := t.Field(i).Tag.Get("yaml"); path != "" {
			all = append(all, field{i, strings.Split(path, ".")})
		}
	}
	return all
}()

// in returns the value of a field in an entry, or nil. A sandbox that is a mapping is in the rest.
func (f field) in(entry *file.YAMLNode) *file.YAMLNode {
	for _, key := range f.path {
		entry = entry.Get(key)
	}
	if entry != nil && entry.Kind == file.YAMLObject && f.path[0] == "sandbox" {
		return nil
	}
	return entry
}

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
	if tied(entry) {
		return a, true, shared(entry)
	}
	m, limit, _, err := s.follow([]string{"agents", name, ""})
	if err != nil {
		return a, true, err
	}
	if m != entry {
		limit = 0 // it is within braces
	}
	for _, f := range fields {
		if n := f.in(entry); n != nil && n.Kind != file.YAMLNull {
			take(reflect.ValueOf(&a).Elem().Field(f.index), n)
		}
	}
	lead := s.root.Get("team").Get("lead")
	a.Lead = lead != nil && lead.Text == name
	parts, err := s.partsOf(entry, entry, limit)
	a.Rest = restText(parts)
	return a, true, err
}

// take sets a field of the form. That of a mapping gets the names of its keys.
func take(to reflect.Value, n *file.YAMLNode) {
	var list []string
	for _, f := range n.Fields {
		list = append(list, f.Name)
	}
	for _, item := range n.Items {
		list = append(list, item.Text)
	}
	switch {
	case to.Kind() == reflect.Slice:
		to.Set(reflect.ValueOf(list))
	case to.CanInt():
		to.SetInt(int64(n.Float(0)))
	case to.CanFloat():
		to.SetFloat(n.Float(0))
	default:
		to.SetString(n.Text)
	}
}

// part is one key of the rest of an entry, with its text.
type part struct {
	path  []string // below the entry
	lines []string // with the key and the comments directly above it, not indented
	node  *yaml.Node
}

// partsOf returns the parts of the rest of an entry, or of a mapping in it that holds fields of the form: under. If the mapping is
// not within braces, limit is the line behind it; otherwise it is 0.
func (s *source) partsOf(entry, m *file.YAMLNode, limit int, under ...string) (parts []part, err error) {
	for i := range m.Fields {
		f := &m.Fields[i]
		if slices.ContainsFunc(fields, func(own field) bool { return own.in(entry) == f.Value }) {
			continue
		}
		p := part{path: append(slices.Clone(under), f.Name), node: nodeFrom(f.Value)}
		p.lines = dumped(mapping(f.Name, p.node), 2)
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
		holds := func(own field) bool { return len(own.path) > 1 && own.path[0] == f.Name }
		if len(under) > 0 || len(f.Value.Fields) == 0 || !slices.ContainsFunc(fields, holds) {
			parts = append(parts, p)
			continue
		}
		inside, err := s.partsOf(entry, f.Value, below, f.Name)
		if err != nil {
			return nil, err
		}
		parts = append(parts, inside...)
	}
	return parts, nil
}

// restText puts the parts together. Parts of one mapping are joined below its key.
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
	for _, f := range fields {
		if n := f.in(s.root); n != nil {
			return nil, fault(n.Line, n.Column, at+"."+strings.Join(f.path, "."), "is a field of its own; change it there, and remove it here")
		}
	}
	return s.partsOf(s.root, s.root, s.end())
}

// RestName is the name of the file in faults of the rest.
const RestName = "the other keys"
