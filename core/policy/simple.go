package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// call reads a simple command: assignments, a name, words.
func (s *shell) call(c *syntax.CallExpr) {
	for _, a := range c.Assigns {
		if a.Name != nil && a.Name.Value == "IFS" && len(c.Args) > 0 && c.Args[0].Lit() == "read" && a.Array == nil && a.Index == nil {
			s.word(a.Value) // while IFS= read -r line: only for that read
			continue
		}
		s.assign(a, len(c.Args) > 0)
	}
	var args []value
	for _, w := range c.Args {
		args = append(args, s.word(w)...)
	}
	if len(args) > 0 && s.stop == nil {
		s.run(args)
	}
}

// assign reads name=value. A name that decides what later commands mean is a doubt.
func (s *shell) assign(a *syntax.Assign, forCall bool) {
	var v value
	if a.Value != nil {
		if values := s.word(a.Value); len(values) == 1 {
			v = values[0]
		} else {
			v = unknownValue()
		}
	}
	if a.Array != nil {
		for _, elem := range a.Array.Elems {
			for _, v := range s.word(elem.Value) {
				s.spot(v)
			}
		}
		v = unknownValue()
	}
	s.arithmetic(a.Index)
	if a.Name == nil {
		return
	}
	name := a.Name.Value
	s.mixed = "an assignment"
	switch {
	case a.Array != nil || a.Index != nil:
		s.cannot("the assignment of a list (" + cut(name) + ") is not supported")
	case steers(name, v.text):
		s.starts("the assignment of " + cut(name) + " changes what commands do")
	}
	s.spot(v)
	s.assigned = append(s.assigned, v)
	if _, twice := s.vars[name]; twice || a.Append || !v.static() {
		v = unknownValue() // its values are not tracked
	}
	if !forCall {
		s.vars[name] = v.text
	}
}

// steers lists variables that decide which program a name means, or what it runs besides. A pager or an editor that
// only reads is harmless.
func steers(name, to string) bool {
	if has("GIT_PAGER PAGER MANPAGER EDITOR VISUAL BROWSER", name) {
		return to != "" && !has(readers, to)
	}
	for _, prefix := range [...]string{"LD_", "DYLD_", "GIT_", "BASH_"} {
		if strings.HasPrefix(name, prefix) && name != "GIT_OPTIONAL_LOCKS" {
			return true
		}
	}
	return has("PATH path ENV IFS SHELLOPTS PROMPT_COMMAND PS4 PYTHONPATH NODE_OPTIONS PERL5OPT", name)
}

// run judges one command by its words.
func (s *shell) run(args []value) {
	if len(s.commands) >= commandsMax || len(args) > wordsMax || s.depth > scriptDepthMax {
		s.hides(tooMuch)
		return
	}
	at := len(s.commands)
	s.commands = append(s.commands, command{words: args, dirs: s.dirs, input: s.stdin})
	name := args[0]
	if !name.static() || name.text == "" || strings.ContainsFunc(name.text, unicode.IsSpace) {
		s.spots("", args)
		s.hides("which command it runs is only known when it runs")
		s.unknownCommand("", args)
		return
	}
	if slices.ContainsFunc(args, func(v value) bool { return !v.static() && !v.added || strings.HasPrefix(v.text, "=") }) {
		s.unplain("a word of it is only known when it runs")
	}
	base := path.Base(name.text)
	s.spots(base, args)
	if d := s.forbidden(base, args); d != nil {
		s.stopFor(d)
		return
	}
	if has(bendingBuiltins, name.text) {
		s.starts(name.text + " changes what later commands are")
	}
	if p := counting(name.text, args[1:]); p != nil {
		s.hides(p.why)
	}
	ours := s.j.bound && !isSystems(name.text) // a program with that name in the workspace
	if ours {
		if d := s.notListed(base, args); d != nil {
			s.stopFor(d)
			return
		}
	}
	switch {
	case base == "cd":
		s.cd(args[1:])
		s.commands[at].free = len(s.dirs) > 0 && len(args) == 2 && !slices.ContainsFunc(s.dirs, func(dir string) bool {
			f, err := s.j.disk.Look(dir)
			return err != nil || !s.j.isOurs(f)
		})
		return
	case s.wrapper(base, args):
		s.commands[at].free = base == name.text &&
			(has("time timeout nice", base) || has(shells, base) && len(args) == 3 && has("-c -lc", args[1].text))
		return
	}
	s.commands[at].free = has("true false :", name.text)
	only := !ours && smallCall(base, args[1:]) == nil
	s.commands[at].reads = only || base == "git" && gitSpeaks(args)
	if !only {
		s.effects(base, args)
	}
}

// bendingBuiltins are builtins after which a name may be another command.
const bendingBuiltins = "hash alias unalias trap enable bind complete compopt fc rehash unhash autoload emulate disable zmodload"

// cd is tracked, because it changes the meaning of later paths.
func (s *shell) cd(args []value) {
	var to string
	switch {
	case len(args) == 0:
		to = s.j.where.Home
	case len(args) == 1 && args[0].static() && !strings.HasPrefix(args[0].text, "-"):
		to = args[0].text
	case len(args) == 2 && args[0].static() && args[0].text == "--" && args[1].static() && args[1].text != "-":
		to = args[1].text
	}
	if to == "" || len(s.dirs) == 0 && !path.IsAbs(to) {
		s.cannot("cd needs one plain path, without an expansion and without flags")
		s.dirs = nil
		return
	}
	next := []string{}
	for _, abs := range s.abs(to) {
		for _, p := range []string{abs, path.Clean(abs)} { // a shell takes link/.. for the folder with the link
			f, err := s.j.disk.Look(p)
			if err != nil || f.Kind != Folder {
				next = union(s.dirs, next) // a command before it may create that folder
			}
			next = union([]string{path.Clean(abs)}, next)
			if err == nil {
				next = union(next, []string{f.Path})
			}
		}
	}
	s.dirs = next
}
