package script

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

const (
	scriptBytesMax = 1 << 20        // scripts are written by people
	stepsMax       = 10_000         // aliases could expand a small file
	nestingMax     = 16             // deeper nesting of repeat is a mistake
	timesMax       = 1_000_000      // repeat, count: enough to fill any spool
	lengthMax      = 24 * time.Hour // a longer sleep is a mistake
	emitBytesMax   = 64 << 20       // three times the longest line observed in practice
	faultsMax      = 100            // a longer list does not help
)

// Parse checks a script and lists its faults. file is only used as the name in the faults.
func Parse(file string, source []byte) (*Program, error) {
	p := &parser{file: file}
	program := &Program{File: file}
	if len(source) > scriptBytesMax {
		p.fault(nil, "the script is longer than %d bytes; split it", scriptBytesMax)
	} else if !utf8.Valid(source) {
		p.fault(nil, "the script is not UTF-8; save it as UTF-8 (raw bytes go in base64, with the step emit)")
	} else {
		p.document(source, program)
	}
	if len(p.faults) > 0 {
		p.faults.sort()
		if len(p.faults) == faultsMax {
			p.faults = append(p.faults, Fault{File: file, Text: fmt.Sprintf("only the first %d faults are listed; there may be more", faultsMax)})
		}
		return nil, p.faults
	}
	return program, nil
}

type parser struct {
	file   string
	faults Faults
	steps  int // number of steps read
	raw    int // number of bytes of emit steps read
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

func (p *parser) document(source []byte, program *Program) {
	if len(bytes.TrimSpace(source)) == 0 {
		p.fault(nil, "the script is empty; it needs steps, as in `steps: [{say: hello}]`")
		return
	}
	var doc yaml.Node
	if err := yaml.Load(source, &doc); err != nil {
		p.syntax(err)
		return
	}
	root := &doc
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}
	p.program(root, program)
}

// syntax records the error of the YAML reader, which stops at the first one.
func (p *parser) syntax(err error) {
	at := &yaml.Node{}
	text := err.Error()
	if one, ok := errors.AsType[*yaml.LoadError](err); ok {
		at.Line, at.Column, text = one.Mark.Line, one.Mark.Column, one.Message
	}
	if at.Line == 0 {
		at = nil
	}
	p.fault(at, "%s", strings.TrimPrefix(text, "yaml: "))
}

func (p *parser) program(root *yaml.Node, program *Program) {
	var sessions, steps *yaml.Node
	p.mapping(root, "a script", map[string]func(*yaml.Node){
		"description": func(n *yaml.Node) { program.Description = p.text(n) },
		"seed":        func(n *yaml.Node) { program.Seed = uint64(p.number(n, 0, 1<<53)) },
		"pace":        func(n *yaml.Node) { program.Pace = p.duration(n) },
		"stubborn":    func(n *yaml.Node) { program.Stubborn = p.truth(n) },
		"order":       func(n *yaml.Node) { program.Random = p.word(n, "cycle", "random") == "random" },
		"sessions":    func(n *yaml.Node) { sessions = n },
		"steps":       func(n *yaml.Node) { steps = n },
		"cleanup":     func(n *yaml.Node) { program.Cleanup = p.list(n, 0) },
		"turn":        func(n *yaml.Node) { program.Turn = p.list(n, 0) },
		"lead":        func(n *yaml.Node) { program.Lead = p.list(n, 0) },
	})
	switch {
	case sessions != nil && steps != nil:
		p.fault(steps, "a script has either steps or sessions; move these steps into a session")
	case steps != nil:
		program.Sessions = []Session{{Name: "session", Steps: p.list(steps, 0)}}
	case sessions != nil:
		program.Sessions = p.sessions(sessions)
	case len(p.faults) == 0:
		p.fault(root, "the script plays nothing; it needs steps, or sessions with steps")
	}
}

func (p *parser) sessions(n *yaml.Node) []Session {
	var sessions []Session
	names := make(map[string]bool)
	for _, item := range p.sequence(n, "sessions", 1) {
		s := Session{Name: fmt.Sprintf("session %d", len(sessions)+1)}
		if resolve(item).Kind == yaml.SequenceNode { // a session without a name may be a list of steps
			s.Steps = p.list(item, 0)
			sessions = append(sessions, s)
			continue
		}
		steps := false
		p.mapping(item, "a session", map[string]func(*yaml.Node){
			"name": func(n *yaml.Node) {
				if s.Name = p.text(n); names[s.Name] {
					p.fault(n, "there is another session named %s; names tell them apart", s.Name)
				}
			},
			"steps": func(n *yaml.Node) { s.Steps, steps = p.list(n, 0), true },
		})
		if !steps && resolve(item).Kind == yaml.MappingNode {
			p.fault(item, "the session has no steps")
		}
		names[s.Name] = true
		sessions = append(sessions, s)
	}
	return sessions
}

// list reads a list of steps.
func (p *parser) list(n *yaml.Node, depth int) []Step {
	if depth > nestingMax {
		p.fault(n, "steps are nested more than %d deep", nestingMax)
		return nil
	}
	var steps []Step
	for _, item := range p.sequence(n, "steps", 1) {
		if p.steps++; p.steps > stepsMax {
			p.fault(item, "the script has more than %d steps; use repeat, or sessions", stepsMax)
			return nil
		}
		if len(p.faults) >= faultsMax {
			return nil
		}
		steps = append(steps, p.step(item, depth))
	}
	return steps
}

// mapping passes each value of a mapping to its reader. Unknown and repeated keys are faults.
func (p *parser) mapping(n *yaml.Node, what string, readers map[string]func(*yaml.Node)) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		p.fault(n, "%s is a mapping with the keys %s", what, keys(readers))
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch read := readers[key.Value]; {
		case key.Kind != yaml.ScalarNode || read == nil:
			p.fault(key, "unknown key %q; %s has %s", clip(key.Value), what, keys(readers))
		case seen[key.Value]:
			p.fault(key, "%s is repeated", key.Value)
		default:
			read(value)
		}
		seen[key.Value] = true
	}
}

func (p *parser) sequence(n *yaml.Node, what string, least int) []*yaml.Node {
	n = resolve(n)
	if len(p.faults) >= faultsMax {
		return nil // there is nothing else to report
	}
	if n.Kind != yaml.SequenceNode {
		p.fault(n, "%s is a list; begin each item with a dash", what)
		return nil
	}
	switch {
	case len(n.Content) >= least:
	case len(n.Content) == 0:
		p.fault(n, "%s is empty", what)
	default:
		p.fault(n, "%s needs %d at least", what, least)
	}
	return n.Content
}

func (p *parser) text(n *yaml.Node) string {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.fault(n, "a text is needed here")
		return ""
	}
	if strings.ContainsRune(n.Value, 0) {
		p.fault(n, "a text must not contain NUL bytes; write raw bytes as base64, with the step emit")
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
	n = resolve(n)
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < least || v > most {
		p.fault(n, "a whole number from %d to %d is needed here", least, most)
		return least
	}
	return v
}

func (p *parser) fraction(n *yaml.Node, most float64) float64 {
	n = resolve(n)
	v, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(v >= 0 && v <= most) {
		p.fault(n, "a number from 0 to %v is needed here", most)
		return 0
	}
	return v
}

func (p *parser) duration(n *yaml.Node) time.Duration {
	n = resolve(n)
	return p.durationText(n, n.Value)
}

func (p *parser) durationText(n *yaml.Node, text string) time.Duration {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if n.Kind != yaml.ScalarNode || err != nil || d < 0 || d > lengthMax {
		p.fault(n, "a time with a unit is needed here, as in 300ms or 2s, up to 24h")
		return 0
	}
	return d
}

// span is a duration, or two durations separated by two dots.
func (p *parser) span(n *yaml.Node) (from, to time.Duration) {
	n = resolve(n)
	low, high, ranged := strings.Cut(n.Value, "..")
	from = p.durationText(n, low)
	if !ranged {
		return from, from
	}
	if to = p.durationText(n, high); to < from {
		p.fault(n, "the longer time comes second, as in 1s..3s")
	}
	return from, to
}

func (p *parser) word(n *yaml.Node, words ...string) string {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || !slices.Contains(words, n.Value) {
		p.fault(n, "one of %s is needed here", strings.Join(words, ", "))
		return words[0]
	}
	return n.Value
}

// resolve follows an alias. The YAML reader has rejected recursive aliases.
func resolve(n *yaml.Node) *yaml.Node {
	for range nestingMax {
		if n.Kind != yaml.AliasNode || n.Alias == nil {
			break
		}
		n = n.Alias
	}
	return n
}

func keys[V any](m map[string]V) string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// clip shortens a word from a script for a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
