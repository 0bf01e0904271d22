package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Checks of a command against can_execute and cannot_execute, with what only an agent's own bounds need to
// know about programs: which ones interpret code in their own language, and which write files that the
// command line does not name.

// boundPattern parses an entry of can_execute or cannot_execute as the words with which a command begins.
func boundPattern(entry string) Pattern {
	return Pattern{text: entry, tool: "Bash", kind: shellArg, arg: strings.Join(strings.Fields(entry), " ") + " *"}
}

// hasWords reports whether an entry names more of a command than its program.
func hasWords(entry string) bool { return len(strings.Fields(entry)) > 1 }

// forbidden returns the entry of cannot_execute that denies a command. A program matches wherever it is and
// in any case, and words match whatever flags precede them.
func (s *shell) forbidden(base string, args []value) *denial {
	if name, ok := strings.CutPrefix(base, "git-"); ok && s.j.bound { // /usr/lib/git-core/git-push
		if d := s.forbidden("git", append([]value{{text: "git"}, {text: name}}, args[1:]...)); d != nil {
			return d
		}
	}
	for _, entry := range s.j.rules.CannotExecute {
		var hit bool
		switch {
		case s.j.bound && hasWords(entry):
			hit = deniesWords(boundPattern(entry), args)
		case s.j.bound && strings.Contains(entry, "/"):
			names, known := s.placesOf(args[0])
			hit = strings.Contains(args[0].text, "/") && (!known || slices.ContainsFunc(names, func(name string) bool {
				ok, err := s.j.forbids(entry, name)
				return ok || err != nil
			}))
		default:
			ok, err := path.Match(strings.ToLower(entry), strings.ToLower(base))
			hit = ok && err == nil
		}
		if hit {
			return &denial{capability: capabilityOf(base), why: fmt.Sprintf("cannot_execute lists %s", entry)}
		}
	}
	return nil
}

// deniesWords matches a pattern against a command, with and without the flags after its program's name.
func deniesWords(p Pattern, args []value) bool {
	if p.deniesCommand(args) {
		return true
	}
	for i := 2; i < len(args) && i < wordsLookedAtMax && strings.HasPrefix(args[1].text, "-"); i++ {
		if p.deniesCommand(append([]value{args[0]}, args[i:]...)) {
			return true // git -C elsewhere push
		}
	}
	return false
}

// notListed returns why can_execute does not list a command; nil: it does, or there is no list. A program in
// a folder of the workspace is listed by its path, not by its name.
func (s *shell) notListed(base string, args []value) *denial {
	if !s.j.bound || s.j.rules.CanExecute == nil || has(builtins+" : true false sleep", args[0].text) {
		return nil
	}
	called := slices.Clone(args)
	if isSystems(args[0].text) {
		called[0].text = base
	}
	for _, entry := range s.j.rules.CanExecute {
		switch {
		case entry == "*":
			return nil
		case hasWords(entry):
			if isSystems(args[0].text) && boundPattern(entry).takesText(spelled(called)) {
				return nil
			}
		case strings.Contains(entry, "/"):
			names, known := s.placesOf(args[0])
			if strings.Contains(args[0].text, "/") && known &&
				!slices.ContainsFunc(names, func(name string) bool { return !s.j.lists(entry, name, false) }) {
				if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(s.j.writes, name) }) {
					s.j.doubts(cut(args[0].text) + " is written by the same command")
				}
				return nil
			}
		default:
			if ok, err := path.Match(entry, base); ok && err == nil && isSystems(args[0].text) {
				return nil
			}
		}
	}
	return &denial{capability: capabilityOf(base), why: fmt.Sprintf("can_execute does not list %s", cut(args[0].text))}
}

// placesOf returns the names of a program's places, as spelled and resolved; known is false if there may be others.
func (s *shell) placesOf(program value) (names []string, known bool) {
	for _, abs := range s.abs(program.text) {
		p := s.j.place(s.j.dir, abs)
		if p.fault != "" {
			return names, false
		}
		names = append(names, p.names...)
	}
	return names, len(names) > 0
}

// isSystems reports whether a program is named as one of the system's: by its bare name, or in a system
// folder.
func isSystems(word string) bool {
	folder, _ := path.Split(word)
	return has("/bin/ /usr/bin/ /usr/local/bin/ /sbin/ /usr/sbin/", folder) || folder == ""
}

const (
	// interpreted are programs with a language of their own, which only they read.
	interpreted = "python node nodejs perl ruby php lua deno bun tclsh rscript osascript pwsh awk gawk mawk nawk sed ed ex vi vim nvim emacs psql sqlite3 mysql gdb m4 " +
		"sh bash dash zsh ksh ash fish rbash source . make"
	// unseenWriters write what their input or a server says.
	unseenWriters = "patch apply_patch rsync scp sftp curl wget tar bsdtar unzip zip gzip gunzip bzip2 bunzip2 xz unxz zstd 7z cpio split csplit sort uniq ssh docker podman kubectl at crontab systemd-run " +
		"ln link rename mmv install ar debugfs fallocate sponge script xxd"
)

// unknownInBounds makes a program doubtful whose words do not say what it does: its arguments hold a program,
// a file that the agent may not write, or a command that it may not run.
func (s *shell) unknownInBounds(base string, args []value) {
	if !s.j.bound || base == "" || s.stop != nil {
		return
	}
	if d := s.notListed(base, args); d != nil {
		s.stopFor(d)
		return
	}
	name := strings.TrimRight(strings.ToLower(base), "0123456789.")
	if has(interpreted, name) && isGivenCode(name, args[1:]) {
		s.j.doubts(cut(base) + " has its own language, which is not parsed")
	}
	if !s.j.rules.ofFiles() {
		return
	}
	if has(unseenWriters, name) || has(unseenWriters, base) {
		s.j.doubts("the files that " + cut(base) + " writes are unknown")
	}
}

// gitSettings makes git doubtful that is given settings which may name a program.
func (s *shell) gitSettings(args []value) {
	for i, v := range args[1:] {
		key, _, _ := strings.Cut(v.text, "=")
		if i > 0 && args[i].text == "-c" && !has(plainSettings, strings.ToLower(key)) {
			s.j.doubts("git's setting " + cut(key) + " may name a program")
		}
	}
}

// plainSettings are settings of git that name no program.
const plainSettings = "user.name user.email color.ui color.diff core.quotepath core.autocrlf commit.gpgsign init.defaultbranch advice.detachedhead pull.rebase diff.renames log.date"

// isGivenCode reports whether an interpreter may get code from a flag or standard input.
func isGivenCode(name string, args []value) bool {
	if name == "make" {
		return slices.ContainsFunc(args, func(v value) bool {
			return v.text == "-" || strings.HasPrefix(v.text, "-f") || strings.HasPrefix(v.text, "--") || strings.Contains(v.text, "SHELL")
		})
	}
	return has("awk gawk mawk nawk sed ed ex vi vim nvim emacs psql sqlite3 mysql gdb m4 osascript source .", name) || len(args) == 0 ||
		!args[0].static() ||
		strings.HasPrefix(args[0].text, "-") && !has("-m --version -V -v --help -h", args[0].text) ||
		strings.HasPrefix(args[0].text, "/dev/") || strings.HasPrefix(args[0].text, "/proc/")
}

// denials are the lists of what is denied as patterns, to look for among the words of other commands.
func (r Rules) denials() (deny []Pattern) {
	for _, entry := range r.CannotExecute {
		if !strings.Contains(entry, "/") {
			deny = append(deny, boundPattern(entry))
		}
	}
	for _, entry := range r.CannotWrite {
		glob := boundGlob(entry)
		below := glob + "/**"
		if !strings.Contains(glob, "/") {
			below = "**/" + below
		}
		deny = append(deny, Pattern{tool: "Write", kind: fileArg, arg: glob}, Pattern{tool: "Write", kind: fileArg, arg: below})
	}
	return deny
}
