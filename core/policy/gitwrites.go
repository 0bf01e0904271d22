package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// gitOf returns git's command and its words, after git's own flags. moved means that those name another repository
// or programs; name is empty if it is only known when it runs.
func gitOf(args []value) (name string, rest []value, moved bool) {
	for i := 0; i < len(args); i++ {
		v := args[i]
		for _, flag := range []string{"--git-dir", "--work-tree", "--config-env", "--exec-path"} {
			moved = moved || strings.HasPrefix(v.text, flag)
		}
		switch {
		case !v.static():
			return "", nil, moved
		case v.text == "-C" || v.text == "-c":
			i++
		case !strings.HasPrefix(v.text, "-"):
			return v.text, args[i+1:], moved
		}
	}
	return "", nil, moved
}

// gitWrites judges git commands that write inside .git, which only an agent that a person allowed to commit
// may do.
func (s *shell) gitWrites(args []value) {
	s.gitSettings(args)
	name, rest, moved := gitOf(args[1:])
	if name == "" && !moved {
		s.unknownCommand("git", args)
		return
	}
	looks := gitLooks(name, rest) && !moved
	for i, v := range rest {
		flag, to, attached := strings.Cut(v.text, "=")
		// of any command that shows
		if strings.HasPrefix(flag, "--output") || len(flag) > len("--o") && strings.HasPrefix("--output", flag) {
			if !attached && i+1 < len(rest) {
				v, to = rest[i+1], rest[i+1].text
			}
			s.writes(value{text: to, split: v.split, glob: v.glob}, false)
		}
		if !looks && !has("add commit tag notes branch push fetch", name) { // no file in the tree changes
			s.mentions(v.text, "git "+name)
		}
	}
	if !gitSpeaks(args) {
		s.gitRuns(name, rest)
	}
	s.gitChanges(name, len(args)-len(rest) > 2, rest)
	switch {
	case looks, !s.j.where.Model, s.stop != nil:
	case name == "clean" && !moved: // it removes files of the tree
	case has("archive bundle format-patch", name):
		s.misses("which files git " + name + " writes is not known")
	case s.j.where.Commits && !moved &&
		has("add commit checkout switch restore reset rm mv merge rebase cherry-pick revert stash tag branch notes fetch pull push clean am apply bisect gc", name):
	default:
		s.stopFor(&denial{
			code: DeniedProtected, capability: "use git version control",
			why: fmt.Sprintf("git %s writes below .git (.git/**); agents commit in the clones of tasks and runs", cut(name)),
		})
	}
}

// gitSpeaks reports whether the words of a command of git are messages and names.
func gitSpeaks(args []value) bool {
	for len(args) > 3 && args[1].text == "-C" { // other flags before the command may name programs
		args = args[2:]
	}
	return len(args) > 1 && has("add commit tag notes branch stash merge cherry-pick revert", args[1].text)
}

// gitLooks reports whether a git command only reads, apart from its output.
func gitLooks(name string, args []value) bool {
	first := ""
	if len(args) > 0 && args[0].static() {
		first = args[0].text
	}
	switch name {
	case "branch", "tag", "remote", "config", "stash", "worktree":
		return has(gitListing, name+":"+first) || name == "config" && len(args) == 1 && !strings.HasPrefix(first, "-") // shows a value
	case "reflog":
		return first == "" || first == "show" || strings.HasPrefix(first, "-")
	case "interpret-trailers":
		return !slices.ContainsFunc(args, func(v value) bool { return !v.static() || strings.HasPrefix(v.text, "--in") })
	}
	return has(gitReading, name) ||
		has("help ls-remote verify-commit verify-tag var check-attr check-mailmap merge-tree patch-id request-pull stripspace", name)
}

// gitRuns makes a command of git doubtful that may run one of its words.
func (s *shell) gitRuns(name string, args []value) {
	for _, v := range args {
		if strings.ContainsAny(v.text, " ;|&$`\"'\\") ||
			name == "grep" && (strings.HasPrefix(v.text, "-O") || strings.HasPrefix(v.text, "--op")) {
			s.j.doubts("git " + cut(name) + " may run " + v.show())
		}
	}
}

// gitChanges judges git's changes to tracked files, most of which its words do not name.
func (s *shell) gitChanges(name string, moved bool, args []value) {
	switch {
	case !s.j.bound || !s.j.rules.ofFiles():
	case has("checkout switch restore reset merge rebase cherry-pick revert stash pull clean am apply bisect worktree submodule sparse-checkout read-tree checkout-index", name), has("rm mv", name) && moved:
		s.j.doubts("the files that git " + cut(name) + " changes are unknown")
	case has("rm mv", name):
		for i, v := range args {
			switch {
			case strings.HasPrefix(v.text, "-"):
			case name == "mv" && i == len(args)-1 && v.static() && s.isFolder(v):
				for _, from := range args[:i] {
					s.puts(from, v)
				}
			default:
				s.writes(v, true)
			}
		}
	}
}

// findActs judges find where it deletes, writes or runs, and reports whether it does.
func (s *shell) findActs(args []value) bool {
	var from []value
	for _, v := range args[1:] {
		if strings.HasPrefix(v.text, "-") || v.text == "(" || v.text == "!" {
			break
		}
		from = append(from, v)
	}
	if len(from) == 0 {
		from = []value{{text: "."}}
	}
	acts := false
	for i := 1; i < len(args); i++ {
		switch args[i].text {
		case "-delete", "-fprint", "-fprint0", "-fprintf", "-fls":
			acts = true
			s.stopFor(s.notListed("find", args))
			s.starts("find writes or removes by " + args[i].text)
			if args[i].text == "-delete" {
				for _, v := range from {
					s.writes(v, true)
				}
			} else if i++; i < len(args) {
				s.writes(args[i], false)
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			var inner []value
			acts = true
			for i++; i < len(args) && args[i].text != ";" && args[i].text != "+"; i++ {
				inner = append(inner, args[i])
			}
			spared := slices.ContainsFunc(args, spares)
			for _, v := range args { // the action applies to what it searches
				if !spared {
					s.mentions(v.text, "find")
				}
				if v.text == "state.jsonl" || v.text == "messages.jsonl" {
					s.stopFor(s.j.himself(v.show(), "the session's files"))
				}
			}
			if len(inner) > 0 {
				s.depth++
				s.run(filledIn(inner, "{}"))
				s.depth--
			}
		}
	}
	for i := 1; acts && i < len(args)-1; i++ {
		if has("-name -iname -path -ipath -wholename -iwholename -regex -iregex", args[i].text) && meansSettings(args[i+1].text) &&
			!slices.ContainsFunc(args, spares) && slices.ContainsFunc(from, s.holdsHooks) {
			s.stopFor(s.j.himself(args[i+1].show(), ".claude/**"))
		}
	}
	s.acts = s.acts || acts
	return acts
}

// spares reports whether a word of find leaves something out.
func spares(v value) bool { return has("-not ! -prune", v.text) }

// meansSettings reports whether a pattern of find selects the settings that hold the hooks, and not every file of their kind.
func meansSettings(pattern string) bool {
	pattern = path.Base(strings.ReplaceAll(strings.ToLower(pattern), `\`, ""))
	for _, name := range [...]string{"settings.json", "settings.local.json"} {
		is, err := path.Match(pattern, name)
		every, _ := path.Match(pattern, "a.json")
		if err == nil && is && !every || strings.Contains(pattern, strings.TrimSuffix(name, ".json")) {
			return true
		}
	}
	return false
}

// holdsHooks reports whether a place from which find searches may hold the folder with the hooks.
func (s *shell) holdsHooks(from value) bool {
	if !from.static() || len(s.dirs) == 0 {
		return true
	}
	return slices.ContainsFunc(s.abs(from.text), func(p string) bool { return s.j.holds(path.Clean(p)) || s.j.protects(p) != "" })
}
