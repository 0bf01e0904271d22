package policy

import (
	"path"
	"strings"

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
	const capability = "change the shell's variables"
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
			s.word(elem.Value)
		}
		v = unknownValue()
	}
	s.arithmetic(a.Index)
	if a.Name == nil {
		return
	}
	name := a.Name.Value
	switch {
	case a.Array != nil || a.Index != nil:
		s.cannot(capability, "the assignment of a list ("+cut(name)+") is not supported", "use plain words")
	case s.main:
		s.mixed = "an assignment"
	case steers(name, v.text):
		s.cannot(capability, "the assignment of "+cut(name)+" changes what commands do", "choose a name in lower case")
	}
	s.j.hidesForbidden([]value{{text: name}, v}, "")
	if _, twice := s.vars[name]; twice || a.Append || !v.static() {
		v = unknownValue() // its values are not tracked
	}
	if !forCall {
		s.vars[name] = v.text
	}
}

// assignable reports whether a variable's name has no special meaning: it is in lower case, and none of those
// that zsh ties to PATH and similar variables.
func assignable(name string) bool {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return false
	}
	switch name {
	case "path", "fpath", "cdpath", "manpath", "mailpath", "module_path", "fignore", "prompt", "status", "argv", "options", "aliases", "galiases",
		"functions", "commands", "parameters", "modules", "histchars", "auto_resume", "psvar", "watch", "signals", "pipestatus", "precmd", "preexec",
		"chpwd", "periodic", "http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "jobstates", "dirstack", "zsh_eval_context":
		return false
	}
	return true
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
	if s.commands++; s.commands > commandsMax {
		s.cannot("run so many commands at once", "there are more commands in it than are read", "split it")
		return
	}
	if s.main {
		s.mainRuns(args)
		return
	}
	name := args[0]
	if !name.static() {
		s.cannot("run a command whose name is not known", "the command word "+name.show()+" is only known when it runs", "write the command's name")
		s.unknownCommand("", args)
		return
	}
	base := path.Base(name.text)
	if d := s.forbidden(base, args); d != nil {
		s.stopFor(d)
		return
	}
	ours := s.j.bound && !isSystems(name.text) // a program with that name in the workspace
	switch {
	case ours && s.wraps(base, args):
		return
	case base == "cd":
		s.cd(args[1:])
		return
	case s.wrapper(base, args):
		return
	}
	s.hiddenInBounds(base, args)
	p := smallCall(base, args[1:])
	if p == nil && ours {
		p = notGathering(name.text)
	}
	if p == nil {
		return
	}
	s.effects(base, args, p)
}

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
		s.cannot("change to a folder that is not known", "cd needs one plain path, without an expansion and without flags", "give the path")
		s.dirs = nil
		return
	}
	var next []string
	for _, abs := range s.abs(to) {
		f, err := s.j.disk.Look(abs)
		if err != nil {
			next = union(s.dirs, append(next, path.Clean(abs)))
			continue
		}
		next = append(next, f.Path)
		if f.Kind != Folder {
			next = union(s.dirs, next) // a command before it may create that folder
		}
	}
	s.dirs = next
}

// test reads [[ … ]].
func (s *shell) test(x syntax.TestExpr) {
	const capability = "test what calculates"
	switch x := x.(type) {
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest, syntax.OrTest:
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				if w, ok := side.(*syntax.Word); !ok || !isNumber(w.Lit()) {
					s.cannot(capability, "the test "+x.Op.String()+" between [[ and ]] calculates, and runs the code in a variable", "use [ … ] and plain numbers")
				}
			}
		}
		s.test(x.X)
		s.test(x.Y)
	case *syntax.UnaryTest:
		switch x.Op {
		case syntax.TsVarSet, syntax.TsRefVar, syntax.TsOptSet:
			s.cannot(capability, "the test "+x.Op.String()+" looks into variables, and runs the code in their index", "leave it out")
		}
		s.test(x.X)
	case *syntax.ParenTest:
		s.test(x.X)
	case *syntax.Word:
		s.word(x)
	}
}
