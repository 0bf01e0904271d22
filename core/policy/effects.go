package policy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// effects judges a command that does not only read, for a role that may run commands: what it is known to
// write, and whether it touches what X10 protects.
func (s *shell) effects(base string, args []value) {
	if d := s.release(base, args[1:]); d != nil {
		s.stopFor(d)
		return
	}
	switch base {
	case "fairlead", "fairlead-hook":
		return
	}
	if d := s.notListed(base, args); d != nil {
		s.stopFor(d)
		return
	}
	switch {
	case base == "git":
		s.acts = true
		s.gitWrites(args)
		return
	case has(builtins+" sleep kill", base):
		s.builtin(base, args)
		return
	}
	s.acts = true
	w, known := writers[base]
	if known && (base != "sed" || slices.ContainsFunc(args[1:], inPlace)) {
		s.touches(base, args)
		s.writer(base, w, args)
		return
	}
	if base == "dd" {
		for _, v := range args[1:] {
			if to, ok := strings.CutPrefix(v.text, "of="); ok {
				v.text = to
				s.writes(v, false)
			}
		}
	}
	s.unknownCommand(base, args)
}

// inPlace reports whether a flag makes sed change its files.
func inPlace(v value) bool {
	letters, isFlag := strings.CutPrefix(v.text, "-")
	if strings.HasPrefix(letters, "-") {
		return strings.HasPrefix(letters, "-in") || letters == "-i"
	}
	before, _, _ := strings.Cut(letters, "f")
	before, _, _ = strings.Cut(before, "e")
	return isFlag && strings.Contains(before, "i")
}

// builtin are shell builtins that write no file.
func (s *shell) builtin(base string, args []value) {
	switch base {
	case "pushd":
		if len(args) == 2 && !strings.HasPrefix(args[1].text, "+") {
			s.pushed = append(s.pushed, s.dirs)
			s.cd(args[1:])
			break
		}
		s.dirs, s.pushed = nil, nil
		s.cannot("it is not known in which folder it runs after " + base)
	case "popd":
		if n := len(s.pushed); n > 0 && len(args) == 1 {
			s.dirs, s.pushed = s.pushed[n-1], s.pushed[:n-1]
			break
		}
		s.dirs, s.pushed = nil, nil
		s.cannot("it is not known in which folder it runs after " + base)
	case "shopt":
		s.starts("shopt changes what globs match")
	case "trap":
		if len(args) > 1 && args[1].static() {
			s.within(args[1].text)
		}
	}
}

// runsInIndex reports whether a word that a builtin takes for a variable's name would run a command.
func runsInIndex(v value) bool {
	_, index, ok := strings.Cut(v.text, "[")
	return ok && (strings.Contains(index, "$") || strings.Contains(index, "`"))
}

// calculates reports whether a flag of declare makes variables numbers or names of others, whose values are calculated.
func calculates(v value) bool {
	return strings.HasPrefix(v.text, "-") && !strings.HasPrefix(v.text, "--") && strings.ContainsAny(v.text, "in")
}

// release denies what would end a dispatch or a hold: only a person may do that, from outside.
func (s *shell) release(base string, args []value) *denial {
	if !s.j.where.Model {
		return nil
	}
	switch base {
	case "fairlead":
		if mayAskFairlead(args) {
			return nil
		}
		return &denial{
			code: DeniedProtected, capability: "govern the session",
			why: "only a person's input or the command line outside ends a session, changes permissions or lifts a hold",
		}
	case "fairlead-hook": // a hook that is run by hand would speak for the person, or for the program
		return &denial{code: DeniedProtected, capability: "govern the session", why: "only the agent program may call fairlead's hooks"}
	case "kill", "pkill", "killall", "systemctl", "launchctl":
		for _, v := range args {
			if strings.Contains(strings.ToLower(v.text), "fairlead") {
				return &denial{
					code: DeniedProtected, capability: "govern the session",
					why: base + " " + v.show() + " would end the process that enforces the rules",
				}
			}
		}
	}
	return nil
}

const (
	// fairleadAsks are fairlead's commands that only read.
	fairleadAsks = "status ps why watch events usage inbox docs route version help log doctor channel channel.list channel.watch crew crew.show crew.transcript " +
		"dispatch dispatch.status dispatch.list dispatch.route dispatch.policy question question.saved run run.list run.show"
	fairleadGroups = "channel crew dispatch question run"
	fairleadFlags  = "--json --help -h --version --verbose -v"
)

// mayAskFairlead reports whether a call of fairlead only reads. The value of a flag before the command may
// look like a command, unless it is attached.
func mayAskFairlead(args []value) bool {
	command := ""
	for _, v := range args {
		switch {
		case !v.static():
			return false
		case !strings.HasPrefix(v.text, "-"):
			if command == "" {
				command = v.text
			} else if has(fairleadGroups, command) {
				command += "." + v.text
			}
		case command != "" && !has(fairleadGroups, command):
		case !has(fairleadFlags, v.text) && !strings.HasPrefix(v.text, "--dir=") && !strings.HasPrefix(v.text, "--path="):
			return false
		}
	}
	return command == "" || has(fairleadAsks, command) || strings.HasPrefix(command, "runs.") && command != "runs.prune"
}

// writes judges one word as a file to be written.
func (s *shell) writes(v value, tree bool) {
	switch {
	case s.stop != nil || v.text == "" || has("/dev/null /dev/stdout /dev/stderr /dev/tty /dev/fd/1 /dev/fd/2", v.text):
	case v.glob || !v.static():
		s.writesSomewhere(v)
	case len(s.dirs) == 0 && !strings.HasPrefix(v.text, "/"):
		s.writesSomewhere(value{text: string(hole) + "/" + v.text})
	default:
		for _, abs := range s.abs(v.text) {
			s.stopFor(s.j.mayWrite(target{given: v.text, abs: abs, tree: tree}))
		}
	}
}

// leadsTo returns as what X10 protects a plain word, if it is a path; empty: not protected.
func (s *shell) leadsTo(text string) string {
	for _, abs := range s.abs(text) {
		for _, name := range s.j.place(s.j.dir, abs).names {
			if name := s.j.protects(name); name != "" {
				return name
			}
		}
	}
	return ""
}

// writesSomewhere judges a file whose name is only known in part.
func (s *shell) writesSomewhere(v value) {
	s.touches("a redirect", []value{{}, v})
	for component := range strings.SplitSeq(v.text, "/") {
		if name := globbed(component); v.glob && name != "" && s.j.where.Model {
			s.stopFor(s.j.himself(v.show(), name+"/**"))
		}
	}
	why := "where " + v.show() + " leads is only known when it runs"
	if v.added || v.glob && strings.IndexByte(v.text, hole) < 0 {
		s.misses(why) // the names come from a program; or what the glob may match was judged above
		return
	}
	s.cannot(why)
}

// globbed returns which protected name a glob may match; empty: none. Only a glob that begins with the dot matches a
// hidden name.
func globbed(component string) string {
	pattern := strings.ReplaceAll(component, string(hole), "*")
	if !strings.ContainsAny(pattern, "*?[") {
		return "" // a plain name, which is looked for where it leads
	}
	for _, name := range [...]string{".claude", ".fairlead", ".git"} {
		if ok, err := path.Match(pattern, name); (ok || err != nil) &&
			(strings.HasPrefix(component, ".") || strings.HasPrefix(component, "[")) {
			return name
		}
	}
	return ""
}

// unknownCommand records a command whose effects are unknown.
func (s *shell) unknownCommand(base string, args []value) {
	if s.stop != nil {
		return
	}
	s.acts = true
	s.unknownInBounds(base, args)
	s.touches(base, args)
	if base != "" {
		s.unclear("the files that " + cut(base) + " writes cannot be determined from its arguments")
	}
}

// touches denies a command that does not only read if its words, its input or its folder lead to what X10 protects.
func (s *shell) touches(base string, args []value) {
	if !s.j.where.Model {
		return
	}
	for i, v := range args {
		if i == 0 || excludes(v) || excludes(args[i-1]) {
			continue
		}
		s.mentions(v.text, base)
		if _, after, ok := strings.Cut(v.text, "="); ok {
			v.text = after
		}
		if s.looks++; s.looks < looksMax && v.static() && !strings.ContainsAny(v.text, " \n;") && !strings.HasPrefix(v.text, "-") {
			if name := s.leadsTo(v.text); name != "" {
				s.stopFor(s.j.himself(v.show(), name))
			}
		}
	}
	s.mentions(s.stdin, base)
	for _, dir := range s.dirs {
		if name := s.j.protects(dir); name != "" {
			s.stopFor(s.j.himself(base+" in "+dir, name))
		}
	}
}

// excludes reports whether a flag names what a program leaves out.
func excludes(v value) bool {
	return strings.HasPrefix(v.text, "-") && (strings.Contains(v.text, "exclude") || strings.Contains(v.text, "ignore"))
}

// spots looks for the folder with the hooks among the words of a command, except in messages and in what is left out.
func (s *shell) spots(base string, args []value) {
	if base == "git" && gitSpeaks(args) || base == "find" && slices.ContainsFunc(args, spares) {
		return
	}
	for i, v := range args {
		if i > 0 && !excludes(v) && !excludes(args[i-1]) {
			s.spot(v)
		}
	}
}

// spot records a word that names the folder with the hooks, in any spelling. Whether a command that does more than read gets
// the name, through a variable, a loop, a pipe or a change of folder, is not followed.
func (s *shell) spot(v value) {
	if s.hooks != "" || !s.j.where.Model || v.text == "" {
		return
	}
	if s.looks++; s.looks < looksMax && v.static() && !strings.ContainsAny(v.text, " \n;=") && !strings.HasPrefix(v.text, "-") &&
		(len(s.dirs) > 0 || strings.HasPrefix(v.text, "/")) {
		if name := s.leadsTo(v.text); name != "" && name != ".git/**" {
			s.hooks = v.show()
		}
		return
	}
	found := s.named(v.text)
	for component := range strings.SplitSeq(v.text, "/") {
		if found == "" && !v.static() {
			found = globbed(component)
		}
	}
	if found != "" && found != ".git" {
		s.hooks = v.show()
	}
}

// mentions denies a text that names what X10 protects, if it is given to a program that is not known to only
// read.
func (s *shell) mentions(text, by string) {
	if text == "" || s.stop != nil || !s.j.where.Model {
		return
	}
	if found := s.named(text); found != "" {
		s.stopFor(&denial{
			code: DeniedProtected, capability: "write " + found,
			why: fmt.Sprintf("%s (%s/**) is protected, and %s may write it", found, found, cut(by)),
		})
	}
}

// named returns the protected name that a text holds, apart from the outputs folder; empty: none.
func (s *shell) named(text string) string {
	plain := strings.ToLower(text)
	for _, folder := range s.j.outputs {
		folder = strings.ToLower(folder)
		plain = strings.ReplaceAll(plain, folder, "")
		for _, dir := range s.dirs {
			if rel, ok := strings.CutPrefix(folder, strings.ToLower(dir)+"/"); ok {
				plain = strings.ReplaceAll(plain, rel, "")
			}
		}
	}
	if found := protectedWord.FindStringSubmatch(plain); found != nil {
		return found[1]
	}
	return ""
}

// protectedWord is a protected name that is not a part of a longer one, such as .gitignore or a.git.
var protectedWord = regexp.MustCompile(`(?:^|[^\w\x{80}-\x{10ffff}-])(\.claude|\.fairlead|\.git)(?:$|\.$|[^\w\x{80}-\x{10ffff}.-]|\.[^\w\x{80}-\x{10ffff}-])`)
