package script

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	scriptBytesMax = 1 << 20        // scripts are written by people
	stepsMax       = 10_000         // an alias is a few bytes long and stands for a whole list
	listMax        = 20             // more options are not a question
	rawBytesMax    = 4 << 20        // of all base64 together, which an alias can repeat
	timesMax       = 1_000_000      // emit: enough to fill any spool
	lengthMax      = 24 * time.Hour // a longer sleep is a mistake
	tokensMax      = 1 << 40
	costMax        = 1e6
	faultsMax      = 100 // a longer list does not help
)

// verbs are the steps and their options. A key that is not listed does not exist.
var verbs = map[string][]string{
	"say": {"delay"}, "think": {"delay"}, "usage": nil, "emit": {"times"}, "fail": {"code"}, "crash": nil,
	"ask": {"tool", "args", "options", "timeout"},
	"run": {"says", "raw"}, "sleep": nil, "expect_prompt": nil, "hang": nil, "again": nil,
}

// Parse checks a script and lists its faults. name is only used in the faults.
func Parse(name string, source []byte) (*Program, error) {
	p := &parser{file: name}
	program := &Program{File: name}
	var doc yaml.Node
	switch {
	case len(source) > scriptBytesMax:
		p.fault(nil, "the script is longer than %d bytes; split it", scriptBytesMax)
	case !utf8.Valid(source):
		p.fault(nil, "the script is not UTF-8; save it as UTF-8 (raw bytes go in base64, as in `emit: !!binary AAH/`)")
	case strings.TrimSpace(string(source)) == "":
		p.fault(nil, "the script is empty; it needs steps, as in `steps: [{say: hello}]`")
	default:
		if err := yaml.Load(source, &doc); err != nil {
			p.syntax(err)
			break
		}
		p.program(doc.Content[0], program)
	}
	if len(p.faults) > 0 {
		cut := len(p.faults) == faultsMax
		p.faults = file.SortFaults(p.faults)
		if cut {
			p.faults = append(p.faults,
				Fault{File: name, Text: fmt.Sprintf("only the first %d faults are listed; there may be more", faultsMax)})
		}
		return nil, p.faults
	}
	return program, nil
}

type parser struct {
	file   string
	faults Faults
	steps  int // number of steps read
	raw    int // number of bytes of emit steps that were decoded
}

func (p *parser) fault(at *yaml.Node, format string, args ...any) {
	if len(p.faults) >= faultsMax {
		return
	}
	f := Fault{File: p.file, Text: fmt.Sprintf(format, args...)}
	if at != nil {
		f.Line, f.Column = at.Line, at.Column
	}
	p.faults = append(p.faults, f)
}

// syntax records the error of the YAML reader, which stops at the first one.
func (p *parser) syntax(err error) {
	var at *yaml.Node
	text := err.Error()
	if one, ok := errors.AsType[*yaml.LoadError](err); ok {
		text = one.Message
		if one.Mark.Line > 0 {
			at = &yaml.Node{Line: one.Mark.Line, Column: one.Mark.Column}
		}
	}
	p.fault(at, "%s", strings.TrimPrefix(text, "yaml: "))
}

func (p *parser) program(root *yaml.Node, program *Program) {
	keys := p.mapping(root, "a script", "description", "sessions", "steps", "cleanup", "turn", "lead")
	program.Cleanup, program.Turn, program.Lead = p.list(keys["cleanup"]), p.list(keys["turn"]), p.list(keys["lead"])
	p.text(keys["description"])
	sessions, steps := keys["sessions"], keys["steps"]
	switch {
	case sessions != nil && steps != nil:
		p.fault(steps, "a script has either steps or sessions; move these steps into a session")
	case steps != nil:
		program.Sessions = []Session{{Name: "session", Steps: p.list(steps)}}
	case sessions != nil:
		program.Sessions = p.sessions(sessions)
	case len(p.faults) == 0:
		p.fault(root, "the script plays nothing; it needs steps, or sessions with steps")
	}
}

func (p *parser) sessions(n *yaml.Node) []Session {
	var sessions []Session
	for _, item := range p.sequence(n, "sessions") {
		s := Session{Name: fmt.Sprintf("session %d", len(sessions)+1)}
		if resolve(item).Kind == yaml.SequenceNode { // a session without a name may be a list of steps
			s.Steps = p.list(item)
			sessions = append(sessions, s)
			continue
		}
		keys := p.mapping(item, "a session", "name", "steps")
		if name := keys["name"]; name != nil {
			s.Name = p.text(name)
			if slices.ContainsFunc(sessions, func(other Session) bool { return other.Name == s.Name }) {
				p.fault(name, "there is another session named %s; names tell them apart", s.Name)
			}
		}
		if s.Steps = p.list(keys["steps"]); keys != nil && keys["steps"] == nil {
			p.fault(item, "the session has no steps")
		}
		sessions = append(sessions, s)
	}
	return sessions
}

// list reads a list of steps; nil: there is none.
func (p *parser) list(n *yaml.Node) []Step {
	if n == nil {
		return nil
	}
	var steps []Step
	for _, item := range p.sequence(n, "steps") {
		if p.steps++; p.steps > stepsMax {
			p.fault(item, "the script has more than %d steps; use again, or a command", stepsMax)
			return nil
		}
		if len(p.faults) >= faultsMax {
			return nil
		}
		steps = append(steps, p.step(resolve(item)))
		if steps[len(steps)-1].Verb == "again" && lastWait(steps) < 0 {
			p.fault(item, "again needs an expect_prompt before it: it goes on with the next prompt")
		}
	}
	return steps
}

// step reads one step: one verb, and its options beside it.
func (p *parser) step(n *yaml.Node) Step {
	s := Step{Line: n.Line, Column: n.Column, Code: CodeFailed, Times: 1}
	value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line, Column: n.Column}
	if n.Kind == yaml.ScalarNode && needsNothing(n.Value) {
		s.Verb = n.Value
		return s
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		p.fault(n, "a step is a mapping, as in `say: hello`; it is one of %s", names(verbs))
		return s
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if _, ok := verbs[n.Content[i].Value]; !ok {
			continue
		}
		if s.Verb != "" {
			p.fault(n.Content[i], "a step has one verb, and this one already has %s; begin another step with a dash", s.Verb)
			return s
		}
		s.Verb, value = n.Content[i].Value, resolve(n.Content[i+1])
	}
	if s.Verb == "" {
		p.fault(n, "there is no step %q; a step is one of %s", clip(n.Content[0].Value), names(verbs))
		return s
	}
	p.value(&s, value)
	for name, option := range p.mapping(n, s.Verb, append([]string{s.Verb}, verbs[s.Verb]...)...) {
		p.option(&s, name, option)
	}
	return s
}

// needsNothing reports whether a verb has no value, as in `- hang`.
func needsNothing(verb string) bool {
	return verb == "hang" || verb == "crash" || verb == "expect_prompt" || verb == "again"
}

// value reads what a verb is given.
func (p *parser) value(s *Step, n *yaml.Node) {
	switch {
	case s.Verb == "usage":
		p.usage(s, n)
	case s.Verb == "sleep":
		s.Sleep = p.duration(n)
	case s.Verb == "hang" && n.Tag != "!!null":
		s.Text = p.text(n)
	case needsNothing(s.Verb):
		if n.Tag != "!!null" {
			p.fault(n, "%s is given nothing; write `- %s`", s.Verb, s.Verb)
		}
	case s.Verb == "emit" && n.Tag == "!!binary":
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			p.fault(n, "this is not base64: %v", err)
		}
		if p.raw += len(raw); p.raw > rawBytesMax {
			p.fault(n, "the emit steps have more than %d bytes of base64 together; use times, or a command that prints them", rawBytesMax)
			return
		}
		s.Text = string(raw)
	default:
		if s.Text = p.text(n); s.Verb == "run" && strings.TrimSpace(s.Text) == "" {
			p.fault(n, "a command is needed here")
		}
	}
}

func (p *parser) option(s *Step, name string, n *yaml.Node) {
	switch name {
	case "delay":
		s.Delay = p.duration(n)
	case "timeout":
		s.Timeout = p.duration(n)
	case "times":
		s.Times = int(p.number(n, 1, timesMax))
	case "code":
		s.Code = int(p.number(n, 0, 255))
	case "says":
		s.Says = p.truth(n)
	case "raw":
		s.Raw = p.truth(n)
	case "tool":
		s.Tool = p.text(n)
	case "options":
		items := p.sequence(n, "options")
		if len(items) == 1 || len(items) > listMax {
			p.fault(n, "a question has from 2 to %d options", listMax)
			return
		}
		for _, item := range items {
			s.Options = append(s.Options, p.text(item))
		}
	case "args": // as an agent program would send them: names and texts
		n = resolve(n)
		if n.Kind != yaml.MappingNode || len(n.Content) == 0 || len(n.Content)/2 > listMax {
			p.fault(n, "args is a mapping of at most %d names and texts, as in `{file_path: notes.md}`", listMax)
			return
		}
		s.Args = make(map[string]string)
		for i := 0; i+1 < len(n.Content); i += 2 {
			s.Args[p.text(n.Content[i])] = p.text(n.Content[i+1])
		}
	}
}

func (p *parser) usage(s *Step, n *yaml.Node) {
	keys := p.mapping(n, "usage", "input_tokens", "output_tokens", "cost_usd", "model")
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		p.fault(n, "usage needs input_tokens, output_tokens or cost_usd")
	}
	s.Usage = change.Usage{
		InputTokens: p.number(keys["input_tokens"], 0, tokensMax), OutputTokens: p.number(keys["output_tokens"], 0, tokensMax),
		CostUSD: p.cost(keys["cost_usd"]), Model: p.text(keys["model"]),
	}
}

// mapping returns the values of a mapping by its keys. Unknown and repeated keys are faults.
func (p *parser) mapping(n *yaml.Node, what string, known ...string) map[string]*yaml.Node {
	n = resolve(n)
	slices.Sort(known)
	if n.Kind != yaml.MappingNode {
		p.fault(n, "%s is a mapping with the keys %s", what, strings.Join(known, ", "))
		return nil
	}
	values := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode || !slices.Contains(known, key.Value):
			p.fault(key, "unknown key %q; %s has %s", clip(key.Value), what, strings.Join(known, ", "))
		case values[key.Value] != nil:
			p.fault(key, "%s is repeated", key.Value)
		default:
			values[key.Value] = n.Content[i+1]
		}
	}
	return values
}

func (p *parser) sequence(n *yaml.Node, what string) []*yaml.Node {
	n = resolve(n)
	switch {
	case n.Kind != yaml.SequenceNode:
		p.fault(n, "%s is a list; begin each item with a dash", what)
		return nil
	case len(n.Content) == 0:
		p.fault(n, "%s is empty", what)
	}
	return n.Content
}

// The readers of a scalar return its zero value for a nil node.

func (p *parser) text(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.fault(n, "a text is needed here")
		return ""
	}
	if strings.ContainsRune(n.Value, 0) {
		p.fault(n, "a text must not contain NUL bytes; write raw bytes as base64, as in `emit: !!binary AAH/`")
	}
	return n.Value
}

func (p *parser) truth(n *yaml.Node) bool {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
		p.fault(n, "true or false is needed here")
	}
	return n.Value == "true"
}

func (p *parser) number(n *yaml.Node, least, most int64) int64 {
	if n == nil {
		return 0
	}
	n = resolve(n)
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < least || v > most {
		p.fault(n, "a whole number from %d to %d is needed here", least, most)
		return least
	}
	return v
}

func (p *parser) cost(n *yaml.Node) float64 {
	if n == nil {
		return 0
	}
	n = resolve(n)
	v, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(v >= 0 && v <= costMax) {
		p.fault(n, "a number from 0 to %v is needed here", costMax)
		return 0
	}
	return v
}

func (p *parser) duration(n *yaml.Node) time.Duration {
	n = resolve(n)
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d < 0 || d > lengthMax {
		p.fault(n, "a time with a unit is needed here, as in 300ms or 2s, up to 24h")
		return 0
	}
	return d
}

// resolve follows an alias. The YAML reader has rejected recursive aliases.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

func names[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// clip shortens a word from a script for a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
