package policy

import (
	"fmt"
	"path"
	"strings"
)

// Harmless flags of git, for the commands that only read.
const (
	gitPick = "all branches tags remotes author= committer= grep= since= until= after= before= max-count= skip= reverse merges no-merges first-parent " +
		"follow invert-grep all-match regexp-ignore-case fixed-strings extended-regexp no-walk topo-order date-order author-date-order left-right " +
		"cherry cherry-pick cherry-mark boundary ancestry-path not reflog simplify-by-decoration full-history min-parents= max-parents= glob= exclude="
	gitShow = "oneline pretty format= abbrev-commit no-abbrev-commit abbrev no-abbrev graph no-graph decorate no-decorate date= relative-date color no-color " +
		"source parents children notes no-notes encoding= expand-tabs patch no-patch raw stat numstat shortstat dirstat summary name-only name-status unified= " +
		"word-diff word-diff-regex= color-words check full-index binary find-renames no-renames find-copies find-copies-harder diff-filter= pickaxe-all " +
		"pickaxe-regex relative no-relative text ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines ignore-cr-at-eol minimal patience " +
		"histogram diff-algorithm= anchored= inter-hunk-context= function-context exit-code quiet src-prefix= dst-prefix= no-prefix no-ext-diff no-textconv " +
		"cached staged merge-base cc combined-all-paths compact-summary color-moved no-color-moved submodule ignore-submodules indent-heuristic null " +
		"break-rewrites irreversible-delete full-diff patch-with-stat patch-with-raw column"
)

// git allows commands that only read: a list with flags for each, in a repository whose configuration names
// no program that git would run.
func (s *shell) git(args []value) *problem {
	at := 0
	for ; at < len(args); at++ {
		v := args[at]
		if !v.static() || !strings.HasPrefix(v.text, "-") {
			break
		}
		switch v.text {
		case "--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs":
		case "--version":
			return nil
		default:
			return unknownFlag("git", cut(v.text))
		}
	}
	if at == len(args) {
		return nil // prints its usage
	}
	if !args[at].static() {
		return &problem{"use git version control", "git " + args[at].show() + " is only known when it runs", "write it out"}
	}
	name := args[at].text
	f, ok := gitFlags(name, args[at+1:])
	if !ok {
		return notGathering("git " + name)
	}
	if p := f.check("git "+name, args[at+1:]); p != nil {
		return p
	}
	for _, v := range args {
		if strings.Contains(v.text, "%G") || strings.Contains(v.text, "(signature") {
			return &problem{"check signatures", "the format " + v.show() + " runs gpg", "leave the signature out"}
		}
	}
	return s.gitTrusted()
}

// gitFlags are the flags with which a git command only reads.
func gitFlags(name string, args []value) (flags, bool) {
	first := ""
	if len(args) > 0 && args[0].static() {
		first = args[0].text
	}
	switch name {
	case "status":
		return flags{short: "sbzuvno", long: "short branch porcelain long verbose untracked-files ignored show-stash ahead-behind no-ahead-behind renames no-renames null column no-column"}, true
	case "log", "show", "diff", "whatchanged", "diff-tree", "diff-index", "diff-files", "rev-list", "shortlog", "reflog", "show-branch":
		return gitHistory(name, first)
	case "branch":
		return gitBranch(args), true
	case "tag":
		return flags{short: "ln0123456789", long: "list sort= contains no-contains merged no-merged points-at format= column no-column color ignore-case", none: first != "-l" && first != "--list"}, true
	case "remote":
		return flags{short: "v", long: "verbose all push", none: first != "get-url"}, true
	case "stash":
		return flags{short: "pu0123456789", long: gitShow}, first == "list" || first == "show"
	case "config":
		return flags{short: "lz", long: "get get-all get-regexp get-urlmatch list local global system worktree show-origin show-scope null name-only type= bool int path default="},
			has("--get --get-all --get-regexp --list -l", first)
	case "rev-parse", "merge-base", "name-rev", "show-ref", "for-each-ref", "count-objects", "check-ignore", "ls-tree", "cat-file", "describe", "ls-files", "blame", "grep", "version":
		return gitPlumbing(name), true
	case "worktree":
		return flags{short: "vz", long: "porcelain verbose"}, first == "list"
	}
	return flags{}, false
}

func gitHistory(name, first string) (flags, bool) {
	switch name {
	case "reflog":
		f := flags{short: "0123456789pz", valued: "n", long: gitPick + " " + gitShow, none: first != "show"}
		return f, first == "" || first == "show" || strings.HasPrefix(first, "-")
	case "shortlog":
		return flags{short: "sne", long: "summary numbered email group= " + gitPick}, true
	case "show-branch":
		return flags{short: "ar", long: "all remotes current list topo-order sha1-name no-name sparse"}, true
	}
	return flags{short: "pusmctrwbaRzgiEFPWBMCDN0123456789", valued: "nSGLlUXO", long: "line-prefix= objects count timestamp name-objects no-index root " + gitPick + " " + gitShow}, true
}

// gitBranch lists; with a name and no flag for listing it creates a branch.
func gitBranch(args []value) flags {
	f := flags{
		short: "avri", none: true,
		long: "all list remotes verbose show-current contains no-contains merged no-merged points-at sort= format= column no-column color no-color abbrev no-abbrev ignore-case omit-empty",
	}
	for _, v := range args {
		switch {
		case v.static() && has("--list --contains --no-contains --merged --no-merged --points-at", v.text):
			f.none = false
		case v.static() && v.text == "--":
			return f
		}
	}
	return f
}

func gitPlumbing(name string) flags {
	switch name {
	case "rev-parse":
		return flags{short: "q", long: "abbrev-ref short verify quiet show-toplevel show-prefix show-cdup show-superproject-working-tree git-dir absolute-git-dir git-common-dir " +
			"git-path= is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository all branches tags remotes symbolic symbolic-full-name revs-only no-revs flags no-flags default="}
	case "merge-base":
		return flags{short: "a", long: "all octopus independent is-ancestor fork-point"}
	case "name-rev":
		return flags{long: "tags refs= exclude= all name-only no-undefined always"}
	case "show-ref":
		return flags{short: "dsq", long: "head heads tags branches dereference hash abbrev verify quiet exists"}
	case "for-each-ref":
		return flags{valued: "", long: "count= sort= format= points-at= merged no-merged contains no-contains ignore-case color omit-empty exclude="}
	case "count-objects":
		return flags{short: "vH", long: "verbose human-readable"}
	case "check-ignore":
		return flags{short: "qvnz", long: "quiet verbose non-matching no-index"}
	case "ls-tree":
		return flags{short: "drtlz", long: "name-only name-status long object-only full-name full-tree abbrev format="}
	case "cat-file":
		return flags{short: "tspe"}
	case "describe":
		return flags{long: "all tags long always exact-match first-parent abbrev match= exclude= candidates contains dirty broken"}
	case "ls-files":
		return flags{short: "cdmosiuktvz", valued: "xX", long: "cached deleted modified others stage ignored unmerged killed directory no-empty-directory exclude= exclude-from= " +
			"exclude-standard error-unmatch full-name abbrev eol deduplicate format="}
	case "blame":
		return flags{short: "lstefnpwMCbc", valued: "LS", long: "porcelain line-porcelain incremental root show-stats show-name show-number show-email date= since= abbrev color-lines color-by-age ignore-rev= ignore-revs-file= first-parent"}
	case "grep":
		return flags{short: "nivwlLchHoqEFGPaIrzpW0123456789", valued: "ABCef", long: "cached untracked no-index exclude-standard line-number column ignore-case invert-match word-regexp " +
			"files-with-matches name-only files-without-match count only-matching quiet extended-regexp fixed-strings basic-regexp perl-regexp text " +
			"show-function function-context heading break color no-color and or not all-match max-depth= max-count= after-context= before-context= context= null full-name threads="}
	}
	return flags{long: "build-options"}
}

const (
	gitConfigBytesMax = 64 << 10 // a repository's configuration has a few lines
	gitUpMax          = 64       // folders above a folder
)

// gitTrusted returns what git would run in the command's folder: the repository's configuration can name
// programs, and a process that may write files somewhere can create a repository there.
func (s *shell) gitTrusted() *problem {
	if len(s.dirs) == 0 {
		return &problem{"use git where it is not known", "it is not known in which folder this git runs", "give cd one plain path"}
	}
	for _, dir := range s.dirs {
		if s.trusted[dir] {
			continue
		}
		if s.trusted == nil {
			s.trusted = map[string]bool{}
		}
		s.trusted[dir] = true // a fault found below returns earlier
		folder, config, top := s.gitFolder(dir)
		if folder == "" {
			continue
		}
		hooks := join(folder, "hooks")
		for _, name := range []string{join(config, "config"), join(folder, "config.worktree")} {
			text, exists, err := s.j.disk.Read(name, gitConfigBytesMax)
			switch {
			case err != nil || len(text) == gitConfigBytesMax:
				return gitRuns(dir, "what its configuration names, which cannot be read")
			case exists:
				key, moved := gitProgram(string(text))
				switch {
				case key != "":
					return gitRuns(dir, key)
				case path.IsAbs(moved):
					hooks = moved
				case moved != "":
					hooks = join(top, moved)
				}
			}
		}
		if f, err := s.j.disk.Look(join(hooks, "post-index-change")); err != nil || f.Kind != Missing {
			return gitRuns(dir, "the hook post-index-change")
		}
	}
	return nil
}

func gitRuns(dir, what string) *problem {
	return &problem{"use git version control", fmt.Sprintf("in %s git may run %s", cut(dir), what), "have a person look at that repository's .git/config"}
}

// gitFolder returns the .git folder that git would use for a folder, its configuration, and the repository's
// top.
func (s *shell) gitFolder(dir string) (folder, config, top string) {
	f, err := s.j.disk.Look(dir)
	if err != nil {
		return "", "", ""
	}
	at := f.Path
	for range gitUpMax {
		if folder := s.gitAt(at); folder != "" {
			config = folder
			if text, exists, err := s.j.disk.Read(join(folder, "commondir"), pathBytesMax); err == nil && exists {
				if config = strings.TrimSpace(string(text)); !path.IsAbs(config) {
					config = join(folder, config)
				}
			}
			return folder, config, at
		}
		if at == "/" {
			break
		}
		at = path.Dir(at)
	}
	return "", "", ""
}

// gitAt returns the .git folder of a repository that begins at a folder, or empty.
func (s *shell) gitAt(dir string) string {
	f, err := s.j.disk.Look(join(dir, ".git"))
	switch {
	case err == nil && f.Kind == Folder:
		return f.Path
	case err == nil && f.Kind == Regular:
		text, _, _ := s.j.disk.Read(f.Path, pathBytesMax)
		to := strings.TrimSpace(strings.TrimPrefix(string(text), "gitdir:"))
		if !path.IsAbs(to) {
			to = join(dir, to)
		}
		return to
	}
	if head, err := s.j.disk.Look(join(dir, "HEAD")); err != nil || head.Kind == Missing {
		return ""
	}
	if objects, err := s.j.disk.Look(join(dir, "objects")); err == nil && objects.Kind == Folder {
		return dir // a bare repository, whatever its name
	}
	return ""
}

// gitProgram returns the first key of a git configuration that names a program which reading runs, or another
// file to include; empty: there is none. hooks is the configured folder of hooks.
func gitProgram(text string) (program, hooks string) {
	section, text := "", strings.TrimPrefix(text, "\ufeff")
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", ""), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, after, _ := strings.Cut(line[1:], "]")
			name, _, _ := strings.Cut(strings.TrimSpace(head), " ")
			name, _, _ = strings.Cut(name, ".")
			section = strings.ToLower(strings.TrimSpace(name))
			line = strings.TrimSpace(after)
			if section == "include" || section == "includeif" {
				return section, ""
			}
		}
		key, val, _ := strings.Cut(line, "=")
		key, val = strings.ToLower(strings.TrimSpace(key)), strings.Trim(strings.TrimSpace(val), `"`)
		plain := has("true false yes no on off 0 1", strings.ToLower(val)) || val == ""
		switch full := section + "." + key; full {
		case "core.fsmonitor", "core.pager", "log.showsignature":
			if !plain {
				return full, ""
			}
		case "core.hookspath":
			if hooks = val; strings.ContainsAny(val, "~%\\\"#;") {
				return full, "" // git interprets such a value further
			}
		case "diff.external", "diff.textconv", "diff.command", "filter.clean", "filter.process", "gpg.program", "core.alternaterefscommand", "trailer.command", "trailer.cmd":
			return full, ""
		default:
			if section == "pager" && key != "" && !plain {
				return full, ""
			}
		}
	}
	return "", hooks
}
