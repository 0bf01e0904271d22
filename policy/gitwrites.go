package policy

import (
	"fmt"
	"slices"
	"strings"
)

// gitWrites judges git commands that write inside .git, which only an agent that a person allowed to commit
// may do.
func (s *shell) gitWrites(args []value) {
	name, at, moved := "", 0, false
	for ; at < len(args); at++ {
		v := args[at]
		if v.static() && !strings.HasPrefix(v.text, "-") {
			name = v.text
			break
		}
		switch {
		case v.text == "-C" || v.text == "-c":
			at++
		case strings.HasPrefix(v.text, "--git-dir"), strings.HasPrefix(v.text, "--work-tree"), strings.HasPrefix(v.text, "--config-env"), strings.HasPrefix(v.text, "--exec-path"):
			moved = true
		}
	}
	if name == "" && at >= len(args) && !moved {
		s.unknownCommand("git", append([]value{{text: "git"}}, args...))
		return
	}
	s.j.gitRuns(name, args[min(at+1, len(args)):])
	if gitLooks(name, args[min(at+1, len(args)):]) && !moved {
		for i, v := range args { // it only reads, but may write its output
			if strings.HasPrefix(v.text, "--o") {
				s.mentions(v.text, "git "+name)
			}
			if to, ok := strings.CutPrefix(v.text, "--output"); ok && to != "" && to[0] == '=' {
				s.writes(value{text: to[1:], split: v.split, glob: v.glob}, false)
			} else if ok && to == "" && i+1 < len(args) {
				s.writes(args[i+1], false)
			}
		}
		return
	}
	if !moved && s.gitReads(name, args[min(at+1, len(args)):]) {
		return
	}
	s.gitChanges(name, args[:at], args[min(at+1, len(args)):])
	if s.j.where.Commits && !moved && has("add commit checkout switch restore reset rm mv merge rebase cherry-pick revert stash tag branch fetch pull push clean am apply bisect notes gc", name) {
		return
	}
	if !s.j.where.Model {
		return
	}
	s.stopFor(&denial{code: DeniedProtected, capability: "use git version control", why: fmt.Sprintf("git %s writes below .git (.git/**)", cut(name))})
}

// gitLooks reports whether a git command only reads, apart from its --output.
func gitLooks(name string, args []value) bool {
	first := ""
	if len(args) > 0 && args[0].static() {
		first = args[0].text
	}
	switch name {
	case "branch", "tag", "remote":
		return false // smallGit knows when they list
	case "config", "stash", "worktree":
		return has(gitListing, name+":"+first)
	case "reflog":
		return first == "" || first == "show" || strings.HasPrefix(first, "-")
	}
	return has(gitReading, name)
}

// gitReads lists other git commands that do not write inside .git, for roles that may run commands.
func (s *shell) gitReads(name string, args []value) bool {
	operands, flagged := 0, false
	speaks := has("add commit push fetch tag notes branch", name) // its words are messages and names, and no file in the tree changes
	for _, v := range args {
		if !speaks {
			s.mentions(v.text, "git "+name)
		}
		if strings.HasPrefix(v.text, "-") || v.split {
			flagged = true
		} else {
			operands++
		}
	}
	switch name {
	case "config":
		return operands == 1 && !flagged // shows a value
	case "remote":
		return operands > 0 && args[0].static() && args[0].text == "show"
	case "archive", "bundle", "format-patch":
		s.cannot("which files git " + name + " writes is not known")
		return true
	}
	return has("help ls-remote verify-commit verify-tag var check-attr check-mailmap merge-tree patch-id request-pull stripspace", name) ||
		name == "interpret-trailers" && !slices.ContainsFunc(args, func(v value) bool { return !v.static() || strings.HasPrefix(v.text, "--in") })
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
			s.hides("find writes or removes by " + args[i].text)
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
			spares := slices.ContainsFunc(args, func(v value) bool { return has("-not ! -prune", v.text) })
			for _, v := range args { // the action applies to what it searches
				if !spares {
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
	return acts
}
