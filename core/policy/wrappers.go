package policy

import (
	"slices"
	"strings"
)

const (
	shells = "sh bash dash zsh ksh ash fish rbash"
	// starters run a command of their words; how they read their own flags is not known.
	starters = "chrt taskset busybox toybox su watch parallel script flock strace ltrace unshare nsenter chroot entr"
)

// wrappers run the command after their own flags.
var wrappers = map[string]flags{
	"command": {}, "builtin": {}, "nohup": {}, "unbuffer": {}, "caffeinate": {}, "noglob": {}, "nocorrect": {},
	"exec": {short: "cl", valued: "a"}, "setsid": {short: "cfw"}, "time": {short: "p"},
	"timeout": {short: "v", valued: "sk", long: "foreground preserve-status verbose signal= kill-after="},
	"nice":    {short: "0123456789", valued: "n", long: "adjustment="},
	"stdbuf":  {valued: "ioe", long: "input= output= error="}, "ionice": {short: "t", valued: "cn", long: "class= classdata= ignore"},
	"env":  {short: "i0v", valued: "uC", long: "ignore-environment null unset= chdir= debug"},
	"sudo": {short: "AbEHiKknPSsv", valued: "ugphCDRrtTU", long: "user= group= preserve-env login non-interactive set-home stdin"},
	"doas": {short: "Ln", valued: "Cu"},
	"xargs": {
		short: "0rt", valued: "nPLIdEsa",
		long: "null no-run-if-empty verbose max-args= max-procs= max-lines delimiter= replace arg-file=",
	},
}

// wrapper handles a command whose words are another command, and reports whether it was one.
func (s *shell) wrapper(base string, args []value) bool {
	rest := args[1:]
	f, known := wrappers[base]
	switch {
	case has(shells, base):
		s.innerShell(base, args)
	case base == "eval":
		s.eval(rest)
	case has("source .", base):
		s.starts(base + " runs a file as commands; give the commands themselves, one by one, each by itself")
		s.unknownCommand(base, args)
	case base == "find":
		return s.findActs(args)
	case base == "command" && len(rest) > 0 && (rest[0].text == "-v" || rest[0].text == "-V"): // shows what a name means
	case has(starters, base):
		s.somewhere(base, args, "what "+base+" runs is not analyzed")
	case !known:
		return false
	default:
		if base == "sudo" || base == "doas" {
			s.stopFor(s.notListed(base, args))
		}
		s.behind(base, args, f)
	}
	return true
}

// behind judges the command after a wrapper's flags.
func (s *shell) behind(base string, args []value, f flags) {
	rest := args[1:]
	at, fault := f.skip(rest)
	if fault == "" && base == "timeout" && at < len(rest) {
		if !rest[at].static() {
			fault = rest[at].show()
		}
		at++
	}
	if fault != "" {
		s.somewhere(base, args, "the flag "+fault+" of "+base+" is not known")
		return
	}
	for has("env sudo doas", base) && at < len(rest) && rest[at].static() && strings.Contains(rest[at].text, "=") {
		if name, to, _ := strings.Cut(rest[at].text, "="); steers(name, to) {
			s.starts("it sets a variable that changes what commands do")
		}
		s.unplain("it sets variables")
		at++
	}
	inner := slices.Clone(rest[min(at, len(rest)):])
	if len(inner) == 0 {
		return // it lists, or runs echo
	}
	if base == "xargs" {
		inner = replaced(inner, rest[:at])
	}
	s.depth++
	s.run(inner)
	s.depth--
}

// replaced returns xargs' command with what it adds.
func replaced(inner, before []value) []value {
	mark := ""
	for i, v := range before {
		switch {
		case v.text == "-I" && i+1 < len(before):
			mark = before[i+1].text
		case strings.HasPrefix(v.text, "-I"):
			mark = strings.TrimPrefix(v.text, "-I")
		case v.text == "--replace":
			mark = "{}"
		case strings.HasPrefix(v.text, "--replace="):
			mark = strings.TrimPrefix(v.text, "--replace=")
		}
	}
	if mark == "" {
		return append(inner, value{text: string(hole), split: true, added: true})
	}
	return filledIn(inner, mark)
}

// filledIn returns words in which a program replaces a mark.
func filledIn(words []value, mark string) []value {
	for i, v := range words {
		if strings.Contains(v.text, mark) {
			words[i].text, words[i].added = strings.ReplaceAll(v.text, mark, string(hole)), true
		}
	}
	return words
}

// somewhere judges the words of a wrapper from the first that looks like a command.
func (s *shell) somewhere(base string, args []value, why string) {
	s.starts(why)
	s.unknownCommand(base, args)
	for i, v := range args[1:] {
		if !strings.HasPrefix(v.text, "-") && !isNumber(v.text) && !strings.Contains(v.text, "=") {
			s.depth++
			s.run(args[i+1:])
			s.depth--
			return
		}
	}
}

// innerShell reads the text after -c of a nested shell.
func (s *shell) innerShell(base string, args []value) {
	why, plain := base+" runs what it is given on standard input", true
	for i, v := range args[1:] {
		if !v.static() {
			why = "what " + base + " runs is only known when it runs"
			s.cannot(why)
			break
		}
		if !strings.HasPrefix(v.text, "-") && !strings.HasPrefix(v.text, "+") {
			if why = "what " + base + " runs with its flags is not known"; plain {
				why = "" // a file
			}
			break
		}
		plain = plain && strings.Trim(v.text, "-exuv") == ""
		if !strings.HasPrefix(v.text, "--") && strings.Contains(v.text, "c") && i+2 < len(args) && args[i+2].static() {
			s.within(args[i+2].text)
			return
		}
	}
	if why != "" {
		s.starts(why)
	}
	s.mentions(s.stdin, base)
	s.unknownCommand(base, args)
}

// eval reads its words as a command, if they are known.
func (s *shell) eval(args []value) {
	words := make([]string, 0, len(args))
	for _, v := range args {
		if !v.static() {
			s.hides("what eval runs is only known when it runs")
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
