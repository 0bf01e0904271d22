package policy

import (
	"slices"
	"strings"
)

// wrapper handles a command whose words are another command, and reports whether it was one.
func (s *shell) wrapper(base string, args []value) bool {
	rest := args[1:]
	if s.j.bound {
		s.runsUnseen(base, rest)
	}
	switch base {
	case "command":
		if len(rest) > 0 && rest[0].static() && (rest[0].text == "-v" || rest[0].text == "-V") {
			return true // shows what a name means
		}
		s.inner(base, rest, flags{}, 0)
	case "time":
		s.inner(base, rest, flags{short: "p"}, 0)
	case "timeout":
		s.inner(base, rest, flags{short: "v", valued: "sk", long: "foreground preserve-status verbose signal= kill-after="}, 1)
	case "nice":
		s.inner(base, rest, flags{short: "0123456789", valued: "n", long: "adjustment="}, 0)
	case "xargs":
		s.xargs(rest)
	case "env":
		if s.isListing(rest) {
			return true
		}
		s.itself(base, rest, flags{short: "i0v", valued: "uC", long: "ignore-environment null unset= chdir= debug"})
	case "sudo", "doas":
		s.stopFor(s.notListed(base, args))
		s.itself(base, rest, flags{short: "AbEHiKknPSsv", valued: "ugphCDRrtTU", long: "user= group= preserve-env login non-interactive set-home stdin"})
	case "nohup", "exec", "setsid", "unbuffer", "ionice", "chrt", "taskset", "stdbuf", "builtin", "busybox", "toybox", "caffeinate":
		if base == "busybox" || base == "toybox" {
			return s.itself(base, rest, flags{})
		}
		s.itself(base, rest, flags{short: "clfw", valued: "anpioet", long: "input= output= error= wait fork"})
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash":
		s.innerShell(base, rest)
	case "eval":
		s.eval(rest)
	case "source", ".":
		s.cannot("run a shell script", base+" runs a file as commands; give the commands themselves, one by one, each by itself", "")
		s.unknownCommand(base, args)
	default:
		return false
	}
	return true
}

// inner judges the command after a harmless wrapper. operands is the number of words before it.
func (s *shell) inner(base string, args []value, f flags, operands int) {
	at, fault := f.skip(args)
	if fault != "" {
		s.cannot("run "+base, "the flag "+fault+" of "+base+" is not known to be harmless", "leave it out")
		return
	}
	for ; operands > 0 && at < len(args); operands-- {
		if !args[at].static() {
			s.cannot("run "+base, "the word "+args[at].show()+" of "+base+" is only known when it runs", "write it out")
			return
		}
		at++
	}
	if at < len(args) {
		s.run(args[at:])
	}
}

// itself judges the command after a wrapper that changes how it runs.
func (s *shell) itself(base string, args []value, f flags) bool {
	at, fault := f.skip(args)
	if fault != "" {
		s.j.doubts("what " + base + " runs with the flag " + fault + " is not analyzed")
		s.unknownCommand(base, append([]value{{text: base}}, args...))
		return true
	}
	for at < len(args) && args[at].static() && (strings.Contains(args[at].text, "=") || isNumber(args[at].text)) {
		at++
	}
	if at < len(args) {
		s.run(args[at:])
	}
	return true
}

// isListing reports whether env only lists.
func (s *shell) isListing(args []value) bool {
	return !slices.ContainsFunc(args, func(v value) bool {
		return !v.static() || v.text != "-0" && v.text != "--null"
	})
}

// xargs appends unknown words: its command must be harmless with any.
func (s *shell) xargs(args []value) {
	f := flags{short: "0rt", valued: "nPLIdEsa", long: "null no-run-if-empty verbose max-args= max-procs= max-lines= delimiter= replace= arg-file="}
	at, fault := f.skip(args)
	if fault != "" {
		s.cannot("run xargs", "the flag "+fault+" of xargs is not known to be harmless", "leave it out")
		return
	}
	replaced := ""
	for i, v := range args[:at] {
		switch {
		case v.text == "-I" && i+1 < at:
			replaced = args[i+1].text
		case strings.HasPrefix(v.text, "-I"):
			replaced = strings.TrimPrefix(v.text, "-I")
		case strings.HasPrefix(v.text, "--replace="):
			replaced = strings.TrimPrefix(v.text, "--replace=")
		}
	}
	inner := slices.Clone(args[at:])
	if len(inner) == 0 {
		return // echo
	}
	if replaced == "" {
		s.run(append(inner, unknownValue()))
		return
	}
	for i := range inner {
		inner[i].text = strings.ReplaceAll(inner[i].text, replaced, string(hole))
	}
	s.run(inner)
}

// innerShell reads the text after -c of a nested shell.
func (s *shell) innerShell(base string, args []value) {
	for i, v := range args {
		if !v.static() || !strings.HasPrefix(v.text, "-") || strings.HasPrefix(v.text, "--") {
			if i == 0 || v.static() && !strings.HasPrefix(v.text, "-") {
				break
			}
			continue
		}
		if strings.Contains(v.text, "c") && i+1 < len(args) && args[i+1].static() {
			s.within(args[i+1].text)
			return
		}
	}
	s.mentions(s.stdin, base)
	s.unknownCommand(base, append([]value{{text: base}}, args...))
}

// eval reads its words as a command, if they are known.
func (s *shell) eval(args []value) {
	words := make([]string, 0, len(args))
	for _, v := range args {
		if !v.static() {
			s.unknownCommand("eval", append([]value{{text: "eval"}}, args...))
			return
		}
		words = append(words, v.text)
	}
	s.within(strings.Join(words, " "))
}

// within reads a command line inside a command line.
func (s *shell) within(text string) {
	s.depth++
	before := s.dirs
	s.script(text)
	s.dirs = before
	s.depth--
}
