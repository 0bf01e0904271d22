package script

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

const (
	runLimit  = 10 * time.Minute // default for one command
	tryDelay  = 500 * time.Millisecond
	triesMax  = 100
	tokensMax = 1 << 40

	// An alias is a few bytes long and stands for a whole list or text, so what is copied out of it
	// counts.
	answersMax  = 20      // more options are not a question
	choicesMax  = 1000    // of one draw
	rawBytesMax = 4 << 20 // text and base64 of all emit steps; bytes costs nothing
	costMax     = 1e6
)

// option reads one option of a step. depth is the nesting of the steps it contains.
type option func(p *parser, n *yaml.Node, s *Step, depth int)

// verb describes one kind of step: its options, the option that the verb's own value sets (`say:
// hello` is `say: {text: hello}`), and the required options.
type verb struct {
	value   string
	options map[string]option
	needs   []string
}

// verbs is the complete language. A key that is not listed does not exist.
var verbs map[string]verb

func init() { // a function, because the table's readers read steps, which need the table
	verbs = map[string]verb{
		"say":    {"text", map[string]option{"text": words, "chunk": chunk, "delay": delay}, []string{"text"}},
		"think":  {"text", map[string]option{"text": words, "chunk": chunk, "delay": delay}, []string{"text"}},
		"write":  {"file", map[string]option{"file": file, "content": content}, []string{"file", "content"}},
		"append": {"file", map[string]option{"file": file, "content": content}, []string{"file", "content"}},
		"edit": {
			"file",
			map[string]option{"file": file, "replace": replace, "with": with, "all": all},
			[]string{"file", "replace", "with"},
		},
		"run": {"command", map[string]option{
			"command": command, "timeout": limit, "tries": tries, "delay": delay,
			"may_fail": mayFail, "quiet": quiet, "says": says,
		}, []string{"command"}},
		"sleep": {"time", map[string]option{"time": sleepTime}, []string{"time"}},
		"usage": {"", map[string]option{"input_tokens": tokens(0), "output_tokens": tokens(1), "cost_usd": cost, "model": modelName}, nil},
		"fail":  {"message", map[string]option{"message": words, "code": code}, []string{"message"}},
		"crash": {"signal", map[string]option{"signal": signalName}, nil},
		"spawn": {
			"command",
			map[string]option{"command": command, "mode": mode, "keeps_output": holds},
			[]string{"command"},
		},
		"count": {"lines", map[string]option{"lines": times, "rate": rate, "ledger": file}, []string{"lines"}},
		"emit": {
			"text",
			map[string]option{"text": rawText, "base64": rawBase64, "bytes": filler},
			nil,
		},
		"hang": {"why", map[string]option{"why": words, "deaf": deaf}, nil},
		"ask": {"question", map[string]option{
			"question": words, "tool": tool, "args": args, "options": answers, "timeout": limit,
			"allowed": nested, "denied": nestedElse,
		}, []string{"question"}},
		"expect_prompt": {"containing", map[string]option{"containing": words, "timeout": limit}, nil},
		"repeat":        {"times", map[string]option{"times": times, "steps": nested}, []string{"times", "steps"}},
		"on":            {"prompt", map[string]option{"prompt": cases, "else": nestedElse}, []string{"prompt"}},
		"one_of":        {"choices", map[string]option{"choices": choices}, []string{"choices"}},
	}
}

var guards = map[string]option{
	"every":  func(p *parser, n *yaml.Node, s *Step, _ int) { s.Every = int(p.number(n, 1, timesMax)) },
	"chance": func(p *parser, n *yaml.Node, s *Step, _ int) { s.Chance = p.fraction(n, 1) },
}

// step reads one step: one verb, its options beside or below it, and guards.
func (p *parser) step(n *yaml.Node, depth int) Step {
	n = resolve(n)
	s := Step{Line: n.Line, Column: n.Column, Chance: 1, Tries: 1, Code: 1, Signal: "SIGKILL", Mode: "child"}
	if n.Kind == yaml.ScalarNode && bare(n.Value) {
		s.Verb = n.Value
		return s
	}
	if n.Kind != yaml.MappingNode {
		p.fault(n, "a step is a mapping, as in `say: hello`; it is one of %s", keys(verbs))
		return s
	}
	var value *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if _, ok := verbs[n.Content[i].Value]; !ok {
			continue
		}
		if s.Verb != "" {
			p.fault(n.Content[i], "a step has one verb, and this one already has %s; begin another step with a dash", s.Verb)
			return s
		}
		s.Verb, value = n.Content[i].Value, n.Content[i+1]
	}
	if s.Verb == "" {
		what := "the step has no verb"
		if len(n.Content) > 0 {
			what = fmt.Sprintf("there is no step %q", clip(n.Content[0].Value))
		}
		p.fault(n, "%s; a step is one of %s", what, keys(verbs))
		return s
	}
	p.options(n, value, &s, depth)
	return s
}

// bare reports whether a verb needs no value, as in `- hang`.
func bare(verb string) bool {
	return verb == "hang" || verb == "crash" || verb == "expect_prompt"
}

// options reads the options beside the verb and in its value.
func (p *parser) options(n, value *yaml.Node, s *Step, depth int) {
	v := verbs[s.Verb]
	before := len(p.faults)
	seen := make(map[string]bool)
	read := func(to map[string]func(*yaml.Node), name string, o option) {
		to[name] = func(n *yaml.Node) {
			if seen[name] {
				p.fault(n, "%s is given twice: as the value of %s and beside it", name, s.Verb)
				return
			}
			seen[name] = true
			o(p, n, s, depth)
		}
	}
	inside, beside := map[string]func(*yaml.Node){}, map[string]func(*yaml.Node){}
	for name, o := range v.options {
		read(inside, name, o)
		read(beside, name, o)
	}
	for name, o := range guards {
		read(beside, name, o)
	}
	beside[s.Verb] = func(*yaml.Node) {}
	switch value = resolve(value); {
	case value.Kind == yaml.MappingNode:
		p.mapping(value, s.Verb, inside)
	case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
		// `hang:`, or `run:` with its options beside it
	case v.value == "":
		p.fault(value, "%s is a mapping with the keys %s", s.Verb, keys(v.options))
	case bare(s.Verb) && value.Tag == "!!bool":
		p.truth(value) // `hang: true`
	default:
		inside[v.value](value)
	}
	p.mapping(n, s.Verb, beside)
	if len(p.faults) > before {
		return // the missing option may be the misspelled one
	}
	for _, name := range v.needs {
		if !seen[name] {
			p.fault(n, "%s needs %s", s.Verb, name)
		}
	}
	p.sense(n, s, seen)
}

// sense checks rules that involve several options.
func (p *parser) sense(n *yaml.Node, s *Step, seen map[string]bool) {
	switch s.Verb {
	case "usage":
		if len(seen) == 0 {
			p.fault(n, "usage needs input_tokens, output_tokens or cost_usd")
		}
	case "emit":
		if s.Bytes == nil {
			p.fault(n, "emit needs text, base64 or bytes")
		}
	case "run":
		if !seen["timeout"] {
			s.Limit = runLimit
		}
		if !seen["delay"] {
			s.Delay = tryDelay
		}
	case "edit":
		if seen["replace"] && s.Replace == "" {
			p.fault(n, "replace is empty; to add text, use append")
		}
	}
}

func words(p *parser, n *yaml.Node, s *Step, _ int)   { s.Text = p.text(n) }
func content(p *parser, n *yaml.Node, s *Step, _ int) { s.Content = p.text(n) }
func replace(p *parser, n *yaml.Node, s *Step, _ int) { s.Replace = p.text(n) }
func with(p *parser, n *yaml.Node, s *Step, _ int)    { s.With = p.text(n) }
func all(p *parser, n *yaml.Node, s *Step, _ int)     { s.All = p.truth(n) }
func chunk(p *parser, n *yaml.Node, s *Step, _ int)   { s.Chunk = int(p.number(n, 1, 1<<16)) }
func delay(p *parser, n *yaml.Node, s *Step, _ int)   { s.Delay = p.duration(n) }
func limit(p *parser, n *yaml.Node, s *Step, _ int)   { s.Limit = p.duration(n) }
func tries(p *parser, n *yaml.Node, s *Step, _ int)   { s.Tries = int(p.number(n, 1, triesMax)) }
func mayFail(p *parser, n *yaml.Node, s *Step, _ int) { s.MayFail = p.truth(n) }
func quiet(p *parser, n *yaml.Node, s *Step, _ int)   { s.Quiet = p.truth(n) }
func says(p *parser, n *yaml.Node, s *Step, _ int)    { s.Says = p.truth(n) }
func cost(p *parser, n *yaml.Node, s *Step, _ int)    { s.CostUSD = p.fraction(n, costMax) }
func code(p *parser, n *yaml.Node, s *Step, _ int)    { s.Code = int(p.number(n, 0, 255)) }
func holds(p *parser, n *yaml.Node, s *Step, _ int)   { s.Holds = p.truth(n) }
func times(p *parser, n *yaml.Node, s *Step, _ int)   { s.N = int(p.number(n, 1, timesMax)) }
func rate(p *parser, n *yaml.Node, s *Step, _ int)    { s.Rate = p.fraction(n, 1e6) }
func deaf(p *parser, n *yaml.Node, s *Step, _ int)    { s.Deaf = p.truth(n) }
func tool(p *parser, n *yaml.Node, s *Step, _ int)    { s.Tool = p.text(n) }

func sleepTime(p *parser, n *yaml.Node, s *Step, _ int) { s.From, s.To = p.span(n) }

func nested(p *parser, n *yaml.Node, s *Step, depth int)     { s.Steps = p.list(n, depth+1) }
func nestedElse(p *parser, n *yaml.Node, s *Step, depth int) { s.Else = p.list(n, depth+1) }

func choices(p *parser, n *yaml.Node, s *Step, depth int) {
	items := p.sequence(n, "choices", 2)
	if len(items) > choicesMax {
		p.fault(n, "there are more than %d choices", choicesMax)
		return
	}
	for _, item := range items {
		s.Choices = append(s.Choices, p.list(item, depth+1))
	}
}

// cases reads the texts that a prompt may contain and the steps for each, in the order of the file.
func cases(p *parser, n *yaml.Node, s *Step, depth int) {
	n = resolve(n)
	switch {
	case n.Kind != yaml.MappingNode || len(n.Content) == 0:
		p.fault(n, "a mapping from texts of a prompt to steps is needed here, as in `\"[WAKE AGENTS]\": [{say: good morning}]`")
		return
	case len(n.Content)/2 > choicesMax:
		p.fault(n, "there are more than %d cases", choicesMax)
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		before := len(p.faults)
		containing := p.text(n.Content[i])
		switch {
		case len(p.faults) > before:
		case strings.TrimSpace(containing) == "":
			p.fault(n.Content[i], "every prompt contains this; use else for all other prompts")
		case seen[containing]:
			p.fault(n.Content[i], "%q is repeated", clip(containing))
		}
		seen[containing] = true
		s.Cases = append(s.Cases, Case{Containing: containing, Steps: p.list(n.Content[i+1], depth+1)})
	}
}

func answers(p *parser, n *yaml.Node, s *Step, _ int) {
	items := p.sequence(n, "options", 2)
	if len(items) > answersMax {
		p.fault(n, "a question has at most %d options", answersMax)
		return
	}
	for _, item := range items {
		s.Options = append(s.Options, p.text(item))
	}
}

// args reads the arguments of a tool as an agent program would send them: names and texts.
func args(p *parser, n *yaml.Node, s *Step, _ int) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 || len(n.Content)/2 > answersMax {
		p.fault(n, "args is a mapping of at most %d names and texts, as in `{file_path: notes.md}`", answersMax)
		return
	}
	s.Args = make(map[string]string)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := p.text(n.Content[i])
		if _, twice := s.Args[name]; twice {
			p.fault(n.Content[i], "%q is repeated", clip(name))
		}
		s.Args[name] = p.text(n.Content[i+1])
	}
}

func tokens(which int) option {
	return func(p *parser, n *yaml.Node, s *Step, _ int) { s.Tokens[which] = p.number(n, 0, tokensMax) }
}

func modelName(p *parser, n *yaml.Node, s *Step, _ int) { s.Model = p.text(n) }

func signalName(p *parser, n *yaml.Node, s *Step, _ int) {
	s.Signal = p.word(n, "SIGKILL", "SIGABRT", "SIGBUS", "SIGHUP", "SIGINT", "SIGQUIT", "SIGSEGV", "SIGTERM")
}

func mode(p *parser, n *yaml.Node, s *Step, _ int) {
	s.Mode = p.word(n, "child", "setsid", "double_fork")
}

// file reads a path in the workspace. It is checked again when the step is played, after its names
// have been replaced.
func file(p *parser, n *yaml.Node, s *Step, _ int) {
	s.File = p.text(n)
	if s.File == "" {
		p.fault(n, "the name of a file is needed here")
	} else if hasForeign(s.File) {
		p.fault(n, "{prompt} and {answer} are untrusted text and cannot be part of a file name")
	} else if why := forbidden(strings.TrimPrefix(fill(s.File, map[string]string{}), outputsPrefix)); why != "" {
		p.fault(n, "%s", why)
	}
}

// command reads a line for sh. Untrusted text never becomes part of it.
func command(p *parser, n *yaml.Node, s *Step, _ int) {
	if s.Text = p.text(n); strings.TrimSpace(s.Text) == "" {
		p.fault(n, "a command is needed here")
	}
	if hasForeign(s.Text) {
		p.fault(n, `{prompt} and {answer} are untrusted text: in a command write "$PROMPT" or "$ANSWER"`)
	}
}

func rawText(p *parser, n *yaml.Node, s *Step, _ int) { p.rawBytes(n, s, []byte(p.text(n))) }

func rawBase64(p *parser, n *yaml.Node, s *Step, _ int) {
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(p.text(n)), ""))
	if err != nil {
		p.fault(n, "this is not base64: %v", err)
	}
	p.rawBytes(n, s, raw)
}

func (p *parser) rawBytes(n *yaml.Node, s *Step, raw []byte) {
	if p.raw += len(raw); p.raw > rawBytesMax {
		p.fault(n, "the emit steps have more than %d bytes together; use bytes, or run a command that prints them", rawBytesMax)
		return
	}
	s.Bytes = append(s.Bytes, raw...)
}

// filler returns n bytes of the alphabet without a line ending.
func filler(p *parser, n *yaml.Node, s *Step, _ int) {
	s.N = int(p.number(n, 1, emitBytesMax))
	if s.Bytes == nil {
		s.Bytes = []byte{}
	}
}

// forbidden says why a script must not write to a path; empty if it may. The folders are those of
// SPEC X10.
func forbidden(path string) string {
	if !filepath.IsLocal(path) {
		return "file names are relative to the workspace and stay in it:  " + clip(path) + " does not"
	}
	for part := range strings.SplitSeq(filepath.ToSlash(filepath.Clean(path)), "/") {
		switch lower := strings.ToLower(part); lower {
		case ".git", ".fairlead", ".claude":
			return "scripts cannot write into " + lower + ", which holds the agent's own rules"
		}
	}
	return ""
}
