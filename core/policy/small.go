package policy

import (
	"regexp"
	"strings"
)

// The small language: plain commands that only read, by a list of programs and of flags. It decides where no
// kernel holds a command, and which commands of an agent need no permission.

// small are programs with the flags with which they only read; with other flags, or more words, they write, or run
// something.
var small = map[string]flags{
	"file": {short: "biLhkprN0", valued: "F", long: "brief mime mime-type mime-encoding"},
	"diff": {
		short: "abBcdeEiNnpPqrstTuwyZ0123456789", valued: "CFILUWxX",
		long: "unified= context= brief recursive side-by-side ignore-case ignore-all-space ignore-space-change new-file text exclude= color",
	},
	"date":     {short: "uRIfsid", none: true},
	"hostname": {short: "fsid", none: true},
	"base64":   {short: "d", valued: "w", long: "decode wrap="},
	"sort": {
		short: "bdfghiMnRrVcCmsuz", valued: "ktS",
		long: "reverse numeric-sort unique key= field-separator= human-numeric-sort version-sort ignore-case stable zero-terminated",
	},
	"uniq": {short: "cdDiuz", valued: "fsw", most: 1, long: "count repeated ignore-case unique skip-fields= skip-chars= check-chars="},
	"rg": {
		short: "nNiSsvwxclLoHIuUaPFhq0.", valued: "eABCgtTmMjd",
		long: "line-number ignore-case invert-match word-regexp count files files-with-matches only-matching hidden no-ignore glob= type= type-not= max-count= max-depth= context= fixed-strings multiline json",
	},
	"tree": {short: "adfilxshDpugtrcUvnCASJX", valued: "LPI", long: "dirsfirst noreport gitignore prune du si"},
	"find": {words: true, long: "print print0 ls prune quit empty executable readable depth mount xdev follow not a and o or L H P " +
		"name= iname= path= ipath= wholename= regex= iregex= regextype= type= maxdepth= mindepth= size= mtime= mmin= newer= perm= user= group= links= printf="},
}

// smallCall returns what is wrong with a command; nil: it only reads.
func smallCall(name string, args []value) *denial {
	f, known := small[name]
	one := ""
	if len(args) == 1 && args[0].static() {
		one = args[0].text
	}
	switch {
	case has(readers, name), name == "printf":
		return counting(name, args)
	case name == "sed":
		return smallSed(args)
	case name == "git":
		return smallGit(args)
	case name == "date" && strings.HasPrefix(one, "+"), has(versioned+" go", name) && one == "--version", name == "go" && one == "version":
		return nil
	case known:
		return f.check(name, args)
	}
	return notGathering(name)
}

// counting returns what is wrong with a builtin that reads a word as a variable, and runs the code in its
// index.
func counting(name string, args []value) *denial {
	if !has("test [ printf read unset wait mapfile readarray getopts print shift export readonly local declare typeset let integer float",
		name) {
		return nil
	}
	for i, v := range args {
		switch {
		case strings.ContainsAny(v.text, "`$") && name != "printf", runsInIndex(v):
		case !has("test [ printf read", name):
			continue
		case v.text == "-v" || v.text == "-R" || strings.HasPrefix(v.text, "-v") && i == 0:
		case has("-eq -ne -lt -le -gt -ge", v.text) && i > 0 && !(isNumber(args[i-1].text) && i+1 < len(args) && isNumber(args[i+1].text)):
		case name == "printf" && i == 0 && !v.static(), name != "printf" && v.split:
		default:
			continue
		}
		return trouble("calculate in the shell", name+" "+v.show()+" may run the code in the index of a variable",
			"compare plain numbers, or text with =")
	}
	return nil
}

var linesOnly = regexp.MustCompile(`^([0-9]+|\$)(,([0-9]+|\$))?p$`)

// smallSed accepts sed -n with lines to print.
func smallSed(args []value) *denial {
	if len(args) < 2 || !args[0].static() || args[0].text != "-n" || !args[1].static() || !linesOnly.MatchString(args[1].text) {
		return trouble("run a sed script", "only sed -n with lines to print (sed -n '1,40p' FILE) is known to be harmless", "use that form")
	}
	return flags{}.check("sed", args[2:])
}

// Git's commands that only read, and the flags with which they do.
const (
	gitReading = "status log show diff branch tag remote stash config rev-parse ls-files ls-tree blame grep describe shortlog merge-base reflog for-each-ref show-ref " +
		"count-objects check-ignore worktree rev-list cherry name-rev version cat-file whatchanged diff-tree diff-index diff-files range-diff show-branch"
	gitFlags = "oneline stat graph decorate all follow name-only name-status patch no-patch numstat shortstat summary cached staged no-merges merges first-parent since= until= after= before= " +
		"author= grep= max-count= pretty format= date= abbrev abbrev-commit reverse word-diff color no-color merged no-merged contains no-contains sort= list verbose short branch porcelain " +
		"show-current abbrev-ref verify quiet get get-all get-regexp points-at tags always long dirty exact-match exclude-standard others modified deleted stage full-name show-toplevel git-dir " +
		"no-ext-diff no-textconv unified= relative diff-filter= find-renames ignore-all-space ignore-space-change minimal exit-code summary numbered email count left-right " +
		"remotes heads is-ancestor all-match ignore-case untracked-files ignored show-stash is-inside-work-tree line-number word-regexp files-with-matches null-data"
	// gitListing shows with these first words or flags, and changes something with other operands.
	gitListing = "branch:--list branch:--contains branch:--no-contains branch:--merged branch:--no-merged branch:--points-at tag:-l tag:--list tag:--contains tag:--points-at " +
		"remote:show remote:get-url stash:list stash:show worktree:list reflog:show config:--get config:--get-all config:--get-regexp config:--list config:-l"
)

func smallGit(args []value) *denial {
	for len(args) > 0 && args[0].static() && has("--no-pager -P --no-optional-locks", args[0].text) {
		args = args[1:]
	}
	switch {
	case len(args) == 0 || len(args) == 1 && args[0].text == "--version":
		return nil
	case !args[0].static() || strings.HasPrefix(args[0].text, "-"):
		return unknownFlag("git", args[0].show())
	case !has(gitReading, args[0].text):
		return notGathering("git " + args[0].show())
	}
	name, rest := args[0].text, args[1:]
	f := flags{short: "pusnabrvzcmtwielLq0123456789", valued: "nSGLUCMABef", long: gitFlags}
	if has("branch tag remote stash config reflog worktree", name) {
		switch listing := gitLooks(name, rest) && len(rest) > 0; {
		case listing && !strings.HasPrefix(rest[0].text, "-"):
			rest = rest[1:] // list, show, or a setting's name
		case !listing && has("stash worktree config", name):
			return notGathering("git " + name)
		default:
			f.none = !listing
		}
		f.short, f.valued = "avrnl0123456789", ""
	}
	for _, v := range rest {
		if strings.Contains(v.text, "%G") || strings.Contains(v.text, "(signature") {
			return trouble("check signatures", "the format "+v.show()+" runs gpg", "leave the signature out")
		}
	}
	return f.check("git "+name, rest)
}
